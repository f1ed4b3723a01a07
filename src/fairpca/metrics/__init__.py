"""Measures of a projection on any data, for any linear projector."""

from fairpca.metrics.reconstruction import (
    GroupValues,
    explained_variance_ratio,
    reconstruction_error,
    reconstruction_gap,
    reconstruction_loss,
)

__all__ = [
    "GroupValues",
    "explained_variance_ratio",
    "reconstruction_error",
    "reconstruction_gap",
    "reconstruction_loss",
]
