"""Errors and losses of each group on new rows, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._validation import check_number
from fairpca.inference._checks import as_source, seed_of
from fairpca.inference._cross_fits import CrossFits, Progress, cross_fit
from fairpca.inference._display import TableResult, number
from fairpca.inference._estimates import GroupEstimates, estimates_by_group
from fairpca.inference._folds import make_folds
from fairpca.inference.chance import Influence, Noise, add_up
from fairpca.linalg import top_eigenpairs
from fairpca.moments import GroupMoments

__all__ = ["GroupFigures", "cross_validate_groups"]


@dataclass(frozen=True, repr=False)
class GroupFigures(TableResult):
    """Result of :func:`cross_validate_groups`.

    Attributes
    ----------
    error : GroupEstimates
        Mean squared reconstruction error on new rows.
    loss : GroupEstimates
        The loss in the sample, as the papers define it. Its intervals say how the value varies from sample to sample,
        not how far it is from the loss on new rows: it is too large, the more the smaller the group.
    corrected_loss : GroupEstimates
        The loss with both sides judged on new rows: what the group would gain from components of its own if it had
        many rows. It may be negative where sharing helps a group.
    counts : dict
        Label -> number of rows (or total weight).
    remarks : tuple of str
        Why some of the values are not to be relied on.
    n_folds : int
    confidence : float
    method : str
    n_components : int

    Each of the three has ``by_group`` (label -> ``Estimate(value, low, high)``), ``overall``, ``gap`` (an ``Estimate``)
    and ``between``, the two groups that the gap is between.
    """

    error: GroupEstimates
    loss: GroupEstimates
    corrected_loss: GroupEstimates
    counts: dict[Any, float]
    remarks: tuple[str, ...]
    n_folds: int
    confidence: float
    method: str
    n_components: int

    @property
    def sentence(self) -> str:
        """What the interval of the corrected gap says, and no more."""
        high, low = self.corrected_loss.between
        gap = self.corrected_loss.gap
        interval = f"{number(gap.value)}, {self.confidence:.0%} interval {number(gap.low)} to {number(gap.high)}"
        if self.corrected_loss.gap_excludes_zero:
            return f"On new rows the losses of {high} and {low} differ: by {interval}."
        return f"On new rows no difference of losses is shown: {high} against {low} {interval}."

    def _headings(self) -> list[str]:
        return ["group", "rows", "error on new rows", "loss in sample", "corrected loss"]

    def _rows(self) -> list[list[str]]:
        def with_interval(estimates: GroupEstimates, label: Any) -> str:
            one = estimates.by_group[label]
            return f"{number(one.value)} ({number(one.low)} to {number(one.high)})"

        return [
            [
                str(label),
                f"{count:,.0f}",
                with_interval(self.error, label),
                number(self.loss.by_group[label].value),
                with_interval(self.corrected_loss, label),
            ]
            for label, count in self.counts.items()
        ]

    def _sentences(self) -> tuple[list[str], list[str]]:
        above = [
            f"{self.method}, {self.n_components} components, {self.n_folds} folds; {self.confidence:.0%} intervals",
            self.sentence,
        ]
        return above, [f"Note: {remark}" for remark in self.remarks]

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"group": label, "rows": count}
            | {
                f"{name}{end}": getattr(getattr(self, name).by_group[label], part)
                for name in ("error", "loss", "corrected_loss")
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
    progress: Progress | None = None,
) -> GroupFigures:
    """Error and loss of each group on rows that were not used in fitting, with intervals.

    Parameters
    ----------
    estimator : estimator
        One of fairpca's, scikit-learn's PCA, or any transformer with ``inverse_transform``; it is cloned and fitted
        without each fold, and given the groups if its ``fit`` takes ``sensitive_features``.
    X : array-like, sparse matrix, or Dask array or data frame of shape (n_samples, n_features); or chunks
        Chunks are an iterable, not an iterator, of ``(X, sensitive_features)`` or ``(X, sensitive_features,
        sample_weight)`` that starts again at every pass; like Dask collections, for estimators that need moments only.
    y : array-like, optional
        Passed on to ``fit``.
    sensitive_features : array-like
        The group of each row; left out when X is an iterable of chunks.
    cv : int, splitter or iterable of (train, test), default=10
        As in scikit-learn. A number of folds holds every group in proportion. Each row must be tested once.
    clusters : array-like, optional
        The person (household, patient, ...) that each row belongs to; the rows of one stay in one fold, and standard
        errors count persons instead of rows. Rows in memory only.
    sample_weight : array-like of shape (n_samples,), optional
        Counts like repeated rows in every mean.
    confidence : float, default=0.95
    random_state : int, RandomState or None
        Divides the rows into folds; None gives the same folds every time.
    n_jobs : int, optional
        Fits at once, for estimators that need rows.
    progress : callable, optional
        Called as ``progress(done, total, "folds")``.

    Returns
    -------
    GroupFigures

    See Also
    --------
    loss_test : Whether a random division would show such losses.

    Notes
    -----
    With K folds, own components U of all rows of a group, U_k of its rows outside fold k, and V_k the method's outside
    fold k, the corrected loss is the mean over the group's rows of

    ``[K |U^T x|^2 + (K - 1) |U_k^T x|^2] / (2K - 1) - |V_k^T x|^2``

    for x in fold k. In the sample the group's own optimum is too large by some delta, cross-validated too small by
    ``delta K / (K - 1)``, to first order; the two cancel. Intervals are those of means of row values; those of gaps
    hold for all pairs of groups together. Distances are about the pooled mean of the training rows, whatever ``center``
    the estimator has.

    Estimators that need nothing but moments take one pass over the rows for all folds, and one for the standard errors;
    where every group has more than 50,000 rows, that one looks at a random part of them.

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
    check_number("confidence", confidence, at_least=0.0)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} must lie between 0 and 1, for example 0.95.")
    source = as_source(X, sensitive_features, sample_weight)
    folds = make_folds(source, cv, clusters, seed_of(random_state))
    fits = cross_fit(estimator, source, folds, y, n_jobs, progress)
    return _summarise(fits, confidence)


