"""Errors that say what is wrong with a table and how to fix it; a program can add the names of its own options."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Problems that are described; the remedy names the columns of all.
_MANY = 10


@dataclass(frozen=True)
class Remedy:
    """A suggested fix; ``about`` is the parameter of :func:`~fairpca.audit.prepare` to use, ``value`` its value."""

    action: str
    about: str = ""
    value: str = ""

    def text(self, options: Mapping[str, str]) -> str:
        """The suggestion, followed by the option in ``options`` that corresponds to the parameter, if there is one."""
        if self.about not in options:
            return self.action
        return f"{self.action} ({' '.join([options[self.about], *([shlex.quote(self.value)] if self.value else [])])})"


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
    read_table, prepare : Raise it.

    Examples
    --------
    >>> from fairpca.audit.errors import Remedy, TableError
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


def raise_together(file: str, problems: Mapping[str, TableError], *, others: Sequence[str] = ()) -> None:
    """Raise one error for all columns that cannot be features, if there are any; the remedy leaves all of them out.

    ``others`` are the columns that are left out already.
    """
    if not problems:
        return
    dropped = Remedy(
        "leave it out" if len(problems) == 1 else "leave them out", "drop", drop_list([*others, *problems])
    )
    first, *more = problems.values()
    if not more:
        raise TableError(first.problem, *first.remedies, dropped)
    said = [f"{one.problem} ({one.remedies[0].action})" if one.remedies else one.problem for one in problems.values()]
    found = "; ".join([*said[:_MANY], *([f"... ({len(said) - _MANY} more)"] if len(said) > _MANY else [])])
    raise TableError(f"{len(problems)} columns of {file} cannot be features: {found}", dropped)


def drop_list(names: Sequence[str]) -> str:
    """Names of columns as one value of ``drop``; none if a comma in a name would make it ambiguous."""
    return "" if any("," in name for name in names) else ",".join(names)
