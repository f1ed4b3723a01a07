"""Whatever can be checked of a release without publishing it: ``make release-check``.

Builds the wheel and the source archive, checks their metadata and contents, installs each in a fresh environment with
the required dependencies only, imports every public module and runs the demo there; then once more with every extra.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
#: The bundled data and the schema of JSON results; everything else that is not code, text or a picture is refused.
DATA = {"adult.data.bz2", "german.data", "audit.schema.json"}
KNOWN = {
    ".py",
    ".md",
    ".rst",
    ".typed",
    ".js",
    ".css",
    ".html",
    ".toml",
    ".txt",
    ".cff",
    ".yml",
    ".svg",
    ".png",
    ".npz",
    ".csv",
}
ONLY_IN_TESTS = {".npz", ".csv"}
NEEDED_IN_WHEEL = (
    "fairpca/py.typed",
    *(f"fairpca/datasets/data/{name}" for name in ("adult.data.bz2", "adult.md", "german.data", "german.md")),
)
#: Runs in the new environment: what importing needs, and that nothing optional is imported.
SMOKE = """
import importlib, importlib.metadata, pkgutil, sys
import sklearn.base, sklearn.ensemble, sklearn.linear_model, sklearn.metrics, sklearn.svm  # may import pandas itself
before = set(sys.modules)
import fairpca
optional = {"cvxpy", "dask", "matplotlib", "pandas", "polars", "pyarrow", "torch"}
present = sorted(optional & (set(sys.modules) - before))
assert not present, f"import fairpca imports {present}"
for module in pkgutil.iter_modules(fairpca.__path__, "fairpca."):
    importlib.import_module(module.name)
assert importlib.metadata.version("fairpca") == fairpca.__version__ == {version!r}, fairpca.__version__
print("imported", fairpca.__version__, "from", fairpca.__file__)
"""


def main() -> None:
    """Run all checks; the first that fails ends the program."""
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/fairpca/__init__.py").read_text(encoding="utf-8"))[1]
    wheel, source = build()
    check_names(version, wheel, source)
    check_contents(wheel_names(wheel), NEEDED_IN_WHEEL, (f"fairpca-{version}.dist-info/licenses/LICENSE",))
    check_contents(source_names(source), ("src/fairpca/py.typed", "LICENSE", "README.md", "tests/conftest.py"))
    check_other_files(version)
    extras = sorted(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    )
    for archive in (wheel, source):
        install_and_try(archive, version, "")
    install_and_try(wheel, version, f"[{','.join(extras)}]")
    print(f"fairpca {version}: both archives are ready")


def build() -> tuple[Path, Path]:
    """The wheel and the source archive, built from scratch, with metadata that renders."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    archives = sorted(DIST.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *archives)
    wheel, source = (next(one for one in archives if one.name.endswith(end)) for end in (".whl", ".tar.gz"))
    return wheel, source


def check_names(version: str, wheel: Path, source: Path) -> None:
    """The version in the file names is that of the package."""
    expected = {f"fairpca-{version}-py3-none-any.whl", f"fairpca-{version}.tar.gz"}
    require({wheel.name, source.name} == expected, f"archives are {wheel.name}, {source.name}; expected {expected}")


def wheel_names(wheel: Path) -> list[str]:
    """Paths of the files in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def source_names(source: Path) -> list[str]:
    """Paths of the files in the source archive, without its top folder."""
    with tarfile.open(source) as archive:
        return [one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()]


def check_contents(names: list[str], *needed: tuple[str, ...]) -> None:
    """What must be there is there, and no data but the bundled tables (tests have small files of their own)."""
    missing = [name for group in needed for name in group if name not in names]
    require(not missing, f"missing: {missing}")
    for name in names:
        path = Path(name)
        plain = path.name in DATA | {"LICENSE", "METADATA", "WHEEL", "RECORD", "PKG-INFO", "Makefile", ".gitignore"}
        known = path.suffix in KNOWN and (path.suffix not in ONLY_IN_TESTS or path.parts[0] == "tests")
        require(plain or known, f"{name} should not be in the archive")


def check_other_files(version: str) -> None:
    """The change log and the citation name this version."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    require(f"## {version}" in changes, f"CHANGELOG.md has no section {version}")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    require(f"version: {version}\n" in citation, f"CITATION.cff does not say version: {version}")


def install_and_try(archive: Path, version: str, extras: str) -> None:
    """In an environment of its own, outside the checkout: imports, the demo, and the command's version."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder, "env"), with_pip=True)
        scripts = Path(folder, "env", "Scripts" if sys.platform == "win32" else "bin")
        run(scripts / "python", "-m", "pip", "install", "--quiet", f"{archive}{extras}")
        run(scripts / "python", "-W", "error", "-c", SMOKE.replace("{version!r}", repr(version)), cwd=folder)
        run(scripts / "fairpca", "demo", cwd=folder)
        require(Path(folder, "fairpca-report.html").stat().st_size > 10_000, "the demo wrote no report")
        run(scripts / "fairpca", "info", cwd=folder)


def run(*command: object, cwd: object = None) -> None:
    """Run a program; if it fails, so does the check."""
    print("$", *command, flush=True)
    code = subprocess.run([str(part) for part in command], cwd=cwd).returncode
    require(code == 0, f"exit code {code}")


def require(condition: bool, message: str) -> None:
    """End the program with a message unless the condition holds."""
    if not condition:
        raise SystemExit(f"release-check: {message}")


if __name__ == "__main__":
    main()
