"""Tensors of torch: what goes in comes out, for every estimator; the module for use in models (``make test-torch``)."""

from __future__ import annotations

import copy
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fairpca import FairPCA, KernelParityPCA, LeaceEraser, LeacePCA, ParityPCA
from fairpca.moments import group_moments

torch = pytest.importorskip("torch", reason="needs torch: make test-torch")
safetensors = pytest.importorskip("safetensors.numpy", reason="needs safetensors: make test-torch")

WIDTHS = ["float16", "bfloat16", "float32", "float64"]


def group_covariance(rows, site):
    Z = (np.asarray(site)[:, None] == np.unique(site)).astype(float)
    rows = np.asarray(rows, dtype=float)
    return (rows - rows.mean(axis=0)).T @ (Z - Z.mean(axis=0)) / len(rows)


@pytest.fixture
def tokens(rng):
    """Rows of shape [batch, tokens, p], with one site per batch."""
    site = rng.integers(0, 3, 60)
    X = rng.normal(size=(60, 7, 10)) + rng.normal(size=(3, 10))[site][:, None, :] + 2.0
    return torch.from_numpy(X), torch.from_numpy(site)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "estimator", [FairPCA(2), ParityPCA(2), LeacePCA(2), KernelParityPCA(2), LeaceEraser()],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
def test_what_goes_in_comes_out(tokens, estimator, width):
    X, site = tokens
    X = X.to(getattr(torch, width))
    rows, groups = X.reshape(-1, 10), site.repeat_interleave(7)
    estimator.fit(rows, sensitive_features=groups)
    same = copy.deepcopy(estimator).fit(rows.double().numpy(), sensitive_features=groups.numpy())
    exact = same.transform(rows.double().numpy())
    found = estimator.transform(X)
    assert (found.dtype, found.device) == (X.dtype, X.device)
    assert found.shape == (60, 7, exact.shape[1])
    error = np.abs(found.double().numpy().reshape(exact.shape) - exact).max()
    assert error < 40 * torch.finfo(X.dtype).eps * np.abs(exact).max()
    if hasattr(estimator, "inverse_transform"):
        assert estimator.inverse_transform(found).shape == X.shape


@pytest.mark.parametrize("width", WIDTHS)
def test_sums_of_narrow_tensors_are_not_narrow(rng, width):
    site = rng.integers(0, 3, 20_000)
    X = rng.normal(size=(20_000, 24)) + 0.3 * rng.normal(size=(3, 24))[site] + 4.0
    X = torch.from_numpy(X).to(getattr(torch, width))
    eraser = LeaceEraser()
    for rows in torch.arange(20_000).split(5_000):
        eraser.partial_fit(X[rows].reshape(50, 100, 24), sensitive_features=site[rows].reshape(50, 100))
    exact = eraser.transform(X.double())
    assert np.abs(group_covariance(exact, site)).max() < 1e-5 * np.abs(group_covariance(X.double(), site)).max()


def test_groups_of_a_batch_are_those_of_its_tokens(tokens):
    X, site = tokens
    eraser = LeaceEraser().fit(X, sensitive_features=site)
    rows = LeaceEraser().fit(X.reshape(-1, 10), sensitive_features=site.repeat_interleave(7))
    torch.testing.assert_close(eraser.transform(X), rows.transform(X))
    label = torch.randint(0, 2, (60, 7), generator=torch.Generator().manual_seed(0))
    both = LeaceEraser(preserve="label").fit(X, label, sensitive_features=site, sample_weight=torch.ones(60))
    assert both.n_samples_seen_ == 420


def test_sums_on_another_device_equal_those_on_the_cpu(tokens, monkeypatch):
    """There is no other device here: the same code is led to take this one for another."""
    X, site = tokens
    label, weights = torch.arange(60) % 2, np.repeat([1.0, 0.0], [400, 20]).reshape(60, 7)

    def fits(width):
        rows, eraser = X.to(getattr(torch, width)), LeaceEraser(preserve="label")
        for part in (slice(0, 20), slice(20, 60)):
            eraser.partial_fit(rows[part], label[part], sensitive_features=site[part], sample_weight=weights[part])
        return eraser.transform(X)

    expected = fits("float64")
    monkeypatch.setattr("fairpca.estimators.leace_eraser.on_another_device", torch.is_tensor)
    torch.testing.assert_close(fits("float64"), expected)
    torch.testing.assert_close(fits("float32"), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="NaN"):
        LeaceEraser().fit(torch.full_like(X, torch.nan), sensitive_features=site)


