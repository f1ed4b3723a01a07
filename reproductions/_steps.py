"""Steps of a long run, told to a progress bar."""

from __future__ import annotations

from reproductions._outcome import Progress

__all__ = ["Steps"]


class Steps:
    """Call it before each piece of work with what that is; ``total`` pieces are expected."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total = progress, total
        self._done = 0

    def __call__(self, what: str) -> None:
        self._progress(min(self._done, self._total), self._total, what)
        self._done += 1

    def within(self, what: str) -> None:
        """Tell how far the present piece of work has come."""
        self._progress(min(max(self._done - 1, 0), self._total), self._total, what)
