"""Roles in docstrings, such as ``:func:`compare```, and names under See Also become links to the reference."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))
import reference

_SEE_ALSO = re.compile(r"(?<=See Also\n--------\n)(?:\S.*\n?)+")
_ROLE = re.compile(r":(?:class|func|meth|mod|attr):`(~?)([\w.]+)`")


def described_names() -> dict[str, str]:
    """Where each public name is described, by its short and by its full name."""
    homes: dict[str, str] = {}
    for module in reference.public_modules():
        for name in reference.public_names(module):
            home = reference.home_of(module, name)
            homes |= {f"{module}.{name}": home}
            homes.setdefault(name, home)
    return homes


class Roles(griffe.Extension):
    """Rewrites the docstrings as they are collected."""

    def __init__(self) -> None:
        super().__init__()
        self._homes = described_names()

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            text = _SEE_ALSO.sub(self._link_names, obj.docstring.value)
            obj.docstring.value = _ROLE.sub(self._link, text)

    def _link_names(self, found: re.Match[str]) -> str:
        """A list with one item per line, ``names : description``."""
        lines = []
        for line in found[0].splitlines():
            names, _, description = line.partition(" : ")
            links = (f":func:`{name.strip()}`" for name in names.split(","))
            lines.append(f"- {', '.join(links)}: {description}")
        return "\n".join(lines) + "\n"

    def _link(self, found: re.Match[str]) -> str:
        short, name = found[1] == "~", found[2]
        shown = name.rpartition(".")[2] if short else name
        home = self._homes.get(name)
        return f"[`{shown}`][{home}]" if home else f"`{shown}`"
