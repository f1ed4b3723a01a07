"""The built site: every link and anchor leads somewhere, and nothing is asked of another machine."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

#: Hosts that a page may name: namespaces, and places of papers and data that a reader may want to visit.
NAMED_IN_PAGES = {"www.w3.org", "www.sitemaps.org", "doi.org", "arxiv.org"}
#: Named in comments, or by functions of the theme that the site does not use.
NAMED_IN_SCRIPTS = NAMED_IN_PAGES | {"api.github.com", "bit.ly", "clipboardjs.com", "fontawesome.com", "github.com"}
NAMED_IN_SCRIPTS |= {"lunrjs.com", "tartarus.org"}


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
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_links_and_anchors(pages, site):
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links are absolute, for a server
            continue
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


def test_hosts_that_are_named(site):
    for path in site.rglob("*"):
        if path.suffix in (".html", ".xml", ".svg", ".css", ".js", ".json", ".py"):
            allowed = NAMED_IN_SCRIPTS if path.suffix in (".js", ".css") else NAMED_IN_PAGES
            hosts = set(re.findall(r"https?://([\w.-]+\w)", path.read_text(encoding="utf-8")))
            assert hosts <= allowed, f"{path.relative_to(site)} names {hosts - allowed}"


def test_every_example_has_a_page_with_its_picture(pages, site):
    for example in (Path(__file__).parents[2] / "examples").rglob("*.py"):
        path = site / "gallery" / example.parent.name / f"{example.stem}.html"
        assert {f"{example.stem}-light.svg#only-light", f"{example.stem}-dark.svg#only-dark"} <= set(pages[path].loaded)
        assert f"{example.stem}.py" in pages[path].links


def test_formulas_are_drawn_without_a_script(site):
    text = (site / "theory" / "index.html").read_text(encoding="utf-8")
    assert text.count("<math") > 20
    assert "arithmatex" not in text
