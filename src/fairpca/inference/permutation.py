"""The exact test of exchangeability: would a random division into groups of these sizes show such losses?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from fairpca._labels import label_text
from fairpca._progress import Report, progress_of
from fairpca._validation import check_number, seed_from
from fairpca._workers import delayed, parallel
from fairpca.inference._checks import as_source
from fairpca.inference._display import TableResult, number, p_text
from fairpca.inference._judges import Division, Judge
from fairpca.inference._permuted import PermutedData, name_of, permuted_data
from fairpca.inference._units import draw_division
from fairpca.linalg import blas_threads, single_blas_thread

__all__ = ["DimensionTest", "GroupChance", "LossTest", "loss_test"]

#: Quantile of the random divisions that is reported as their level; also the confidence level of the test.
LEVEL = 0.95
#: Divisions drawn by one task. Fixed, so that results do not depend on the number of parallel tasks.
_BATCH = 25
#: Losses below this share of the total variance are rounding.
_ROUNDING = 1e-12
#: Two statistics closer than this are equal: the same division summed in another order.
_TIE = 1e-9


@dataclass(frozen=True)
class GroupChance:
    """A group's loss, its mean over random divisions, and the p-value adjusted for all groups and dimensions.

    Attributes
    ----------
    rows : float
        Number of rows, or their total weight.
    loss : float
        In the sample.
    expected : float
        Mean over random divisions.
    p_value : float
        Adjusted for all groups and numbers of components that were tested together.

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
    (310.0, True)
    """

    rows: float
    loss: float
    expected: float
    p_value: float


@dataclass(frozen=True)
class DimensionTest:
    """The part of a :class:`LossTest` that concerns one number of components.

    Attributes
    ----------
    n_components : int
    p_value : float
        Adjusted for all numbers of components that were tested together.
    gap, expected_gap, level : float
        The largest difference between two losses, its mean over random divisions, and its 95 % quantile over them.
    by_group : dict
        Label -> :class:`GroupChance`.

    See Also
    --------
    loss_test : Computes it for several numbers of components.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import loss_test
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> test = loss_test(X, sensitive_features=sex, n_components=[2, 5], n_permutations=99, random_state=0)
    >>> test[5].n_components, test[5].gap > test[5].level
    (5, True)
    """

    n_components: int
    p_value: float
    gap: float
    expected_gap: float
    level: float
    by_group: dict[Any, GroupChance]

    @property
    def rejected(self) -> bool:
        """Whether at most one random division in twenty shows as much."""
        return self.p_value <= 1.0 - LEVEL + 1e-12


@dataclass(frozen=True, repr=False)
class LossTest(TableResult):
    """Result of :func:`loss_test`.

    With several numbers of components, ``gap``, ``expected_gap``, ``level`` and ``by_group`` are those of the number at
    which the losses stand out most; ``test[d]`` has those of d.

    Attributes
    ----------
    statistic : float
        The largest of all losses, each relative to its mean over random divisions, in units of the 95 % quantile over
        the divisions (for each number of components).
    p_value : float
    null : ndarray of shape (n_permutations,)
        The statistic of each random division.
    dimensions : dict
        Number of components -> :class:`DimensionTest`.
    method : str
    unit : {"rows", "clusters", "blocks"}
        What was moved between groups.
    gap, expected_gap, level : float
    by_group : dict

    See Also
    --------
    loss_test : Computes it.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import loss_test
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> test = loss_test(X, sensitive_features=sex, n_components=[2, 5], n_permutations=99, random_state=0)
    >>> test.p_value, len(test.null)
    (0.01, 99)
    """

    statistic: float
    p_value: float
    null: np.ndarray
    dimensions: dict[int, DimensionTest]
    method: str = "PCA"
    unit: str = "rows"

    @property
    def n_permutations(self) -> int:
        return len(self.null)

    def __getitem__(self, n_components: int) -> DimensionTest:
        return self.dimensions[n_components]

    @property
    def clearest(self) -> DimensionTest:
        """The number of components at which the losses stand out most."""
        return min(self.dimensions.values(), key=lambda one: one.p_value)

    @property
    def gap(self) -> float:
        return self.clearest.gap

    @property
    def expected_gap(self) -> float:
        return self.clearest.expected_gap

    @property
    def level(self) -> float:
        return self.clearest.level

    @property
    def by_group(self) -> dict[Any, GroupChance]:
        return self.clearest.by_group

    @property
    def rejected(self) -> bool:
        """Whether at most one random division in twenty shows as much."""
        return self.p_value <= 1.0 - LEVEL + 1e-12

    @property
    def sentence(self) -> str:
        """A sentence that states the result of the test."""
        return self.say(self.p_value, self.rejected)

    def say(self, p_value: float, rejected: bool) -> str:
        """The same for one number of components, ``test[d]``."""
        verb = "would not show this" if rejected else "could show this as well"
        moved = " of the clusters" if self.unit == "clusters" else ""
        return f"A random division{moved} into groups of these sizes {verb} (p {p_text(p_value, self.n_permutations)})."

    def _headings(self) -> list[str]:
        several = ["components"] if len(self.dimensions) > 1 else []
        return ["group", *several, "rows", "loss", "expected by chance", "adjusted p"]

    def _rows(self) -> list[list[str]]:
        rows = []
        for d, test in self.dimensions.items():
            several = [str(d)] if len(self.dimensions) > 1 else []
            for label, one in test.by_group.items():
                p_value = p_text(one.p_value, self.n_permutations).removeprefix("= ")
                numbers = [f"{one.rows:,.0f}", number(one.loss), number(one.expected), p_value]
                rows.append([label_text(label), *several, *numbers])
        return rows

    def _sentences(self) -> tuple[list[str], list[str]]:
        numbers = ", ".join(map(str, self.dimensions))
        above = [
            f"Losses of {self.method}, {numbers} components; {self.n_permutations} random divisions",
            self.sentence,
        ]
        below = [
            f"Largest difference{f' ({d} components)' if len(self.dimensions) > 1 else ''}: {number(test.gap)}; random "
            f"divisions: {number(test.expected_gap)} on average, 95 % stay under {number(test.level)}."
            for d, test in self.dimensions.items()
        ]
        return above, below

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"n_components": d, "group": label, **vars(one)}
            for d, test in self.dimensions.items()
            for label, one in test.by_group.items()
        ]


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
    clusters : array-like, optional
        The person (household, patient, ...) that each row belongs to; then the labels of persons are permuted. Without
        it, rows of the same person would count as independent, and p-values would be too small. Rows in memory
        only.
    sample_weight : array-like of shape (n_samples,), optional
        Counts like repeated rows in the losses; weights stay with their rows.
    random_state : int, RandomState or None
        None gives the same divisions every time.
    n_jobs : int, optional
        Number of parallel tasks; default: the number of BLAS threads, or one if estimators are refitted.
    progress : callable or bool, optional
        True shows a bar on the terminal; a function is called as ``progress(done, total, "random divisions")``.

    Returns
    -------
    LossTest

    See Also
    --------
    chance_losses : The expected losses of random groups, without resampling.
    cross_validate_groups : Errors and losses on held-out rows.

    Notes
    -----
    The statistic is the largest loss of a group, relative to the mean of that group's loss over all divisions: what
    chance adds is about proportional to ``1/N_a - 1/N``, so that only such ratios make groups of different sizes
    comparable. It is reported relative to its 95 % quantile over the divisions, which makes several numbers of
    components comparable too. Losses are about the pooled mean.

    Dask collections, chunks, and arrays of more than 20 million numbers and at most 1158 features are divided into
    blocks of rows, at random within groups, and the labels of blocks are permuted (at least 100 blocks, 3 of them in
    the smallest group).

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
    male     690  0.327               0.278        0.32
    Largest difference: 2.53; random divisions: 0.990 on average, 95 % stay under 1.39.
    """
    check_number("n_permutations", n_permutations, at_least=1, integer=True)
    seed = seed_from(random_state)
    data = permuted_data(as_source(X, sensitive_features, sample_weight), clusters, seed)
    judge = data.judge(estimator, n_components)
    sizes = np.bincount(data.units.codes, minlength=len(data.labels))
    largest = int(sizes.argmax())
    true = [np.flatnonzero(data.units.codes == code) for code in range(len(sizes)) if code != largest]
    observed = judge.losses([true], largest)[0]
    with progress_of(progress) as report:
        random = _random_losses(judge, sizes, n_permutations, seed, n_jobs, report)
    return _summarise(data, judge, observed, random, "PCA" if estimator is None else name_of(estimator))


