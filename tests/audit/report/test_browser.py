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
    names = page.execute_script(
        "return [...document.querySelectorAll('#group-table tbody th')].map(e => e.textContent)"
    )
    assert any(image in name for name in names)
    assert any(script in name for name in names)
    lines = page.execute_script(
        "return [...document.querySelectorAll('#group-legend > span, #group-chart .name')].map(e => e.textContent)"
    )
    assert len(lines) == 4  # one per line, beside it where there is room


def test_a_script_that_got_in_would_be_refused(browser, hostile_path):
    page = opened(browser, hostile_path)
    page.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,x\" onerror=\"window.broken=1\">')"
    )
    assert page.execute_script("return window.broken === undefined")
    assert any("Content Security Policy" in entry["message"] for entry in page.get_log("browser"))


def test_controls_redraw_everything(page):
    choose(page, "dimension", "2")
    assert "with 2 components" in text(page, "#finding").lower()
    before = {chart: inside(page, f"#{chart}") for chart in CHARTS}
    choose(page, "dimension", "3")
    assert "with 3 components" in text(page, "#finding").lower()
    assert page.execute_script("return document.querySelector('tr.chosen th').textContent") == "FairPCA"
    assert count(page, "#group-table tbody tr") == 2
    assert "expected by chance" in text(page, "#group-table thead")
    for chart in CHARTS:
        assert inside(page, f"#{chart}") != before[chart], chart
    choose(page, "method", "ParityPCA")
    assert page.execute_script("return document.querySelector('tr.chosen th').textContent") == "ParityPCA"
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
    assert text(page, "#group-choice") == "Ordinary PCA, 1 component"


