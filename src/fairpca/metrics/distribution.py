"""The distance between the distributions of the projected groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_array

from fairpca._validation import (
    check_groups,
    check_number,
    check_sample_weight,
    check_several_groups,
    generator,
    split_off_groups,
)
from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments.bandwidths import Bandwidth, bandwidth_by_rule, check_bandwidth, squared_distance_median
from fairpca.moments.kernel_means import kernel_matrix, kernel_means
from fairpca.problems.mmd import all_pairs, pair_discrepancies, random_level

__all__ = ["MMDTest", "median_bandwidth", "mmd2", "mmd2_test"]

#: Permutations need the kernel matrix of the rows; if there are more rows than this, a sample is used.
_MATRIX_ROWS = 4000
#: Assignments that share one product with the kernel matrix.
_BATCH = 50


def median_bandwidth(X: Any, *, sample_weight: Any = None, random_state: Any = None) -> float:
    """The median rule: sigma with ``2 sigma^2`` = median squared distance between different rows.

    Lee et al. (2022) apply it to training rows projected by ordinary PCA. If there are more than two million
    pairs, that many are drawn at random. If the median is 0, because most rows coincide, only positive distances are
    used; if all rows coincide, ``2 sigma^2`` is 1.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    sample_weight : array-like of shape (n_samples,), optional
        Counts like repeated rows.
    random_state : int, RandomState or None
        Chooses the pairs; None is a fixed seed.

    Returns
    -------
    float
        sigma.

    See Also
    --------
    mmd2 : Uses it.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import median_bandwidth
    >>> median_bandwidth(np.array([[0.0], [2.0], [4.0]]))
    1.4142135623730951
    """
    rows = check_array(X, dtype=np.float64)
    weights = check_sample_weight(sample_weight, len(rows))
    return float(np.sqrt(0.5 * squared_distance_median(rows, generator(random_state, "bandwidth"), weights)))


def mmd2(
    X: Any,
    *,
    sensitive_features: Any,
    bandwidth: Any = "multiscale",
    sample_weight: Any = None,
    random_state: Any = None,
) -> float:
    """Largest squared maximum mean discrepancy between two groups of rows.

    ``MMD^2(a, b) = mean K_aa + mean K_bb - 2 mean K_ab``, ``K = exp(-|z - z'|^2 / (2 bandwidth^2))``: the biased
    estimate of the paper, which is positive for equal distributions, too. Exact, in blocks: memory does not grow with
    the square of the rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Usually projected rows.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
    bandwidth : fitted MMDFairPCA, "multiscale", "median", float or tuple of float, default="multiscale"
        A fitted estimator: its kernels, so that its rows give its ``mmd2_``, and projections can be compared.
        "median" applies :func:`median_bandwidth` to X itself; "multiscale" takes the mean of the kernels at sigma,
        sigma / 2, sigma / 4 and sigma / 8 with sigma from the median rule, which detects finer differences; a tuple
        takes the mean of the kernels at these bandwidths.
    sample_weight : array-like of shape (n_samples,), optional
        Counts like repeated rows.
    random_state : int, RandomState or None
        For the pairs of the median rule; None is a fixed seed.

    Returns
    -------
    float
        Zero if the groups' rows have the same distribution, up to sampling.

    See Also
    --------
    mmd2_test : What random groups of these sizes would give, and a p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import mmd2
    >>> round(mmd2(np.array([[0.0], [0.0], [1.0], [1.0]]), sensitive_features=[0, 0, 1, 1], bandwidth=1.0), 6)
    0.786939
    """
    sample, sigma = _prepare(X, sensitive_features, bandwidth, sample_weight, random_state)
    pairs = all_pairs(len(sample.labels))
    return float(pair_discrepancies(kernel_means(sample, None, sigma).values, pairs).max())


@dataclass(frozen=True)
class MMDTest:
    """A value of MMD^2, compared with random groups of the same sizes.

    Attributes
    ----------
    mmd2 : float
        The observed value, largest over the pairs of groups.
    level : float
        The 95 % quantile of the values of random groups.
    mean : float
        Mean over all random groups.
    p_value : float
        Share of random groups with a value at least as large.
    bandwidth : float or tuple of float
        Width of the kernel.
    draws : ndarray of shape (n_permutations,)
        The values of random groups.

    See Also
    --------
    mmd2_test : Computes it.

    Examples
    --------
    >>> from fairpca.datasets import make_same_moments
    >>> from fairpca.metrics import mmd2_test
    >>> X, groups = make_same_moments(100, random_state=0)
    >>> found = mmd2_test(X, sensitive_features=groups, n_permutations=99, random_state=0)
    >>> found.p_value < 0.05, found.mmd2 > found.level  # their means and covariances agree, but not their distributions
    (True, True)
    """

    mmd2: float
    level: float
    mean: float
    p_value: float
    bandwidth: Bandwidth
    draws: np.ndarray = field(repr=False, compare=False)


def mmd2_test(
    X: Any,
    *,
    sensitive_features: Any,
    bandwidth: Any = "multiscale",
    n_permutations: int = 500,
    random_state: Any = None,
) -> MMDTest:
    """MMD^2 (biased, largest over the pairs of groups) with its permutation level and p-value.

    The groups' labels are permuted among the rows; under equal distributions the observed value is one more
    such draw.

    Parameters
    ----------
    X, sensitive_features, bandwidth
        As in :func:`mmd2`. More than 4000 rows are sampled (in proportion) for the permutations, and their
        draws scaled to the full sizes, MMD^2 of random groups being proportional to ``sum_a 1 / n_a``.
    n_permutations : int, default=500
    random_state : int, RandomState or None
        None is a fixed seed.

    Returns
    -------
    MMDTest
        ``mmd2``, ``level``, ``mean`` (of MMD^2 over all permutations, in closed form, largest over the pairs),
        ``p_value`` ``(1 + draws >= mmd2) / (1 + n_permutations)``, ``bandwidth`` and ``draws``.

    See Also
    --------
    mmd2 : The value alone.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import mmd2_test
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat([0, 1], 100)
    >>> test = mmd2_test(rng.normal(size=(200, 2)) + groups[:, None], sensitive_features=groups)
    >>> test.p_value < 0.01 and test.mmd2 > test.level > test.mean
    True
    """
    check_number("n_permutations", n_permutations, at_least=1, integer=True)
    sample, sigma = _prepare(X, sensitive_features, bandwidth, None, random_state)
    pairs = all_pairs(len(sample.labels))
    values = kernel_means(sample, None, sigma).values
    observed = float(pair_discrepancies(values, pairs).max())
    mean = float(random_level(sample, values, pairs).max())
    draws = _permutation_draws(sample, sigma, pairs, n_permutations, generator(random_state, "permutations"))
    p_value = (1 + int((draws >= observed).sum())) / (1 + n_permutations)
    return MMDTest(observed, float(np.quantile(draws, 0.95)), mean, p_value, sigma, draws)


def _permutation_draws(
    sample: GroupedSample, sigma: Bandwidth, pairs: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Largest MMD^2 over the pairs for each random assignment, with one kernel matrix and one product per batch."""
    part = sample.subsample(_MATRIX_ROWS, rng)
    kernel = kernel_matrix(part.rows, sigma)
    labels, codes = np.arange(len(part.labels)), np.repeat(np.arange(len(part.labels)), part.counts)
    sums, draws = kernel.sum(axis=1), []
    for start in range(0, count, _BATCH):
        assigned = [rng.permutation(codes) for _ in range(min(_BATCH, count - start))]
        indicators = [(shuffled[:, None] == labels) / part.counts for shuffled in assigned]
        products = kernel @ np.hstack([indicator[:, :-1] for indicator in indicators])
        for indicator, others in zip(indicators, np.hsplit(products, len(assigned)), strict=True):
            last = (sums - others @ part.counts[:-1]) / part.counts[-1]  # what is left of the row sums
            values = indicator.T @ np.column_stack([others, last])
            draws.append(pair_discrepancies(values, pairs).max())
    shrink = (1.0 / sample.counts).sum() / (1.0 / part.counts).sum()
    return np.array(draws) * shrink


def _prepare(
    X: Any, sensitive_features: Any, bandwidth: Any, sample_weight: Any, random_state: Any
) -> tuple[GroupedSample, Bandwidth]:
    X, sensitive_features = split_off_groups(None, X, sensitive_features)
    rows = check_array(X, dtype=np.float64)
    weights = check_sample_weight(sample_weight, len(rows))
    sample = GroupedSample.from_rows(rows, check_groups(sensitive_features, len(rows)), weights)
    check_several_groups(sample.labels, len(rows))
    chosen = check_bandwidth(getattr(bandwidth, "bandwidth_", bandwidth))
    return sample, bandwidth_by_rule(chosen, rows, generator(random_state, "bandwidth"), weights)
