"""A fitted model together with the preparation of the columns of the table that it was fitted to."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from fairpca._progress import Report
from fairpca.audit.preparation import Preparation, level_of, some
from fairpca.audit.rare import POOLED_LEVEL
from fairpca.audit.read import read_table
from fairpca.audit.survey import survey
from fairpca.audit.table import Table, rows_per_batch, silent
from fairpca.persistence import read_model, save_model

_SHOWN_LEVELS = 3
_BOOLEANS = {"true": "1", "false": "0"}
_FITTING = frozenset({"fit", "fit_moments", "partial_fit"})


class PreparedModel(TransformerMixin, BaseEstimator):
    """A fitted estimator that takes the original columns of a table, as :func:`load` returns it.

    Attributes of the estimator, such as ``components_``, are available here, too.

    Parameters
    ----------
    estimator : fitted estimator
    preparation : Preparation
        How columns become the features that the estimator was fitted to.

    Attributes
    ----------
    feature_names_in_ : ndarray of str
        The columns that are needed.
    n_features_in_ : int
        Their number.

    See Also
    --------
    load : Loads a saved model.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.audit import PreparedModel, prepare
    >>> people = {"age": np.arange(40) * 7 % 31, "city": ["Bonn", "Ulm"] * 20, "sex": ["f"] * 20 + ["m"] * 20}
    >>> data = prepare(people, "sex")
    >>> model = PreparedModel(FairPCA(1).fit(data.X, sensitive_features=data.groups), data.preparation)
    >>> model.transform({"age": [31, 47], "city": ["Ulm", "Bonn"]}).shape
    (2, 1)
    """

    def __init__(self, estimator: Any, preparation: Preparation) -> None:
        self.estimator = estimator
        self.preparation = preparation

    def save(self, path: Any) -> Path:
        """Write the estimator with the preparation of its columns."""
        return save_model(self.estimator, path, extra={"preparation": self.preparation.as_dict()})

    def transform(self, X: Any) -> np.ndarray:
        """The scores of the rows of a table that has the original columns.

        Parameters
        ----------
        X : data frame, Arrow table, mapping from names to columns, or path
            Further columns are ignored.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            NaN in rows that lack a number, unless missing numbers are filled in; a warning counts them.
        """
        return Scores(self.preparation, X, estimator=self.estimator).gathered()

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean reconstruction error of the complete rows of a table, in units of the features."""
        features = self.preparation.transform(X)
        return float(self.estimator.score(features[~np.isnan(features).any(axis=1)]))

    @property
    def feature_names_in_(self) -> np.ndarray:
        return np.array(self.preparation.columns, dtype=object)

    @property
    def n_features_in_(self) -> int:
        return len(self.preparation.columns)

    def __getattr__(self, name: str) -> Any:
        if name in _FITTING:
            raise AttributeError(f"This model was fitted to a table; to fit another one, use .estimator.{name}.")
        if name.startswith("_") or name in ("estimator", "preparation"):
            raise AttributeError(name)
        return getattr(self.estimator, name)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> PreparedModel:
        return self

    def __repr__(self) -> str:
        inner = " ".join(repr(self.estimator).split())
        return f"PreparedModel({inner}, columns: {some(self.preparation.columns)})"


def load(path: Any, *, classes: Iterable[type] = ()) -> PreparedModel:
    """Read a model that `fairpca fit` or :meth:`PreparedModel.save` wrote, with the preparation of its columns.

    Parameters
    ----------
    path : path-like
    classes : iterable of classes, default=()
        Estimator classes of your own that the file may hold.

    Returns
    -------
    PreparedModel

    See Also
    --------
    fairpca.load_model : The estimator alone.

    Examples
    --------
    >>> from fairpca.audit import load
    >>> scores = load("model.npz").transform("new.csv")  # doctest: +SKIP
    """
    saved = read_model(path, classes=classes)
    extra = saved.extra if isinstance(saved.extra, dict) else {}
    if "preparation" not in extra:
        raise ValueError(f"{path} does not say how columns are prepared; use a model saved by `fairpca fit`.")
    try:
        preparation = Preparation.from_dict(extra["preparation"])
        if len(preparation.feature_names) != getattr(saved.estimator, "n_features_in_", None):
            raise ValueError("its features are not those of the estimator")
    except ValueError as problem:
        raise ValueError(f"{path} is not a fairpca model, or it is damaged: {problem}") from None
    return PreparedModel(saved.estimator, preparation)


