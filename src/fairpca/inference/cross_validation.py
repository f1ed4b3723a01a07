"""Errors and losses of each group on new rows, with confidence intervals that hold together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone

from fairpca._display import TableResult, number, with_interval
from fairpca._labels import label_text
from fairpca._progress import Report, progress_of
from fairpca._validation import check_share, seed_from
from fairpca._workers import delayed, parallel
from fairpca.inference._checks import as_source, check_dimensions
from fairpca.inference._claims import Claim, claims_on_new_rows, components_text
from fairpca.inference._divisions import CHANGE, CORRECTED, ERROR, LOSS
from fairpca.inference._fitting import Fitter, needs_moments_only, quietly
from fairpca.inference._intervals import Spread, critical_value
from fairpca.inference._study import Evidence, Study, threads_for_fits
from fairpca.metrics import Estimate, GroupValues

__all__ = ["GroupEvaluation", "cross_validate_groups", "evaluations"]


@dataclass(frozen=True, repr=False)
class GroupEvaluation(TableResult):
    """Result of :func:`cross_validate_groups`.

    Attributes
    ----------
    error : GroupValues
        Mean squared reconstruction error on new rows.
    loss : GroupValues
        The loss in the sample, as the papers define it. Its intervals say how the value varies from sample to sample,
        not how far it is from the loss on new rows: it is too large, and more so the smaller the group.
    corrected_loss : GroupValues
        Estimated loss of the method on new rows relative to the best components of the group's population. Above zero
        for random groups too; interpret only differences between groups.
    change : GroupValues
        Error on new rows minus that of ordinary PCA with as many components: negative if the method represents a group
        better. The comparison is paired by row, so intervals are much shorter than those of the errors.
    sample_error : GroupValues
        Error on the rows used in fitting.
    counts, weights : dict
        Label -> number of rows, and their total weight.
    independent : bool
        False if rows repeat persons of unknown identity: intervals are then too short, and nothing is claimed.
    remarks : tuple of str
        Why some of the values are not reliable.
    n_folds : int
    confidence : float
    method : str
    n_components : int

    See Also
    --------
    cross_validate_groups : Computes them.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import cross_validate_groups
    >>> from sklearn.decomposition import PCA
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = cross_validate_groups(PCA(2), X, sensitive_features=sex, random_state=0)
    >>> found.counts, found.claimed
    ({'female': 310, 'male': 690}, False)
    """

    error: GroupValues
    loss: GroupValues
    corrected_loss: GroupValues
    change: GroupValues
    sample_error: GroupValues
    counts: dict[Any, int]
    weights: dict[Any, float]
    remarks: tuple[str, ...]
    n_folds: int
    confidence: float
    method: str
    n_components: int
    independent: bool = True

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What is shown of new rows."""
        return tuple(claims_on_new_rows([self]))

    @property
    def claimed(self) -> bool:
        """Whether it is claimed that the losses of two groups differ on new rows."""
        return any(claim.kind == "losses" for claim in self.claims)

    @property
    def keeps_everything(self) -> bool:
        """Whether nothing of any group is lost on new rows."""
        return self.error.max == 0.0

    @property
    def sentence(self) -> str:
        """What is shown of the losses, in a sentence."""
        if not self.independent:
            return (
                "Rows repeat persons whose identities are not known: intervals are too short, and nothing is claimed."
            )
        if self.keeps_everything:
            return f"{self.method} with {components_text(self.n_components)} keeps everything."
        for claim in self.claims:
            if claim.kind == "losses":
                return claim.text
        high, low = map(label_text, self.corrected_loss.between)
        gap = with_interval(self.corrected_loss.gap.joint)
        return f"On new rows no difference of losses is shown: “{high}” against “{low}” {gap}."

    def _cells(self) -> list[dict[str, str]]:
        weighted = any(self.weights[label] != count for label, count in self.counts.items())
        return [
            {"group": label_text(label), "rows": f"{count:,}"}
            | ({"weight": number(self.weights[label])} if weighted else {})
            | {
                "error on new rows": with_interval(self.error[label]),
                "loss in sample": number(self.loss[label]),
                "corrected loss": with_interval(self.corrected_loss[label]),
            }
            for label, count in self.counts.items()
        ]

    def _sentences(self) -> tuple[list[str], list[str]]:
        level = f"{100 * self.confidence:g} %"
        above = [
            f"{self.method}, {components_text(self.n_components)}, {self.n_folds} folds; {level} intervals: in the "
            "table of each value alone, in sentences of all of these together",
            self.sentence,
        ]
        below = [f"Note: {remark}" for remark in self.remarks]
        if any(self.change.values()):
            changes = ", ".join(
                f"“{label_text(label)}” {'+' if one > 0 else ''}{with_interval(one.joint)}"
                for label, one in self.change.items()
            )
            below.insert(0, f"Error on new rows against ordinary PCA: {changes}.")
        return above, below

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"group": label, "rows": count, "weight": self.weights[label]}
            | {
                f"{name}{end}": getattr(getattr(self, name)[label], part)
                for name in ("error", "loss", "corrected_loss", "change")
                for part, end in (("value", ""), ("low", "_low"), ("high", "_high"))
            }
            for label, count in self.counts.items()
        ]


