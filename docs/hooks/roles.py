"""Roles in docstrings, such as ``:func:`compare```, become links where the reference has the name, else code."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))
import reference

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
            obj.docstring.value = _ROLE.sub(self._link, obj.docstring.value)

    def _link(self, found: re.Match[str]) -> str:
        short, name = found[1] == "~", found[2]
        shown = name.rpartition(".")[2] if short else name
        home = self._homes.get(name)
        return f"[`{shown}`][{home}]" if home else f"`{shown}`"
