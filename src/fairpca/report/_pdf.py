"""The report as a PDF, printed by a browser on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from fairpca._files import replace_file

__all__ = ["find_browser", "write_pdf"]

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
#: Without a window, a first-run dialogue or requests of its own; the page itself makes none.
_FLAGS = (
    "--headless", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--no-first-run", "--no-pdf-header-footer", "--disable-extensions",
)  # fmt: skip
_SECONDS = 120


def find_browser() -> str:
    """The path of Chromium or a relative of it; an error that names the alternative if there is none."""
    for name in _BROWSERS:
        found = shutil.which(name)
        if found is not None:
            return found
    raise ValueError(
        "A PDF needs Chromium (or Chrome or Edge) on this machine, and none was found. Install it, or open the HTML "
        "report in any browser and print it to a file: the page has a print style."
    )


def write_pdf(html: str, path: Any) -> Path:
    """Print the page to a PDF file, atomically: the file appears complete or not at all.

    Parameters
    ----------
    html : str
    path : path-like

    Returns
    -------
    Path
    """
    browser = find_browser()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page, printed = Path(folder, "report.html"), Path(folder, "report.pdf")
        page.write_text(html, encoding="utf-8")
        _print(browser, page, printed)
        content = printed.read_bytes()
    return replace_file(path, lambda file: file.write(content))


def _print(browser: str, page: Path, printed: Path) -> None:
    # A process of the superuser (in a container) may not use the sandbox; the page is our own and loads nothing.
    sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    command = [
        browser, *_FLAGS, *sandbox, f"--user-data-dir={page.parent / 'profile'}", f"--print-to-pdf={printed}",
        "--virtual-time-budget=10000", page.as_uri(),
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
    except (subprocess.SubprocessError, OSError) as problem:
        raise ValueError(
            f"{browser} could not print the report to a PDF ({type(problem).__name__}). Open the HTML report in a "
            "browser and print it: the page has a print style."
        ) from problem
    if not printed.is_file():
        raise ValueError(f"{browser} wrote no PDF. Open the HTML report in a browser and print it instead.")
