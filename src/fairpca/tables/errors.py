"""Errors that say what is wrong with a table and how to fix it; a program can add the names of its own options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Remedy", "TableError"]


@dataclass(frozen=True)
class Remedy:
    """A suggested fix; ``about`` is the parameter of ``prepare_table`` or ``stream_table`` to use, if any."""

    action: str
    about: str = ""

    def text(self, options: Mapping[str, str]) -> str:
        """The suggestion, followed by the option in ``options`` that corresponds to the parameter, if there is one."""
        return f"{self.action} ({options[self.about]})" if self.about in options else self.action


class TableError(ValueError):
    """Raised for a table that cannot be used as it is.

    Parameters
    ----------
    problem : str
        What is wrong, without a final period: the file, the column and what was found there.
    *remedies : Remedy or str
        Alternative ways to fix the problem.

    See Also
    --------
    read_table, prepare_table, stream_table : Raise it.

    Examples
    --------
    >>> from fairpca.tables.errors import Remedy, TableError
    >>> error = TableError("Column 'name' holds 9000 different texts", Remedy("leave it out", "drop"), "group them")
    >>> print(error)
    Column 'name' holds 9000 different texts: leave it out, or group them.
    >>> print(error.sentence({"drop": "--drop"}))
    Column 'name' holds 9000 different texts: leave it out (--drop), or group them.
    """

    def __init__(self, problem: str, *remedies: Remedy | str) -> None:
        super().__init__(problem, *remedies)  # all arguments, so that copying and pickling keep them
        self.problem = problem
        self.remedies = tuple(Remedy(each) if isinstance(each, str) else each for each in remedies)

    def sentence(self, options: Mapping[str, str] | None = None) -> str:
        """The whole message; ``options`` maps parameter names to the names of a program's options."""
        *first, last = [remedy.text(options or {}) for remedy in self.remedies] or [""]
        what = f": {', '.join([*first, 'or ' + last] if first else [last])}" if last else ""
        return f"{self.problem}{what}."

    def __str__(self) -> str:
        return self.sentence()
