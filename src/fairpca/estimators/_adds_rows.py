"""Fitting to moments: all rows at once, or parts that are added, with attributes that are computed once asked for."""

from __future__ import annotations

from typing import Any, Self

from fairpca._labels import check_label_types
from fairpca._validation import check_n_components, remember_sensitive_columns
from fairpca.estimators._linear_projection import FloatTransformer


class AddsRows(FloatTransformer):
    """A transformer that reduces rows to mergeable moments, keeps them, and solves from them."""

    _unsolved = False  # whether rows were added since the last search

    def fit_moments(self, moments: Any) -> Self:
        """Fit to a summary computed elsewhere, for example merged from chunks or from several sites.

        It is a :class:`~fairpca.moments.GroupMoments`; for ParityPCA, LeacePCA and LeaceEraser it may also be an
        :class:`~fairpca.moments.AttributeMoments`.

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import FairPCA
        >>> from fairpca.moments import group_moments
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
        >>> chunks = [(X[:30], groups[:30]), (X[30:], groups[30:])]
        >>> FairPCA(2).fit_moments(group_moments(chunks)).components_.shape
        (2, 4)
        """
        self._check_parameters()
        self._check_reduction(moments.check())
        self.n_features_in_ = moments.n_features
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit; moments have none
        remember_sensitive_columns(self, [])
        return self._learn(moments)

    def _fit_rows(self, *data: Any) -> Self:
        """Fit to X, y, sensitive_features, continuous, sample_weight."""
        self._check_parameters()
        return self._learn(self._check_reduction(self._measure(*data, part=False)))

    def _add_rows(self, *data: Any) -> Self:
        """Keep the moments of all rows, and forget what was computed from fewer."""
        self._check_parameters()
        n_components = getattr(self, "n_components", None)
        if isinstance(n_components, float):
            raise ValueError(
                f"n_components={n_components!r} is a share, whose number of components would change from chunk to "
                "chunk: use an integer with partial_fit, or merge the chunks with fairpca.moments.group_moments and "
                "use fit_moments."
            )
        before, chunk = self._rows_seen(), self._measure(*data, part=True)
        if n_components is not None:
            check_n_components(n_components, chunk.n_features)
        if before is not None:
            check_label_types(before.labels, chunk.labels)
        merged = chunk if before is None else before.merge(chunk)
        self._forget()
        self._remember(merged)
        self._unsolved = bool(merged.labels)
        return self

    def _forget(self) -> None:
        """Remove all fitted attributes except what is known of the columns."""
        self.__dict__.pop("_unsolved", None)
        for name in [name for name in vars(self) if name.endswith("_") and not name.endswith("_in_")]:
            delattr(self, name)

    def _measure(
        self, X: Any, y: Any, sensitive_features: Any, continuous: Any, sample_weight: Any, *, part: bool
    ) -> Any:
        """The moments of these rows; a part of all rows may have a single group, no rows or no positive weight."""
        raise NotImplementedError

    def _check_reduction(self, reduction: Any) -> Any:
        """Return moments of all rows if they divide the rows as the method needs; raise otherwise."""
        return reduction

    def _rows_seen(self) -> Any:
        """The moments of all rows so far, or None."""
        raise NotImplementedError

    def _remember(self, reduction: Any) -> None:
        """Keep what further rows can be added to."""
        raise NotImplementedError

    def _learn(self, reduction: Any) -> Self:
        """Solve, and set the fitted attributes."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        """Called for attributes that are not set: fitted ones are computed once rows have been added."""
        asked = name.endswith("_") and not name.startswith("_") and not name.endswith("_in_")
        if not (asked and self._unsolved):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        del self._unsolved  # from here on, what is missing is missing
        try:
            self._check_parameters()
            self._learn(self._rows_seen())
        except BaseException:
            self._unsolved = True
            raise
        return getattr(self, name)

    def __sklearn_is_fitted__(self) -> bool:
        return self._unsolved or "groups_" in vars(self)
