"""Models on disk: every estimator comes back the same, and nothing in a file can run."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

import fairpca
from fairpca import (
    AnchorPCA,
    FairPCA,
    KernelParityPCA,
    LeaceEraser,
    LeacePCA,
    MMDFairPCA,
    ParityPCA,
    RobustFairPCA,
    load_model,
    save_model,
)
from fairpca.audit import load
from fairpca.estimators import ESTIMATORS as ESTIMATOR_CLASSES
from fairpca.persistence import read_model

ESTIMATORS = [
    FairPCA(2, random_state=1),
    FairPCA(2, criterion="nash", center="group"),
    FairPCA(2, nested=True, relative=True),
    FairPCA(0.5),
    FairPCA(None),
    RobustFairPCA(np.float64(0.5), relative=True),
    RobustFairPCA(2, radius={"a": 0.1, "b": 0.2}),
    RobustFairPCA(2, radius=np.array([0.1, 0.2])),
    ParityPCA(2, covariance_penalty=0.5),
    KernelParityPCA(2),
    LeaceEraser(),
    LeacePCA(2),
    AnchorPCA(2),
    AnchorPCA(2, penalty=1),
    MMDFairPCA(2),
    MMDFairPCA(2, tolerance=0.05, bandwidth="median"),
    MMDFairPCA(2, tolerance=np.float64(0.05)),
    PCA(2),
]


def fitted(estimator, X, groups):
    if isinstance(estimator, PCA):
        return estimator.fit(X)
    return estimator.fit(X, sensitive_features=groups)


@pytest.fixture
def small(two_groups):
    X, groups = two_groups
    return X[::3], groups[::3]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: f"{type(e).__name__}-{getattr(e, 'criterion', '')}")
def test_everything_comes_back(estimator, small, tmp_path):
    X, groups = small
    before = fitted(estimator, X, groups)
    after = load_model(save_model(before, tmp_path / "model.npz"))
    assert type(after) is type(before)
    assert vars(after).keys() == vars(before).keys()
    assert repr(after.get_params()) == repr(before.get_params()).replace("np.float64(0.05)", "0.05").replace(
        "np.float64(0.5)", "0.5"
    )
    np.testing.assert_allclose(after.transform(X), before.transform(X), rtol=1e-13, atol=1e-13)
    assert list(after.get_feature_names_out()) == list(before.get_feature_names_out())
    for name, value in vars(before).items():
        if name.endswith("_"):
            again = getattr(after, name)
            assert type(again) is type(value) or isinstance(value, np.generic), name
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(again, value)


def test_a_loaded_model_goes_on_learning(small, tmp_path):
    X, groups = small
    first, second = slice(0, None, 2), slice(1, None, 2)
    model = FairPCA(2).partial_fit(X[first], sensitive_features=groups[first])
    loaded = load_model(save_model(model, tmp_path / "model.npz"))
    for one in (model, loaded):
        one.partial_fit(X[second], sensitive_features=groups[second])
    np.testing.assert_array_equal(loaded.components_, model.components_)
    assert loaded.n_samples_seen_ == len(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_labels_of_every_kind(small, tmp_path):
    X, _ = small
    n = len(X)
    for labels in (np.arange(n) % 3, np.arange(n) % 2 == 0, np.array([("a", 1), ("b", 2)] * n, dtype=object)[:n]):
        before = FairPCA(2).fit(X, sensitive_features=labels)
        after = load_model(save_model(before, tmp_path / "model.npz"))
        assert after.groups_.tolist() == before.groups_.tolist()
        assert after._moments.labels == before._moments.labels


def test_extra_and_version_travel_along(small, tmp_path):
    X, groups = small
    path = save_model(FairPCA(2).fit(X, sensitive_features=groups), tmp_path / "m.npz", extra={"columns": ["x<y>"]})
    saved = read_model(path)
    assert saved.extra == {"columns": ["x<y>"]}
    assert saved.fairpca_version == fairpca.__version__


def test_what_cannot_be_saved(small, tmp_path):
    X, groups = small
    with pytest.raises(TypeError, match="StandardScaler cannot be saved"):
        save_model(StandardScaler().fit(X), tmp_path / "m.npz")
    with pytest.raises(ValueError, match="not fitted"):
        save_model(FairPCA(2), tmp_path / "m.npz")
    unsavable = FairPCA(2, random_state=np.random.RandomState(0)).fit(X, sensitive_features=groups)
    with pytest.raises(TypeError, match="random_state"):
        save_model(unsavable, tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


def parts_of(path):
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    return json.loads(parts.pop("header").tobytes()), parts


def rewrite(path, header, parts):
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **parts)


@pytest.fixture
def model(small, tmp_path):
    X, groups = small
    return save_model(FairPCA(2).fit(X, sensitive_features=groups), tmp_path / "model.npz")


CHANGES = {
    "unknown class": (lambda h, p: h.update({"class": "os.system"}), "not one of fairpca's estimators"),
    "later version": (lambda h, p: h.update(version=2), "format version 2"),
    "no format": (lambda h, p: h.pop("format"), "header is missing"),
    "unknown parameter": (lambda h, p: h["parameters"].update(evil="x"), "damaged"),
    "method replaced": (lambda h, p: h["attributes"].update(transform="x"), "sets 'transform'"),
    "dunder": (lambda h, p: h["attributes"].update(__class__="x"), "sets '__class__'"),
    "unknown record": (
        lambda h, p: h["attributes"].update(relaxed_={"record": "Popen", "fields": {}}),
        "unknown record type 'Popen'",
    ),
    "missing array": (lambda h, p: p.pop(h["attributes"]["components_"]["array"]), "damaged"),
    "wrong shape": (
        lambda h, p: p.update({h["attributes"]["mean_"]["array"]: np.zeros(3)}),
        "damaged",
    ),
    "not finite": (
        lambda h, p: p.update({h["attributes"]["mean_"]["array"]: np.full(7, np.nan)}),
        "not finite",
    ),
    "strange value": (lambda h, p: h["attributes"].update(objective_={"evil": 1}), "unknown kind"),
    "no moments": (lambda h, p: h["attributes"].update(_moments="x"), "_moments are no moments of groups"),
    "parameter of no type": (lambda h, p: h["parameters"].update(n_components={"list": []}), "n_components must be"),
    "no component": (lambda h, p: h["parameters"].update(n_components={"number": 0}), "n_components=0 must"),
    "attribute of nobody": (lambda h, p: h["attributes"].update(foo_bar="x"), "sets 'foo_bar'"),
    "output settings": (lambda h, p: h["attributes"].update(_sklearn_output_config="x"), "sets '_sklearn_output"),
    "components of another count": (
        lambda h, p: h["attributes"].update(n_components_={"number": 3}),
        "inconsistent with each other",
    ),
    "features of another count": (
        lambda h, p: h["attributes"].update(n_features_in_={"number": 3}),
        "no arrays of 3 features",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_tampered_files_are_refused(model, case):
    change, message = CHANGES[case]
    header, parts = parts_of(model)
    change(header, parts)
    rewrite(model, header, parts)
    with pytest.raises(ValueError, match=message):
        load_model(model)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: f"{type(e).__name__}-{getattr(e, 'criterion', '')}")
def test_without_an_attribute_a_model_is_refused_or_maps_rows_as_before(estimator, small, tmp_path):
    X, groups = small
    before = fitted(estimator, X, groups)
    path = save_model(before, tmp_path / "model.npz")
    header, parts = parts_of(path)
    for name, value in header["attributes"].items():
        others = {key: value for key, value in header["attributes"].items() if key != name}
        for changed in (others, others | {name: None}):
            if value is None:
                continue
            rewrite(path, header | {"attributes": changed}, parts)
            try:
                model = load_model(path)
            except ValueError:
                continue
            np.testing.assert_array_equal(model.transform(X), before.transform(X))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_models_from_before_the_automatic_tolerance_load(small, tmp_path):
    X, groups = small
    before = MMDFairPCA(2, tolerance=0.05, bandwidth="median").fit(X, sensitive_features=groups)
    path = save_model(before, tmp_path / "model.npz")
    header, parts = parts_of(path)
    kept = {name: value for name, value in header["attributes"].items() if "tolerance" not in name}
    assert len(kept) == len(header["attributes"]) - 2
    rewrite(path, header | {"attributes": kept}, parts)
    np.testing.assert_allclose(load_model(path).transform(X), before.transform(X), rtol=1e-13)


SAVED = Path(__file__).parent / "saved_models"


@pytest.mark.parametrize("path", sorted(SAVED.glob("*/[A-Z]*.npz")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_models_saved_by_earlier_versions_load(path):
    model = load_model(path)
    with np.load(path.parent / "scores.npz") as expected:
        np.testing.assert_allclose(model.transform(expected["rows"]), expected[path.stem], rtol=1e-13, atol=1e-13)


def test_a_model_that_the_command_saved_earlier_loads():
    pandas = pytest.importorskip("pandas")
    folder = SAVED / "2026-11-19"
    rows, scores = (pandas.read_csv(folder / f"command_{name}.csv") for name in ("rows", "scores"))
    np.testing.assert_allclose(load(folder / "command.npz").transform(rows), scores, rtol=1e-12, atol=1e-12)


def test_there_are_models_of_every_class():
    assert {path.stem for path in SAVED.glob("2026-11-19/[A-Z]*.npz")} == {*ESTIMATOR_CLASSES, "PCA"}


@pytest.mark.parametrize(
    ("name", "value"), [("kernel", "precomputed"), ("degree", {"number": 0}), ("gamma", {"number": -1}), ("coef0", "x")]
)
def test_parameters_that_transform_uses_are_those_fit_takes(small, tmp_path, name, value):
    X, groups = small
    path = save_model(KernelParityPCA(2).fit(X, sensitive_features=groups), tmp_path / "model.npz")
    header, parts = parts_of(path)
    rewrite(path, header | {"parameters": header["parameters"] | {name: value}}, parts)
    with pytest.raises(ValueError, match=name):
        load_model(path)


def test_nothing_is_saved_that_could_not_be_loaded(small, tmp_path):
    X, groups = small
    pca = FairPCA(2).fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match="FairPCA cannot be saved: criterion=3 is unknown"):
        save_model(pca.set_params(criterion=3), tmp_path / "m.npz")
    pca.set_params(criterion="loss").set_output(transform="default")
    pca.remark = "made on a Monday"
    assert not hasattr(load_model(save_model(pca, tmp_path / "m.npz")), "remark")


class Bomb:
    """Unpickling it would run code."""

    fired = False

    def __reduce__(self):
        return (setattr, (Bomb, "fired", True))


def test_a_pickle_inside_is_never_opened(model):
    header, parts = parts_of(model)
    evil = np.empty(1, dtype=object)
    evil[0] = Bomb()
    parts[header["attributes"]["mean_"]["array"]] = evil
    rewrite(model, header, parts)
    with pytest.raises(ValueError, match="does not match its header"):
        load_model(model)
    model.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="not a fairpca model"):
        load_model(model)
    assert not Bomb.fired


def test_false_sizes_and_compression_are_refused(model, tmp_path):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as archive:
        archive.writestr("header.npy", stream.getvalue())
    with pytest.raises(ValueError, match="does not match its header"):
        load_model(tmp_path / "huge.npz")
    header, parts = parts_of(model)
    np.savez_compressed(model, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **parts)
    with pytest.raises(ValueError, match="unexpected part"):
        load_model(model)


def test_truncated_and_absent_files(model, tmp_path):
    content = model.read_bytes()
    for size in (0, 10, len(content) // 2, len(content) - 5):
        model.write_bytes(content[:size])
        with pytest.raises(ValueError, match="not a fairpca model"):
            load_model(model)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_model(tmp_path / "nothing.npz")
    with pytest.raises(IsADirectoryError, match="is a folder; give a model file"):
        load_model(tmp_path)


def test_any_flipped_bit_of_the_archive_is_damage_or_harmless(model):
    """Flags of encryption, sizes and places: whatever zipfile makes of them, the error is ours."""
    content = model.read_bytes()
    start = content.index(b"PK\x01\x02")  # the archive's directory; before it, the first entry's own header
    for position in [*range(60), *range(start, start + 60), *range(len(content) - 22, len(content))]:
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            model.write_bytes(damaged)
            with contextlib.suppress(ValueError):
                load_model(model)


def nested_entries(layers: int, size: int) -> bytes:
    """A zip archive of stored arrays, each of which holds the entries of those before it."""
    body, entries = bytes(size), []
    for number in range(layers):
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (len(body),)})
        name, content = (b"header" if not number else b"a%d" % number) + b".npy", header.getvalue() + body
        check = zlib.crc32(content), len(content), len(content), len(name)
        body = struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 0, 0, 0, *check, 0) + name + content
        entries.append((name, check, len(body)))
    directory = b"".join(
        struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 0, 0, 0, *check, 0, 0, 0, 0, 0, len(body) - length)
        + name
        for name, check, length in entries
    )
    return body + directory + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, layers, layers, len(directory), len(body), 0)


def test_entries_within_each_other_are_refused_before_they_are_read(tmp_path):
    """Read one by one, a megabyte of such entries was gigabytes of arrays."""
    path = tmp_path / "model.npz"
    path.write_bytes(nested_entries(layers=200, size=100_000))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="its parts overlap"):
            load_model(path)
        assert tracemalloc.get_traced_memory()[1] < 10 * path.stat().st_size
    finally:
        tracemalloc.stop()


def test_an_array_is_used_once(model):
    """Else a small file could ask for many copies of one array."""
    header, parts = parts_of(model)
    header["attributes"]["group_losses_"] = header["attributes"]["group_errors_"]
    rewrite(model, header, parts)
    with pytest.raises(ValueError, match="damaged"):
        load_model(model)


def test_headers_are_bounded_when_written_and_when_read(model, small, monkeypatch, tmp_path):
    before = load_model(model)
    monkeypatch.setattr("fairpca._archive._MAX_HEADER_BYTES", 500)
    with pytest.raises(ValueError, match="take more than 500 bytes"):
        save_model(before, tmp_path / "other.npz")
    with pytest.raises(ValueError, match="the header is missing"):
        load_model(model)
