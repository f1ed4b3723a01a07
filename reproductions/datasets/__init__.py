"""Readers of the papers' files and folders, and a generator of their synthetic data."""

from reproductions.datasets.gaussians import make_projected_gaussians
from reproductions.datasets.samadi import load_credit, load_faces
from reproductions.datasets.splits import load_splits
from reproductions.datasets.tables import load_table, load_tables

__all__ = ["load_credit", "load_faces", "load_splits", "load_table", "load_tables", "make_projected_gaussians"]
