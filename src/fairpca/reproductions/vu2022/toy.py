"""Figure 1 of Vu et al. (2022): one component in the plane, from PCA to equal errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA

from fairpca import FairPCA, RobustFairPCA
from fairpca.datasets import make_toy
from fairpca.moments import GroupMoments, group_moments

__all__ = ["Direction", "Toy", "population", "reproduce_toy"]

PENALTIES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 10.0)
_RADIUS = 0.0  # without the radius, penalty 0 is PCA itself, as the figure's text says


@dataclass(frozen=True)
class Direction:
    """A direction, as its angle to the first axis in degrees, and what it costs each group."""

    method: str
    angle: float
    errors: np.ndarray
    losses: np.ndarray


@dataclass(frozen=True)
class Toy:
    directions: list[Direction]

    def __str__(self) -> str:
        lines = [
            "Figure 1, toy example",
            f"{'':28}{'angle':>8}{'error 0':>10}{'error 1':>10}{'loss 0':>10}{'loss 1':>10}",
        ]
        for item in self.directions:
            figures = "".join(f"{value:10.4f}" for value in (*item.errors, *item.losses))
            lines.append(f"{item.method:28}{item.angle:8.2f}{figures}")
        return "\n".join(lines)


def population() -> GroupMoments:
    """The distribution itself: shares 2/3 and 1/3, the exact covariances."""
    counts = np.array([200.0, 100.0])
    covariances = np.array([[[4.0, 0.0], [0.0, 0.2]], [[0.2, 0.4], [0.4, 3.0]]])
    return GroupMoments((0, 1), counts, np.zeros((2, 2)), covariances * counts[:, None, None])


def reproduce_toy(*, random_state: int | None = None) -> Toy:
    """Directions for the distribution itself, or for one draw of 200 and 100 rows."""
    if random_state is None:
        moments = population()
        nominal = np.linalg.eigh(moments.pooled_covariance())[1][:, -1]
    else:
        X, groups = make_toy(random_state=random_state)
        moments = group_moments(X, groups)
        nominal = PCA(1).fit(X).components_[0]
    plain = RobustFairPCA(1, radius=0.0, penalty=0.0).fit_moments(moments)
    fair = FairPCA(1).fit_moments(moments)
    directions = [
        Direction("PCA", _angle(nominal), plain.group_errors_, plain.group_losses_),
    ]
    for penalty in PENALTIES:
        fitted = RobustFairPCA(1, radius=_RADIUS, penalty=penalty).fit_moments(moments)
        name = f"RobustFairPCA penalty {penalty:g}"
        directions.append(Direction(name, _angle(fitted.components_[0]), fitted.group_errors_, fitted.group_losses_))
    directions.append(Direction("FairPCA", _angle(fair.components_[0]), fair.group_errors_, fair.group_losses_))
    return Toy(directions)


def _angle(direction: np.ndarray) -> float:
    return float(np.degrees(np.arctan2(direction[1], direction[0]))) % 180.0
