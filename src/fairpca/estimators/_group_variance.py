"""For searches that divide by each group's own variance, or take its logarithm: every group must have some."""

from __future__ import annotations

import warnings
from typing import Any

from fairpca._labels import quoted
from fairpca.moments import GroupMoments
from fairpca.moments._group_moments import Reduction

__all__ = ["check_group_variance", "has_group_variance"]


def check_group_variance(reduction: Reduction, center: str, reason: str) -> None:
    """Raise if a group has no variance; ``reason`` is the parameter that needs it."""
    constant = _constant_groups(reduction, center)
    if constant:
        raise ValueError(
            f"{reason} needs variance in every group; the rows of {quoted(constant[0])} have none. Leave that group "
            "out, or merge it with another one."
        )


def has_group_variance(moments: GroupMoments, center: str, reason: str) -> bool:
    """Whether the chunks seen so far are enough to learn from; warns if not."""
    constant = _constant_groups(moments, center)
    if constant:
        warnings.warn(
            f"{reason} needs variance in every group, and the rows of {quoted(constant[0])} have none so far: the "
            "chunk is kept, but no components are learned until later chunks add some.",
            UserWarning,
            stacklevel=4,
        )
    return not constant


def _constant_groups(reduction: Reduction, center: str) -> list[Any]:
    """Groups whose variance is within the rounding error of the means."""
    rounding = float((reduction.mean_rounding() ** 2).sum())
    totals = reduction.traces(center)
    return [label for label, total in zip(reduction.labels, totals, strict=True) if total <= rounding]