def _random_losses(
    judge: Judge, sizes: np.ndarray, count: int, seed: int, n_jobs: int | None, progress: Report
) -> np.ndarray:
    """Losses of random divisions, of shape (count, dimensions, groups)."""
    bounds = range(0, count, _BATCH)
    seeds = np.random.SeedSequence(seed).spawn(len(bounds))
    tasks = [(judge, sizes, min(_BATCH, count - start), child) for start, child in zip(bounds, seeds, strict=True)]
    found: list[np.ndarray] = []
    for losses in _run(tasks, judge.refits, n_jobs):
        found.append(losses)
        progress(sum(map(len, found)), count, "random divisions")
    return np.concatenate(found)


def _run(tasks: list[tuple], refits: bool, n_jobs: int | None) -> Iterator[np.ndarray]:
    if refits:
        with single_blas_thread():  # many small problems: threads of the linear algebra would only wait for each other
            run = parallel(n_jobs, return_as="generator")
            yield from run(delayed(_losses_of_batch)(*task) for task in tasks)
        return
    n_threads = blas_threads() if n_jobs is None else effective_n_jobs(n_jobs)
    with single_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(lambda task: _losses_of_batch(*task), tasks)


def _losses_of_batch(judge: Judge, sizes: np.ndarray, count: int, seed: np.random.SeedSequence) -> np.ndarray:
    rng = np.random.default_rng(seed)
    divisions: list[Division] = [draw_division(sizes, rng) for _ in range(count)]
    return judge.losses(divisions, int(sizes.argmax()))


