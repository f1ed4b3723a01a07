"""Bundled data, generators of the papers' examples, and readers of the authors' folders."""

from fairpca.datasets.folders import load_table, load_tables
from fairpca.datasets.german import load_german_credit
from fairpca.datasets.toy import make_toy

__all__ = ["load_german_credit", "load_table", "load_tables", "make_toy"]
