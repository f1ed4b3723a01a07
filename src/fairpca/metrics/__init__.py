"""Metrics of a projection, a representation or a classifier, by group."""

from fairpca.metrics._group_values import Estimate, GroupValues
from fairpca.metrics.communality import communality
from fairpca.metrics.decisions import (
    GroupRates,
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    group_rates,
)
from fairpca.metrics.distribution import MMDTest, median_bandwidth, mmd2, mmd2_test
from fairpca.metrics.readability import Readability, Reading, adversary_gap, proxies, readability
from fairpca.metrics.reconstruction import (
    explained_variance_ratio,
    reconstruction_error,
    reconstruction_loss,
)

__all__ = [
    "Estimate",
    "GroupRates",
    "GroupValues",
    "MMDTest",
    "Readability",
    "Reading",
    "adversary_gap",
    "communality",
    "demographic_parity_difference",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "explained_variance_ratio",
    "group_rates",
    "median_bandwidth",
    "mmd2",
    "mmd2_test",
    "proxies",
    "readability",
    "reconstruction_error",
    "reconstruction_loss",
]