def _summarise(fits: CrossFits, confidence: float) -> GroupFigures:
    moments, n_folds = fits.moments.whole, fits.folds.n_folds
    errors, losses = fits.in_sample()
    means, standard, units = fits.means_and_errors()
    noise = Noise.from_blocks(fits.moments.by_fold, moments, fits.n_components)
    # What the method's own overfitting adds to the uncertainty of a single group; it cancels in differences.
    regret = (means[:, 0] - errors) * (n_folds - 1) / (2 * n_folds - 1)
    own = np.sqrt(standard[:, 1] ** 2 + regret**2 * noise.relative_variance())
    pooled_loss = float(moments.shares @ errors) - _least_error(moments, fits.n_components)

    def estimates(values: np.ndarray, column: int, overall: float, **options: Any) -> GroupEstimates:
        return estimates_by_group(moments.labels, values, standard[:, column], overall, confidence, **options)

    return GroupFigures(
        error=estimates(means[:, 0], 0, float(moments.shares @ means[:, 0]), least=0.0),
        loss=estimates(losses, 2, pooled_loss),
        corrected_loss=estimates(means[:, 1], 1, float(moments.shares @ means[:, 1]), own_errors=own),
        counts=dict(zip(moments.labels, moments.counts.tolist(), strict=True)),
        remarks=tuple(_remarks(fits, units, noise)),
        n_folds=n_folds,
        confidence=confidence,
        method=type(fits.estimator).__name__,
        n_components=fits.n_components,
    )


def _least_error(moments: GroupMoments, d: int) -> float:
    """Of any d components, for all rows together."""
    covariance = moments.pooled_covariance()
    return float(np.trace(covariance) - top_eigenpairs(covariance, d)[0].sum())


def _remarks(fits: CrossFits, units: np.ndarray, noise: Noise) -> list[str]:
    labels, p = fits.moments.whole.labels, fits.moments.whole.n_features
    remarks = [
        f"{label}: {count:,.0f} {fits.folds.unit} for {p} features; its corrected loss is too large."
        for label, count in zip(labels, units, strict=True)
        if count < p
    ]
    if noise.d < p:
        smallest = float(units.min())
        if noise.rests_on_few_rows(fits.source.map_reduce(Influence(noise, smallest), add_up), smallest):
            remarks.append("a few rows dominate the losses; intervals may be too short. Look at outliers first.")
    return remarks
