"""Several methods side by side on the same rows."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fairpca._display import number
from fairpca._frames import feature_names_of
from fairpca._labels import label_text, label_texts
from fairpca._progress import Report, progress_of
from fairpca._validation import check_number, split_off_groups
from fairpca._workers import delayed, parallel
from fairpca.inference._checks import check_dimensions
from fairpca.inference._study import Evidence
from fairpca.inference.cross_validation import evaluations
from fairpca.linalg import threads_for
from fairpca.metrics import GroupValues
from fairpca.model_selection._claims import all_claims
from fairpca.model_selection._features import study_features
from fairpca.model_selection._held_out import Measured
from fairpca.model_selection._study import Study
from fairpca.model_selection.comparison import Comparison, Label, MethodResult
from fairpca.model_selection.methods import Method, choose_methods
from fairpca.moments import GroupMoments

__all__ = ["compare"]

_DEFAULT_DIMENSIONS = (1, 2, 3, 5, 10)
#: A gap of losses is closed, or as it was, up to this share of that of ordinary PCA: fits stop at a tolerance.
_CLOSED = 0.01


def compare(
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any,
    n_components: int | Iterable[int] | None = None,
    methods: Iterable[str] | Mapping[str, Any] | None = None,
    clusters: Any = None,
    repeated_rows: bool = False,
    n_permutations: int = 999,
    cv: int = 10,
    confidence: float = 0.95,
    test_size: float = 0.3,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Report | bool | None = None,
    moments: GroupMoments | None = None,
    sample_weight: Any = None,
    feature_names: Sequence[str] | None = None,
    label_name: str | None = None,
    class_names: Sequence[str] | None = None,
) -> Comparison:
    """Fit several methods, and measure how each affects every group and what it costs.

    Every method is fitted to all rows, for the loss in the sample and the explained variance; without each of ten
    folds, for errors and corrected losses on new rows; and to the training part of one random split, for what a
    classifier can predict from the scores of held-out rows (the group, the label). Methods that need rows rather than
    moments are evaluated on that one held-out part; MMDFairPCA is fitted once, to at most 700 of the training rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Standardise X first unless all features have the same unit.
    y : array-like of shape (n_samples,), optional
        A label; adds accuracy and the differences between groups in a classifier's decisions.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row.
    n_components : int or iterable of int, optional
        Default: those of 1, 2, 3, 5 and 10 with which ordinary PCA does not keep everything.
    methods : iterable of str or mapping from name to estimator, optional
        Names as in ``fairpca.model_selection.METHODS`` (default: all but those marked ``on_request``), or estimators of
        your own with a parameter ``n_components``.
    clusters : array-like, optional
        The person (household, patient, ...) that each row belongs to. Labels of persons are permuted, and the rows of a
        person stay in one fold.
    repeated_rows : bool, default=False
        Set to True if several rows belong to one person and it is not known which: then no p-value is given and
        nothing is claimed, since the intervals are too short.
    n_permutations : int, default=999
        Number of random divisions for the p-values of ordinary PCA.
    cv : int, default=10
        Number of folds for the values on new rows, for methods that need moments only; fewer if a group has fewer rows.
    confidence : float, default=0.95
        Level of the confidence intervals.
    test_size : float, default=0.3
        Proportion of held-out rows.
    random_state : int, RandomState or None, default=None
        None is a fixed seed.
    n_jobs : int or None, default=None
        Number of fits that run in parallel, as in scikit-learn; the results do not depend on it.
    progress : callable or bool, optional
        A bar is shown on a terminal or in a notebook unless this is False; a function is called with the number of
        completed steps, the total number of steps, and what was done.
    moments : GroupMoments, optional
        Moments of many more rows, of which X is a random sample. Methods that need moments only are then fitted to
        these, and losses in the sample and explained variance describe all rows; values on new rows, with their
        intervals, and p-values come from the sample.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, which count like repeated rows in fits, errors, losses, variance, accuracy and decisions; standard
        errors and p-values take each row for one observation. AUC, MMD^2 and adversary compare the rows without
        weights. Rows of weight zero are left out. Not with ``moments``.
    feature_names : sequence of str, optional
        Default: the columns of a data frame, otherwise x0, x1, ...
    label_name : str, optional
        What ``y`` is called in the results; default: the name of a pandas Series, otherwise "label".
    class_names : sequence of str, optional
        If ``y`` holds positions 0, 1, ...: the names of the classes.

    Returns
    -------
    Comparison

    See Also
    --------
    fairpca.audit.audit : The same, as a report.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.model_selection import compare
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = compare(X, sensitive_features=sex, n_components=5, methods=["PCA", "FairPCA"])
    >>> ordinary, balanced = found["PCA", 5], found["FairPCA", 5]
    >>> bool(ordinary.loss.gap.value > 2.5), bool(balanced.loss.gap.value < 1e-9)
    (True, True)
    >>> ordinary.loss.between
    ('female', 'male')
    >>> [claim.groups for claim in found.of_kind("change", "FairPCA")]
    [('male',)]
    """
    check_number("n_permutations", n_permutations, at_least=19, integer=True)
    check_number("cv", cv, at_least=2, integer=True)
    X, sensitive_features = split_off_groups(None, X, sensitive_features)  # names of columns: those are not features
    study = Study(
        X, sensitive_features, y, clusters=clusters, n_folds=cv, test_size=test_size, seed=random_state,
        moments=moments, sample_weight=sample_weight,
    )  # fmt: skip
    dimensions = list(check_dimensions(n_components, study.X.shape[1], default=_DEFAULT_DIMENSIONS))
    dimensions = study.dimensions_to_judge(dimensions) if n_components is None else dimensions
    chosen = choose_methods(methods)
    study.prepare(max(dimensions))
    with progress_of(True if progress is None else progress) as report:
        steps, total = itertools.count(1), 2 + len(chosen) * len(dimensions)
        report(0, total, "random divisions")

        def done(what: str) -> None:
            report(next(steps), total, what)

        test = None if repeated_rows else study.test(dimensions, n_permutations)
        done("random divisions")
        with threads_for(study.X.size * study.X.shape[1]):
            features = study_features(study, dimensions, feature_names_of(X, feature_names, study.X.shape[1]))
        done("features")
        fits, omitted = _fit_all(study, chosen, dimensions, n_jobs, done)
    label = _label(study.y, label_name or getattr(y, "name", None), class_names)
    results = _results(study, fits, confidence, not repeated_rows, label)
    return Comparison(
        results=results,
        groups=study.groups.labels,
        counts=study.row_counts,
        n_samples=study.n_rows,
        n_features=study.X.shape[1],
        omitted=omitted,
        settings={  # what a reader needs to repeat the comparison
            "components": dimensions,
            "methods": [method.name for method in chosen],
            "n_folds": study.folds.n_folds,
            "n_permutations": n_permutations,
            "confidence": confidence,
            "test_size": test_size,
            "random_state": study.seed,
            "clusters": clusters is not None,
            "repeated_rows": repeated_rows,
            "weights": sample_weight is not None,
        },
        test=test,
        expected_losses=study.expected_losses(test, dimensions),
        moments=study.moments,
        n_sampled=None if moments is None else len(study.X),
        features=features,
        held_out_counts=tuple(study.held_out_rows.counts(study.held_out_rows.test).values()),
        label=label,
        claims=() if repeated_rows else all_claims(results, test, features),
    )


def _label(y: np.ndarray | None, name: Any, class_names: Sequence[str] | None) -> Label | None:
    if y is None:
        return None
    found, counts = np.unique(y, return_counts=True)
    texts = label_texts(found.tolist()) if class_names is None else [class_names[int(code)] for code in found]
    return Label("label" if name is None else str(name), dict(zip(texts, map(int, counts), strict=True)))


class _Fit(NamedTuple):
    """A result that lacks what is found for all methods together."""

    result: Callable[..., MethodResult]
    estimator: Any
    family: str
    measured: Measured
    evidence: Evidence


def _results(
    study: Study, fits: list[_Fit], confidence: float, independent: bool, label: Label | None
) -> list[MethodResult]:
    """What can be said of all methods together."""
    new_rows = evaluations(study.folds, [fit.evidence for fit in fits], confidence)
    positive = None if label is None else label.positive
    held_out = study.held_out_rows.together([fit.measured for fit in fits], confidence, positive)
    ordinary = {d: study.ordinary_losses(d) for d in {found.n_components for found in new_rows}}
    return [
        fit.result(
            new_rows=replace(found, independent=independent),
            held_out=values,
            gap_remark=_gap_remark(found.loss, ordinary[found.n_components], fit.family),
        )
        for fit, found, values in zip(fits, new_rows, held_out, strict=True)
    ]


def _gap_remark(loss: GroupValues, ordinary: GroupValues, family: str) -> str:
    """From the losses in the sample, for the groups whose losses differ most under ordinary PCA."""
    high, low = ordinary.between
    changes = {
        "reverses": loss[low] - loss[high] > _CLOSED * ordinary.gap,
        "widens": loss.gap - ordinary.gap > _CLOSED * ordinary.gap,
    }
    verbs = " and ".join(verb for verb, holds in changes.items() if holds)
    if not verbs or family in ("reference", "parity"):
        return ""
    pairs = (f"“{label_text(one)}” {number(loss[one])}, by ordinary PCA {number(ordinary[one])}" for one in (high, low))
    largest = "" if loss.gap in (abs(loss[high] - loss[low]), 0.0) else f"; largest difference {number(loss.gap)}"
    return f"It {verbs} the gap of losses in the sample: {'; '.join(pairs)}{largest}."


def _fit_all(
    study: Study, methods: list[Method], dimensions: list[int], n_jobs: int | None, done: Callable[[str], None]
) -> tuple[list[_Fit], list[str]]:
    """All fits, ordered by number of components, and a line for each method that could not be fitted with some."""
    steps = [(d, method) for d in dimensions for method in methods]
    chains: dict[Any, list[tuple[int, Method]]] = {}  # a fit may start from that with fewer components
    for d, method in steps:
        chains.setdefault(method.name if method.extend else (method.name, d), []).append((d, method))
    # Slow methods first, so that none of them is still running on one worker when the others are idle.
    ordered = sorted(chains.values(), key=lambda chain: chain[0][1].max_rows is None)
    outcomes: dict[tuple[str, int], _Fit | ValueError] = {}
    run = parallel(n_jobs, return_as="generator_unordered")
    for found in run(delayed(_fit_chain)(study, chain) for chain in ordered):
        for name, d, outcome in found:
            outcomes[name, d] = outcome
            done(f"{name}, {d} components")
    fits, failed = [], dict[str, list[tuple[int, ValueError]]]()
    for d, method in steps:
        outcome = outcomes[method.name, d]
        if isinstance(outcome, _Fit):
            fits.append(outcome)
        elif method.family == "reference":
            raise outcome
        else:
            failed.setdefault(method.name, []).append((d, outcome))
    omitted = [
        f"{name} with {', '.join(str(d) for d, _ in problems)} components: {problems[0][1]}"
        for name, problems in failed.items()
    ]
    if not fits:
        raise ValueError(f"No method could be fitted. {omitted[0]}")
    return fits, omitted


def _fit_chain(study: Study, chain: list[tuple[int, Method]]) -> list[tuple[str, int, _Fit | ValueError]]:
    """Fits, or the errors that prevented them: some methods need more features than components."""
    found: list[tuple[str, int, _Fit | ValueError]] = []
    previous = None
    for d, method in chain:
        outcome: _Fit | ValueError
        try:
            with threads_for(study.X.size * study.X.shape[1]):
                outcome = _fit(study, method, d, previous)
            previous = outcome.estimator if getattr(outcome.estimator, "converged_", False) else None
        except ValueError as problem:
            outcome, previous = problem, None
        found.append((method.name, d, outcome))
    return found


def _fit(study: Study, method: Method, d: int, previous: Any) -> _Fit:
    with _collected() as notes:
        estimator, rows_used = study.fit(method, d, previous)
    if rows_used < study.n_rows:
        notes.insert(
            0, f"Fitted on {rows_used:,} of {study.n_rows:,} rows, drawn at random; the values are those of all rows."
        )
    with _collected() as training_notes:
        partial = estimator if method.max_rows is not None else study.fit_training_rows(method, d)
        measured = study.held_out_rows.measure(partial)
        evidence = study.evidence(method, d, estimator, partial)
    notes += [f"In the fit for the held-out rows: {note}" for note in training_notes]
    objective, bound = (_finite(getattr(estimator, name, None)) for name in ("objective_", "lower_bound_"))
    total = float(np.trace(study.moments.pooled_covariance()))
    unit = 1.0 if getattr(estimator, "relative", False) else total  # of the objective
    result = functools.partial(
        MethodResult,
        method=method.name,
        family=method.family,
        n_components=d,
        estimator=estimator,
        explained_variance=study.explained_variance(estimator),
        objective=objective,
        lower_bound=bound,
        certificate=None if objective is None or bound is None or unit <= 0 else (objective - bound) / unit,
        converged=bool(getattr(estimator, "converged_", True)),
        notes=tuple(dict.fromkeys(notes)),
    )
    return _Fit(result, estimator, method.family, measured, evidence)


@contextmanager
def _collected() -> Iterator[list[str]]:
    """Collect warnings as text, to be shown next to the values they concern."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(str(warning.message) for warning in caught)


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and np.isfinite(value) else None
