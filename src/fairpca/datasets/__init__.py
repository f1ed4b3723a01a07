"""Bundled data, generators of the papers' examples, and readers of the authors' folders."""

from fairpca.datasets.german import load_german_credit

__all__ = ["load_german_credit"]
