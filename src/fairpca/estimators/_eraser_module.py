"""The map of a LeaceEraser as a module of torch, which is imported only once a module is asked for."""

from __future__ import annotations

import functools
from typing import Any

from fairpca._optional import require


@functools.cache
def eraser_module() -> Any:
    """The class of what ``LeaceEraser.to_torch`` returns, made only then, since nothing else needs torch."""
    torch = require("torch", "to_torch", otherwise="transform works on numpy arrays without it.")

    class EraserModule(torch.nn.Module):  # type: ignore[name-defined]
        """``x - ((x - mean) @ coefficients.T) @ directions``, for tensors of shape [..., p]; passes gradients on."""

        def __init__(self, **buffers: Any) -> None:
            super().__init__()
            for name, values in buffers.items():
                self.register_buffer(name, values)

        def _apply(self, function: Any, recurse: bool = True) -> Any:
            """Follow a model to its device, but not to half precision, in which the map would erase two digits only."""
            return super()._apply(lambda buffer: buffer.to(function(buffer).device), recurse)

        def forward(self, x: Any) -> Any:
            wide = x if x.dtype == torch.float64 else x.float()
            mean, directions, coefficients = (
                one.to(wide.dtype) for one in (self.mean, self.directions, self.coefficients)
            )
            rows = wide.reshape(-1, wide.shape[-1])
            erased = torch.addmm(rows, (rows - mean) @ coefficients.T, directions, alpha=-1)
            return erased.reshape(x.shape).to(x.dtype)

    EraserModule.__module__, EraserModule.__qualname__ = __name__, "EraserModule"
    return EraserModule


def __getattr__(name: str) -> Any:
    """The class by its name, so that a whole module can be pickled."""
    if name == "EraserModule":
        return eraser_module()
    raise AttributeError(name)