def _divide(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    return np.divide(values, by, out=np.zeros_like(values), where=by > 0)


def _summarise(data: PermutedData, judge: Judge, observed: np.ndarray, random: np.ndarray, method: str) -> LossTest:
    """From losses (dimensions, groups) and (permutations, dimensions, groups) to p-values."""
    rounding = _ROUNDING * float(np.trace(data.moments.pooled_covariance()))
    observed, random = (np.where(losses > rounding, losses, 0.0) for losses in (observed, random))
    ratios = np.concatenate([observed[None], random])
    # Means and levels are those of all divisions, the true one included, which keeps the test exact.
    ratios = _divide(ratios, ratios.mean(axis=0))
    levels = np.quantile(ratios.max(axis=2), LEVEL, axis=0)
    ratios = _divide(ratios, levels[:, None])
    null = ratios[1:].max(axis=(1, 2))

    def p_value(statistic: float) -> float:
        return float(1 + np.count_nonzero(null >= statistic * (1.0 - _TIE))) / (1 + len(null))

    dimensions = {}
    for i, d in enumerate(judge.dimensions):
        gaps = np.where(np.ptp(random[:, i], axis=1) > rounding, np.ptp(random[:, i], axis=1), 0.0)
        by_group = {
            label: GroupChance(
                float(count), float(observed[i, a]), float(random[:, i, a].mean()), p_value(ratios[0, i, a])
            )
            for a, (label, count) in enumerate(zip(data.labels, data.moments.counts, strict=True))
        }
        dimensions[d] = DimensionTest(
            n_components=d,
            p_value=p_value(ratios[0, i].max()),
            gap=float(np.ptp(observed[i]) if np.ptp(observed[i]) > rounding else 0.0),
            expected_gap=float(gaps.mean()),
            level=float(np.quantile(gaps, LEVEL)),
            by_group=by_group,
        )
    statistic = float(ratios[0].max())
    return LossTest(statistic, p_value(statistic), null, dimensions, method, data.unit)
