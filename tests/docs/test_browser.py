"""The site as a reader meets it: opened from disk in Chromium, on a desk and on a phone, in light and dark colours."""

from __future__ import annotations

import json
import time

import pytest

PAGES = (
    "index.html",
    "get_started.html",
    "which_method.html",
    "chance.html",
    "parity.html",
    "theory/index.html",
    "theory/parity.html",
    "gallery/index.html",
    "gallery/articles/samadi2018.html",
    "papers/vu2022.html",
    "api/index.html",
    "api/generated/fairpca.FairPCA.html",
    "about/changelog.html",
)


#: Parts of the text that leave the screen at the right and cannot be scrolled to.
OUTSIDE = """
return [...document.querySelectorAll('article *')]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
  .filter(e => !e.closest('.pst-scrollable-table-container, pre, .formula'))
  .map(e => e.outerHTML.slice(0, 80))
"""


def opened(browser, path, width=1280, scheme="light"):
    browser.get("about:blank")
    browser.get_log("browser"), browser.get_log("performance")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(path.as_uri())
    return browser


def requests_of(browser):
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("about:", "chrome:", "data:", "file:"))]


def until(condition, seconds=10.0):
    """Wait until a condition holds, and return whether it does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_the_screen_and_ask_nobody(site, browser, width, scheme):
    for name in PAGES:
        page = opened(browser, site / name, width, scheme)
        widths = page.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert widths[0] <= widths[1], f"{name} is {widths[0]} px wide"
        assert page.execute_script(OUTSIDE) == [], name
        colour = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        brightness = sum(int(part) for part in colour[4:-1].split(",")[:3]) / 3
        assert (brightness < 128) == (scheme == "dark"), f"{name}: {colour}"
        assert requests_of(page) == [], name
        assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == [], name


def test_the_picture_is_of_the_scheme(site, browser):
    for scheme in ("light", "dark"):
        page = opened(browser, site / "index.html", scheme=scheme)
        shown = page.execute_script(
            "return [...document.querySelectorAll('article img')].filter(e => e.offsetWidth).map(e => e.src)"
        )
        assert len(shown) == 1
        assert shown[0].endswith(f"adult-{scheme}.svg")


def test_wide_tables_scroll_on_a_phone(site, browser):
    page = opened(browser, site / "comparison.html", 390)
    frames = page.execute_script(
        "return [...document.querySelectorAll('article table')].map(e => getComputedStyle(e.parentElement).overflowX)"
    )
    assert frames
    assert set(frames) == {"auto"}


def test_search_finds_loss(site, browser):
    page = opened(browser, site / "search.html")
    page.get(f"{(site / 'search.html').as_uri()}?q=loss")

    def results():
        return page.execute_script("return [...document.querySelectorAll('ul.search li a')].map(e => e.textContent)")

    assert until(lambda: len(results()) >= 5)
    assert any("loss" in text.lower() for text in results())
    assert requests_of(page) == []


def test_formulas_have_a_size(site, browser):
    page = opened(browser, site / "theory" / "index.html", 390)
    sizes = page.execute_script(
        "return [...document.querySelectorAll('math')].map(e => e.getBoundingClientRect().width)"
    )
    assert len(sizes) > 20
    assert min(sizes) > 3
