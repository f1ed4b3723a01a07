"""What is wrong with a table and what to do about it, in terms of the data; a program adds the names of its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Remedy", "TableError"]


@dataclass(frozen=True)
class Remedy:
    """Something to do; ``about`` is the parameter of ``prepare_table`` or ``stream_table`` that does it, if any."""

    action: str
    about: str = ""

    def text(self, options: Mapping[str, str]) -> str:
        """The action, with the name of the option that takes it where ``options`` has one."""
        return f"{self.action} ({options[self.about]})" if self.about in options else self.action


class TableError(ValueError):
    """A table that cannot be used as it is.

    Parameters
    ----------
    problem : str
        What is wrong, without a final full stop: the file, the column and what was found there.
    *remedies : Remedy or str
        What helps, one of them at a time.

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
        super().__init__(problem, *remedies)  # all of them, so that copies and other processes get the same error
        self.problem = problem
        self.remedies = tuple(Remedy(each) if isinstance(each, str) else each for each in remedies)

    def sentence(self, options: Mapping[str, str] | None = None) -> str:
        """The whole message; ``options`` says how a program calls the parameters that remedies are about."""
        *first, last = [remedy.text(options or {}) for remedy in self.remedies] or [""]
        what = f": {', '.join([*first, 'or ' + last] if first else [last])}" if last else ""
        return f"{self.problem}{what}."

    def __str__(self) -> str:
        return self.sentence()
