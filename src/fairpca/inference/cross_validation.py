"""Errors and losses of each group on held-out rows, with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._labels import label_text
from fairpca._progress import Report, progress_of
from fairpca._validation import check_share, seed_from
from fairpca.inference._checks import as_source
from fairpca.inference._cross_fits import check_can_be_judged, fit_each_fold
from fairpca.inference._display import TableResult, number, with_interval
from fairpca.inference._estimates import GroupEstimates, estimates_by_group
from fairpca.inference._fitting import n_components_of
from fairpca.inference._fold_study import FoldStudy, Judged
from fairpca.inference._folds import make_folds
from fairpca.inference._least_errors import LeastErrors
from fairpca.inference.chance import Influence, Noise, add_up
from fairpca.moments import GroupMoments

__all__ = ["GroupFigures", "cross_validate_groups", "group_figures"]

#: Differences of errors below this share of a group's variance are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class GroupFigures(TableResult):
    """Result of :func:`cross_validate_groups`.

    Attributes
    ----------
    error : GroupEstimates
        Mean squared reconstruction error on new rows.
    loss : GroupEstimates
        The loss in the sample, as the papers define it. Its intervals say how the value varies from sample to sample,
        not how far it is from the loss on new rows: it is too large, and more so the smaller the group.
    corrected_loss : GroupEstimates
        Estimated loss of the method on new rows relative to the best components of the group's population. Above zero
        for random groups too; interpret only differences between groups.
    change : GroupEstimates
        Error on new rows minus that of ordinary PCA with as many components: negative if the method represents a group
        better. The comparison is paired by row, so intervals are much shorter than those of the errors.
    sample_error : dict
        Label -> error on the rows used in fitting.
    counts : dict
        Label -> number of rows (or total weight).
    too_small : tuple
        Groups with fewer rows than features, for which no difference is claimed.
    independent : bool
        False if rows repeat persons of unknown identity: intervals are then too short, and no difference is claimed.
    remarks : tuple of str
        Why some of the values are not reliable.
    n_folds : int
    confidence : float
    method : str
    n_components : int

    Each of the four has ``by_group`` (label -> ``Estimate(value, low, high)``), ``overall``, ``gap`` (an ``Estimate``)
    and ``between``, the two groups that the gap is between.

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
    >>> found.counts
    {'female': 310.0, 'male': 690.0}
    """

    error: GroupEstimates
    loss: GroupEstimates
    corrected_loss: GroupEstimates
    change: GroupEstimates
    sample_error: dict[Any, float]
    counts: dict[Any, float]
    too_small: tuple[Any, ...]
    remarks: tuple[str, ...]
    n_folds: int
    confidence: float
    method: str
    n_components: int
    independent: bool = True

    @property
    def claimed(self) -> bool:
        """Whether it is claimed that the losses differ on new rows: the interval of the gap excludes zero."""
        judged = self.independent and not set(self.corrected_loss.between) & set(self.too_small)
        return judged and self.corrected_loss.gap_excludes_zero

    @property
    def sentence(self) -> str:
        """A sentence that states what the interval of the corrected gap implies."""
        high, low = map(label_text, self.corrected_loss.between)
        gap = self.corrected_loss.gap
        interval = f"{number(gap.value)}, {self.confidence:.0%} interval {number(gap.low)} to {number(gap.high)}"
        if not self.independent:
            return (
                "Rows repeat persons whose identities are not known: intervals are too short, and nothing is claimed."
            )
        if self.claimed:
            return f"On new rows the losses of {high} and {low} differ: by {interval}."
        return f"On new rows no difference of losses is shown: {high} against {low} {interval}."

    @property
    def changes(self) -> str:
        """The change in each group's error on new rows, compared with ordinary PCA with as many components."""
        parts = [
            f"{label_text(label)} {'+' if one.value > 0 else ''}{with_interval(one)}"
            for label, one in self.change.by_group.items()
        ]
        return f"Error on new rows against ordinary PCA: {', '.join(parts)}."

    def _headings(self) -> list[str]:
        return ["group", "rows", "error on new rows", "loss in sample", "corrected loss"]

    def _rows(self) -> list[list[str]]:
        return [
            [
                label_text(label),
                f"{count:,.0f}",
                with_interval(self.error.by_group[label]),
                number(self.loss.by_group[label].value),
                with_interval(self.corrected_loss.by_group[label]),
            ]
            for label, count in self.counts.items()
        ]

    def _sentences(self) -> tuple[list[str], list[str]]:
        above = [
            f"{self.method}, {self.n_components} components, {self.n_folds} folds; {self.confidence:.0%} intervals",
            self.sentence,
        ]
        changed = any(one.value for one in self.change.by_group.values())
        return above, [*([self.changes] if changed else []), *(f"Note: {remark}" for remark in self.remarks)]

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"group": label, "rows": count}
            | {
                f"{name}{end}": getattr(getattr(self, name).by_group[label], part)
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
    cv: Any = 10,
    clusters: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Report | bool | None = None,
) -> GroupFigures:
    """Error and loss of each group on held-out rows, with confidence intervals.

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
    cv : int, splitter or iterable of (train, test), default=10
        As in scikit-learn. An integer gives folds stratified by group. Each row must be tested exactly once.
    clusters : array-like, optional
        The person (household, patient, ...) that each row belongs to; these rows stay in one fold, and standard
        errors are based on persons instead of rows. Rows in memory only.
    sample_weight : array-like of shape (n_samples,), optional
        Counts like repeated rows in every mean.
    confidence : float, default=0.95
    random_state : int, RandomState or None
        Divides the rows into folds; None gives the same folds every time.
    n_jobs : int, optional
        Number of parallel fits, for estimators that need rows.
    progress : callable or bool, optional
        True shows a bar on the terminal; a function is called as ``progress(done, total, "folds")``.

    Returns
    -------
    GroupFigures

    See Also
    --------
    loss_test : Whether a random division would show such losses.

    Notes
    -----
    With own components U of all rows of a group, U_k of its rows outside fold k, and V_k the method's outside fold k,
    the corrected loss is the mean over the group's rows of

    ``w |U^T x|^2 + (1 - w) |U_k^T x|^2 - |V_k^T x|^2``

    for x in fold k. U captures more of the sample than the best components of the population do, U_k less; w is such
    that the two errors cancel: (K - 1) / (2K - 1) to first order with K folds, and less where eigenvalues are nearly
    equal, since U_k then loses little. w comes from the noise of the second moments, as the folds show it.

    So the corrected loss compares the method with the best components that the group's *population* has, which cannot
    be learned exactly from so few rows. It is above zero for random groups too, because shared components are
    estimated; interpret only differences between groups. Intervals are those of means of row values, by Student's t
    with fewer degrees of freedom where a few rows dominate; those of gaps hold for all pairs of groups together.
    Distances are about the pooled mean of the training rows, whatever ``center`` the estimator has.

    Estimators that need nothing but moments take one pass over the rows for all folds, and one for the standard errors;
    if every group has more than 10,000 rows, the latter uses a random sample of them.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import cross_validate_groups
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> figures = cross_validate_groups(FairPCA(5), X, sensitive_features=sex, cv=5)
    >>> figures.corrected_loss.gap_excludes_zero
    False
    """
    check_share("confidence", confidence, example=0.95)
    source = as_source(X, sensitive_features, sample_weight)
    check_can_be_judged(estimator, source)
    study = FoldStudy(source, make_folds(source, cv, clusters, seed_from(random_state)))
    with progress_of(progress) as report:
        whole, without = fit_each_fold(estimator, study, y, n_jobs, report)
    return group_figures(study, whole, without, confidence, type(estimator).__name__)


