"""From the columns of a table to a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca.tables.errors import TableError
from fairpca.tables.labels import is_number
from fairpca.tables.table import Table

__all__ = ["Encoder", "fitted_encoder"]

_FEATURE = "a feature of the model"


@dataclass(frozen=True)
class Encoder:
    """Converts the columns of a table to a matrix: numbers unchanged, text one-hot encoded, then standardised.

    Stored with a saved model, so that new files are encoded like the one it was fitted on.

    See Also
    --------
    prepare_table : Fits one.
    """

    numeric: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]
    offsets: np.ndarray
    scales: np.ndarray

    @property
    def feature_names(self) -> list[str]:
        return [*self.numeric, *(f"{name}={level}" for name, levels in self.levels.items() for level in levels)]

    def encode(self, table: Table) -> np.ndarray:
        """The matrix of the table's rows; a level not seen in fitting becomes all zeros before standardising."""
        X = np.zeros((table.n_rows, len(self.offsets)))  # filled in place: X may take most of the memory
        for j, name in enumerate(self.numeric):
            X[:, j] = self._numbers(table, name)
        start = len(self.numeric)
        for name, levels in self.levels.items():
            position = {level: start + i for i, level in enumerate(levels)}
            columns = np.array([position.get(text, -1) for text in table.texts(name, _FEATURE)], dtype=int)
            known = np.flatnonzero(columns >= 0)
            X[known, columns[known]] = 1.0
            start += len(levels)
        X -= self.offsets
        X /= self.scales
        return X

    def unknown_levels(self, table: Table) -> dict[str, list[str]]:
        """Values of text columns that were not seen in fitting."""
        found = {name: sorted(set(table.texts(name, _FEATURE)) - set(levels)) for name, levels in self.levels.items()}
        return {name: values for name, values in found.items() if values}

    def as_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON."""
        return {
            "numeric": list(self.numeric),
            "levels": {name: list(levels) for name, levels in self.levels.items()},
            "offsets": self.offsets.tolist(),
            "scales": self.scales.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Any) -> Encoder:
        """The inverse of :meth:`as_dict`, with checks: the file may come from an untrusted source."""
        try:
            numeric = tuple(str(name) for name in values["numeric"])
            levels = {str(name): tuple(str(level) for level in found) for name, found in values["levels"].items()}
            offsets, scales = (np.array(values[name], dtype=np.float64) for name in ("offsets", "scales"))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ValueError("The model's description of its columns is damaged.") from None
        encoder = cls(numeric, levels, offsets, scales)
        size = (len(encoder.feature_names),)
        if offsets.shape != size or scales.shape != size or not np.isfinite(offsets).all() or not (scales > 0).all():
            raise ValueError("The model's description of its columns is damaged.")
        return encoder

    def _numbers(self, table: Table, name: str) -> np.ndarray:
        column = table.values(name, _FEATURE)
        if column.dtype == object:  # numbers may have been written as text
            text = next((value for value in column if value and not is_number(value)), None)
            if text is not None:
                problem = f"{table.name}: column {name!r} must contain numbers, but contains {text!r}"
                raise TableError(problem, "correct it")
            column = np.array([value or "nan" for value in column], dtype=np.float64)
        if not np.isfinite(column).all():
            row = table.rows_before + int(np.flatnonzero(~np.isfinite(column))[0]) + 1
            problem = f"{table.name}: column {name!r} has no finite number in row {row}"
            raise TableError(problem, "fill in missing values", "drop such rows")
        return column


def fitted_encoder(table: Table, numeric: list[str], levels: dict[str, tuple[str, ...]], standardise: bool) -> Encoder:
    size = len(numeric) + sum(map(len, levels.values()))
    plain = Encoder(tuple(numeric), levels, np.zeros(size), np.ones(size))
    if not standardise:
        return plain
    X = plain.encode(table)
    scales = X.std(axis=0)
    return Encoder(tuple(numeric), levels, X.mean(axis=0), np.where(scales > 0, scales, 1.0))
