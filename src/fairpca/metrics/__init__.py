"""Measures of a projection on any data, for any linear projector."""

from fairpca.metrics.adversary import adversary_gap, permuted_adversary_gaps
from fairpca.metrics.reconstruction import (
    GroupValues,
    explained_variance_ratio,
    reconstruction_error,
    reconstruction_gap,
    reconstruction_loss,
)

__all__ = [
    "GroupValues",
    "adversary_gap",
    "explained_variance_ratio",
    "permuted_adversary_gaps",
    "reconstruction_error",
    "reconstruction_gap",
    "reconstruction_loss",
]
