"""Output files: checked before the work starts, and kept apart from printed messages."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from fairpca._files import check_writable, is_standard_output

__all__ = ["check_output", "messages_apart_from"]


def check_output(path: str, *inputs: str, option: str = "--out") -> None:
    """Fail early, not after a minute of work, if the result cannot be written or would replace an input."""
    for given in inputs:
        if os.path.isfile(path) and os.path.isfile(given) and os.path.samefile(path, given):
            raise ValueError(f"{option} {path} is the input {given} itself; give another name.")
    try:
        check_writable(path)
    except OSError as problem:
        raise type(problem)(f"{option} {problem}") from None


@contextlib.contextmanager
def messages_apart_from(path: str | None) -> Iterator[None]:
    """Send messages to standard error if the result goes to standard output."""
    if path is None or not is_standard_output(path):
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield
