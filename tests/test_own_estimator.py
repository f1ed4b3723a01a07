"""An estimator written outside the package: saved, loaded, compared and audited like fairpca's own."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import FairPCA, load_model, save_model
from fairpca.audit import audit
from fairpca.estimators import Fit, LinearProjection, MomentEstimator, SolverResult, Status
from fairpca.linalg import top_eigenpairs
from fairpca.model_selection import compare
from fairpca.persistence import read_model


class EqualWeightPCA(MomentEstimator):
    """PCA in which every group counts the same, whatever its size: all that a new estimator needs."""

    _saved_attributes = ("_seen",)

    def __init__(self, n_components: int = 2, *, power: float = 0.0) -> None:
        self.n_components = n_components
        self.power = power

    def _solve(self, reduction, n_components):
        matrices = reduction.second_moments("pooled")
        shares = self._shares(reduction)
        values, basis = top_eigenpairs(np.tensordot(shares, matrices, 1), n_components)
        captured = np.einsum("pi,api->a", basis, matrices @ basis)
        best = np.array([top_eigenpairs(matrix, n_components)[0].sum() for matrix in matrices])
        objective = -float(values.sum())  # an eigenproblem: the value is its own bound
        result = SolverResult(basis, objective, objective, shares, Status.OPTIMAL, n_iter=1, n_oracle_calls=1)
        return Fit(
            result,
            np.einsum("aii->a", matrices),
            captured,
            best,
            attributes={"group_shares_": shares, "_seen": len(shares)},
        )

    def _shares(self, reduction):
        shares = reduction.counts**self.power
        return shares / shares.sum()


@pytest.fixture
def fitted(two_groups):
    X, groups = two_groups
    return EqualWeightPCA(2).fit(X, sensitive_features=groups)


def test_it_comes_back(fitted, two_groups, tmp_path):
    X, groups = two_groups
    path = save_model(fitted, tmp_path / "own.npz", extra=["kept"])
    again = load_model(path, classes=[EqualWeightPCA])
    assert type(again) is EqualWeightPCA
    assert vars(again).keys() == vars(fitted).keys()
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(again.group_shares_, fitted.group_shares_)
    assert again.partial_fit(X, sensitive_features=groups).n_samples_seen_ == 2 * len(X)
    assert read_model(path, classes=[EqualWeightPCA]).extra == ["kept"]


def test_a_file_never_names_code_to_import(fitted, tmp_path):
    path = save_model(fitted, tmp_path / "own.npz")
    with pytest.raises(
        ValueError, match=r"'EqualWeightPCA', which is not one of fairpca's estimators.*classes=\[\.\.\.\]"
    ):
        load_model(path)


def test_only_fitted_attributes_are_saved_and_loaded(fitted, tmp_path):
    fitted.remark = "made on a Monday"
    path = save_model(fitted, tmp_path / "own.npz")
    assert not hasattr(load_model(path, classes=[EqualWeightPCA]), "remark")
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    header = json.loads(parts.pop("header").tobytes())
    header["attributes"]["_luck"] = {"number": 7}
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **parts)
    with pytest.raises(ValueError, match="it sets '_luck', which fit never sets"):
        load_model(path, classes=[EqualWeightPCA])


def test_names_stay_unambiguous(two_groups, tmp_path):
    X, groups = two_groups
    impostor = type("FairPCA", (EqualWeightPCA,), {"__init__": EqualWeightPCA.__init__})
    with pytest.raises(TypeError, match="already has a class of this name; rename yours"):
        save_model(impostor(2).fit(X, sensitive_features=groups), tmp_path / "own.npz")
    path = save_model(FairPCA(2).fit(X, sensitive_features=groups), tmp_path / "fair.npz")
    with pytest.raises(TypeError, match="rename yours"):
        load_model(path, classes=[impostor])
    twin = type("EqualWeightPCA", (EqualWeightPCA,), {})
    with pytest.raises(ValueError, match="two classes named EqualWeightPCA"):
        load_model(path, classes=[EqualWeightPCA, twin])
    with pytest.raises(TypeError, match="dict cannot be saved"):
        load_model(path, classes=[dict])


def test_it_is_compared_and_audited(two_groups, tmp_path):
    X, groups = two_groups
    methods = {"PCA": PCA(), "Equal weights": EqualWeightPCA(power=0.5)}
    options = {"n_components": [2], "methods": methods, "n_permutations": 19}
    found = compare(X, sensitive_features=groups, **options)["Equal weights", 2]
    assert found.estimator.power == 0.5
    assert found.new_rows.n_folds == 10  # moments are all it needs, so that folds cost no further pass
    own = EqualWeightPCA(2, power=0.5).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(found.estimator.components_, own.components_, atol=1e-12)
    np.testing.assert_allclose([one.value for one in found.loss.by_group.values()], own.group_losses_, atol=1e-10)
    page = audit(X, sensitive_features=groups, **options).save(tmp_path / "report.html").read_text(encoding="utf-8")
    assert '"name":"Equal weights"' in page


def test_base_classes_are_public():
    assert issubclass(MomentEstimator, LinearProjection)
    assert issubclass(FairPCA, MomentEstimator)
