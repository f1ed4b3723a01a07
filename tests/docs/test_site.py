"""The built site: every link and anchor leads somewhere, and nothing is asked of another machine."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest


class Page(HTMLParser):
    """Targets of links, sources of what is loaded, and anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("script", "img", "iframe", "source") and found.get("src"):
            self.loaded.append(found["src"])
        if tag == "link" and found.get("rel") != "canonical" and found.get("href"):
            self.loaded.append(found["href"])


@pytest.fixture(scope="session")
def pages(site):
    return {path: Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}


def test_links_and_anchors(pages, site):
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file() or not target.is_relative_to(site):
                broken.append(f"{path.relative_to(site)}: {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                broken.append(f"{path.relative_to(site)}: {link}: no such anchor")
    assert broken == []
    assert len(pages) > 50


def test_nothing_is_loaded_from_elsewhere(pages):
    assert [link for page in pages.values() for link in page.loaded if urlsplit(link).netloc] == []


def test_style_sheets_load_nothing_from_elsewhere(site):
    for path in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)[\s'\"]*(?:https?:)?//", path.read_text(encoding="utf-8")), path


def test_every_example_has_a_page_with_its_picture(pages, site):
    for example in (Path(__file__).parents[2] / "examples").rglob("*.py"):
        page = pages[site / "gallery" / example.parent.name / f"{example.stem}.html"]
        assert any(f"sphx_glr_{example.stem}_001.png" in source for source in page.loaded)
        assert any(link.endswith(f"/{example.stem}.py") for link in page.links)
        gallery = pages[site / "gallery" / "index.html"]
        assert any(f"sphx_glr_{example.stem}_thumb.png" in source for source in gallery.loaded)


def test_formulas_are_drawn_without_a_script(site):
    text = (site / "theory" / "index.html").read_text(encoding="utf-8")
    assert text.count("<math") > 20
    assert not re.search("<script[^>]*mathjax", text, re.IGNORECASE)


def test_there_are_five_tabs(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    tabs = re.findall(r'(?s)<a class="nav-link nav-internal" href="[^"]+">\s*([^<]*?)\s*</a>', text)
    assert list(dict.fromkeys(tabs)) == ["Get started", "User guide", "Gallery", "API", "About"]
