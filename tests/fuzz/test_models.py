"""Hostile model files and moments: what works, or a ValueError; whatever their bytes or their header say."""

from __future__ import annotations

import copy
import io
import json
import pickle
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import (
    AnchorPCA,
    FairPCA,
    KernelParityPCA,
    LeacePCA,
    MMDFairPCA,
    ParityPCA,
    RobustFairPCA,
    load_model,
    save_model,
)
from fairpca.moments import GroupMoments, group_moments

ESTIMATORS = [
    FairPCA(2),
    RobustFairPCA(2),
    ParityPCA(2),
    KernelParityPCA(2),
    LeacePCA(2),
    AnchorPCA(2),
    MMDFairPCA(2, tolerance=0.5, random_state=0),
    PCA(2),
]
#: What may stand in a header instead of what does.
VALUES = [
    None, True, "a", "", 0, -1, 1e300, [], {}, {"number": -1}, {"number": 10**30}, {"number": "nan"}, {"number": 1e400},
    {"array": "a0"}, {"array": "no"}, {"list": []}, {"list": [None] * 3}, {"tuple": [{"number": 1}]},
    {"dict": [[[], 1]]}, {"dict": 3}, {"objects": [], "shape": [0, 10**9]}, {"objects": ["a"], "shape": [-1, 7]},
    {"objects": "ab", "shape": [2]}, {"record": "GroupMoments", "fields": {}}, {"record": "no", "fields": {}},
    {"record": [], "fields": []},
]  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Bytes of a saved model of each class, and of moments."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(40, 3)), np.arange(40) % 2
    path = tmp_path_factory.mktemp("models") / "model.npz"
    found = []
    for estimator in ESTIMATORS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(X) if isinstance(estimator, PCA) else estimator.fit(X, sensitive_features=groups)
        found.append(save_model(estimator, path).read_bytes())
    return [
        *found,
        *(group_moments(X, sensitive_features=labels).to_bytes() for labels in (groups, np.where(groups, "a", "b"))),
    ]


def check(content: bytes, path) -> None:
    check_moments(content)
    path.write_bytes(content)
    try:
        model = load_model(path)
    except ValueError:
        return
    rows = np.arange(3.0 * model.n_features_in_).reshape(3, -1)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numbers may be absurd: only their shape is sure
        assert model.transform(rows).shape == (3, model.n_components_)


def check_moments(content: bytes) -> None:
    try:
        moments = GroupMoments.from_bytes(content)
    except ValueError:
        return
    assert (moments.counts > 0).all()
    with np.errstate(all="ignore"):
        assert moments.merge(moments).second_moments().shape == moments.scatters.shape


def test_changed_bytes(models, tmp_path, cases):
    for rng in cases(150):
        content = bytearray(models[rng.integers(len(models))])
        for position in rng.integers(0, len(content), rng.integers(1, 4)):
            content[position] = rng.choice([0, 1, 255, rng.integers(256), content[position] ^ (1 << rng.integers(8))])
        if rng.random() < 0.2:
            start, stop = np.sort(rng.integers(0, len(content), 2))
            del content[start : min(stop, start + rng.integers(1, 100))]
        check(bytes(content), tmp_path / "model.npz")


def places(value, found):
    """Every place of a tree of lists and dictionaries, as (container, key)."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found.append((value, key))
        places(value[key], found)
    return found


def test_changed_headers(models, tmp_path, cases):
    for rng in cases(150):
        with np.load(io.BytesIO(models[rng.integers(len(models))])) as file:
            parts = {name: file[name] for name in file.files}
        header = json.loads(parts.pop("header").tobytes())
        for _ in range(rng.integers(1, 3)):
            container, key = (found := places(header, []))[rng.integers(len(found))]
            container[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
        if rng.random() < 0.3:
            name = list(parts)[rng.integers(len(parts))]
            parts[name] = [parts[name][..., None], parts[name][:0], parts[name].astype(complex)][rng.integers(3)]
        stream = io.BytesIO()
        np.savez(stream, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **parts)
        check(stream.getvalue(), tmp_path / "model.npz")


class _Executed:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("bytes of a stranger ran code",)


def npy(claim: str, content: bytes = b"") -> bytes:
    """An array file whose header says ``claim``, whatever follows."""
    text = claim.encode() + b" " * (63 - (len(claim) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


def hostile(content: bytes) -> dict[str, bytes]:
    """Bytes that a stranger may send as moments, by what is wrong with them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    floats, many = "'descr': '<f8', 'fortran_order': False, 'shape'", 10**9
    objects, deep = "'descr': '|O', 'fortran_order': False, 'shape'", "'descr': '|u1', 'fortran_order': False, 'shape'"
    large = f"{{{floats}: (2, {many}), }}"
    changed = {
        "object array": {"means.npy": npy(f"{{{objects}: (1,), }}", pickle.dumps(_Executed()))},
        "shape larger than the file": {"means.npy": npy(large)},
        "deep header": {"header.npy": npy(f"{{{deep}: (90000,), }}", b"[" * 90_000)},
        "no labels": {"header.npy": parts["header.npy"].replace(b'"labels"', b'"Labels"')},
        "labels without numbers": {
            "counts.npy": npy(f"{{{floats}: (0,), }}"),
            "means.npy": npy(f"{{{floats}: (0, {many}), }}"),
            "scatters.npy": npy(f"{{{floats}: (0, {many}, {many}), }}"),
        },
        "code in the header of an array": {"means.npy": npy("__import__('pytest').fail('ran code')")},
    }
    found = {"pickle": pickle.dumps(_Executed())}
    for what, others in changed.items():
        found[what] = zipped(parts | others, zipfile.ZIP_STORED)
    found["bomb"] = zipped(parts | {"means.npy": npy(large, bytes(1 << 27))}, zipfile.ZIP_DEFLATED)
    found["one part many times"] = zipped(parts, zipfile.ZIP_STORED, repeat=1000)
    return found


def zipped(parts: dict[str, bytes], compression: int, repeat: int = 1) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", compression) as archive:
        warnings.simplefilter("ignore", UserWarning)  # a name twice
        for name, content in list(parts.items()) * repeat:
            archive.writestr(name, content)
    return stream.getvalue()


def test_moments_of_a_stranger_run_nothing_and_take_little_memory(models):
    """At most that of two copies of the bytes, and a little more."""
    for what, content in hostile(models[-1]).items():
        tracemalloc.start()
        with pytest.raises(ValueError, match="content is not what GroupMoments"):
            GroupMoments.from_bytes(content)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2 * len(content) + (8 << 20), what
