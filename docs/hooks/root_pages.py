"""Pages that live elsewhere in the repository become part of the site, with their links adapted; fills in the menu."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import gallery
import reference

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELEASING.md": "releasing.md",
    "reproductions/samadi2018/README.md": "papers/samadi2018.md",
    "reproductions/vu2022/README.md": "papers/vu2022.md",
    "reproductions/lee2022/README.md": "papers/lee2022.md",
}
_WITHOUT_MENU = "---\nhide: [navigation]\n---\n"
_LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def adapted(text: str, source: str) -> str:
    """The text of a page with links that fit its place in the site."""
    target = PAGES[source]

    def replace(found: re.Match[str]) -> str:
        path = os.path.normpath(Path(source).parent / found[1])
        place = PAGES.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
        if place is None:
            raise ValueError(f"{source} links to {found[1]}, which is not part of the site")
        return "](" + os.path.relpath(place, Path(target).parent)

    return _LINK.sub(replace, text)


def on_files(files: Files, config: Any) -> Files:
    """Add the adapted pages."""
    for source, target in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        head = _WITHOUT_MENU if target == "index.md" else ""
        files.append(File.generated(config, target, content=head + adapted(text, source)))
    return files


def on_config(config: Any) -> Any:
    """Fill the menu's entries for generated pages."""
    filled = {
        "Gallery": ["gallery/index.md", *(_section(name) for name in gallery.SECTIONS)],
        "API reference": ["reference/index.md", *({one: reference.page_of(one)} for one in reference.public_modules())],
    }
    config.nav = [{name: filled.get(name, entry) for name, entry in item.items()} for item in config.nav]
    return config


def _section(name: str) -> dict[str, list[str]]:
    found = [one for one in gallery.examples() if one.parent.name == name]
    return {gallery.SECTIONS[name]: [f"gallery/{name}/{one.stem}.md" for one in found]}
