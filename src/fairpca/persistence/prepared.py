"""A fitted model together with the preparation of the columns of the file that it was fitted to."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from fairpca.tables import Encoder, Table
from fairpca.tables.frames import column_names, table_of_frame
from fairpca.tables.missing import NO_TOKENS, MissingTokens
from fairpca.tables.preparation import some

__all__ = ["PreparedModel", "missing_numbers_sentence", "new_levels_sentence"]

_SHOWN_LEVELS = 3
_FITTING = frozenset({"fit", "fit_moments", "partial_fit"})


class PreparedModel(TransformerMixin, BaseEstimator):
    """A fitted estimator that takes the original columns of a file, as :func:`fairpca.load_model` returns it.

    Attributes of the estimator, such as ``components_``, are available here, too.

    Parameters
    ----------
    estimator : fitted estimator
    encoder : Encoder
        Converts the columns to the features that the estimator was fitted to.
    delimiter : str or None
        That of the CSV file, if it was one.
    missing : MissingTokens
        Texts that mean a missing value.

    Attributes
    ----------
    feature_names_in_ : ndarray of str
        The columns that are needed.
    n_features_in_ : int
        Their number.

    See Also
    --------
    fairpca.load_model : Loads a saved model.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.persistence import PreparedModel
    >>> from fairpca.tables import Table, prepare_table
    >>> age, city = np.arange(40.0) * 7 % 31, np.array(["Bonn", "Ulm"] * 20, dtype=object)
    >>> columns = {"age": age, "city": city, "sex": np.repeat([0.0, 1.0], 20)}
    >>> data = prepare_table(Table("people.csv", columns, ""), ["sex"])
    >>> model = PreparedModel(FairPCA(1).fit(data.X, sensitive_features=data.groups), data.encoder)
    >>> model.transform({"age": [31, 47], "city": ["Ulm", "Bonn"]}).shape
    (2, 1)
    """

    def __init__(
        self,
        estimator: Any,
        encoder: Encoder,
        *,
        delimiter: str | None = None,
        missing: MissingTokens = NO_TOKENS,
    ) -> None:
        self.estimator = estimator
        self.encoder = encoder
        self.delimiter = delimiter
        self.missing = missing

    @classmethod
    def from_extra(cls, estimator: Any, extra: dict[str, Any]) -> PreparedModel:
        """The model with the preparation that `fairpca fit` stored; raises ValueError if that is damaged."""
        encoder, record = Encoder.from_dict(extra["encoder"]), extra.get("preparation", {})
        if len(encoder.offsets) != getattr(estimator, "n_features_in_", None):
            raise ValueError("The model's description of its columns is damaged.")
        delimiter, tokens = record.get("delimiter", ","), record.get("missing", MissingTokens().usual)
        texts = isinstance(tokens, list | tuple) and all(isinstance(token, str) for token in tokens)
        if not texts or not (delimiter is None or (isinstance(delimiter, str) and len(delimiter) == 1)):
            raise ValueError("The model's description of its columns is damaged.")
        usual = tuple(token for token in MissingTokens().usual if token in tokens)
        added = tuple(token for token in tokens if token not in usual)
        return cls(estimator, encoder, delimiter=delimiter, missing=MissingTokens(usual, added))

    def as_extra(self) -> dict[str, Any]:
        """The preparation as JSON, to be stored with the estimator."""
        record = {"delimiter": self.delimiter, "missing": self.missing.all}
        return {"encoder": self.encoder.as_dict(), "sensitive": [], "preparation": record}

    def transform(self, X: Any) -> np.ndarray:
        """The scores of the rows of a data frame that has the columns of the file.

        Parameters
        ----------
        X : pandas or polars data frame, Arrow table, or mapping from names to columns
            Further columns are ignored.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            NaN in rows that lack a number, unless missing numbers are filled in; a warning counts them.
        """
        table = self._table(X)
        unknown, absent = self.encoder.unknown_levels(table), self.encoder.missing_numbers(table)
        for name, levels in unknown.items():
            warnings.warn(new_levels_sentence(name, levels, self.encoder), stacklevel=2)
        scores = self.transform_table(table)
        if absent:
            n_rows = int(np.isnan(scores).any(axis=1).sum())
            warnings.warn(missing_numbers_sentence(n_rows, len(scores), absent), stacklevel=2)
        return scores

    def transform_table(self, table: Table) -> np.ndarray:
        """The scores of the rows of a table; NaN in rows that lack a number."""
        features = self.encoder.encode(table)
        complete = ~np.isnan(features).any(axis=1)
        scores = np.full((len(features), len(self.get_feature_names_out())), np.nan)
        if complete.any():
            scores[complete] = np.asarray(self.estimator.transform(features[complete]))
        return scores

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean reconstruction error of the complete rows of a data frame, in units of the features."""
        features = self.encoder.encode(self._table(X))
        return float(self.estimator.score(features[~np.isnan(features).any(axis=1)]))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the scores."""
        return self.estimator.get_feature_names_out()

    @property
    def feature_names_in_(self) -> np.ndarray:
        return np.array(self.encoder.columns, dtype=object)

    @property
    def n_features_in_(self) -> int:
        return len(self.encoder.columns)

    def __getattr__(self, name: str) -> Any:
        if name in _FITTING:
            raise AttributeError(f"This model was fitted to a file; to fit another one, use .estimator.{name}.")
        if name.startswith("_") or name in ("estimator", "encoder"):
            raise AttributeError(name)
        return getattr(self.estimator, name)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> PreparedModel:
        return self

    def __repr__(self) -> str:
        inner = " ".join(repr(self.estimator).split())
        return f"PreparedModel({inner}, columns: {some(self.encoder.columns)})"

    def _table(self, X: Any) -> Table:
        if column_names(X) is None:
            raise TypeError(
                f"X is a {type(X).__name__} without column names, but this model prepares the columns "
                f"{some(list(map(repr, self.encoder.columns)))} itself: pass a data frame that has them. For a matrix "
                "of prepared features, use .estimator."
            )
        columns = dict.fromkeys(self.encoder.numeric) | self.encoder.levels
        return table_of_frame(X, columns, self.delimiter, self.missing)


def new_levels_sentence(name: str, levels: list[str], encoder: Encoder) -> str:
    """What happens to values of a text column that were not seen in fitting."""
    shown = ", ".join(map(repr, sorted(levels)[:_SHOWN_LEVELS]))
    treated = "as a rare level" if encoder.pools_new_levels(name) else "as none of its levels"
    return f"column {name!r} has values the model has not seen ({shown}); they are encoded {treated}."


def missing_numbers_sentence(n_rows: int, total: int, absent: dict[str, int]) -> str:
    """Which rows have no scores."""
    columns = some([f"{name} in {count:,}" for name, count in absent.items()])
    return f"{n_rows:,} of {total:,} rows lack a number ({columns}): their scores are missing."
