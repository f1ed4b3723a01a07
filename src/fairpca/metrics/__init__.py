"""Figures of a projection or a classifier, group by group."""

from fairpca.metrics.communality import communality
from fairpca.metrics.distribution import MMDTest, median_bandwidth, mmd2, mmd2_test
from fairpca.metrics.downstream import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)

__all__ = [
    "MMDTest",
    "communality",
    "demographic_parity_difference",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "median_bandwidth",
    "mmd2",
    "mmd2_test",
]
