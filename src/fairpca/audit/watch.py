"""What passes over a table have found in each column, in memory that does not grow with the number of rows."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable

import numpy as np

from fairpca.audit.checks import MAX_GROUPS

CONSTANT = "it is constant"
REVEALS_GROUP = "it reveals the group"
#: Names of row numbers and identifiers; a column without a name is called "column 1" and so on, "Unnamed: 0" by pandas.
_NAMES = re.compile(
    r"(unnamed: ?\d+|column \d+|_?id|_?index|idx|level_0|__index_level_\d+__|row|rownames?|"
    r"(row|record|case)[ _.-]?(id|index|no|nr|num|number))"
)


def exceeds_chance(n_values: int, group_counts: Iterable[int]) -> bool:
    """Whether values that each occur in only one group would be unlikely to do so by chance.

    That depends on how many rows share a value: with random groups, two rows with the same value belong to the same
    group with the same probability as any two rows. The threshold for the probability of all of them is 0.001.
    """
    counts = np.array(list(group_counts), dtype=float)
    n_rows = counts.sum()
    return bool((n_rows - n_values) * np.log(np.square(counts / n_rows).sum()) < np.log(1e-3))


class SeenNumbers:
    """Statistics of a numeric column over all rows, complete or not, and whether it only counts or identifies them.

    It does if every row has a whole number, and each is one more than the one before; or if it is named like an
    identifier and the numbers span at least as many values as there are rows, as different numbers do.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.audit.watch import SeenNumbers
    >>> columns = {"patient": np.arange(5.0), "ID": np.array([7.0, 3.0]), "age": np.array([31.0, 47.0])}
    >>> for name, values in columns.items():
    ...     seen = SeenNumbers(name)
    ...     seen.add(values)
    ...     print(seen.unfit_reason(len(values)))
    it counts the rows
    it identifies the rows
    None
    """

    def __init__(self, name: str) -> None:
        self.n_known, self.smallest, self.largest, self._last = 0, np.inf, -np.inf, np.nan
        self._consecutive, self._named = True, _NAMES.fullmatch(name.strip().lower()) is not None

    @property
    def magnitude(self) -> float:
        """The largest absolute value."""
        return max(self.largest, -self.smallest)

    @property
    def may_be_unique(self) -> bool:
        """Whether there is room for a different whole number per row."""
        return self.largest - self.smallest >= self.n_known - 1

    def add(self, values: np.ndarray) -> None:
        """Add rows; missing values are not finite."""
        known = values[np.isfinite(values)]
        if not len(known):
            return
        if self._consecutive or self._named:
            whole = bool((known == np.rint(known)).all())
            with np.errstate(over="ignore"):
                steps = np.diff(known, prepend=self._last if self.n_known else known[0] - 1)
            self._named = self._named and whole
            self._consecutive = self._consecutive and whole and bool((steps == 1).all())
        self._last, self.n_known = known[-1], self.n_known + len(known)
        self.smallest = min(self.smallest, float(known.min()))
        self.largest = max(self.largest, float(known.max()))

    def unfit_reason(self, n_rows: int) -> str | None:
        """Why a column of so many rows is not a feature: it is constant, or tells the rows apart; None if it may be."""
        if self.n_known and self.smallest == self.largest:
            return CONSTANT
        if self.n_known < max(n_rows, 2):
            return None
        if self._consecutive:
            return "it counts the rows"
        return "it identifies the rows" if self._named and self.may_be_unique else None


class FewValues:
    """The values of a column, as long as it is constant, or has few values that each occur in one group only."""

    def __init__(self) -> None:
        self._groups: dict[float | None, int | None] = {}  # None is a missing value, and stands for several groups
        self._many = False

    def unfit_reason(self, group_counts: Collection[int]) -> str | None:
        """Why the column is not a feature, once all rows were seen."""
        if self._many:
            return None
        if self._constant:
            return CONSTANT
        return REVEALS_GROUP if exceeds_chance(len(self._groups), group_counts) else None

    def add(self, values: np.ndarray, groups: np.ndarray) -> None:
        """Add rows."""
        self._many = self._many or self._add(values, groups)

    @property
    def _constant(self) -> bool:
        return len(self._groups.keys() - {None}) <= 1

    def _add(self, values: np.ndarray, groups: np.ndarray) -> bool:
        """Add rows, and return whether there are too many values."""
        found, positions = np.unique(values, return_inverse=True)
        if len(found) > MAX_GROUPS:
            return True
        count = int(groups.max(initial=0)) + 1
        for together in np.unique(positions.reshape(-1) * count + groups).tolist():
            position, group = divmod(together, count)
            value = None if math.isnan(found[position]) else float(found[position])
            if self._groups.setdefault(value, group) != group:
                self._groups[value] = None
        return not self._constant and (len(self._groups) > MAX_GROUPS or None in self._groups.values())