def group_figures(
    study: FoldStudy,
    whole: Any,
    without: Sequence[Any],
    confidence: float,
    method: str,
    *,
    least: LeastErrors | None = None,
) -> GroupFigures:
    """Evaluate a method that was fitted to all rows and without each of the test folds.

    ``least`` errors, where they are known from other methods; their moments may be those of many more rows, of which
    the study has a random sample, and replace those of the sample where no new rows are needed.
    """
    least = LeastErrors(study.moments.whole) if least is None else least
    moments, d, K = least.moments, n_components_of(whole), study.folds.n_effective
    errors = study.sample_errors(whole, moments)
    judged = study.judge(without)
    means, standard = _without_rounding(judged, moments)
    noise = study.noise(d)
    standard[:, 1] = np.hypot(standard[:, 1], _own_optimum_error(judged, noise))
    # What the method's own overfitting adds to the uncertainty of a single group; it cancels in differences.
    regret = (means[:, 0] - errors) * (K - 1.0) / (2.0 * K - 1.0)
    own = np.sqrt(standard[:, 1] ** 2 + regret**2 * noise.relative_variance(noise.n_rows, d))

    def estimates(values: np.ndarray, column: int, overall: float | None = None, **options: Any) -> GroupEstimates:
        overall = float(moments.shares @ values) if overall is None else overall
        spread = standard[:, column], judged.freedom[:, column]
        return estimates_by_group(study.labels, values, *spread, overall, confidence, **options)

    return GroupFigures(
        error=estimates(means[:, 0], 0, least=0.0),
        loss=estimates(errors - least.of_groups(d), 2, max(float(moments.shares @ errors) - least.of_all(d), 0.0)),
        corrected_loss=estimates(means[:, 1], 1, own_errors=own),
        change=estimates(means[:, 3], 3),
        sample_error=dict(zip(study.labels, errors.tolist(), strict=True)),
        counts=dict(zip(moments.labels, moments.counts.tolist(), strict=True)),
        too_small=tuple(
            label for label, count in zip(study.labels, judged.units, strict=True) if count < moments.n_features
        ),
        remarks=tuple(_remarks(study, judged.units, noise)),
        n_folds=len(without),
        confidence=confidence,
        method=method,
        n_components=d,
    )


