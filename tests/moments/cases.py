"""Rows with many features, for tests of methods that avoid p x p matrices."""

from __future__ import annotations

import numpy as np

from fairpca._validation import check_groups
from fairpca.moments._grouped_sample import GroupedSample


def leading_directions(rng, n, p, rank=40):
    """Two groups with a spectrum of 1 / i that share half of their leading directions, and noise."""
    directions = np.linalg.qr(rng.standard_normal((p, rank + rank // 2)))[0]
    own = np.arange(rank)
    own[1::2] = rank + np.arange(rank // 2)
    groups = np.arange(n) % 2
    X = rng.standard_normal((n, p)) * np.sqrt(0.1 / p)
    for a, chosen in enumerate((np.arange(rank), own)):
        rows = groups == a
        X[rows] += (rng.standard_normal((rows.sum(), rank)) / np.sqrt(np.arange(1, rank + 1))) @ directions[:, chosen].T
    return X, groups


#: The bandwidth of :func:`naive_means`.
SIGMA = 1.7


def grouped_sample(n=301, p=6, d=3, k=3, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    X = rng.normal(size=(n, p)) + 0.3 * codes[:, None]
    weights = rng.uniform(0.2, 2, n) if weighted else None
    basis = np.linalg.qr(rng.normal(size=(p, d)))[0]
    return GroupedSample.from_rows(X, check_groups(codes, n), weights), basis


def naive_means(sample, basis):
    scores = sample.rows if basis is None else sample.rows @ basis
    kernel = np.exp(-((scores[:, None] - scores[None]) ** 2).sum(-1) / (2 * SIGMA**2))
    codes = np.repeat(np.arange(len(sample.labels)), sample.counts)
    members = (codes[:, None] == np.arange(len(sample.labels))) * sample.weights[:, None]
    return members.T @ kernel @ members


def slope_error(function, gradient, basis, direction, size):
    """|f(V + tD) - f(V) - t <G, D>|: second order in t if and only if G is the gradient."""
    return abs(function(basis + size * direction) - function(basis) - size * np.vdot(gradient, direction))
