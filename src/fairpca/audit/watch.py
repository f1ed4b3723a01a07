"""What passes over a table have found in each column, in memory that does not grow with the number of rows."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable

import numpy as np

from fairpca.audit.checks import MAX_GROUPS
from fairpca.audit.texts import EXACT_INTEGERS

CONSTANT = "it is constant"
REVEALS_GROUP = "it reveals the group"
#: Names of row numbers and identifiers; a column without a name is called "column 1" and so on, "Unnamed: 0" by pandas.
_NAMES = re.compile(
    r"(unnamed: ?\d+|column \d+|_?id|_?index|idx|level_0|__index_level_\d+__|row|rownames?|"
    r"(row|record|case)[ _.-]?(id|index|no|nr|num|number))"
)
#: Number of rows of a block that is enough to rule out most columns.
_FIRST_ROWS = 1000


def unfit_reason(n_known: int, n_rows: int, *, varies: bool) -> str | None:
    """Why a column cannot be a feature (mostly missing, or constant apart from missing values); None if it can."""
    if n_known < 0.5 * n_rows:
        return f"{1 - n_known / n_rows:.0%} of it is missing"
    return None if varies or not n_rows else CONSTANT


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
    ...     seen.add(values, None)
    ...     print(seen.row_number_reason())
    it counts the rows
    it identifies the rows
    None
    """

    def __init__(self, name: str) -> None:
        self.n_known = self.n_missing = 0
        self.smallest, self.largest, self._last = np.inf, -np.inf, np.nan
        self._consecutive, self._named = True, _NAMES.fullmatch(name.strip().lower()) is not None

    @property
    def may_be_unique(self) -> bool:
        """Whether there is room for a different whole number per row."""
        return self.largest - self.smallest >= self.n_known - 1

    def add(self, values: np.ndarray, absent: np.ndarray | None) -> None:
        """Add rows; ``absent`` marks missing values, None if there are none."""
        if not len(values):
            return
        known = values if absent is None else values[~absent]
        self._consecutive = self._consecutive and absent is None and self._follows(values)
        self._named = self._named and absent is None and bool((values == np.rint(values)).all())
        self._last = float(values[-1])
        self.n_known += len(known)
        self.n_missing += len(values) - len(known)
        self.smallest = min(self.smallest, float(known.min(initial=np.inf)))
        self.largest = max(self.largest, float(known.max(initial=-np.inf)))

    def unfit_reason(self) -> str | None:
        """Why the column is not a feature, once all rows were seen."""
        return unfit_reason(self.n_known, self.n_known + self.n_missing, varies=self.smallest < self.largest)

    def row_number_reason(self) -> str | None:
        """How the column tells the rows apart, once all were seen; None if it may be a feature."""
        if self.n_known < 2:
            return None
        if self._consecutive:
            return "it counts the rows"
        return "it identifies the rows" if self._named and self.may_be_unique else None

    def _follows(self, values: np.ndarray) -> bool:
        """Whether each value is one more than the one before."""
        first, last = float(values[0]), float(values[-1])  # most columns are ruled out by these
        if first != np.rint(first) or last - first != len(values) - 1 or (self.n_known and first != self._last + 1):
            return False
        return max(abs(first), abs(last)) < EXACT_INTEGERS and bool((values[1:] == values[:-1] + 1).all())


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
        """Add rows; the first ones are looked at first, to save time."""
        for rows in (slice(_FIRST_ROWS), slice(None)):
            self._many = self._many or self._add(values[rows], groups[rows])

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