class Scores:
    """The record batches of a table with the scores of their rows; then, in :meth:`remarks`, what was unusual in them.

    ``keep`` are further columns of the batches; without an estimator, features take the place of the scores.
    """

    def __init__(
        self,
        preparation: Preparation,
        data: Any,
        keep: Sequence[str] = (),
        *,
        estimator: Any = None,
        progress: Report = silent,
    ) -> None:
        self._preparation, self._estimator, self._progress = preparation, estimator, progress
        self._table = table = data if isinstance(data, Table) else _opened(preparation, data)
        for name in preparation.columns:
            table.check_column(name, "a feature of the model")
        for name in keep:
            table.check_column(name, "to be kept", readable=False)
        self._needed = list(dict.fromkeys([*preparation.columns, *keep]))
        self._columns = survey(table, preparation.columns, progress=progress)
        for name in preparation.numeric:
            if self._columns[name].commas == "unclear":
                raise self._columns[name].unclear_commas()
        self.n_rows = self._n_without = 0
        self._unknown, self._absent = dict[str, list[str]](), Counter[str]()

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray]]:
        rows = rows_per_batch(len(self._needed) + len(self._preparation.keys))
        for batch in self._table.batches(self._needed, rows, self._progress, "rows written"):
            features = self._encode(batch)
            self.n_rows += len(features)
            yield batch, features if self._estimator is None else self._scores_of(features)
        if not self.n_rows:
            raise ValueError(f"{self._table.name} has no rows.")

    def gathered(self) -> np.ndarray:
        """The scores of all rows; what was unusual in them is warned of."""
        found = np.concatenate([scores for _, scores in self])
        for remark in self.remarks():
            warnings.warn(remark, stacklevel=3)
        return found

    def _encode(self, batch: Any) -> np.ndarray:
        preparation, columns = self._preparation, self._columns
        numbers = {name: columns[name].values(batch.column(name)) for name in preparation.numeric}
        for name, values in numbers.items():
            self._absent[name] += 0 if name in preparation.fills else int((~np.isfinite(values)).sum())
        texts = {}
        for name, levels in preparation.levels.items():
            codes, found = columns[name].codes(batch.column(name))
            if str(batch.schema.field(name).type) == "bool":  # which pandas reads TRUE, True and true as
                spelled: dict[Any, str] = {_BOOLEANS.get(level.lower(), ""): level for level in levels}
                found = [spelled.get(text, text) for text in found]
            texts[name] = codes, found
            new = {level_of(found[code]) for code in np.unique(codes)} - {*levels, *preparation.pooled.get(name, ())}
            self._unknown[name] = sorted({*self._unknown.get(name, ()), *new})[:_SHOWN_LEVELS]
        return preparation.features(numbers, texts)

    def _scores_of(self, features: np.ndarray) -> np.ndarray:
        """NaN in rows that lack a number."""
        complete = ~np.isnan(features).any(axis=1)
        scores = np.full((len(features), len(self._estimator.get_feature_names_out())), np.nan)
        if complete.any():
            scores[complete] = np.asarray(self._estimator.transform(features[complete]))
        self._n_without += int((~complete).sum())
        return scores

    def remarks(self) -> list[str]:
        """Levels that the model does not know, and rows without scores."""
        said = []
        for name, levels in self._unknown.items():
            treated = "as a rare level" if POOLED_LEVEL in self._preparation.levels[name] else "as none of its levels"
            if levels:
                shown = ", ".join(map(repr, levels))
                said.append(f"column {name!r} has values the model has not seen ({shown}); they are encoded {treated}.")
        if self._n_without:
            columns = some([f"{name} in {count:,}" for name, count in self._absent.items() if count])
            said.append(
                f"{self._n_without:,} of {self.n_rows:,} rows lack a number ({columns}): their scores are missing."
            )
        return said


def _opened(preparation: Preparation, data: Any) -> Table:
    if isinstance(data, np.ndarray | list | tuple):
        raise TypeError(
            f"X is a {type(data).__name__} without column names, but this model prepares the columns "
            f"{some(list(map(repr, preparation.columns)))} itself: pass a data frame that has them. For a "
            "matrix of prepared features, use .estimator."
        )
    delimiter = None if isinstance(data, str | Path) else preparation.delimiter
    return read_table(data, delimiter=delimiter, missing=preparation.tokens)
