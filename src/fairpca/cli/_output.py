"""Where results go: checked before the work, and apart from what is told."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from fairpca._files import check_writable, is_standard_output

__all__ = ["check_output", "words_apart_from"]


def check_output(path: str, *inputs: str, option: str = "--out") -> None:
    """Say at once, not after a minute of work, that the result cannot be written, or would replace an input."""
    for given in inputs:
        if os.path.isfile(path) and os.path.isfile(given) and os.path.samefile(path, given):
            raise ValueError(f"{option} {path} is the input {given} itself; give another name.")
    try:
        check_writable(path)
    except OSError as problem:
        raise type(problem)(f"{option} {problem}") from None


@contextlib.contextmanager
def words_apart_from(path: str | None) -> Iterator[None]:
    """What is told goes to the standard error where the result goes to the standard output."""
    if path is None or not is_standard_output(path):
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield
