"""The losses of every group under a division of the rows, with components that do or do not depend on it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from fairpca.inference._fitting import fit_rows, fit_to_moments
from fairpca.inference._units import Units, group_sums, moments_of
from fairpca.linalg import top_eigenpairs
from fairpca.metrics._components import fitted_encoder
from fairpca.moments import GroupMoments, MemorySource
from fairpca.problems.erasure import captured_form, captured_variances

__all__ = ["Division", "FixedComponents", "Judge", "RefittedToMoments", "RefittedToRows"]

#: Up to this many features, all eigenvalues of many matrices at once are cheaper than the leading ones of each in turn.
_DIRECT_SIZE = 500

#: The units in each group but the largest.
Division = list[np.ndarray]


class Judge(Protocol):
    """Has the requested numbers of components, and whether estimators are refitted, so that threads do not help."""

    dimensions: tuple[int, ...]
    refits: bool

    def losses(self, divisions: Sequence[Division], largest: int) -> np.ndarray:
        """Of shape (divisions, numbers of components, groups)."""


class FixedComponents:
    """Components that do not depend on the labels: ordinary PCA, or components fitted elsewhere."""

    refits = False

    def __init__(self, units: Units, bases: dict[int, np.ndarray], encoder: np.ndarray | None = None) -> None:
        self.dimensions = tuple(bases)
        self._units = units
        self._projections = np.stack([captured_form(basis, encoder).ravel() for basis in bases.values()], axis=1)

    def losses(self, divisions: Sequence[Division], largest: int) -> np.ndarray:
        """All divisions at once if the matrices are small; large ones would take too much memory."""
        if len(self._units.center) <= _DIRECT_SIZE:
            return self._losses(divisions, largest)
        return np.concatenate([self._losses([division], largest) for division in divisions])

    def _losses(self, divisions: Sequence[Division], largest: int) -> np.ndarray:
        sums = [group_sums(self._units, division, largest) for division in divisions]
        matrices = np.array([[one.squares / one.weight for one in each] for each in sums])
        captured = matrices.reshape(*matrices.shape[:2], -1) @ self._projections
        return np.moveaxis(leading_sums(matrices, self.dimensions) - captured, 2, 1)


class _Refitted:
    """Components that are refitted for every division; one estimator per number of components."""

    refits = True

    def __init__(self, units: Units, estimators: dict[int, Any]) -> None:
        self.dimensions = tuple(estimators)
        self._units, self._estimators = units, estimators

    def losses(self, divisions: Sequence[Division], largest: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one warning, for the true labels, is enough; 999 more fits follow
            return np.stack([self._losses(division, largest) for division in divisions])

    def _losses(self, division: Division, largest: int) -> np.ndarray:
        sums = group_sums(self._units, division, largest)
        matrices = np.stack([one.squares / one.weight for one in sums])
        best = leading_sums(matrices[None], self.dimensions)[0].T
        moments = moments_of(sums, self._units.center, tuple(range(len(sums))))
        found = []
        for own, estimator in zip(best, self._estimators.values(), strict=True):
            fitted = self._fit(estimator, moments, division, largest)
            found.append(own - captured_variances(matrices, fitted.components_.T, fitted_encoder(fitted)))
        return np.stack(found)

    def _fit(self, estimator: Any, moments: GroupMoments, division: Division, largest: int) -> Any:
        raise NotImplementedError


class RefittedToMoments(_Refitted):
    """For estimators that need only the moments of the groups."""

    def _fit(self, estimator: Any, moments: GroupMoments, division: Division, largest: int) -> Any:
        return fit_to_moments(estimator, moments)


class RefittedToRows(_Refitted):
    """For all others."""

    def __init__(
        self, units: Units, estimators: dict[int, Any], rows: MemorySource, clusters: np.ndarray | None
    ) -> None:
        super().__init__(units, estimators)
        self._rows, self._clusters = rows, clusters

    def _fit(self, estimator: Any, moments: GroupMoments, division: Division, largest: int) -> Any:
        codes = np.full(len(self._units.codes), largest)
        for code, chosen in zip([a for a in range(len(division) + 1) if a != largest], division, strict=True):
            codes[chosen] = code
        labels = codes if self._clusters is None else codes[self._clusters]
        return fit_rows(estimator, self._rows.X, None, labels, self._rows.weights)


def leading_sums(matrices: np.ndarray, dimensions: Sequence[int]) -> np.ndarray:
    """Sums of the d largest eigenvalues of symmetric matrices (..., p, p) for each d: of shape (..., dimensions)."""
    if matrices.shape[-1] <= _DIRECT_SIZE:
        values = np.linalg.eigvalsh(matrices)[..., ::-1]
    else:
        flat = matrices.reshape(-1, *matrices.shape[-2:])
        values = np.stack([top_eigenpairs(matrix, max(dimensions))[0] for matrix in flat])
        values = values.reshape(*matrices.shape[:-2], -1)
    return np.cumsum(values, axis=-1)[..., [d - 1 for d in dimensions]]
