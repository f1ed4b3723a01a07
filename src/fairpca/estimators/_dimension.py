"""How many components: all of them, or the fewest with which every group keeps a share of its variance."""

from __future__ import annotations

import numpy as np

from fairpca.moments import GroupMoments
from fairpca.moments._group_moments import Reduction

#: Shares are compared up to rounding.
SHARE_ROUNDING = 1e-12


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
    captured = np.cumsum(np.maximum(np.linalg.eigvalsh(matrices)[:, ::-1], 0.0), axis=1)
    too_few = captured < (share - SHARE_ROUNDING) * np.einsum("aii->a", matrices)[:, None]
    return min(1 + int(too_few.sum(axis=1).max()), matrices.shape[1])


def fewest_of_nested(basis: np.ndarray, moments: GroupMoments, share: float) -> int:
    """The fewest leading columns with which every group keeps the share of its variance about the pooled mean."""
    parts = np.einsum("pi,api->ai", basis, moments.second_moments() @ basis)
    reached = np.min([kept_shares(kept, moments.traces()) for kept in np.cumsum(parts, axis=1).T], axis=1)
    enough = np.flatnonzero(reached >= share - SHARE_ROUNDING)
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
