"""Bundled data, and generators of small examples."""

from fairpca.datasets.adult import load_adult
from fairpca.datasets.generators import make_same_moments
from fairpca.datasets.german import load_german_credit
from fairpca.datasets.toy import make_toy

__all__ = ["load_adult", "load_german_credit", "make_same_moments", "make_toy"]
