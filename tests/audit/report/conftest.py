"""One small audit and a headless browser for all tests of the report."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairpca.audit.report import Audit, audit

HOSTILE = "<img src=x onerror=alert(1)>"
SCRIPT = "</script><script>window.broken=1</script>"


@pytest.fixture(scope="session")
def hostile_names() -> tuple[str, str]:
    return HOSTILE, SCRIPT


@pytest.fixture(scope="session")
def hostile_audit() -> Audit:
    """Three features and two groups whose names try to become markup, formulas or scripts."""
    rng = np.random.default_rng(1)
    groups = np.where(np.arange(240) % 3 == 0, HOSTILE, f"{SCRIPT}\u2028$&")
    X = rng.normal(size=(240, 4)) * [3.0, 2.0, 1.0, 0.5]
    X[groups == HOSTILE] = X[groups == HOSTILE][:, [1, 0, 3, 2]] + 2.0
    return audit(
        X,
        sensitive_features=groups,
        y=(X[:, 0] > 0).astype(int),
        n_components=[1, 2, 3],
        methods=["PCA", "FairPCA", "ParityPCA"],
        feature_names=[HOSTILE, SCRIPT, "${title}", "'\"&amp;"],
        title=f"Audit {HOSTILE}",
        remarks=[f"left out {HOSTILE!r}"],
        provenance={"command": f"fairpca audit {SCRIPT}"},
    )


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium without a window; tests that need it are skipped where it is absent."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver_path = shutil.which("chromedriver")
    if not chromium or not driver_path:
        pytest.skip("no chromium and chromedriver here (Debian packages chromium and chromium-driver)")
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (
            "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
            "disable-component-update", "disable-sync", "disable-dev-shm-usage", f"user-data-dir={profile}",
        ):  # fmt: skip
            options.add_argument(f"--{flag}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(driver_path))
        try:
            driver.get("about:blank")
            yield driver
        finally:
            driver.quit()


@pytest.fixture(scope="session")
def hostile_path(hostile_audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_audit.save(tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="session")
def ten_groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten groups with long names, one of 12 rows, a label, and a feature that reveals one of them."""
    rng = np.random.default_rng(3)
    codes = np.concatenate([np.zeros(12, dtype=int), rng.integers(1, 10, 500)])
    names = np.array([f"a group with quite a long name {code}" for code in range(10)])
    X = rng.normal(size=(512, 12)) * np.linspace(3.0, 1.0, 12)
    X[:, 11] += 6.0 * (codes == 4)
    found = audit(
        X,
        sensitive_features=names[codes],
        y=(X[:, 0] > 0).astype(int),
        n_components=[1, 2],
        methods=["PCA", "ParityPCA"],
        feature_names=[*(f"feature {j}" for j in range(11)), "badge of group 4"],
        label_name="hired",
        class_names=["no", "yes"],
        n_permutations=19,
        cv=3,
        provenance={"date": "2026-01-02 03:04 UTC", "file": "people.csv: 512 rows x 7 columns"},
    )
    return found.save(tmp_path_factory.mktemp("ten") / "ten.html")
