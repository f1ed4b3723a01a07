"""A missing optional package: the error names who needs it and an extra that exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairpca import FairPCA, ParityPCA
from fairpca._optional import _EXTRAS, require
from fairpca.audit import prepare
from fairpca.datasets import load_german_credit
from fairpca.inference import loss_test
from fairpca.metrics import readability
from fairpca.plotting import CommunalityDisplay


@pytest.fixture
def without_packages(monkeypatch):
    def fail(module):
        raise ImportError(f"No module named {module!r}")

    # Not through sys.modules: scikit-learn looks there for pandas.
    monkeypatch.setattr("fairpca._optional.importlib", SimpleNamespace(import_module=fail))


def test_every_extra_installs_its_package():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for package, (_, extra) in _EXTRAS.items():
        assert any(package in requirement for requirement in extras[extra]), package


def test_every_feature_names_its_extra(without_packages, two_groups):
    X, groups = two_groups
    calls = {
        "sdp": lambda: FairPCA(2, solver="sdp").fit(X, sensitive_features=groups),
        "sdp ": lambda: ParityPCA(2, solver="sdp").fit(X, sensitive_features=groups),
        "frame": lambda: load_german_credit(as_frame=True),
        "frame ": lambda: loss_test(X, sensitive_features=groups, n_components=2, n_permutations=19).to_frame(),
        "frame  ": lambda: readability(X[:, :2], sensitive_features=groups).to_frame(),
        "audit": lambda: prepare({"x": [1.0]}, "x"),
        "plot": lambda: CommunalityDisplay.from_estimator(FairPCA(2).fit(X, sensitive_features=groups)).plot(),
    }
    for extra, call in calls.items():
        with pytest.raises(ImportError, match=rf"needs .*: pip install 'fairpca\[{extra.strip()}\]'"):
            call()


def test_what_to_do_otherwise(without_packages):
    with pytest.raises(ImportError, match=re.escape("The plan needs pandas: pip install 'fairpca[frame]'. Use paper.")):
        require("pandas", "The plan", otherwise="Use paper.")
