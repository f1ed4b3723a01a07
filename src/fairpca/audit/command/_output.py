"""What all commands have in common: their texts, and their output files, checked before the work starts."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fairpca._files import check_writable, is_standard_output, is_stream

__all__ = ["Command", "check_output", "messages_apart_from", "output_name"]

_STANDARD_OUTPUT = "/dev/stdout"


class Command(NamedTuple):
    """A subcommand: what runs it, its texts, and values of options that it does not have."""

    name: str
    run: Callable[[Any], int]
    help: str
    description: str = ""
    epilog: str = ""
    fixed: Mapping[str, Any] = {}


def output_name(text: str) -> str:
    """The name of an output file; ``-`` is the standard output."""
    return _STANDARD_OUTPUT if text == "-" else text


def check_output(path: str, *inputs: str, option: str = "--out", endings: Sequence[str] = ()) -> None:
    """Fail early, not after a minute of work, if the result cannot be written or would replace an input.

    The name of a regular file must have one of the ``endings``, so that a file of another kind is not replaced by
    mistake; pipes and devices take anything.
    """
    for given in inputs:
        if os.path.isfile(path) and os.path.isfile(given) and os.path.samefile(path, given):
            raise ValueError(f"{option} {path} is the input {given} itself; give another name.")
    try:
        check_writable(path)
    except OSError as problem:
        raise type(problem)(f"{option} {problem}") from None
    if endings and not is_stream(path) and Path(path).suffix.lower() not in endings:
        raise ValueError(f"{option} {path} does not end in {' or '.join(endings)}; give such a name, or - to print it.")


@contextlib.contextmanager
def messages_apart_from(path: str | None) -> Iterator[None]:
    """Send messages to standard error if the result goes to standard output."""
    if path is None or not is_standard_output(path):
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield
