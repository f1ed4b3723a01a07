"""How many components: all of them, or the fewest with which every group keeps a share of its variance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fairpca.moments import GroupMoments
from fairpca.moments._group_moments import Reduction

if TYPE_CHECKING:
    from fairpca.estimators._base import Fit, MomentEstimator

__all__ = [
    "all_directions",
    "fewest_of_nested",
    "first_enough",
    "is_number",
    "is_share",
    "kept_shares",
    "least_for_own",
    "refuse_share",
    "solve_for_wanted",
    "unreachable",
]

#: Shares are compared up to rounding.
_ROUNDING = 1e-12


def is_share(n_components: Any) -> bool:
    """Whether a checked ``n_components`` is a share of the variance."""
    return isinstance(n_components, float)


def is_number(n_components: Any) -> bool:
    """Whether a checked ``n_components`` is a number of components, not a share of the variance or None."""
    return n_components is not None and not is_share(n_components)


def refuse_share(n_components: Any) -> None:
    """Raise for a share where rows arrive in chunks."""
    if is_share(n_components):
        raise ValueError(
            f"n_components={n_components!r} is a share, whose number of components would change from chunk to chunk: "
            "use an integer with partial_fit, or merge the chunks with fairpca.moments.group_moments and use "
            "fit_moments."
        )


def all_directions(reduction: Reduction) -> int:
    """The number of components that None stands for: as in PCA, the smaller of the numbers of rows and features.

    Weights count like repeated rows; where they are fractions, all directions along which the rows vary are kept.
    """
    count = int(reduction.total_count)
    if count >= reduction.size or (reduction.counts % 1 == 0).all():
        return min(reduction.size, count)
    rank = int(np.linalg.matrix_rank(reduction.pooled_form(np.eye(reduction.size)), hermitian=True))
    return min(reduction.size, max(count, rank, 1))


def kept_shares(captured: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """``c_a / t_a``: the share of its variance that each group keeps; 1 for a group without variance."""
    return np.divide(captured, totals, out=np.ones_like(totals), where=totals > 0)


def least_for_own(matrices: np.ndarray, share: float) -> int:
    """The fewest components with which every group could keep the share if it had them for itself.

    With fewer, no projection keeps it in all groups.
    """
    least = 1
    for matrix in matrices:
        captured = np.cumsum(np.maximum(np.linalg.eigvalsh(matrix)[::-1], 0.0))
        least = max(least, 1 + int((captured < (share - _ROUNDING) * np.trace(matrix)).sum()))
    return min(least, matrices.shape[1])


def first_enough(enough: Callable[[int], bool], first: int, last: int, *, grows: bool) -> int | None:
    """The first d of first..last that is enough, or None; by bisection if all later ones are then enough as well."""
    if not grows:
        return next((d for d in range(first, last + 1) if enough(d)), None)
    low, high, step = first - 1, first, 1
    while not enough(high):
        if high == last:
            return None
        low, high, step = high, min(high + step, last), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def solve_for_wanted(estimator: MomentEstimator, reduction: Reduction) -> tuple[int, Fit | None]:
    """The number of components for None or a share and, if the search for it has been made, the fit."""
    last = estimator._all_components(reduction)
    if not is_share(estimator.n_components):
        return last, None
    share, fits, reached = float(estimator.n_components), {}, {}

    def enough(d: int) -> bool:
        fits[d] = estimator._solve(reduction, d)
        reached[d] = float(kept_shares(fits[d].captured, fits[d].totals).min())
        return reached[d] >= share - _ROUNDING

    matrices = reduction.second_moments(getattr(estimator, "center", "pooled"))
    first = min(least_for_own(matrices, share), last) if isinstance(matrices, np.ndarray) else 1
    d = first_enough(enough, first, last, grows=estimator._keeps_more_with_more(reduction))
    if d is None:
        raise unreachable(share, reached)
    return d, fits[d]


def fewest_of_nested(basis: np.ndarray, moments: GroupMoments, share: float) -> int:
    """The fewest leading columns with which every group keeps the share of its variance about the pooled mean."""
    parts = np.einsum("pi,api->ai", basis, moments.second_moments() @ basis)
    reached = np.min([kept_shares(kept, moments.traces()) for kept in np.cumsum(parts, axis=1).T], axis=1)
    enough = np.flatnonzero(reached >= share - _ROUNDING)
    if not len(enough):
        raise unreachable(share, {d: float(kept) for d, kept in enumerate(reached, 1)})
    return int(enough[0]) + 1


def unreachable(share: float, reached: dict[int, float], limits: str = "") -> ValueError:
    """The error that names the largest share that all groups reached; ``reached`` is by number of components."""
    best = max(reached, key=lambda d: (reached[d], -d))
    return ValueError(
        f"n_components={share:g}: no number of components keeps that share of the variance in every "
        f"group{limits}; the largest share reached is {reached[best]:.4g}, with {best} components. Lower the share, or "
        "relax the parameters that restrict the directions."
    )
