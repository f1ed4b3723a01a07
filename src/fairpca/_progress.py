"""A progress bar that is shown only on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["Progress", "Report", "progress_of"]

#: Called with the number of steps done, the total number of steps, and the name of the current or next step.
Report = Callable[[int, int, str], None]

_WIDTH = 24


class Progress:
    """Call it with steps done, total steps, and the next step. Nothing is shown unless the stream is a terminal."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._shown = not quiet and self._stream.isatty()
        self._start = time.monotonic()

    def __call__(self, done: int, total: int, next_step: str) -> None:
        if not self._shown:
            return
        filled = round(_WIDTH * done / max(total, 1))
        bar = "#" * filled + "." * (_WIDTH - filled)
        elapsed = time.monotonic() - self._start
        self._stream.write(f"\r\033[K[{bar}] {done}/{total}  {elapsed:3.0f} s  {next_step[:40]}")
        self._stream.flush()

    def close(self) -> None:
        """Remove the bar, so that results stand alone."""
        if self._shown:
            self._stream.write("\r\033[K")
            self._stream.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


@contextmanager
def progress_of(progress: Report | bool | None) -> Iterator[Report]:
    """Resolve the argument ``progress``: a function, True for a bar on the terminal, None or False for no output."""
    if callable(progress):
        yield progress
        return
    with Progress(quiet=not progress) as bar:
        yield bar
