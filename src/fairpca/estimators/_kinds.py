"""What goes in comes out: a decorator for methods that map rows to rows."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from fairpca._containers import as_rows, is_tensor
from fairpca._validation import warn_user


def detached(X: Any) -> Any:
    """The tensor without gradients, with a remark if it requires any."""
    if X.requires_grad:
        warn_user(
            "X requires gradients, which end here: the result is detached. Inside a model, use LeaceEraser.to_torch(), "
            "whose module passes gradients on; otherwise pass X.detach()."
        )
    return X.detach()


def in_kind(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method that maps a matrix to as many rows: tensors, float16 and leading dimensions come out again."""

    @functools.wraps(method)
    def mapped(self: Any, X: Any) -> Any:
        result = method(self, as_rows(X))
        if is_tensor(X):
            detached(X)
            dtype = X.dtype if X.is_floating_point() else None
            result = sys.modules["torch"].from_numpy(result).to(X.device, dtype)
        elif not isinstance(X, np.ndarray):
            return result
        elif X.dtype == np.float16:
            result = result.astype(np.float16)
        return result.reshape(*X.shape[:-1], result.shape[-1])

    return mapped
