"""Entry point of the command line; each command has a module of its own."""

from __future__ import annotations

import argparse
import contextlib
import io
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import fairpca
from fairpca.audit.command._audit import add_audit
from fairpca.audit.command._compare import add_compare
from fairpca.audit.command._demo import add_demo
from fairpca.audit.command._fit import add_fit
from fairpca.audit.command._info import add_info
from fairpca.audit.command._options import option_names
from fairpca.audit.command._output import messages_apart_from
from fairpca.audit.command._transform import add_transform
from fairpca.audit.errors import TableError

__all__ = ["guarded", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 after printing one clear error message."""
    given = list(sys.argv[1:] if argv is None else argv)
    return guarded("fairpca", lambda: _run(given))


def guarded(program: str, run: Callable[[], int]) -> int:
    """Call ``run``; a user error becomes one clear error message and exit code 2."""
    _escape_unencodable_output()
    with _noting_interrupts() as interrupts:
        try:
            return run()
        except BrokenPipeError:  # the reading process has ended, for example `fairpca demo | head`
            sys.stderr.close()
            return 0
        except (KeyboardInterrupt, ValueError, TypeError, OSError, ImportError) as problem:
            if isinstance(problem, KeyboardInterrupt) or interrupts:
                print(f"{program}: interrupted", file=sys.stderr)
                return 130
            print(f"{program}: {problem}", file=sys.stderr)
            return 2


@contextlib.contextmanager
def _noting_interrupts() -> Iterator[list[int]]:
    """The interrupts so far: compiled code, a module being imported for example, may turn one into another error."""
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        raise KeyboardInterrupt

    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not (ours and threading.current_thread() is threading.main_thread()):
        yield noted
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _run(given: list[str]) -> int:
    arguments = _parser().parse_args(given)
    arguments.command_line = given
    with messages_apart_from(getattr(arguments, "out", None)):
        try:
            return arguments.run(arguments)
        except TableError as problem:
            raise ValueError(problem.sentence(option_names(arguments))) from problem


def _escape_unencodable_output() -> None:
    """Print characters that the terminal's encoding lacks as escapes: Greek letters, labels in any script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fairpca",
        description="Principal component analysis with balanced quality and parity between groups.",
        epilog="Start with `fairpca demo`, then `fairpca audit --help`.",
    )
    parser.add_argument("--version", action="version", version=f"fairpca {fairpca.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (add_demo, add_audit, add_compare, add_fit, add_transform, add_info):
        add(commands)
    return parser
