"""Rows that are hard in one way or another, and their group statistics computed in a way of our own."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

KINDS = (
    "normal", "ties", "identical groups", "few directions", "constant column", "duplicate columns", "constant group",
    "tiny group",
)  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """What a fit is given, and how it came about."""

    X: np.ndarray = field(repr=False)  # the blob that hypothesis prints gives them back
    groups: np.ndarray = field(repr=False)
    weights: np.ndarray | None = field(repr=False)
    d: int
    kind: str
    origin: float  # distance from zero, in units of the spread

    @property
    def counted(self) -> np.ndarray:
        return np.ones(len(self.X)) if self.weights is None else self.weights

    @property
    def labels(self) -> list[int]:
        return [int(a) for a in np.unique(self.groups) if self.counted[self.groups == a].any()]


@st.composite
def rows(
    draw, max_groups: int = 4, max_features: int = 4, n_rows: int = 40, kinds: tuple[str, ...] = KINDS,
    origins: tuple[float, ...] = (0.0, 10.0, 1e4, 1e7),
) -> Rows:  # fmt: skip
    """Rows of a drawn kind, scale, origin and weighting, and a number of components."""
    seed = draw(st.integers(0, 2**32 - 1), label="seed")
    kind = draw(st.sampled_from(kinds), label="kind")
    k, p = draw(st.integers(2, max_groups), label="groups"), draw(st.integers(1, max_features), label="features")
    origin = draw(st.sampled_from(origins), label="origin")
    exponent = draw(st.sampled_from([-8, -3, 0, 4, 8]), label="exponent")
    weighting = draw(st.sampled_from(["none", "none", "integers", "some zero", "fractions"]), label="weighting")
    d = draw(st.integers(1, p), label="components")
    return make_rows(seed, kind, k, p, d, n_rows=n_rows, origin=origin, exponent=exponent, weighting=weighting)


def make_rows(
    seed: int, kind: str, k: int, p: int, d: int, *, n_rows: int = 40, origin: float, exponent: int, weighting: str
) -> Rows:
    rng = np.random.default_rng(seed)
    groups = np.arange(n_rows) % k
    X = rng.normal(size=(n_rows, p)) * rng.uniform(0.3, 3.0, p)
    for a in range(k):
        X[groups == a] = X[groups == a] @ (np.eye(p) + 0.7 * rng.normal(size=(p, p))) + rng.normal(size=p)
    X = _of_kind(kind, X, groups, rng)
    if kind == "tiny group":
        groups = np.where(np.arange(n_rows) < 2, 0, 1 + groups % (k - 1))
    X = (X + origin * rng.normal(size=p)) * 10.0**exponent
    return Rows(X, groups, _weights(weighting, groups, rng), d, kind, origin)


def _of_kind(kind: str, X: np.ndarray, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    k, p = groups.max() + 1, X.shape[1]
    if kind == "ties":
        return np.round(X)
    if kind == "identical groups":
        size = len(X) // k
        for a in range(k):
            X[np.flatnonzero(groups == a)[:size]] = X[np.flatnonzero(groups == 0)[:size]][rng.permutation(size)]
    if kind == "few directions":
        return X[:, :1] @ rng.normal(size=(1, p)) if p < 3 else X[:, :2] @ rng.normal(size=(2, p))
    if kind == "constant column":
        X[:, -1] = 1.7
    if kind == "duplicate columns":
        X[:, -1] = X[:, 0]
    if kind == "constant group":
        X[groups == 1] = X[1]
    return X


def _weights(weighting: str, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    if weighting == "none":
        return None
    if weighting == "fractions":
        return rng.uniform(0.2, 3.0, len(groups))
    weights = rng.integers(1, 4, len(groups)).astype(float)
    if weighting == "some zero":
        weights[rng.random(len(groups)) < 0.2] = 0.0
        weights[[np.flatnonzero(groups == a)[0] for a in np.unique(groups)]] = 1.0
    return weights


def fitted(estimator, data: Rows, y=None):
    """The fit, with what it has to say about small groups and unclosed gaps left aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(data.X, y, sensitive_features=data.groups, sample_weight=data.weights)


@dataclass(frozen=True)
class Statistics:
    """Of the rows as seen from the first of them, which keeps the digits of rows far from the origin."""

    means: np.ndarray
    covariances: np.ndarray
    seconds: np.ndarray
    shares: np.ndarray
    pooled: np.ndarray
    slack: float  # what rounding may change of a variance

    @property
    def total(self) -> float:
        return float(np.trace(self.pooled))

    @property
    def totals(self) -> np.ndarray:
        return np.einsum("aii->a", self.seconds)

    @property
    def enlarged(self) -> np.ndarray:
        """Factors by which the slack of a group is larger: far from the others, its moments are much larger, too."""
        return 1 + self.totals / max(self.total, np.finfo(float).tiny)


def statistics(data: Rows, center: str = "pooled") -> Statistics:
    near, weights = data.X - data.X[0], data.counted
    pooled_mean = weights @ near / weights.sum()
    means, covariances, seconds, shares = [], [], [], []
    for label in data.labels:
        part, own = near[data.groups == label], weights[data.groups == label]
        mean = own @ part / own.sum()
        covariance = ((part - mean) * own[:, None]).T @ (part - mean) / own.sum()
        offset = mean - (mean if center == "group" else pooled_mean)
        means.append(mean)
        covariances.append(covariance)
        seconds.append(covariance + np.outer(offset, offset))
        shares.append(own.sum() / weights.sum())
    centred = near - pooled_mean
    pooled = (centred * weights[:, None]).T @ centred / weights.sum()
    size = float(np.trace(pooled)) + np.finfo(float).tiny
    slack = size * (1e-9 + 1e-13 * data.origin) + (1e-14 * np.abs(data.X).max()) ** 2
    return Statistics(*map(np.array, (means, covariances, seconds, shares)), pooled, slack)


def frame(rng: np.random.Generator, p: int, d: int) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(p, d)))[0]


def captured(matrices: np.ndarray, basis: np.ndarray) -> np.ndarray:
    return np.einsum("pi,...pq,qi->...", basis, matrices, basis)


def best_captured(matrices: np.ndarray, d: int) -> np.ndarray:
    return np.linalg.eigvalsh(matrices)[..., ::-1][..., :d].sum(axis=-1)


def lowest_found(value, starts: list[np.ndarray], rng: np.random.Generator, steps: int = 60) -> float:
    """A plain random descent from each of some frames, which knows nothing of how a solver works."""
    lowest = np.inf
    for basis in starts:
        here, length = value(basis), 0.5
        for _ in range(steps):
            candidate = np.linalg.qr(basis + length * rng.normal(size=basis.shape))[0]
            there = value(candidate)
            if there < here:
                basis, here = candidate, there
            else:
                length *= 0.85
        lowest = min(lowest, here)
    return lowest
