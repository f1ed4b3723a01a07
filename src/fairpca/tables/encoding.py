"""From the columns of a table to a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairpca.tables.errors import Remedy, TableError
from fairpca.tables.labels import MISSING_LEVEL, is_number
from fairpca.tables.rare import POOLED_LEVEL
from fairpca.tables.table import Table

__all__ = ["Encoder", "standardising"]

_FEATURE = "a feature of the model"
_DAMAGED = "The model's description of its columns is damaged."


@dataclass(frozen=True)
class Encoder:
    """Converts the columns of a table to a matrix: numbers unchanged, text one-hot encoded, then standardised.

    Stored with a saved model, so that new files are encoded like the one it was fitted on.

    Parameters
    ----------
    numeric : tuple of str
        Numeric columns.
    levels : dict of str to tuple of str
        Text columns, and their levels that have a feature.
    offsets, scales : ndarray of shape (n_features,)
        Subtracted from each feature, and what it is then divided by.
    pooled : dict of str to tuple of str
        Rare levels of text columns, which share the feature of the level "other (rare)" if there is one.
    fills : dict of str to float
        Numeric columns whose missing values are replaced, and by what.
    indicators : tuple of str
        Those of them that have one more feature, which is 1 where the value was missing.

    See Also
    --------
    prepare_table : Fits one.
    """

    numeric: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]
    offsets: np.ndarray
    scales: np.ndarray
    pooled: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fills: dict[str, float] = field(default_factory=dict)
    indicators: tuple[str, ...] = ()

    @classmethod
    def plain(
        cls,
        numeric: Sequence[str],
        levels: Mapping[str, tuple[str, ...]],
        *,
        indicators: Sequence[str] = (),
        **others: Any,
    ) -> Encoder:
        """An encoder that does not standardise."""
        size = len(numeric) + sum(map(len, levels.values())) + len(indicators)
        return cls(tuple(numeric), dict(levels), np.zeros(size), np.ones(size), indicators=tuple(indicators), **others)

    @property
    def columns(self) -> list[str]:
        """The columns of a table that are needed."""
        return [*self.numeric, *self.levels]

    @property
    def feature_names(self) -> list[str]:
        levels = [f"{name}={level}" for name, levels in self.levels.items() for level in levels]
        return [*self.numeric, *levels, *(f"{name}={MISSING_LEVEL}" for name in self.indicators)]

    def encode(self, table: Table) -> np.ndarray:
        """The matrix of the table's rows, with NaN where a number is missing that is not filled in.

        A level not seen in fitting counts as rare; without a feature for rare levels, it becomes all zeros before
        standardising.
        """
        X = np.zeros((table.n_rows, len(self.offsets)))  # filled in place: X may take most of the memory
        indicators = {name: j for j, name in enumerate(self.indicators, start=X.shape[1] - len(self.indicators))}
        for j, name in enumerate(self.numeric):
            X[:, j] = column = self._numbers(table, name)
            absent = ~np.isfinite(column)
            X[absent, j] = self.fills.get(name, np.nan)
            if name in indicators:
                X[:, indicators[name]] = absent
        start = len(self.numeric)
        for name, levels in self.levels.items():
            position = {level: start + i for i, level in enumerate(levels)}
            rest = position.get(POOLED_LEVEL, -1)
            columns = np.array([position.get(text, rest) for text in table.texts(name, _FEATURE)], dtype=int)
            known = np.flatnonzero(columns >= 0)
            X[known, columns[known]] = 1.0
            start += len(levels)
        X -= self.offsets
        X /= self.scales
        return X

    def missing_numbers(self, table: Table) -> dict[str, int]:
        """How many rows lack a number that is not filled in, by column."""
        counts = {name: int((~np.isfinite(self._numbers(table, name))).sum()) for name in self.numeric}
        return {name: count for name, count in counts.items() if count and name not in self.fills}

    def pools_new_levels(self, name: str) -> bool:
        """Whether levels of this column that were not seen in fitting count as rare."""
        return POOLED_LEVEL in self.levels[name]

    def unknown_levels(self, table: Table) -> dict[str, list[str]]:
        """Values of text columns that were not seen in fitting."""
        found = {
            name: sorted(set(table.texts(name, _FEATURE)) - {*levels, *self.pooled.get(name, ())})
            for name, levels in self.levels.items()
        }
        return {name: values for name, values in found.items() if values}

    def as_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON."""
        return {
            "numeric": list(self.numeric),
            "levels": {name: list(levels) for name, levels in self.levels.items()},
            "offsets": self.offsets.tolist(),
            "scales": self.scales.tolist(),
            "pooled": {name: list(levels) for name, levels in self.pooled.items()},
            "fills": self.fills,
            "indicators": list(self.indicators),
        }

    @classmethod
    def from_dict(cls, values: Any) -> Encoder:
        """The inverse of :meth:`as_dict`, with checks: the file may come from an untrusted source."""
        try:
            levels, pooled = (
                {str(name): tuple(str(level) for level in found) for name, found in part.items()}
                for part in (values["levels"], values.get("pooled", {}))
            )
            offsets, scales = (np.array(values[name], dtype=np.float64) for name in ("offsets", "scales"))
            fills = {str(name): float(value) for name, value in values.get("fills", {}).items()}
            numeric, indicators = (tuple(map(str, part)) for part in (values["numeric"], values.get("indicators", ())))
            encoder = cls(numeric, levels, offsets, scales, pooled, fills, indicators)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ValueError(_DAMAGED) from None
        size = (len(encoder.feature_names),)
        finite = np.isfinite([*offsets.ravel(), *fills.values()]).all() and np.isfinite(scales).all()
        if offsets.shape != size or scales.shape != size or not finite or not (scales > 0).all():
            raise ValueError(_DAMAGED)
        if not set(indicators) <= fills.keys() <= set(numeric):
            raise ValueError(_DAMAGED)
        return encoder

    def _numbers(self, table: Table, name: str) -> np.ndarray:
        column = table.values(name, _FEATURE)
        if column.dtype != object:
            return column
        numbers = {value: _number(value) for value in set(column)}  # numbers may have been written as text
        text = next((value for value in column if numbers[value] is None), None)
        if text is not None:
            problem = f"{table.name}: column {name!r} must contain numbers, but contains {text!r}"
            raise TableError(problem, "correct it", Remedy("declare it missing", "missing"))
        return np.array([numbers[value] for value in column], dtype=np.float64)


def _number(text: str) -> float | None:
    """The number that a text means; booleans of a Parquet file are True and False in a CSV file."""
    if not text:
        return np.nan
    return float(text) if is_number(text) else {"true": 1.0, "false": 0.0}.get(text.lower())


def standardising(encoder: Encoder, table: Table, weights: np.ndarray | None, least: int) -> Encoder:
    """The encoder with the offsets and scales of the table's rows.

    The indicator of fewer than ``least`` missing values keeps its own units, so that a handful of rows cannot dominate
    a component.
    """
    X = encoder.encode(table)
    means = X.mean(axis=0) if weights is None else weights @ X / weights.sum()
    deviations = X.std(axis=0) if weights is None else np.sqrt(weights @ (X - means) ** 2 / weights.sum())
    scales = np.where(deviations > 0, deviations, 1.0)
    first = len(scales) - len(encoder.indicators)
    rare = np.count_nonzero(X[:, first:], axis=0) < least
    scales[first:][rare] = 1.0
    return replace(encoder, offsets=means, scales=scales)
