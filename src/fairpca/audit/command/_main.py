"""Entry point of the command line; each command has a module of its own."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Sequence

import fairpca
from fairpca.audit.command._audit import AUDIT, COMPARE
from fairpca.audit.command._demo import DEMO
from fairpca.audit.command._fit import FIT
from fairpca.audit.command._info import INFO
from fairpca.audit.command._options import add_options, option_names
from fairpca.audit.command._output import messages_apart_from
from fairpca.audit.command._transform import TRANSFORM
from fairpca.audit.errors import TableError

__all__ = ["guarded", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 after printing one clear error message."""
    given = list(sys.argv[1:] if argv is None else argv)
    return guarded("fairpca", lambda: _run(given))


def guarded(program: str, run: Callable[[], int]) -> int:
    """Call ``run``; a user error becomes one clear error message and exit code 2."""
    _escape_unencodable_output()
    try:
        return run()
    except BrokenPipeError:  # the reading process has ended, for example `fairpca demo | head`
        sys.stderr.close()
        return 0
    except (KeyboardInterrupt, ValueError, TypeError, OSError, ImportError) as problem:
        # A module being imported, for example, may turn an interrupt into another error.
        if any(isinstance(one, KeyboardInterrupt) for one in (problem, problem.__context__)):
            print(f"{program}: interrupted", file=sys.stderr)
            return 130
        print(f"{program}: {problem}", file=sys.stderr)
        return 2


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
    for command in (DEMO, AUDIT, COMPARE, FIT, TRANSFORM, INFO):
        one = commands.add_parser(
            command.name,
            help=command.help,
            description=command.description or command.help,
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter if command is AUDIT else argparse.HelpFormatter,
        )
        add_options(one, command.name)
        one.set_defaults(run=command.run, **command.fixed)
    return parser
