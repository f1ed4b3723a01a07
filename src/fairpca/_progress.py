"""A progress bar that is shown on a terminal or in a notebook, and the steps of a search as lines."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["Progress", "Report", "printed_steps", "progress_of"]

#: Called with the number of steps done, the total number of steps, and the name of the current or next step.
Report = Callable[[int, int, str], None]

_WIDTH = 24
#: Longest line: the bar, counts, time and what is done.
_LINE = 90


class Progress:
    """Call it with steps done, total steps, and the next step.

    Nothing is shown unless the stream is a terminal, or the output of a notebook.
    """

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._shown = not quiet and (self._stream.isatty() or (stream is None and _in_notebook()))
        self._clear = "\r\033[K" if self._stream.isatty() else f"\r{' ' * _LINE}\r"
        self._start = time.monotonic()

    def __call__(self, done: int, total: int, next_step: str) -> None:
        if not self._shown:
            return
        filled = round(_WIDTH * done / max(total, 1))
        bar = "#" * filled + "." * (_WIDTH - filled)
        elapsed = time.monotonic() - self._start
        self._stream.write(f"{self._clear}[{bar}] {done}/{total}  {elapsed:3.0f} s  {next_step[:40]}")
        self._stream.flush()

    def close(self) -> None:
        """Remove the bar, so that results stand alone."""
        if self._shown:
            self._stream.write(self._clear)
            self._stream.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook; IPython is not imported for that."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def progress_of(progress: Report | bool | None) -> Iterator[Report]:
    """Resolve the argument ``progress``: a function, True for a bar on the terminal, None or False for no output."""
    if callable(progress):
        yield progress
        return
    with Progress(quiet=not progress) as bar:
        yield bar


@contextmanager
def printed_steps(verbose: int) -> Iterator[None]:
    """If ``verbose`` is positive, print what the solvers log."""
    if not verbose:
        yield
        return
    logger, handler = logging.getLogger("fairpca"), logging.StreamHandler(sys.stdout)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
