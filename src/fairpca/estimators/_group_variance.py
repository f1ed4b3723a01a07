"""For searches that divide by each group's own variance, or take its logarithm: every group must have some."""

from __future__ import annotations

from fairpca._labels import quoted
from fairpca.moments._group_moments import Reduction


def check_group_variance(reduction: Reduction, center: str, reason: str) -> None:
    """Raise if a group has no variance beyond the rounding of its mean; ``reason`` is the parameter that needs it."""
    rounding = float((reduction.coordinates.mean_rounding() ** 2).sum())
    for label, total in zip(reduction.labels, reduction.traces(center), strict=True):
        if total <= rounding:
            raise ValueError(
                f"{reason} needs variance in every group; the rows of {quoted(label)} have none. Leave that group "
                "out, or merge it with another one."
            )
