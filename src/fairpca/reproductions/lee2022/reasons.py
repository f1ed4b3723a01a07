"""Why a figure of Table 1 is expected to differ from the printed one, where a reason is known."""

from __future__ import annotations

from fairpca.reproductions.lee2022.protocol import Method

__all__ = ["reason"]


def reason(data: str, n_components: int, method: Method, measure: str) -> str:
    """A sentence, or nothing."""
    return ""
