"""Would a random division into groups of these sizes show such losses? Exactly by permutation, or in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from fairpca._display import TableResult, number, p_text
from fairpca._labels import label_text
from fairpca._progress import Report, progress_of
from fairpca._validation import check_number, seed_from
from fairpca._workers import delayed, parallel
from fairpca.inference._checks import as_source, check_dimensions
from fairpca.inference._claims import Claim, components_text
from fairpca.inference._fitting import Fitter, is_fitted, needs_moments_only, quietly, uses_groups
from fairpca.inference._movable import Movable, movable_parts
from fairpca.inference._noise import Noise
from fairpca.linalg import blas_threads, single_blas_thread
from fairpca.metrics._components import fitted_encoder, fitted_projection
from fairpca.metrics.reconstruction import check_projector
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate
from fairpca.moments._sources import MemorySource, RowSource, row_counts
from fairpca.problems.evaluation import Projection, leading_projections, losses_by_dimension, without_rounding

__all__ = ["GroupChance", "LossTest", "loss_test"]

#: Quantile of the random divisions that is reported as their level; also the confidence level of the test.
LEVEL = 0.95
#: Divisions drawn by one task. Fixed, so that results do not depend on the number of parallel tasks.
_BATCH = 25
#: Two statistics closer than this are equal: the same division summed in another order.
_TIE = 1e-9
#: By numbers of components, projections or what fits one to every division into groups.
_Methods = Mapping[int, Projection | Fitter]


@dataclass(frozen=True)
class GroupChance:
    """A group's loss, its mean over random divisions, and the p-value adjusted for all groups and dimensions.

    Attributes
    ----------
    rows : int
    weight : float
        Total weight of the rows.
    loss : float
        In the sample.
    expected : float
        Mean over random divisions.
    p_value : float
        Adjusted for all groups and numbers of components that were tested together; NaN without permutations.
    few_rows : bool
        Without permutations: whether a few rows dominate ``expected``, so that it is not reliable.

    See Also
    --------
    loss_test : Computes it for each group.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import loss_test
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> test = loss_test(X, sensitive_features=sex, n_components=[2, 5], n_permutations=99, random_state=0)
    >>> women = test[5].by_group["female"]
    >>> women.rows, women.loss > women.expected
    (310, True)
    """

    rows: int
    weight: float
    loss: float
    expected: float
    p_value: float = math.nan
    few_rows: bool = False


@dataclass(frozen=True, repr=False)
class LossTest(TableResult):
    """Result of :func:`loss_test`.

    With several numbers of components, all but the p-value are those of the number at which the losses stand out most;
    ``test[d]`` has those of d, with p-values that are adjusted for all of them.

    Attributes
    ----------
    p_value : float
        NaN without permutations.
    by_group : dict
        Label -> :class:`GroupChance`.
    gap, expected_gap, level : float
        The largest difference between two losses, its mean over random divisions, and its 95 % quantile over them.
    n_components : int
    n_permutations : int
    method : str
    unit : {"rows", "clusters", "blocks"}
        What was moved between groups.
    tested : tuple of int
        All numbers of components that the p-values are adjusted for.
    dimensions : dict
        Number of components -> LossTest.

    See Also
    --------
    loss_test : Computes it.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import loss_test
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> test = loss_test(X, sensitive_features=sex, n_components=[2, 5], n_permutations=99, random_state=0)
    >>> test.p_value, test[5].gap > test[5].level
    (0.01, True)
    """

    p_value: float
    by_group: dict[Any, GroupChance]
    gap: float
    expected_gap: float
    level: float
    n_components: int
    n_permutations: int
    method: str = "PCA"
    unit: str = "rows"
    tested: tuple[int, ...] = ()
    dimensions: dict[int, LossTest] = field(default_factory=dict)

    def __getitem__(self, n_components: int) -> LossTest:
        return self.dimensions[n_components]

    @property
    def rejected(self) -> bool:
        """Whether at most one random division in twenty shows as much."""
        return self.p_value <= 1.0 - LEVEL + 1e-12

    @property
    def sentence(self) -> str:
        """A sentence that states the result of the test."""
        if not self.n_permutations:
            return "Without permutations there is no p-value."
        verb = "would not show this" if self.rejected else "could show this as well"
        moved = " of the clusters" if self.unit == "clusters" else ""
        adjusted = f", adjusted over {_listed(self.tested)} components" if len(self.tested) > 1 else ""
        return (
            f"A random division{moved} into groups of these sizes {verb} "
            f"(p {p_text(self.p_value, self.n_permutations)}{adjusted})."
        )

    @property
    def claims(self) -> tuple[Claim, ...]:
        """For each number of components, the clearest group, if a random division would not show its loss."""
        found = []
        for test in self._each.values():
            if test.rejected:
                label = min(test.by_group, key=lambda group: test.by_group[group].p_value)
                one = test.by_group[label]
                start = f"With {components_text(test.n_components)} of {test.method}: "
                text = f"{start}{test.sentence} The clearest departure is that of “{label_text(label)}”."
                about = ("chance", test.method, test.n_components, (label,))
                found.append(Claim(*about, one.p_value, math.nan, math.nan, text))
        return tuple(found)

    @property
    def _each(self) -> dict[int, LossTest]:
        return self.dimensions or {self.n_components: self}

    def _cells(self) -> list[dict[str, str]]:
        rows = [(d, label, one) for d, test in self._each.items() for label, one in test.by_group.items()]
        hidden = {
            "components": len(self.dimensions) < 2,
            "weight": all(one.weight == one.rows for _, _, one in rows),
            "adjusted p": not self.n_permutations,
        }
        cells = [
            {
                "group": label_text(label),
                "components": str(d),
                "rows": f"{one.rows:,}",
                "weight": number(one.weight),
                "loss": number(one.loss),
                "expected by chance": number(one.expected) + (" *" if one.few_rows else ""),
                "adjusted p": p_text(one.p_value, self.n_permutations).removeprefix("= "),
            }
            for d, label, one in rows
        ]
        return [{heading: cell for heading, cell in row.items() if not hidden.get(heading)} for row in cells]

    def _sentences(self) -> tuple[list[str], list[str]]:
        start = f"Losses of {self.method}, {_listed(self._each)} components"
        if not self.n_permutations:
            few = any(one.few_rows for test in self._each.values() for one in test.by_group.values())
            note = "* rests on few rows; use permutations"
            return [f"{start}, and those of random groups of these sizes"], [note] if few else []
        above = [f"{start}; {self.n_permutations} random divisions", self.sentence]
        below = [
            f"Largest difference{f' ({d} components)' if len(self.dimensions) > 1 else ''}: {number(test.gap)}; random "
            f"divisions: {number(test.expected_gap)} on average, 95 % stay under {number(test.level)}."
            for d, test in self._each.items()
        ]
        return above, below

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"n_components": d, "group": label, **vars(one)}
            for d, test in self._each.items()
            for label, one in test.by_group.items()
        ]


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def loss_test(
    X: Any,
    *,
    sensitive_features: Any = None,
    n_components: int | Sequence[int] | None = None,
    estimator: Any = None,
    n_permutations: int = 999,
    clusters: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Report | bool | None = None,
) -> LossTest:
    """Test whether a random division into groups of the same sizes would show losses like these.

    Exact at every sample size: if the labels say nothing about the rows, every permutation of the labels is as likely
    as the observed one. A rejection means only that a random division would not show this. It does not mean that the
    losses differ on new rows; for that, use :func:`cross_validate_groups`.

    Parameters
    ----------
    X : array-like, sparse matrix, or Dask array or data frame of shape (n_samples, n_features); or chunks
        Chunks are an iterable, not an iterator, of ``(X, sensitive_features)`` or ``(X, sensitive_features,
        sample_weight)`` that starts again at every pass.
    sensitive_features : array-like
        The group of each row; left out when X is an iterable of chunks.
    n_components : int or sequence of int
        Number of components; several are tested together, with p-values adjusted for that. Needed unless ``estimator``
        has it.
    estimator : estimator or array of shape (n_components, n_features), optional
        Default: ordinary PCA. An unfitted estimator that uses the groups (such as FairPCA) is refitted to each random
        division; one that does not use them is fitted once. A fitted estimator, or a matrix of components, is used
        unchanged: it must not have been fitted with these labels.
    n_permutations : int, default=999
        0 gives the losses of ordinary PCA and those of random groups in closed form, in milliseconds and without a
        p-value; for rows in memory.
    clusters : array-like, optional
        The person (household, patient, ...) that each row belongs to; then the labels of persons are permuted. Without
        it, rows of the same person would count as independent, and p-values would be too small. Rows in memory
        only.
    sample_weight : array-like of shape (n_samples,), optional
        Counts like repeated rows in the losses; weights stay with their rows.
    random_state : int, RandomState or None
        None is a fixed seed.
    n_jobs : int, optional
        Number of parallel tasks; default: the number of BLAS threads, or one if estimators are refitted.
    progress : callable or bool, optional
        True shows a bar on the terminal; a function is called as ``progress(done, total, "random divisions")``.

    Returns
    -------
    LossTest

    See Also
    --------
    cross_validate_groups : Errors and losses on held-out rows.

    Notes
    -----
    The statistic is the largest loss of a group, relative to the mean of that group's loss over all divisions: what
    chance adds is about proportional to ``1/N_a - 1/N``, so that only such ratios make groups of different sizes
    comparable. It is taken relative to its 95 % quantile over the divisions, which makes several numbers of
    components comparable too. Losses are about the pooled mean.

    Dask collections, chunks, and arrays of more than 20 million numbers and at most 1158 features are divided into
    blocks of rows, at random within groups, and the labels of blocks are permuted (at least 100 blocks, 3 of them in
    the smallest group).

    *Closed form.* With pooled eigenpairs (lambda, u), scores ``y = U^T x`` and ``kappa_ij = mean of y_i^2 y_j^2``, the
    second moment of N_a rows drawn at random differs from the pooled one by noise of variance ``f kappa``,
    ``f = (N - N_a) / (N_a (N - 1))``, which drives the eigenvalues apart:
    ``d lambda_i / dt = sum_j kappa_ij / (lambda_i - lambda_j)`` for t from 0 to f. The expected loss is what the d
    leading eigenvalues gain.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import loss_test
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> loss_test(X, sensitive_features=sex, n_components=5, n_permutations=199, random_state=0)
    Losses of PCA, 5 components; 199 random divisions
    A random division into groups of these sizes would not show this (p <= 0.005).
    <BLANKLINE>
    group   rows   loss  expected by chance  adjusted p
    female   310   2.86                1.27    <= 0.005
    male     690  0.327               0.271        0.26
    Largest difference: 2.53; random divisions: 0.996 on average, 95 % stay under 1.41.
    """
    check_number("n_permutations", n_permutations, at_least=0, integer=True)
    source, seed = as_source(X, sensitive_features, sample_weight), seed_from(random_state)
    if not n_permutations:
        return _in_closed_form(source, estimator, n_components)
    needs_rows = not (estimator is None or is_fitted(estimator) or needs_moments_only(estimator))
    movable = movable_parts(source, clusters, seed, needs_rows=needs_rows)
    name, methods = _methods(source, movable, estimator, n_components)
    with progress_of(progress) as report:
        random = _random_losses(methods, movable, n_permutations, seed, n_jobs, report)
    observed = _losses(methods, *movable.true)
    return _summarise(name, tuple(methods), observed, random, movable, row_counts(source))


def _methods(source: RowSource, movable: Movable, estimator: Any, n_components: Any) -> tuple[str, _Methods]:
    """The name of the method, and by its numbers of components projections, or what fits one to every division."""
    moments, name = movable.moments, type(estimator).__name__
    if estimator is None:
        dimensions = check_dimensions(n_components, moments.n_features)
        return "PCA", leading_projections(moments.pooled_covariance(), dimensions)
    if is_fitted(estimator):
        basis = _given_basis(estimator, n_components, moments)
        name = name if hasattr(estimator, "fit") else "the given components"
        return name, {basis.shape[1]: (basis, fitted_encoder(estimator))}
    given = getattr(estimator, "n_components", None) if n_components is None else n_components
    dimensions = check_dimensions(given, moments.n_features)
    fits = {d: Fitter(clone(estimator).set_params(n_components=d), source) for d in dimensions}
    return name, fits if uses_groups(estimator) else {d: _projection(fit, *movable.true) for d, fit in fits.items()}


def _projection(method: Projection | Fitter, codes: np.ndarray, moments: GroupMoments) -> Projection:
    """Of a division; ``codes`` are the groups of the rows."""
    return fitted_projection(method(moments, codes=codes)) if isinstance(method, Fitter) else method


def _given_basis(estimator: Any, n_components: Any, moments: GroupMoments) -> np.ndarray:
    """The components of a fitted estimator that has not seen these labels."""
    basis = check_projector(estimator, moments.n_features)
    if n_components is not None and n_components != basis.shape[1]:
        raise ValueError(
            f"n_components={n_components!r}, but the fitted estimator has {basis.shape[1]} components: leave "
            "n_components out."
        )
    counts = getattr(estimator, "group_counts_", np.zeros(0))
    same_counts = np.array_equal(np.sort(counts), np.sort(moments.counts))
    if same_counts and np.allclose(estimator.mean_, moments.pooled_mean):
        raise ValueError(
            "estimator was fitted to the same labels, so they cannot be compared with random labels: pass it "
            "unfitted (sklearn.base.clone(estimator)), and it is refitted to every random division."
        )
    return basis


def _losses(methods: _Methods, codes: np.ndarray, moments: GroupMoments) -> np.ndarray:
    """Of one division, of shape (numbers of components, groups)."""
    projections = {d: _projection(method, codes, moments) for d, method in methods.items()}
    return losses_by_dimension(moments.second_moments(), projections)


def _batch(methods: _Methods, movable: Movable, count: int, seed: np.random.SeedSequence) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [_losses(methods, *movable.divide(rng)) for _ in range(count)]


def _random_losses(
    methods: _Methods, movable: Movable, count: int, seed: int, n_jobs: int | None, progress: Report
) -> np.ndarray:
    """Losses of random divisions, of shape (count, dimensions, groups): in threads, or in processes if they refit."""
    bounds, found = range(0, count, _BATCH), list[np.ndarray]()
    seeds = np.random.SeedSequence([seed, int.from_bytes(b"permutations", "big")]).spawn(len(bounds))
    draw: Any = partial(quietly, _batch)
    options: dict[str, Any] = {"return_as": "generator"}
    if not any(isinstance(method, Fitter) for method in methods.values()):
        draw, n_jobs, options["prefer"] = _batch, n_jobs or blas_threads(), "threads"
    with single_blas_thread():  # many small problems: threads of the linear algebra would only wait for each other
        tasks = (
            delayed(draw)(methods, movable, min(_BATCH, count - start), child)
            for start, child in zip(bounds, seeds, strict=True)
        )
        for batch in parallel(n_jobs, **options)(tasks):
            found += batch
            progress(len(found), count, "random divisions")
    return np.stack(found)


def _summarise(
    method: str,
    dimensions: tuple[int, ...],
    observed: np.ndarray,
    random: np.ndarray,
    movable: Movable,
    rows: dict[Any, int],
) -> LossTest:
    """From losses (dimensions, groups) and (permutations, dimensions, groups) to p-values."""
    moments, total = movable.moments, movable.moments.pooled_variance()
    observed, random = (without_rounding(one, total) for one in (observed, random))
    ratios = np.concatenate([observed[None], random])
    # Means and levels are those of all divisions, the true one included, which keeps the test exact.
    ratios = _divide(ratios, ratios.mean(axis=0))
    levels = np.quantile(ratios.max(axis=2), LEVEL, axis=0)
    ratios = _divide(ratios, levels[:, None])
    null = ratios[1:].max(axis=(1, 2))

    def p_value(statistic: float) -> float:
        return float(1 + np.count_nonzero(null >= statistic * (1.0 - _TIE))) / (1 + len(null))

    tests = {}
    for i, d in enumerate(dimensions):
        gaps = without_rounding(np.ptp(random[:, i], axis=1), total)
        columns = zip(moments.labels, moments.counts, observed[i], random[:, i].mean(axis=0), ratios[0, i], strict=True)
        tests[d] = LossTest(
            p_value=p_value(ratios[0, i].max()),
            by_group={
                label: GroupChance(rows[label], float(weight), float(loss), float(mean), p_value(ratio))
                for label, weight, loss, mean, ratio in columns
            },
            gap=float(without_rounding(np.ptp(observed[i]), total)),
            expected_gap=float(gaps.mean()),
            level=float(np.quantile(gaps, LEVEL)),
            n_components=d,
            n_permutations=len(null),
            method=method,
            unit=movable.unit,
            tested=dimensions,
        )
    return _together(tests)


def _divide(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    return np.divide(values, by, out=np.zeros_like(values), where=by > 0)


def _together(tests: dict[int, LossTest]) -> LossTest:
    """The test of all numbers of components: those at which the losses stand out most."""
    return replace(min(tests.values(), key=lambda one: one.p_value), dimensions=tests)


def _in_closed_form(source: RowSource, estimator: Any, n_components: Any) -> LossTest:
    if estimator is not None or not isinstance(source, MemorySource):
        raise ValueError(
            "n_permutations=0 gives the losses of ordinary PCA, of rows in memory: leave estimator out and pass a "
            "random sample of the rows, or permute."
        )
    X, weights, counts, found = source.X, source.weights, row_counts(source), {}
    moments = accumulate(X, source.groups, weights)
    noise = Noise.from_rows(X, moments, weights)
    projections = leading_projections(moments.pooled_covariance(), check_dimensions(n_components, X.shape[1]))
    for d, losses in zip(projections, losses_by_dimension(moments.second_moments(), projections), strict=True):
        by_group = {}
        for label, weight, loss in zip(moments.labels, moments.counts.tolist(), losses.tolist(), strict=True):
            few, expected = noise.rests_on_few_rows(X, weights, weight, d), noise.expected_loss(weight, d)
            by_group[label] = GroupChance(counts[label], weight, loss, expected, few_rows=few)
        found[d] = LossTest(math.nan, by_group, float(np.ptp(losses)), math.nan, math.nan, d, 0)
    return _together(found)
