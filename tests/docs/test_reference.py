"""The page of the API lists every public name, once, and not too many."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import fairpca

PAGE = Path(__file__).parents[2] / "docs" / "api" / "index.rst"
#: An interface that is learned in ten minutes.
MOST = 120


def exported():
    """Names in the `__all__` of fairpca, of what is directly inside it, and of the modules that these export."""
    modules = [one.name for one in pkgutil.iter_modules(fairpca.__path__) if not one.name.startswith("_")]
    names = ["fairpca", *(f"fairpca.{name}" for name in modules), "fairpca.moments.arrow", "fairpca.moments.dask"]
    for module in names:  # grows by modules that others export
        found = importlib.import_module(module)
        for name in getattr(found, "__all__", ()):
            if inspect.ismodule(getattr(found, name)):
                names.append(f"{module}.{name}")
            elif name != "__version__":
                yield module, name


def listed():
    return re.findall(r"(?m)^(?:   ~|\.\. py:data:: )(fairpca[\w.]*)\.(\w+)$", PAGE.read_text(encoding="utf-8"))


def test_every_public_name_is_listed_once():
    objects = [(name, id(getattr(importlib.import_module(module), name))) for module, name in listed()]
    assert len(objects) == len(set(objects))
    public = {(name, id(getattr(importlib.import_module(module), name))) for module, name in exported()}
    assert {name for name, _ in public.symmetric_difference(objects)} == set()


def test_public_names_are_few():
    assert len(listed()) <= MOST


def test_the_site_describes_every_public_name(site):
    pages = "".join(path.read_text(encoding="utf-8") for path in (site / "api").rglob("*.html"))
    anchors = set(re.findall(r'id="([^"]+)"', pages))
    assert [f"{module}.{name}" for module, name in listed() if f"{module}.{name}" not in anchors] == []