def test_print_hides_the_controls(browser, hostile_path):
    page = opened(browser, hostile_path)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        hidden = page.execute_script("return getComputedStyle(document.querySelector('.controls')).display")
        assert hidden == "none"
        assert len(page.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 20_000
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.fixture(params=[1280, 390], ids=["desktop", "phone"])
def many(request, browser, ten_groups):
    return opened(browser, ten_groups, request.param), request.param


def test_ten_groups_fit_or_say_that_they_scroll(many):
    page, width = many
    widths = page.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert widths[0] <= widths[1]
    hints = page.execute_script(
        "return [...document.querySelectorAll('.scroll')].filter(e => e.offsetParent).map(e => ["
        "e.scrollWidth > e.clientWidth + 1, e.classList.contains('wide'), getComputedStyle(e, '::before').content])"
    )
    assert all(wide == hinted and (not wide or "scroll sideways" in content) for wide, hinted, content in hints)
    fits = page.execute_script(
        "return ['group-table', 'quality-table'].map(id => document.getElementById(id).parentElement)"
        ".map(e => e.scrollWidth <= e.clientWidth + 1)"
    )
    assert fits == ([True, True] if width == 1280 else [False, False])
    assert count(page, "#quality-table thead th") == 3  # one column per method: the table is turned
    assert count(page, "#quality-table tbody tr") == 2 * 10 + 3
    assert page.get_log("browser") == []


def test_few_rows_have_their_number_beside_them(many):
    page, _ = many
    held_out = cells(page, "#group-table", 2)
    assert 0 < int(held_out[0]) < 20
    assert f"a group with quite a long name 0 ({held_out[0]})" in text(page, "#few-rows")
    assert "too few rows (" in text(page, "#held-out-table")


def cells(page, table, column):
    return page.execute_script(
        f"return [...document.querySelectorAll('{table} tbody tr')].map(row => row.children[{column}].textContent)"
    )


def test_proxies_limits_label_and_date_are_on_the_page(many):
    page, _ = many
    assert "badge of group 4" in text(page, "#proxies-table tbody tr th")
    assert "badge of group 4" in text(page, "#proxies-sentence")
    assert "“hired”, its positive class “yes”" in text(page, "#decisions-note")
    header = text(page, "main").replace("\n", "")
    assert "2026-01-02 03:04 UTC" in header
    assert "positive class: yes" in header
    assert "confidence level95 %" in header
    assert "What it optimises" in text(page, "#methods")
    assert "is not a proof" in text(page, "main")


def test_influence_follows_the_number_of_components(browser, ten_groups):
    page = opened(browser, ten_groups)
    for d in ("1", "2"):
        choose(page, "dimension", d)
        stated = page.execute_script(
            "return [JSON.parse(document.getElementById('data').textContent).rests, "
            "[...document.querySelectorAll('#influence li')].map(e => e.textContent)]"
        )
        assert stated[0][d] == stated[1]
        hidden = page.execute_script("return document.getElementById('no-influence').hidden")
        assert hidden == bool(stated[1])


def test_everything_that_can_be_chosen_has_a_name_and_a_key(browser, hostile_path):
    page = opened(browser, hostile_path)
    unnamed = page.execute_script(
        "return [...document.querySelectorAll('select, button, [role=button], [role=region], .chart > svg')].filter("
        "e => !(e.labels && e.labels.length) && !e.getAttribute('aria-label') && !e.textContent.trim()).length"
    )
    assert unnamed == 0
    assert count(page, "#group-chart [role=button][tabindex='0']") == 12
    before = text(page, "#group-choice")
    page.execute_script(
        "const mark = document.querySelectorAll('#group-chart [role=button]')[2]; mark.focus();"
        "mark.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))"
    )
    assert text(page, "#group-choice") != before
    assert page.execute_script("return document.activeElement.getAttribute('role')") == "button"  # focus is kept


def test_ordinary_pca_is_black_and_hollow_as_in_the_plots(browser, hostile_path):
    from fairpca.plotting._style import method_style

    page = opened(browser, hostile_path)
    spots = page.execute_script(
        "return [...document.querySelectorAll('#frontier-chart .spot')].map("
        "e => [e.getAttribute('fill'), e.getAttribute('stroke')])"
    )
    assert spots[0] == ["#fff", method_style("PCA", [])["color"]]
    methods = ["PCA", "FairPCA", "ParityPCA"]
    assert [fill for fill, _ in spots[1:]] == [method_style(name, methods)["color"] for name in methods[1:]]


def test_the_page_and_python_round_alike(browser, hostile_path):
    from fairpca._display import fixed, number

    page = opened(browser, hostile_path)
    shown = page.execute_script("return document.querySelector('#group-table tbody td:nth-child(4)').firstChild.data")
    value = page.execute_script(
        "return JSON.parse(document.getElementById('data').textContent)"
        ".results[`PCA|${document.getElementById('dimension').value}`].error.groups[document.querySelector("
        "'#group-table tbody th').textContent][0]"
    )
    assert shown == number(value)
    for value in (0.0625, 0.5005, 0.8125, 0.00049, 2.675, -0.0005):
        assert page.execute_script(f"return ({value}).toFixed(3).replace(/^-(0\\.0+)$/, '$1')") == fixed(value, 3)


def test_the_first_screen_answers(browser, hostile_path):
    """The verdict, the picture, three numbers and what to do next, without scrolling."""
    page = opened(browser, hostile_path)
    bottoms = page.execute_script(
        "return ['finding', 'remedy', 'group-chart', 'numbers', 'advice'].map("
        "id => document.getElementById(id)).map(e => [e.textContent.length, e.getBoundingClientRect().bottom])"
    )
    assert all(length > 20 and bottom <= 900 for length, bottom in bottoms), bottoms
    assert count(page, "#numbers > div") == 3


def test_a_word_opens_its_definition_where_it_stands(page):
    shown = page.execute_script(
        "const [word, tip] = [document.querySelector('#numbers .term'), document.getElementById('tip')]; word.click();"
        "return [tip.hidden, tip.textContent, tip.getBoundingClientRect().top - word.getBoundingClientRect().bottom]"
    )
    assert shown[0] is False
    assert shown[1].startswith("loss: the part of a group's error")
    assert abs(shown[2]) < 200


def test_what_is_folded_is_printed(browser, hostile_path):
    page = opened(browser, hostile_path)
    assert count(page, "details:not([open])") == 3
    page.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert count(page, "details:not([open])") == 0
