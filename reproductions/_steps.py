"""Steps of a long run, reported to a progress bar."""

from __future__ import annotations

from reproductions._outcome import Progress

__all__ = ["Steps"]


class Steps:
    """Call it with a description before each step; ``total`` steps are expected."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total = progress, total
        self._done = 0

    def __call__(self, what: str) -> None:
        self._progress(min(self._done, self._total), self._total, what)
        self._done += 1

    def within(self, what: str) -> None:
        """Report progress within the current step."""
        self._progress(min(max(self._done - 1, 0), self._total), self._total, what)
