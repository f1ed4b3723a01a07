"""An audit fits nothing that its report does not show."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import FairPCA, MMDFairPCA, ParityPCA, RobustFairPCA
from fairpca.audit import audit
from fairpca.inference import _fitting, _movable
from fairpca.metrics import reconstruction
from fairpca.model_selection import _study
from fairpca.moments import _sources

FOLDS, DIMENSIONS = 5, [1, 2]


@pytest.fixture
def fits(monkeypatch):
    """Number of fits by class, whichever way they are made."""
    found: Counter[str] = Counter()

    def counted(owner, name, label=None):
        original = getattr(owner, name)

        def wrapper(first, *arguments, **options):
            found[label or type(first).__name__] += 1
            return original(first, *arguments, **options)

        monkeypatch.setattr(owner, name, wrapper)

    for estimator in (FairPCA, RobustFairPCA, ParityPCA):
        counted(estimator, "_solve")
    counted(MMDFairPCA, "fit")
    counted(PCA, "fit")
    counted(_fitting, "_fit_pca", "PCA")
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_fit_is_shown(fits, two_groups):
    """Each method and number of components: all rows, the training rows, without each fold of five divisions.

    MMDFairPCA is fitted once.
    """
    X, groups = two_groups
    audit(X, sensitive_features=groups, n_components=DIMENSIONS, cv=FOLDS, n_permutations=19)
    of_moments = len(DIMENSIONS) * (2 + 5 * FOLDS)
    assert fits == {
        "PCA": of_moments,
        "FairPCA": of_moments,
        "RobustFairPCA": of_moments,
        "ParityPCA": of_moments,
        "MMDFairPCA": len(DIMENSIONS),
    }


def test_nothing_is_fitted_that_was_not_asked_for(fits, two_groups):
    X, groups = two_groups
    found = audit(
        X, sensitive_features=groups, n_components=DIMENSIONS, methods=["PCA", "ParityPCA"], cv=FOLDS, n_permutations=19
    )
    assert set(fits) == {"PCA", "ParityPCA"}
    assert set(found.frontiers[2].methods) == {"PCA", "ParityPCA"}


def test_methods_on_the_frontier_are_those_of_the_comparison(two_groups):
    X, groups = two_groups
    found = audit(X, sensitive_features=groups, n_components=2, methods=["PCA", "FairPCA"], n_permutations=19)
    curve = found.frontiers[2]
    for method in ("PCA", "FairPCA"):
        result = found.comparison[method, 2]
        np.testing.assert_allclose(curve.methods[method].errors, list(result.new_rows.sample_error.values()), rtol=1e-9)
    assert curve.total_error[0] == pytest.approx(curve.methods["PCA"].total_error)


def test_rows_are_summarised_once(monkeypatch, two_groups):
    """One pass over all rows for the folds, one for the held-out part, one for the test; none for anything else."""
    X, groups = two_groups
    passes = Counter()

    def count(module):
        original = module.accumulate

        def counted(rows, *arguments, **options):
            passes[module.__name__.rpartition(".")[2]] += len(rows) == len(X)
            return original(rows, *arguments, **options)

        monkeypatch.setattr(module, "accumulate", counted)

    for module in (_sources, _movable, _study, reconstruction):
        count(module)
    found = audit(X, sensitive_features=groups, n_components=DIMENSIONS, methods=["PCA", "FairPCA"], n_permutations=19)
    assert +passes == {"_sources": 1, "_study": 1, "_movable": 1}
    assert found.comparison.moments.total_count == len(X)
