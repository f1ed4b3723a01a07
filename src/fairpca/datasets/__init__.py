"""Bundled data, generators for the papers' examples, and readers for the authors' files and folders."""

from fairpca.datasets.adult import load_adult
from fairpca.datasets.folders import load_table, load_tables
from fairpca.datasets.generators import make_projected_gaussians, make_same_moments
from fairpca.datasets.german import load_german_credit
from fairpca.datasets.samadi import load_credit, load_faces
from fairpca.datasets.splits import load_splits
from fairpca.datasets.toy import make_toy

__all__ = [
    "load_adult",
    "load_credit",
    "load_faces",
    "load_german_credit",
    "load_splits",
    "load_table",
    "load_tables",
    "make_projected_gaussians",
    "make_same_moments",
    "make_toy",
]
