"""Sums of tensors on another device than the CPU: products are formed where the rows are, and only sums leave."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from fairpca._continuous import ALL_ROWS
from fairpca.moments._group_moments import GroupMoments

#: Rows multiplied at once in float32, as for rows in memory.
_PRODUCT_ROWS = 4096


def accumulate_tensor(X: Any, values: np.ndarray, sample_weight: np.ndarray | None) -> GroupMoments:
    """Moments of all rows together, with ``values`` beside them.

    Products are in float32 unless the tensor is wider; sums over parts of the rows are in float64.
    """
    torch = sys.modules["torch"]
    wide = torch.promote_types(X.dtype, torch.float32)
    joint = GroupMoments.empty(X.shape[1] + values.shape[1])
    weights = np.ones(len(values)) if sample_weight is None else sample_weight
    for start in range(0, len(values), _PRODUCT_ROWS):
        part = slice(start, start + _PRODUCT_ROWS)
        count = float(weights[part].sum())
        if not count:
            continue
        beside, weight = (torch.tensor(one[part], dtype=wide, device=X.device) for one in (values, weights))
        rows = torch.cat([X[part].to(wide), beside], 1)
        mean = weight @ rows / count
        rows = (rows - mean) * weight.sqrt()[:, None]
        sums = [one.cpu().numpy().astype(np.float64)[None] for one in (mean, rows.T @ rows)]
        joint = joint.merge(GroupMoments((ALL_ROWS,), np.array([count]), *sums))
    if not np.isfinite(joint.scatters).all():
        raise ValueError("Input X contains NaN or infinity, or entries so large that their squares overflow.")
    return joint
