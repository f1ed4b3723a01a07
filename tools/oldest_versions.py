"""Print the declared minimums as constraints for pip: ``python tools/oldest_versions.py > constraints.txt``.

Every requirement of pyproject.toml, of the extras and of the test group reads ``name>=version``; the constraint is
``name==version``. So what ``make test-oldest`` installs is what pyproject.toml promises, and nothing is stated twice.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

#: Packages that others bring along, in versions of that time: with newer ones the oldest versions warn or fail.
COMPANIONS = {"pyparsing": "3.1.0"}  # matplotlib 3.8 calls functions of it that were deprecated later

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def declared_minimums(text: str) -> dict[str, str]:
    """Lowest version of each package that the required dependencies, the extras or the test group name."""
    content = tomllib.loads(text)
    project = content["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values(), content["dependency-groups"]["test"]]
    minimums: dict[str, str] = {}
    for requirement in (entry for group in groups for entry in group):
        found = re.fullmatch(r"([\w-]+)(?:\[[\w,-]+\])?>=([\w.]+)", requirement)
        if found is None:
            raise SystemExit(f"pyproject.toml: {requirement!r} does not read name>=version")
        name, version = found.groups()
        if minimums.setdefault(name, version) != version:
            raise SystemExit(f"pyproject.toml: {name} has two minimums, {minimums[name]} and {version}")
    return minimums


if __name__ == "__main__":
    for name, version in sorted({**declared_minimums(PROJECT.read_text(encoding="utf-8")), **COMPANIONS}.items()):
        sys.stdout.write(f"{name}=={version}\n")
