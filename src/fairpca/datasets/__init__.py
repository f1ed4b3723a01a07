"""Bundled data, generators of the papers' examples, and readers of the authors' folders."""

from fairpca.datasets.generators import make_projected_gaussians, make_same_moments
from fairpca.datasets.german import load_german_credit
from fairpca.datasets.splits import load_splits

__all__ = ["load_german_credit", "load_splits", "make_projected_gaussians", "make_same_moments"]
