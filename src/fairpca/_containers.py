"""Tensors of torch, half precision and leading dimensions as numpy matrices: ``[batch, tokens, p]`` has batch * tokens
rows.

torch is never imported here: before a tensor arrives, somebody else has done so.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_tensor(values: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def on_another_device(values: Any) -> bool:
    return is_tensor(values) and values.device.type != "cpu"


def as_array(values: Any) -> Any:
    """A tensor as an array, and half precision as float32; anything else is returned unchanged."""
    if is_tensor(values):
        values = values.detach().cpu()
        values = (values.float() if values.is_floating_point() and values.itemsize < 4 else values).numpy()
    return values.astype(np.float32) if isinstance(values, np.ndarray) and values.dtype == np.float16 else values


def as_rows(X: Any) -> Any:
    """The same, with all leading dimensions in one."""
    X = as_array(X)
    return X.reshape(-1, X.shape[-1]) if isinstance(X, np.ndarray) and X.ndim > 2 else X


def one_per_row(name: str, values: Any, X: Any) -> Any:
    """The values of the argument ``name`` for ``as_rows(X)``: one per batch is repeated for all tokens of the batch."""
    if not (is_tensor(X) or isinstance(X, np.ndarray)) or X.ndim < 3 or values is None:
        return as_array(values)
    if isinstance(values, dict) or hasattr(values, "columns"):
        return {key: one_per_row(name, values[key], X) for key in getattr(values, "columns", values)}
    table, shape = np.asarray(as_array(values)), tuple(X.shape[:-1])
    depth = next((depth for depth in range(len(shape), 0, -1) if table.shape[:depth] == shape[:depth]), 0)
    if not depth:
        raise ValueError(
            f"{name} has shape {table.shape}, but X has shape {tuple(X.shape)}: give one value for each of the "
            f"{shape[0]} entries of its first dimension, or values of shape {shape}."
        )
    rest = table.shape[depth:]
    table = table.reshape(*shape[:depth], *[1] * (len(shape) - depth), *rest)
    return np.broadcast_to(table, (*shape, *rest)).reshape(-1, *rest)