def cross_validate_groups(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any = None,
    n_components: int | Sequence[int] | None = None,
    cv: int = 10,
    clusters: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Report | bool | None = None,
) -> Any:
    """Error and loss of each group on new rows, with confidence intervals.

    Parameters
    ----------
    estimator : estimator
        A fairpca estimator, scikit-learn's PCA, or any transformer with ``inverse_transform``; it is cloned and fitted
        without each fold, with the groups if its ``fit`` accepts ``sensitive_features``. One that was fitted to other
        rows is evaluated as it is if it is wrapped in :class:`sklearn.frozen.FrozenEstimator`.
    X : array-like, sparse matrix, or Dask array or data frame of shape (n_samples, n_features); or chunks
        Chunks are an iterable, not an iterator, of ``(X, sensitive_features)`` or ``(X, sensitive_features,
        sample_weight)`` that starts again at every pass; like Dask collections, for estimators that need moments only.
    y : array-like, optional
        Passed on to ``fit``.
    sensitive_features : array-like
        The group of each row; left out when X is an iterable of chunks.
    n_components : int or sequence of int, optional
        Default: the estimator's own. Of several, joint intervals hold for all together.
    cv : int, default=10
        Number of folds. They are random and stratified by group.
    clusters : array-like, optional
        The person (household, patient, ...) that each row belongs to; these rows stay in one fold, and standard
        errors are based on persons instead of rows. Rows in memory only.
    sample_weight : array-like of shape (n_samples,), optional
        Counts like repeated rows in every mean.
    confidence : float, default=0.95
    random_state : int, RandomState or None
        Divides the rows into folds; None is a fixed seed.
    n_jobs : int, optional
        Number of parallel fits, for estimators that need rows.
    progress : callable or bool, optional
        True shows a bar on the terminal; a function is called as ``progress(done, total, "folds")``.

    Returns
    -------
    GroupEvaluation, or dict from number of components to GroupEvaluation if ``n_components`` is a sequence

    See Also
    --------
    loss_test : Whether a random division would show such losses.

    Notes
    -----
    *Values.* With own components U of all rows of a group, U_k of its rows outside fold k, and V_k the method's outside
    fold k, the corrected loss is the mean over the group's rows of ``w |U^T x|^2 + (1 - w) |U_k^T x|^2 - |V_k^T x|^2``
    for x in fold k. U captures more of the sample than the best components of the population do, U_k less; w is such
    that the two errors cancel: K / (2K - 1) to first order with K folds, and less where eigenvalues are nearly equal,
    since U_k then loses little. So the corrected loss compares the method with the best components that the group's
    *population* has, which cannot be learned exactly from so few rows. It is above zero for random groups too, because
    shared components are estimated; interpret only differences between groups. Distances are about the pooled mean of
    the training rows, whatever ``center`` the estimator has.

    *Intervals* are about the components that are returned for these rows, and new rows. They know two sources of error:
    how much the rows vary, from the rows' values; and how much the fit does, from five random divisions into folds.
    Estimators that need rows are fitted for one division only, so that their intervals leave out the second one.
    ``low`` and ``high`` hold for one value alone. ``joint_low`` and ``joint_high`` hold together: of errors and of
    corrected losses for the differences of all pairs of groups, of changes for all groups, and for all numbers of
    components of the call. Only they support a claim. The correction of losses is biased where a group has few rows for
    its number of features; intervals of their differences are longer by what was corrected.

    *Cost.* For estimators that need moments only, one pass over the rows gives all folds of all divisions, and another
    one the rows' values; of groups with more than 10,000 rows, these come from a random sample.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import cross_validate_groups
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = cross_validate_groups(FairPCA(), X, sensitive_features=sex, n_components=[2, 5], cv=5)
    >>> [found[d].claimed for d in (2, 5)]
    [False, False]
    """
    check_share("confidence", confidence, example=0.95)
    source = as_source(X, sensitive_features, sample_weight)
    method, chosen = type(estimator).__name__, [estimator]
    if n_components is not None:
        numbers = check_dimensions(n_components, source.n_features)
        chosen = [clone(estimator).set_params(n_components=d) for d in numbers]
    fits = [Fitter(one, source, y) for one in chosen]
    if not all(hasattr(estimator, name) for name in ("transform", "inverse_transform")):
        raise TypeError(
            f"{method} has no inverse_transform, so it has no reconstruction error: pass a transformer that has one."
        )
    study, evidence = Study(source, cv, clusters, seed_from(random_state)), []
    total = study.n_folds * len(fits)
    with progress_of(progress) as report:
        report(0, total, "folds")
        for i, fit in enumerate(fits):

            def done(folds: int, before: int = i * study.n_folds) -> None:
                report(before + folds, total, "folds")

            evidence.append(study.evidence(method, *_fit_each_fold(fit, study, n_jobs, done)))
    found = evaluations(study, evidence, confidence)
    if n_components is None or isinstance(n_components, int | np.integer):
        return found[0]
    return {one.n_components: one for one in found}


