"""Rows with many features, for tests of methods that avoid p x p matrices."""

from __future__ import annotations

import numpy as np


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
