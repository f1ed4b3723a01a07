"""One value per group, perhaps with confidence intervals, and the differences between groups: one type for all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from fairpca._display import TableResult, number, with_interval
from fairpca._labels import label_text

__all__ = ["Estimate", "GroupValues"]


class Estimate(float):
    """A number with its confidence intervals.

    Parameters
    ----------
    value : float
        The number itself.
    low, high : float
        Its confidence interval, taken alone; NaN if there is none.
    joint_low, joint_high : float
        An interval that holds together with those of all values of this kind that were computed by the same call; NaN
        if there is none.
    count, rows : int or None
        Of a share of rows: how many it counts, and of how many. Of a difference: the rows of the smallest group.

    See Also
    --------
    GroupValues : Holds one for each group.

    Examples
    --------
    >>> from fairpca.metrics import Estimate
    >>> one = Estimate(1.5, low=0.5, high=2.5)
    >>> one + 1.0, one.low
    (2.5, 0.5)
    """

    low: float
    high: float
    joint_low: float
    joint_high: float
    count: int | None
    rows: int | None

    def __new__(
        cls,
        value: float,
        low: float = math.nan,
        high: float = math.nan,
        joint_low: float = math.nan,
        joint_high: float = math.nan,
        *,
        count: int | None = None,
        rows: int | None = None,
    ) -> Estimate:
        found = super().__new__(cls, value)
        found.low, found.high = float(low), float(high)
        found.joint_low, found.joint_high = float(joint_low), float(joint_high)
        found.count, found.rows = count, rows
        return found

    @property
    def value(self) -> float:
        return float(self)

    @property
    def joint(self) -> Estimate:
        """The same number with the joint interval as its only one."""
        return Estimate(self, self.joint_low, self.joint_high, count=self.count, rows=self.rows)

    @property
    def excludes_zero(self) -> bool:
        """Whether the joint interval lies on one side of zero."""
        return self.joint_low > 0 or self.joint_high < 0

    def __neg__(self) -> Estimate:
        return Estimate(-self.value, -self.high, -self.low, -self.joint_high, -self.joint_low)


class GroupValues(TableResult, Mapping):
    """One value per group, and the value of all rows: ``values["female"]``, ``values.gap``, ``values.overall``.

    Parameters
    ----------
    by_group : dict
        Label -> :class:`Estimate`, a float.
    overall : float
        The value of all rows.
    pairs : dict
        Pair of labels -> :class:`Estimate` of the difference, the group with the larger value first.
    name : str
        What the values are.

    See Also
    --------
    reconstruction_error, reconstruction_loss, explained_variance_ratio : Return it.
    fairpca.inference.cross_validate_groups : Returns it with intervals.

    Examples
    --------
    >>> from fairpca.metrics import GroupValues
    >>> values = GroupValues({"female": 2.0, "male": 0.5}, overall=1.0)
    >>> values["female"], values.gap, values.between
    (2.0, 1.5, ('female', 'male'))
    """

    def __init__(
        self,
        by_group: Mapping[Any, float],
        overall: float,
        pairs: Mapping[tuple[Any, Any], Estimate] | None = None,
        name: str = "value",
    ) -> None:
        self.by_group = {
            label: value if isinstance(value, Estimate) else Estimate(value) for label, value in by_group.items()
        }
        self.overall, self.name = float(overall), name
        self.pairs = dict(pairs) if pairs is not None else {}

    def __getitem__(self, label: Any) -> Estimate:
        return self.by_group[label]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.by_group)

    def __len__(self) -> int:
        return len(self.by_group)

    @property
    def max(self) -> float:
        """The largest value of a group."""
        return max(self.by_group.values())

    @property
    def min(self) -> float:
        """The smallest value of a group."""
        return min(self.by_group.values())

    @property
    def between(self) -> tuple[Any, Any]:
        """The groups with the largest and the smallest value; two different groups even if all values are equal."""
        if self.pairs:
            return max(self.pairs, key=lambda pair: self.pairs[pair])
        high, low = (end(self.by_group, key=self.by_group.__getitem__) for end in (max, min))
        return (high, low) if high != low else (high, list(self.by_group)[-1])

    @property
    def gap(self) -> Estimate:
        """The largest difference between two groups."""
        return self.pairs.get(self.between, Estimate(self.max - self.min))

    @property
    def shown_pair(self) -> tuple[Any, Any] | None:
        """The pair whose joint interval is farthest above zero: a difference that is shown; None if there is none."""
        clearest = max(self.pairs, key=lambda pair: self.pairs[pair].joint_low, default=None)
        return clearest if clearest is not None and self.pairs[clearest].joint_low > 0 else None

    @property
    def _with_intervals(self) -> bool:
        return not any(math.isnan(one.low) for one in self.by_group.values())

    def _cells(self) -> list[dict[str, str]]:
        text = with_interval if self._with_intervals else number
        return [{"group": label_text(label), self.name: text(one)} for label, one in self.by_group.items()]

    def _sentences(self) -> tuple[list[str], list[str]]:
        return [], [f"all rows: {number(self.overall)}, largest difference: {number(self.gap)}"]

    def _records(self) -> list[dict[str, Any]]:
        ends = ("low", "high") if self._with_intervals else ()
        return [
            {"group": label, self.name: one.value} | {end: getattr(one, end) for end in ends}
            for label, one in self.by_group.items()
        ]