def _fit_each_fold(
    fit: Fitter, study: Study, n_jobs: int | None, done: Callable[[int], None]
) -> tuple[Any, list[list[Any]]]:
    """The estimator fitted to all rows, and without each fold: of all divisions if it needs moments only."""
    if needs_moments_only(fit.estimator):
        whole, without = fit(study.all_moments), study.fit_without_folds(fit.estimator)
        done(study.n_folds)
        return whole, without
    with threads_for_fits(study.source.n_features):
        whole, found, fold = fit(None), [], study.fold_of_rows()
        run = parallel(n_jobs, return_as="generator")
        for fitted in run(delayed(quietly)(fit, None, np.flatnonzero(fold != i)) for i in range(study.n_folds)):
            found.append(fitted)
            done(len(found))
    return whole, [found]


def evaluations(study: Study, evidence: Sequence[Evidence], confidence: float) -> list[GroupEvaluation]:
    """Values and intervals of each method; joint intervals hold for all of them together."""
    influences = [np.stack([one.influences[a] for one in evidence], axis=2) for a in range(len(study.labels))]
    critical = {
        column: critical_value([part[:, column] for part in influences], confidence, pairs=column != CHANGE)
        for column in (ERROR, CORRECTED, CHANGE)
    }
    return [_summary(study, one, confidence, critical) for one in evidence]