@pytest.mark.parametrize("width", ["bfloat16", "float32", "float64"])
def test_the_module_equals_transform(tokens, width):
    X, site = tokens
    eraser = LeaceEraser().fit(X, sensitive_features=site)
    X = X.to(getattr(torch, width))
    module = eraser.to_torch(dtype=X.dtype if width == "float64" else None)
    found, expected = module(X), eraser.transform(X)
    assert found.dtype == X.dtype
    torch.testing.assert_close(
        found, expected, rtol=2 * torch.finfo(X.dtype).eps, atol=1e-6 if width != "float64" else 1e-14
    )


def test_the_module_lives_inside_a_model(tokens):
    X, site = tokens
    eraser = LeaceEraser().fit(X, sensitive_features=site)
    model = torch.nn.Sequential(torch.nn.Linear(4, 10), eraser.to_torch())
    inputs = torch.randn(5, 3, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    model(inputs).square().sum().backward()
    assert inputs.grad.abs().sum() > 0
    assert [name for name, _ in model.named_parameters()] == ["0.weight", "0.bias"]  # nothing to train in the eraser
    halved = copy.deepcopy(model).to(torch.bfloat16)
    torch.testing.assert_close(halved[1].coefficients, model[1].coefficients, rtol=0, atol=0)
    assert halved(inputs.detach().bfloat16()).dtype == torch.bfloat16
    restored = pickle.loads(pickle.dumps(model))
    torch.testing.assert_close(restored(inputs), model(inputs))
    other = torch.nn.Sequential(torch.nn.Linear(4, 10), LeaceEraser().fit(X + 1, sensitive_features=site).to_torch())
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other(inputs), model(inputs))


def test_gradients_end_with_a_remark(tokens):
    X, site = tokens
    for estimator in (LeaceEraser(), FairPCA(2)):
        estimator.fit(X.reshape(-1, 10), sensitive_features=site.repeat_interleave(7))
        with pytest.warns(UserWarning, match=r"requires gradients, which end here.*to_torch") as said:
            found = estimator.transform(X.clone().requires_grad_())
        assert not found.requires_grad
        assert [one.filename for one in said] == [__file__]


def test_bad_tensors_get_clear_errors(tokens):
    X, site = tokens
    eraser = LeaceEraser().fit(X, sensitive_features=site)
    with pytest.raises(ValueError, match="X has 9 features, but LeaceEraser is expecting 10"):
        eraser.transform(X[..., :9])
    with pytest.raises(ValueError, match="NaN"):
        eraser.transform(torch.full_like(X, torch.nan))
    with pytest.raises(ValueError, match="NaN"):
        LeaceEraser().fit(torch.full_like(X, torch.nan), sensitive_features=site)
    huge = torch.full((2, 10), 60_000.0, dtype=torch.float16)
    assert torch.isfinite(eraser.transform(huge.float())).all()


def test_moments_take_tensors(tokens):
    X, site = tokens
    rows = X.reshape(-1, 10).bfloat16()
    found = group_moments(rows, sensitive_features=site.repeat_interleave(7))
    expected = group_moments(rows.double().numpy(), sensitive_features=site.repeat_interleave(7).numpy())
    np.testing.assert_allclose(found.scatters, expected.scatters, rtol=1e-6, atol=1e-6)


