"""Figures 1 and 4 of Vu et al. (2022): one component in the plane, and what the radius does to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca import FairPCA, RobustFairPCA
from fairpca.datasets import make_toy
from fairpca.linalg import top_eigenpairs
from fairpca.moments import GroupMoments, group_moments
from reproductions._outcome import Claim, Table
from reproductions.vu2022 import protocol

__all__ = ["Direction", "RadiusEffect", "directions", "population", "radius_effect", "toy_claims", "toy_tables"]

PENALTIES = (0.0, 0.05, 0.1, 0.14, 0.17, 0.2, 0.22, 0.3, 1.0, 10.0)
_RADIUS = 0.0  # without the radius, penalty 0 is PCA itself, as the figure's text says
#: Of the effect of the radius. The paper fixes the radius of group 0 without saying at what: taken as zero here.
_LARGEST_ALPHA, _FIXED_PENALTY, _TEST_ROWS = 10.0, 0.1, (8000, 4000)
_SMALL_ANGLE = 0.1


@dataclass(frozen=True)
class Direction:
    """A direction, as its angle to the first axis in degrees, and what it costs each group."""

    method: str
    angle: float
    errors: np.ndarray
    losses: np.ndarray


@dataclass(frozen=True)
class RadiusEffect:
    """ARE + ABDiff on the test rows: one row per simulation, one column per value of alpha."""

    alphas: np.ndarray
    totals: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return self.totals.mean(axis=0)


def population() -> GroupMoments:
    """The distribution itself: shares 2/3 and 1/3, the exact covariances."""
    counts = np.array([200.0, 100.0])
    covariances = np.array([[[4.0, 0.0], [0.0, 0.2]], [[0.2, 0.4], [0.4, 3.0]]])
    return GroupMoments((0, 1), counts, np.zeros((2, 2)), covariances * counts[:, None, None])


def directions() -> list[Direction]:
    """PCA, RobustFairPCA with a growing penalty, and FairPCA, for the distribution itself."""
    moments = population()
    nominal = top_eigenpairs(moments.pooled_covariance(), 1)[1][:, 0]
    plain = RobustFairPCA(1, radius=0.0, penalty=0.0).fit_moments(moments)
    found = [Direction("PCA", _angle(nominal), plain.group_errors_, plain.group_losses_)]
    for penalty in PENALTIES:
        robust = RobustFairPCA(1, radius=_RADIUS, penalty=penalty).fit_moments(moments)
        found.append(_direction(f"RobustFairPCA, penalty {penalty:g}", robust))
    return [*found, _direction("FairPCA", FairPCA(1).fit_moments(moments))]


def _direction(name: str, fitted: Any) -> Direction:
    return Direction(name, _angle(fitted.components_[0]), fitted.group_errors_, fitted.group_losses_)


def _angle(direction: np.ndarray) -> float:
    return float(np.degrees(np.arctan2(direction[1], direction[0]))) % 180.0


def _moments(*sizes: Any, random_state: int) -> GroupMoments:
    X, groups = make_toy(*sizes, random_state=random_state)
    return group_moments(X, sensitive_features=groups)


def radius_effect(n_simulations: int, n_alphas: int, step: Callable[[], Any] = lambda: None) -> RadiusEffect:
    """Figure 4: the radius of group 1 grows, penalty 0.1; fitted to 300 rows, evaluated on 12000 fixed ones."""
    alphas = np.linspace(0.0, _LARGEST_ALPHA, n_alphas)
    test = _moments(_TEST_ROWS, random_state=0)
    totals = np.empty((n_simulations, n_alphas))
    for i in range(n_simulations):
        moments = _moments(random_state=i + 1)
        for j, alpha in enumerate(alphas):
            radii = [0.0, alpha / np.sqrt(moments.counts[1])]
            fitted = RobustFairPCA(1, radius=radii, penalty=_FIXED_PENALTY).fit_moments(moments)
            totals[i, j] = protocol.measure(fitted.components_.T, test, test, moments.means).total
        step()
    return RadiusEffect(alphas, totals)


def toy_claims(found: list[Direction], effect: RadiusEffect) -> list[Claim]:
    """What the text says about Figures 1 and 4, as numbers."""
    pca, least, most, fair = found[0], found[1], found[-2], found[-1]
    mean = effect.mean
    return [
        Claim(
            "Figure 1", "degrees between the direction without penalty and PCA's",
            abs(least.angle - pca.angle), 0.0, _SMALL_ANGLE, absolute=True,
        ),
        Claim(
            "Figure 1", "degrees between the direction of a heavy penalty and FairPCA's",
            abs(most.angle - fair.angle), 0.0, _SMALL_ANGLE, absolute=True,
            explanation="A heavy penalty equalises errors, FairPCA losses: neighbouring directions, not the same.",
        ),
        Claim(
            "Figure 4", "least ARE + ABDiff over the radii, relative to radius zero",
            float(mean.min() / mean[0]), 1.0, 0.0, "at most",
        ),
        Claim(
            "Figure 4", "ARE + ABDiff at the largest radius, relative to the least",
            float(mean[-1] / mean.min()), 1.0, 0.0, "at least",
        ),
    ]  # fmt: skip


def toy_tables(found: list[Direction], effect: RadiusEffect) -> list[Table]:
    rows = [[item.method, item.angle, *map(float, (*item.errors, *item.losses))] for item in found]
    columns = ["method", "angle", "error of group 0", "error of group 1", "loss of group 0", "loss of group 1"]
    spread = effect.totals.std(axis=0)
    radius_rows = [[float(a), float(m), float(s)] for a, m, s in zip(effect.alphas, effect.mean, spread, strict=True)]
    return [
        Table("toy_directions", "Figure 1: one direction in the plane", columns, rows, "Angles in degrees."),
        Table(
            "radius", "Figure 4: effect of the radius", ["alpha", "mean of ARE + ABDiff", "standard deviation"],
            radius_rows,
            f"{len(effect.totals)} simulations; radius of group 0 zero, of group 1 alpha / sqrt(100), lambda = 0.1.",
        ),
    ]  # fmt: skip
