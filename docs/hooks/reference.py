"""The API reference: one page per public module, generated from its ``__all__``.

Public are the names in ``__all__`` of ``fairpca``, of the modules directly inside it that have one, of the modules that
these export, and of ``EXTRA_MODULES``. A name that one module takes over from another is described
once, at its first mention below.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from typing import TYPE_CHECKING, Any

import fairpca

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

EXTRA_MODULES = ("fairpca.moments.arrow", "fairpca.moments.dask")
#: Modules for users first, then those for people who add a method.
_FIRST = ("fairpca", "estimators", "metrics", "inference", "model_selection", "datasets", "plotting", "audit")
_FIRST += ("persistence", "moments", "moments.arrow", "moments.dask")


def public_modules() -> list[str]:
    """Names of the modules with a page, users' modules first."""
    inside = (f"fairpca.{one.name}" for one in pkgutil.iter_modules(fairpca.__path__) if not one.name.startswith("_"))
    found = ["fairpca", *(name for name in inside if hasattr(importlib.import_module(name), "__all__")), *EXTRA_MODULES]
    found += [f"{module}.{name}" for module in found for name in _exports(module, modules=True)]
    order = ["fairpca", *(f"fairpca.{name}" for name in _FIRST[1:])]
    return sorted(found, key=lambda name: (order.index(name) if name in order else len(order), name))


def public_names(module: str) -> list[str]:
    """Names that a module exports, without the version and without modules, which have a page of their own."""
    return [name for name in _exports(module, modules=False) if name != "__version__"]


def _exports(module: str, *, modules: bool) -> list[str]:
    found = importlib.import_module(module)
    return [name for name in found.__all__ if inspect.ismodule(getattr(found, name)) == modules]


def home_of(module: str, name: str) -> str:
    """Where a name is described: in the first module of the reference that exports the same object."""
    wanted = getattr(importlib.import_module(module), name)
    for candidate in public_modules()[1:]:
        if getattr(importlib.import_module(candidate), name, None) is wanted and name in public_names(candidate):
            return _identifier(candidate, name)
    return _identifier(module, name)


def _identifier(module: str, name: str) -> str:
    """The name's address: ``frontier.frontier`` where a module has the same name as the function in it."""
    path = f"{module}.{name}"
    return f"{path}.{name}" if path in sys.modules else path


def page_of(module: str) -> str:
    """Path of a module's page within the documentation."""
    return f"reference/{module}.md"


def reference_page(module: str) -> str:
    """The page in Markdown: a table of names with links, then what is described here."""
    summary = (importlib.import_module(module).__doc__ or "").strip()
    head, _, rest = summary.partition("\n")
    lines = [f"# `{module}`", "", head, "", rest.strip(), "", "| name | |", "|---|---|"]
    lines += [f"| [`{name}`][{home_of(module, name)}] | {_first_line(module, name)} |" for name in public_names(module)]
    own = [name for name in public_names(module) if home_of(module, name) == _identifier(module, name)]
    lines += [line for name in own for line in ("", f"::: {_identifier(module, name)}")]
    return "\n".join(lines) + "\n"


def _first_line(module: str, name: str) -> str:
    """First sentence of a docstring; constants have the docstring of their type, which says nothing about them."""
    found = getattr(importlib.import_module(module), name)
    if not callable(found):
        return ""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", (found.__doc__ or "").strip().partition("\n")[0])
    return text.replace("``", "`").replace("|", "&#124;")


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    for module in public_modules():
        files.append(File.generated(config, page_of(module), content=reference_page(module)))
    index = ["# API reference", "", "Generated from the docstrings.", "", "| module | |", "|---|---|"]
    for module in public_modules():
        head = (importlib.import_module(module).__doc__ or "").strip().partition("\n")[0].replace("``", "`")
        index.append(f"| [`{module}`]({module}.md) | {head} |")
    files.append(File.generated(config, "reference/index.md", content="\n".join(index) + "\n"))
    return files