def test_safetensors_hold_the_map_and_what_describes_it(tokens, tmp_path):
    X, site = tokens
    label, half = np.where(np.arange(60) % 2, "high", "low"), np.arange(60) < 30
    eraser = LeaceEraser(preserve="label").fit(X, label, sensitive_features={"site": site.numpy(), "half": half})
    path = eraser.save(tmp_path / "eraser.safetensors")
    assert set(safetensors.load_file(path)) == {"mean", "directions", "coefficients"}
    loaded = LeaceEraser.load(path)
    torch.testing.assert_close(loaded.transform(X), eraser.transform(X), rtol=0, atol=0)
    assert loaded.groups_.tolist() == eraser.groups_.tolist()
    assert loaded.group_counts_.tolist() == eraser.group_counts_.tolist()
    assert (loaded.get_params(), loaded.preserved_) == (eraser.get_params(), ["high", "low"])
    assert (loaded.distortion_, loaded.map_norm_) == (eraser.distortion_, eraser.map_norm_)
    with pytest.raises(ValueError, match="no sums to which rows could be added"):
        loaded.partial_fit(X, label, sensitive_features=site)
    with pytest.raises(FileNotFoundError):
        LeaceEraser.load(tmp_path / "absent.safetensors")


def test_names_of_columns_are_saved(tokens, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, site = tokens
    frame = pandas.DataFrame(X[:, 0].numpy(), columns=[f"f{j}" for j in range(10)])
    eraser = LeaceEraser().fit(frame, sensitive_features=site)
    loaded = LeaceEraser.load(eraser.save(tmp_path / "eraser.safetensors"))
    pandas.testing.assert_frame_equal(loaded.transform(frame), eraser.transform(frame))


def test_a_damaged_file_is_refused(tokens, tmp_path):
    X, site = tokens
    path = LeaceEraser().fit(X, sensitive_features=site).save(tmp_path / "eraser.safetensors")
    whole, parts = path.read_bytes(), safetensors.load_file(path)
    about = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])["__metadata__"]
    damaged = [b"", whole[:100], b"nothing", safetensors.save(parts), safetensors.save(parts, {"fairpca": "[1, 2]"})]
    damaged += [whole.replace(b"distortion_", b"distortions"), whole.replace(b"preserve", b"perverse")]
    for wrong in ({"mean": parts["mean"][:5]}, {"mean": np.full(10, np.nan)}, {"directions": parts["mean"]}):
        damaged.append(safetensors.save(parts | wrong, about))
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"not what LeaceEraser\.save writes"):
            LeaceEraser.load(path)


def test_the_page_on_erasure_runs(tmp_path, monkeypatch):
    page = (Path(__file__).parents[1] / "docs" / "erasure.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    known = {"LeaceEraser": LeaceEraser}
    (block,) = re.findall(r"(?m)^```py\n((?:.|\n)*?)^```$", page)
    exec(block, known)
    assert (known["clean"].dtype, known["clean"].shape) == (torch.bfloat16, (32, 128, 64))
    torch.testing.assert_close(known["again"].transform(known["hidden"]), known["clean"])


def test_torch_is_not_imported_for_arrays():
    code = (
        "import sys, numpy as np\nfrom fairpca import LeaceEraser\nX = np.eye(4)\n"
        "LeaceEraser().fit(X, sensitive_features=[0, 0, 1, 1]).transform(X)\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_equal_to_concept_erasure():
    """Side by side on 40 random problems: its shrinkage and its limit on the trace off."""
    leace = pytest.importorskip("concept_erasure", reason="needs concept-erasure: make test-torch")
    rng = np.random.default_rng(34)
    for _ in range(40):
        k, p = int(rng.integers(2, 9)), int(rng.choice([10, 64, 200, 768]))
        n = int(rng.integers(3 * p, 5 * p))
        site = rng.integers(0, k, n)
        X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.3 * rng.normal(size=(p, p)) / np.sqrt(p))
        X += 0.5 * rng.normal(size=(k, p))[site]
        options = {"dtype": torch.float64, "shrinkage": False, "constrain_cov_trace": False, "svd_tol": 1e-6}
        rows = torch.from_numpy(X)
        theirs = leace.LeaceFitter(p, k, **options).update(rows, torch.from_numpy(np.eye(k)[site])).eraser
        ours = LeaceEraser().fit(rows, sensitive_features=site)
        matrix = np.eye(p) - ours.erased_directions_.T @ ours.erased_coefficients_
        np.testing.assert_allclose(matrix, theirs.P.numpy(), atol=1e-8)
        np.testing.assert_allclose(ours.transform(rows), theirs(rows), atol=1e-8)
