"""The API reference has every public name."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

import pytest

import fairpca


@pytest.fixture
def reference():
    return pytest.importorskip("reference")


def public():
    """Pairs of module and name: what `__all__` of fairpca and of modules directly inside it holds, if there is one."""
    modules = [one.name for one in pkgutil.iter_modules(fairpca.__path__) if not one.name.startswith("_")]
    names = ["fairpca", *(f"fairpca.{name}" for name in modules), "fairpca.moments.arrow", "fairpca.moments.dask"]
    for module in names:  # grows by modules that others export
        for name in getattr(importlib.import_module(module), "__all__", ()):
            if inspect.ismodule(getattr(importlib.import_module(module), name)):
                names.append(f"{module}.{name}")
            elif name != "__version__":
                yield module, name


def test_every_public_name_is_described_once(reference):
    pages = {module: reference.reference_page(module) for module in reference.public_modules()}
    described = re.findall(r"(?m)^::: (\S+)$", "\n".join(pages.values()))
    assert len(described) == len(set(described))
    for module, name in public():
        home = reference.home_of(module, name)
        assert home in described, f"{module}.{name}"
        assert f"[`{name}`][{home}]" in pages[module], f"{module}.{name}"


def test_a_described_name_is_the_object_meant(reference):
    for module, name in public():
        folder, _, last = reference.home_of(module, name).rpartition(".")
        assert getattr(importlib.import_module(folder), last) is getattr(importlib.import_module(module), name)


def test_the_site_has_every_public_name(reference, site):
    pages = "".join(path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html"))
    anchors = set(re.findall(r'id="([^"]+)"', pages))
    missing = [f"{module}.{name}" for module, name in public() if reference.home_of(module, name) not in anchors]
    assert missing == []
