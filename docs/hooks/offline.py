"""The finished site asks no other machine for anything: addresses of optional scripts are taken out of the theme."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

#: Scripts that the theme would load from a package host if a page had a diagram, or for browsers from before 2020.
_OPTIONAL = re.compile(r"https://[\w./@-]*/(?:mermaid|resize-observer-polyfill)[\w./@-]*")


def on_post_build(config: Any, **_: Any) -> None:
    """Empty these addresses in the copied scripts; drop their source maps, which only developers of the theme need."""
    for script in Path(config["site_dir"], "assets", "javascripts").rglob("*.js"):
        text = script.read_text(encoding="utf-8")
        if _OPTIONAL.search(text):
            script.write_text(_OPTIONAL.sub("", text), encoding="utf-8")
    shutil.rmtree(Path(config["site_dir"], "assets", "javascripts", "lunr"), ignore_errors=True)  # other languages
    for source_map in Path(config["site_dir"], "assets").rglob("*.map"):
        source_map.unlink()