def _without_rounding(judged: Judged, moments: GroupMoments) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard errors, with changes that are only rounding set to zero: the components are those of PCA."""
    means, standard = judged.means.copy(), judged.errors.copy()
    variances = np.einsum("app->a", moments.second_moments())
    same = np.abs(means[:, 3]) + standard[:, 3] <= _ROUNDING * variances
    means[same, 3] = standard[same, 3] = 0.0
    return means, standard


def _own_optimum_error(judged: Judged, noise: Noise) -> np.ndarray:
    """What the overfitting of own components adds to the uncertainty of a group's corrected loss.

    The row values have it where own components overfit as much in the sample as they fall short on new rows: the two
    cancel. Where they do not, the amount itself varies, as a sum of squares does.
    """
    overfitted = np.maximum(judged.means[:, 2] - judged.means[:, 1], 0.0) / (1.0 - judged.own_weights)
    relative = np.array([noise.relative_variance(units, noise.d) for units in judged.units])
    return overfitted * (1.0 - 2.0 * np.minimum(judged.own_weights, 0.5)) * np.sqrt(relative / 2.0)


def _remarks(study: FoldStudy, units: np.ndarray, noise: Noise) -> list[str]:
    p = study.moments.whole.n_features
    small = {label_text(label): count for label, count in zip(study.labels, units, strict=True) if count < p}
    remarks = [_too_small(small, study.folds.unit, p)] if small else []
    if noise.d < p and _few_rows_dominate(study, noise, float(units.min())):
        remarks.append("A few rows dominate the losses; intervals may be too short. Look at outliers first.")
    return remarks


def _too_small(small: dict[str, float], unit: str, p: int) -> str:
    """One sentence, however many groups are too small."""
    if len(small) == 1:
        ((name, count),) = small.items()
        return (
            f"{name} is too small to be judged ({count:,.0f} {unit} for {p} features); its corrected loss is too large."
        )
    listed = ", ".join(f"{name} ({count:,.0f})" for name, count in small.items())
    start = f"These groups are too small to be judged ({unit} for {p} features): {listed}"
    return f"{start}; their corrected losses are too large."


def _few_rows_dominate(study: FoldStudy, noise: Noise, smallest: float) -> bool:
    return noise.rests_on_few_rows(study.source.map_reduce(Influence(noise, smallest), add_up), smallest)