def _summary(study: Study, one: Evidence, confidence: float, critical: dict[int, float]) -> GroupEvaluation:
    means, shares, noise = one.means, study.all_moments.shares, study.divisions[0].noise
    overfitted = np.maximum(means[:, LOSS] - means[:, CORRECTED], 0.0)
    relative = np.array(
        [noise.relative_variance(count, one.n_components) for count in study.divisions[0].folds.whole.counts]
    )
    # The row values contain the overfitting of own components where its two sides cancel; the rest varies by itself.
    uncancelled = overfitted / (1.0 - one.own_weights) * (1.0 - 2.0 * np.minimum(one.own_weights, 0.5))
    # A single group's loss also varies with how much the shared components overfit, which differences do not.
    regret = (means[:, ERROR] - one.sample_errors[:-1]) * (one.n_effective - 1.0) / (2.0 * one.n_effective - 1.0)
    overall = shares @ means
    means[:, LOSS], overall[LOSS] = one.sample_losses[:-1], one.sample_losses[-1]

    def values(column: int, name: str, **known: Any) -> GroupValues:
        joint = critical.get(column, np.nan)
        return _with_intervals(
            study.labels, one, column, name, means[:, column], overall[column], confidence, joint, **known
        )

    return GroupEvaluation(
        error=values(ERROR, "error on new rows"),
        loss=values(LOSS, "loss in sample"),
        corrected_loss=values(
            CORRECTED,
            "corrected loss",
            extra=uncancelled * np.sqrt(relative / 2.0),
            own=np.abs(regret) * np.sqrt(noise.relative_variance(noise.total, one.n_components)),
            bias=overfitted,
        ),
        change=values(CHANGE, "change of error"),
        sample_error=GroupValues(
            dict(zip(study.labels, one.sample_errors, strict=False)), one.sample_errors[-1], name="error in sample"
        ),
        counts=study.counts,
        weights=dict(zip(study.labels, study.all_moments.counts.tolist(), strict=True)),
        remarks=tuple(_remarks(study, one.n_components)),
        n_folds=one.n_folds,
        confidence=confidence,
        method=one.method,
        n_components=one.n_components,
    )


def _with_intervals(
    labels: Sequence[Any],
    one: Evidence,
    column: int,
    name: str,
    values: np.ndarray,
    overall: float,
    confidence: float,
    joint: float,
    extra: np.ndarray | float = 0.0,
    own: np.ndarray | float = 0.0,
    bias: np.ndarray | float = 0.0,
) -> GroupValues:
    """Values of the groups, and the differences of all pairs; ``joint`` is the critical value for all together.

    ``extra`` standard errors of each group belong to its own value and to differences, ``own`` ones to the former only.
    Differences bias by at most ``bias`` of either group, towards a larger value.
    """
    spread, repeated = one.spread[:, column], one.values[:, :, column]
    alone = one.with_variation(spread, repeated).plus(Spread(np.hypot(extra, own)))
    first, second = np.triu_indices(len(values), 1)
    swapped = values[first] < values[second]
    first, second = np.where(swapped, second, first), np.where(swapped, first, second)
    extra, bias = np.broadcast_to(extra, values.shape), np.broadcast_to(bias, values.shape)
    both = one.with_variation(spread[first].plus(spread[second]), repeated[:, first] - repeated[:, second])
    both = both.plus(Spread(np.hypot(extra[first], extra[second])))

    def estimates(values: np.ndarray, spread: Spread, joint: float, down: Any, up: Any, least: float) -> list[Estimate]:
        columns = [values]
        for half in (spread.half_width(stats.norm.ppf(0.5 + confidence / 2)), spread.half_width(joint)):
            columns += [np.maximum(values - down - half, least), values + up + half]
        return [Estimate(*row) for row in np.stack(columns, axis=1)]

    of_groups, of_pairs = (joint, np.nan) if column == CHANGE else (np.nan, joint)
    by_group = estimates(values, alone, of_groups, 0.0, 0.0, 0.0 if column == ERROR else -np.inf)
    gaps = estimates(values[first] - values[second], both, of_pairs, bias[first], bias[second], -np.inf)
    pairs = [(labels[a], labels[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    return GroupValues(dict(zip(labels, by_group, strict=True)), overall, dict(zip(pairs, gaps, strict=True)), name)


def _remarks(study: Study, d: int) -> Iterator[str]:
    """Why some values are not reliable."""
    p, sizes = study.source.n_features, zip(study.labels, study.blocks.sizes, strict=True)
    small = {label_text(label): size for label, size in sizes if size < p}
    if small:
        listed = ", ".join(f"“{name}” ({size:,})" for name, size in small.items())
        yield f"Fewer {study.blocks.unit} than the {p} features: {listed}. A corrected loss is then too large."
    if d < p and study.few_rows_dominate(d):
        yield "A few rows dominate the losses; intervals may be too short. Look at outliers first."
