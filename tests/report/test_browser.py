"""The report as a reader meets it: opened from disk in Chromium."""

from __future__ import annotations

import json

import pytest

CHARTS = ["group-chart", "frontier-chart", "projection-chart", "biplot-chart", "communality-chart"]


def opened(browser, path, width=1280):
    browser.get("about:blank")
    browser.get_log("browser"), browser.get_log("performance")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(path.as_uri())
    return browser


def count(browser, selector):
    return browser.execute_script("return document.querySelectorAll(arguments[0]).length", selector)


def inside(browser, selector):
    return browser.execute_script("return document.querySelector(arguments[0]).innerHTML", selector)


def text(browser, selector):
    return browser.execute_script("return document.querySelector(arguments[0]).textContent", selector)


def choose(browser, control, value):
    browser.execute_script(
        "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))",
        control,
        value,
    )


def requests_of(browser):
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("about:", "chrome:", "data:"))]


@pytest.fixture(params=[1280, 390], ids=["desktop", "phone"])
def page(request, browser, hostile_path):
    return opened(browser, hostile_path, request.param)


def test_charts_are_drawn_without_errors_or_requests(page, hostile_path):
    for chart in CHARTS:
        assert count(page, f"#{chart} svg") == 1, chart
        assert count(page, f"#{chart} svg *") > 10, chart
    assert count(page, "#group-chart polyline.series") == 4  # two groups, PCA and FairPCA
    assert count(page, "#projection-chart .row") == 240
    assert count(page, "#communality-chart .bar") == 4
    assert count(page, "#quality-table tbody tr") == 3
    assert page.get_log("browser") == []
    assert requests_of(page) == [hostile_path.as_uri()]


def test_nothing_overflows_the_page(page):
    widths = page.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert widths[0] <= widths[1]


def test_hostile_names_stay_text(page, hostile_names):
    image, script = hostile_names
    assert count(page, "img") == 0
    assert count(page, "script") == 2
    assert page.execute_script("return window.broken === undefined")
    assert image in text(page, "h1")
    assert any(
        image in part
        for part in page.execute_script("return [...document.querySelectorAll('th')].map(e => e.textContent)")
    )
    names = page.execute_script("return [...document.querySelectorAll('#group-legend > span')].map(e => e.textContent)")
    assert any(image in name for name in names)
    assert any(script in name for name in names)


def test_a_script_that_got_in_would_be_refused(browser, hostile_path):
    page = opened(browser, hostile_path)
    page.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,x\" onerror=\"window.broken=1\">')"
    )
    assert page.execute_script("return window.broken === undefined")
    assert any("Content Security Policy" in entry["message"] for entry in page.get_log("browser"))


def test_controls_redraw_everything(page):
    before = {chart: inside(page, f"#{chart}") for chart in CHARTS}
    assert "With 2 components" in text(page, "#summary-choice")
    choose(page, "dimension", "3")
    assert "With 3 components" in text(page, "#summary-choice")
    assert page.execute_script("return document.querySelector('tr.chosen td').textContent") == "FairPCA"
    assert count(page, "#group-table tbody tr") == 2
    assert "expected by chance" in text(page, "#group-table thead")
    for chart in CHARTS:
        assert inside(page, f"#{chart}") != before[chart], chart
    choose(page, "method", "ParityPCA")
    assert page.execute_script("return document.querySelector('tr.chosen td').textContent") == "ParityPCA"
    assert "ParityPCA, 3 components" in text(page, "#projection-note")
    choose(page, "figure", "error")
    assert "error of" in text(page, "#quality-table thead")
    choose(page, "dimension", "1")
    assert "1 component" in text(page, "#projection-note")
    assert page.get_log("browser") == []


def test_a_mark_chooses_its_number_of_components_and_tells_its_figures(browser, hostile_path, hostile_audit):
    page = opened(browser, hostile_path)
    mark = "document.querySelectorAll('#group-chart .hit')[0]"
    page.execute_script(f"{mark}.dispatchEvent(new PointerEvent('pointermove', {{clientX: 50, clientY: 50}}))")
    tip = text(page, "#tip")
    assert tip.startswith("PCA, 1 component\n")
    assert str(hostile_audit.comparison.groups[0]) in tip
    page.execute_script(f"{mark}.dispatchEvent(new MouseEvent('click'))")
    assert "With 1 component" in text(page, "#summary-choice")


def test_print_hides_the_controls(browser, hostile_path):
    page = opened(browser, hostile_path)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        hidden = page.execute_script("return getComputedStyle(document.querySelector('.controls')).display")
        assert hidden == "none"
        assert len(page.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 20_000
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
