"""Several methods side by side on the same rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import sklearn
from sklearn.utils import check_array

from fairpca._validation import Groups, check_groups, check_n_components, check_number, check_several_groups
from fairpca._workers import delayed, parallel
from fairpca.estimators._base import label_array
from fairpca.linalg import threads_for
from fairpca.metrics import explained_variance_ratio
from fairpca.model_selection._held_out import HeldOut, Split, measure, sample_rows, split_rows
from fairpca.model_selection._intervals import Estimate, GroupEstimates, RowFigures
from fairpca.model_selection.methods import Method, choose_methods
from fairpca.moments import GroupMoments, accumulate

__all__ = ["Comparison", "MethodResult", "compare"]

Progress = Callable[[int, int, str], None]
_DEFAULT_DIMENSIONS = (1, 2, 3, 5, 10)


@dataclass(frozen=True)
class MethodResult:
    """One method with one number of components.

    Attributes
    ----------
    method, family : str
    n_components : int
    estimator : fitted estimator
        Fitted on all rows.
    error, loss : GroupEstimates
        Mean squared reconstruction error, and the part of it that the group has only because it shares the components.
    explained_variance : float
        Share of the variance of all rows that is kept.
    objective, lower_bound : float or None
        What the method minimises, and a bound no projection can beat, where it has one.
    certificate : float or None
        Objective minus bound, relative to the total variance.
    converged : bool
    seconds : float
        For the fit on all rows.
    notes : tuple of str
        Warnings of the estimator.
    held_out : HeldOut
    """

    method: str
    family: str
    n_components: int
    estimator: Any
    error: GroupEstimates
    loss: GroupEstimates
    explained_variance: float
    objective: float | None
    lower_bound: float | None
    certificate: float | None
    converged: bool
    seconds: float
    notes: tuple[str, ...]
    held_out: HeldOut

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON; group labels become text."""
        row = {
            name: getattr(self, name)
            for name in ("method", "family", "n_components", "explained_variance", "objective", "lower_bound")
        }
        row |= {name: _plain_estimates(getattr(self, name)) for name in ("error", "loss")}
        row |= {"certificate": self.certificate, "converged": self.converged, "seconds": self.seconds}
        row["notes"] = list(self.notes)
        row["held_out"] = asdict(self.held_out)
        return row


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` found.

    Attributes
    ----------
    results : list of MethodResult
        By number of components, then in the order of the methods.
    groups : tuple
        Labels.
    counts : tuple of int
        Rows of each group.
    n_samples, n_features : int
    n_sampled : int or None
        Where ``moments`` of more rows were given: the rows at hand, behind intervals and held-out figures.
    omitted : list of str
        Methods that could not be fitted with some number of components, and why.
    settings : dict
    """

    results: list[MethodResult]
    groups: tuple[Any, ...]
    counts: tuple[int, ...]
    n_samples: int
    n_features: int
    omitted: list[str]
    settings: dict[str, Any]
    n_sampled: int | None = None

    def __getitem__(self, key: tuple[str, int]) -> MethodResult:
        for result in self.results:
            if (result.method, result.n_components) == key:
                return result
        raise KeyError(key)

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(result.method for result in self.results))

    @property
    def dimensions(self) -> list[int]:
        return sorted({result.n_components for result in self.results})

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON; labels with the same text, 1 and "1", are written as Python writes them."""
        return {
            "groups": dict(zip(label_texts(self.groups), self.counts, strict=True)),
            "n_samples": self.n_samples,
            "n_sampled": self.n_sampled,
            "n_features": self.n_features,
            "settings": self.settings,
            "omitted": self.omitted,
            "results": [result.as_dict() for result in self.results],
        }


def compare(
    X: Any,
    sensitive_features: Any,
    y: Any = None,
    *,
    n_components: int | Iterable[int] | None = None,
    methods: Iterable[str] | Mapping[str, Any] | None = None,
    n_bootstrap: int = 200,
    confidence: float = 0.95,
    test_size: float = 0.3,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    moments: GroupMoments | None = None,
) -> Comparison:
    """Fit several methods, and measure for each what it does to every group and what it costs.

    Every method is fitted twice: on all rows, for error, loss and explained variance; and on the training part of one
    random division, for the figures on held-out rows (what a classifier can read off the scores: the group, the label).
    MMDFairPCA, which is slow on many rows, is fitted once, on at most 700 of the training rows; a note says so.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Standardise it first unless all features have the same unit.
    sensitive_features : array-like
        The groups.
    y : array-like of shape (n_samples,), optional
        A label; adds accuracy and the differences between groups in a classifier's decisions.
    n_components : int or iterable of int, optional
        Default: 1, 2, 3, 5 and 10, as far as there are features.
    methods : iterable of str or mapping from name to estimator, optional
        Names as in ``fairpca.model_selection.METHODS`` (default: all), or estimators of your own with a parameter
        ``n_components``.
    n_bootstrap : int, default=200
        Resamples behind the intervals of error and loss. Rows are redrawn within groups; the components stay fixed.
    confidence : float, default=0.95
    test_size : float, default=0.3
        Share of held-out rows.
    random_state : int, default=0
    n_jobs : int or None, default=None
        Fits that run at the same time, as in scikit-learn; the figures do not depend on it.
    progress : callable, optional
        Called with steps done, steps in all, and what comes next.
    moments : GroupMoments, optional
        Those of many more rows, of which X is a random sample. The methods that need no rows are then fitted to the
        moments, and errors, losses and explained variance are those of all these rows; intervals (with the width that
        belongs to all rows) and the figures of held-out rows come from the sample.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.model_selection import compare
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = compare(X, sex, n_components=5, methods=["PCA", "FairPCA"])
    >>> ordinary, balanced = found["PCA", 5], found["FairPCA", 5]
    >>> bool(ordinary.loss.gap.value > 2.5), bool(balanced.loss.gap.value < 1e-9)
    (True, True)
    >>> ordinary.loss.worst
    'female'
    """
    study = _Study(X, sensitive_features, y, test_size, random_state, moments)
    dimensions = check_dimensions(n_components, study.X.shape[1], default=_DEFAULT_DIMENSIONS)
    check_number("n_bootstrap", n_bootstrap, at_least=1, integer=True)
    chosen = choose_methods(methods)
    fits, omitted = _fit_all(study, chosen, dimensions, n_jobs, progress or _silent)
    with threads_for(study.X.size * study.X.shape[1]):
        figures = study.estimates(fits, dimensions, n_bootstrap, confidence)
    settings = {
        "components": dimensions,
        "methods": [method.name for method in chosen],
        "n_bootstrap": n_bootstrap,
        "confidence": confidence,
        "test_size": test_size,
        "random_state": random_state,
    }
    return Comparison(
        [fit.result(study, *figures[fit]) for fit in fits],
        study.groups.labels,
        tuple(int(count) for count in study.moments.counts),
        study.n_rows,
        study.X.shape[1],
        omitted,
        settings,
        None if moments is None else len(study.X),
    )


class _Study:
    """The rows, divided and summarised once for all methods."""

    def __init__(
        self, X: Any, sensitive_features: Any, y: Any, test_size: float, seed: int, moments: GroupMoments | None
    ) -> None:
        self.X = check_array(X, dtype=np.float64)
        self.groups = check_groups(sensitive_features, len(self.X))
        check_several_groups(self.groups.labels, len(self.X))
        self.y = _check_label(y, len(self.X))
        self.seed = seed
        self.labels = label_array(self.groups.labels)[self.groups.codes]
        self.sampled = moments is not None
        self.moments = accumulate(self.X, self.groups) if moments is None else moments
        _check_sample_of(self.moments, self.groups, self.X.shape[1])
        self.n_rows = round(self.moments.total_count)
        self.split: Split = split_rows(self.groups.codes, self.y, test_size, seed)
        train = Groups(self.groups.labels, self.groups.codes[self.split.train])
        self.train_moments = accumulate(self.X[self.split.train], train)

    def fit(self, method: Method, d: int) -> tuple[Any, int]:
        """The estimator whose figures on all rows are told, and how many rows it saw.

        A method that is slow on many rows is fitted on a sample of the training rows instead of all.
        """
        if method.max_rows is None:
            estimator = method.fit(d, self.seed, self.X, self.labels, self.moments)
            return estimator, self.n_rows if method.needs_no_rows(estimator) else len(self.X)
        rows = sample_rows(self.split.train, self.groups.codes, method.max_rows, self.seed)
        return method.fit(d, self.seed, self.X[rows], self.labels[rows], self.train_moments), len(rows)

    def fit_training_rows(self, method: Method, d: int) -> Any:
        """The same without the held-out rows."""
        train = self.split.train
        return method.fit(d, self.seed, self.X[train], self.labels[train], self.train_moments)

    def explained_variance(self, estimator: Any) -> float:
        """About the mean of all rows, whichever rows the estimator saw."""
        if self.sampled:
            covariance, basis = self.moments.pooled_covariance(), estimator.components_.T
            return float(np.vdot(basis, covariance @ basis) / np.trace(covariance))
        return float(explained_variance_ratio(self.X, estimator, mean=self.moments.pooled_mean))  # type: ignore[arg-type]

    def estimates(
        self, fits: list[_Fit], dimensions: list[int], n_bootstrap: int, confidence: float
    ) -> dict[_Fit, tuple[GroupEstimates, GroupEstimates]]:
        rows = RowFigures(self.X, self.groups, self.moments, max(dimensions))
        found: dict[_Fit, tuple[GroupEstimates, GroupEstimates]] = {}
        for d in dimensions:
            same = [fit for fit in fits if fit.n_components == d]
            bases = [fit.estimator.components_.T for fit in same]
            found |= dict(zip(same, rows.estimates(bases, n_bootstrap, confidence, self.seed), strict=True))
        return found


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fitted method, before its group figures are known."""

    method: Method
    n_components: int
    estimator: Any
    seconds: float
    notes: tuple[str, ...]
    held_out: HeldOut

    def result(self, study: _Study, error: GroupEstimates, loss: GroupEstimates) -> MethodResult:
        total = float(np.trace(study.moments.pooled_covariance()))
        objective, bound = (_finite(getattr(self.estimator, name, None)) for name in ("objective_", "lower_bound_"))
        gap = None if objective is None or bound is None or total <= 0 else (objective - bound) / total
        return MethodResult(
            method=self.method.name,
            family=self.method.family,
            n_components=self.n_components,
            estimator=self.estimator,
            error=error,
            loss=loss,
            explained_variance=study.explained_variance(self.estimator),
            objective=objective,
            lower_bound=bound,
            certificate=gap,
            converged=bool(getattr(self.estimator, "converged_", True)),
            seconds=self.seconds,
            notes=self.notes,
            held_out=self.held_out,
        )


def _fit_all(
    study: _Study, methods: list[Method], dimensions: list[int], n_jobs: int | None, progress: Progress
) -> tuple[list[_Fit], list[str]]:
    steps = [(d, method) for d in dimensions for method in methods]
    # Slow methods first, so that no worker is left alone with one of them at the end.
    order = sorted(range(len(steps)), key=lambda i: (steps[i][1].max_rows is None, i))
    outcomes: dict[int, _Fit | ValueError] = {}
    progress(0, len(steps), "fitting")
    run = parallel(n_jobs, return_as="generator")(delayed(_try_one)(study, steps[i][1], steps[i][0]) for i in order)
    for i, outcome in zip(order, run, strict=True):
        outcomes[i] = outcome
        progress(len(outcomes), len(steps), f"{steps[i][1].name}, {steps[i][0]} components")
    return _sorted_outcomes(steps, outcomes)


def _sorted_outcomes(
    steps: list[tuple[int, Method]], outcomes: dict[int, _Fit | ValueError]
) -> tuple[list[_Fit], list[str]]:
    fits: list[_Fit] = []
    failed: dict[str, list[tuple[int, ValueError]]] = {}
    for i, (d, method) in enumerate(steps):
        outcome = outcomes[i]
        if isinstance(outcome, _Fit):
            fits.append(outcome)
        elif method.family == "reference":
            raise outcome
        else:
            failed.setdefault(method.name, []).append((d, outcome))
    omitted = [_reason(name, problems) for name, problems in failed.items()]
    if not fits:
        raise ValueError(f"No method could be fitted. {omitted[0]}")
    return fits, omitted


def _reason(name: str, problems: list[tuple[int, ValueError]]) -> str:
    """One line a method, however many numbers of components it could not be fitted with."""
    numbers = ", ".join(str(d) for d, _ in problems)
    return f"{name} with {numbers} components: {problems[0][1]}"


def _try_one(study: _Study, method: Method, d: int) -> _Fit | ValueError:
    """The fit, or why there is none: some methods need more features than components."""
    try:
        with threads_for(study.X.size * study.X.shape[1]):
            return _fit_one(study, method, d)
    except ValueError as problem:
        return problem


def _fit_one(study: _Study, method: Method, d: int) -> _Fit:
    start = time.perf_counter()
    with _collected() as notes:
        estimator, rows_used = study.fit(method, d)
    seconds = time.perf_counter() - start
    if rows_used < study.n_rows:
        notes.insert(
            0, f"Fitted on {rows_used:,} of {study.n_rows:,} rows, drawn at random; the figures are of all rows."
        )
    with _collected() as training_notes:
        partial = estimator if method.max_rows is not None else study.fit_training_rows(method, d)
        with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):  # many small classifiers
            held_out = measure(partial, study.X, study.groups.codes, study.y, study.split, study.seed)
    notes += [f"In the fit for the held-out rows: {note}" for note in training_notes]
    return _Fit(method, d, estimator, seconds, tuple(dict.fromkeys(notes)), held_out)


@contextmanager
def _collected() -> Iterator[list[str]]:
    """Warnings as text, to be shown beside the figures they concern."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(str(warning.message) for warning in caught)


def _check_label(y: Any, n_samples: int) -> np.ndarray | None:
    if y is None:
        return None
    y = np.asarray(y)
    if y.shape != (n_samples,):
        raise ValueError(f"y has shape {y.shape}, but X has {n_samples} rows: give one label a row.")
    return y


def _check_sample_of(moments: GroupMoments, groups: Groups, n_features: int) -> None:
    if moments.labels != groups.labels or moments.n_features != n_features:
        raise ValueError(
            f"moments describe the groups {moments.labels!r} and {moments.n_features} features, but X and "
            f"sensitive_features the groups {groups.labels!r} and {n_features}: X must be a sample of the same rows."
        )


def check_dimensions(n_components: int | Iterable[int] | None, n_features: int, *, default: Iterable[int]) -> list[int]:
    """Numbers of components, ascending; None takes those of the default that do not exceed the features."""
    if n_components is None:
        n_components = [number for number in default if number <= n_features]
    numbers = list(n_components) if isinstance(n_components, Iterable) else [n_components]
    if not numbers:
        raise ValueError("n_components is empty; give one number or several.")
    return sorted({check_n_components(number, n_features) for number in numbers})


def label_texts(labels: Iterable[Any]) -> list[str]:
    """Different labels as different texts."""
    labels = list(labels)
    texts = [str(label) for label in labels]
    return [repr(label) if texts.count(text) > 1 else text for label, text in zip(labels, texts, strict=True)]


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and np.isfinite(value) else None


def _plain_estimates(estimates: GroupEstimates) -> dict[str, Any]:
    def plain(estimate: Estimate) -> list[float]:
        return [estimate.value, estimate.low, estimate.high]

    return {
        "groups": dict(zip(label_texts(estimates.by_group), map(plain, estimates.by_group.values()), strict=True)),
        "overall": estimates.overall,
        "gap": plain(estimates.gap),
    }


def _silent(done: int, total: int, next_step: str) -> None:
    """No progress is shown."""
