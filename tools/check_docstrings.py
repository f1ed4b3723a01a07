"""Docstrings of public names, checked with numpydoc: ``python tools/check_docstrings.py``, part of ``make lint``.

Names that users meet have a summary, parameters (or, for results, attributes), returns, an example that runs and a
See Also. Names that one layer exports for another have at least a summary.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

#: The page of the site that lists the public names.
API = Path(__file__).parents[1] / "docs" / "api" / "index.rst"
#: Summaries: present, in one line, with a capital letter and a period; sections: known, in order, underlined.
ALWAYS = {"GL01", "GL03", "GL06", "GL07", "GL08", "SS01", "SS02", "SS03", "SS04", "SS06"}
#: Parameters documented and spelled as in the signature; returns or yields, See Also, examples.
FOR_USERS = ALWAYS | {"PR01", "PR02", "RT01", "YD01", "SA01", "EX01"}
#: Modules whose names are for people who add methods.
INTERNAL_MODULES = ("moments", "moments.dask")
#: Names of other modules that one layer exports for another, and exceptions the other way round.
INTERNAL = {
    "Array",
    "SolverResult",
    "Status",
    "optional",
}
FOR_USERS_ALL_THE_SAME = {"GroupMoments", "group_moments", "moments_from_dask"}


def public_names() -> list[tuple[str, str]]:
    """Module and name of everything on the page of the API."""
    return re.findall(r"(?m)^(?:   ~|\.\. py:data:: )(fairpca[\w.]*)\.(\w+)$", API.read_text(encoding="utf-8"))


def public_objects() -> Iterator[tuple[str, str, Any]]:
    """Module, name and object of every class and function on that page."""
    for module, name in public_names():
        found = getattr(importlib.import_module(module), name)
        if inspect.isclass(found) or inspect.isfunction(found):
            yield module, name, found


def required(module: str, name: str) -> set[str]:
    """The codes of numpydoc that must not occur."""
    internal = module.removeprefix("fairpca.") in INTERNAL_MODULES or name in INTERNAL
    return ALWAYS if internal and name not in FOR_USERS_ALL_THE_SAME else FOR_USERS


def problems(module: str, name: str, found: Any) -> list[str]:
    """What is wrong with one docstring."""
    errors = dict(validate(f"{found.__module__}.{found.__qualname__}")["errors"])
    if get_doc_object(found)["Yields"]:
        errors.pop("RT01", None)
    if dataclasses.is_dataclass(found) and _documented(found) >= {one.name for one in dataclasses.fields(found)}:
        errors.pop("PR01", None)
    return [f"{code} {text}" for code, text in errors.items() if code in required(module, name)]


def _documented(found: Any) -> set[str]:
    """Attributes and parameters that a class describes; several may share a line."""
    doc = get_doc_object(found)
    entries = [one.name for section in ("Attributes", "Parameters") for one in doc[section]]
    return {name.strip() for entry in entries for name in entry.split(",")}


def main() -> int:
    """Print what is wrong; return the exit code."""
    wrong = 0
    for module, name, found in public_objects():
        for problem in problems(module, name, found):
            wrong += 1
            print(f"{module}.{name}: {problem}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
