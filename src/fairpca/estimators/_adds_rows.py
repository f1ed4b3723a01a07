"""Rows that are only added: what ``partial_fit`` shares, with attributes that are computed once they are asked for."""

from __future__ import annotations

from typing import Any, Self

from fairpca._labels import check_label_types
from fairpca._validation import check_n_components

__all__ = ["AddsRows"]


class AddsRows:
    """A class that keeps mergeable moments (``_remember``, ``_rows_seen``) and solves from them (``_learn``)."""

    _unsolved = False  # whether rows were added since the last search

    def _add(self, before: Any, chunk: Any) -> Self:
        """Keep the moments of all rows, and forget what was computed from fewer."""
        if getattr(self, "n_components", None) is not None:
            check_n_components(self.n_components, chunk.n_features)
        if before is not None:
            check_label_types(before.labels, chunk.labels)
        merged = chunk if before is None else before.merge(chunk)
        self._forget()
        self._remember(merged)
        self._unsolved = bool(merged.labels)
        return self

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_") and not name.endswith("_in_")]:
            delattr(self, name)

    def _rows_seen(self) -> Any:
        raise NotImplementedError

    def _remember(self, reduction: Any) -> None:
        raise NotImplementedError

    def _learn(self, reduction: Any) -> Self:
        raise NotImplementedError

    def _check_parameters(self) -> None:
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
