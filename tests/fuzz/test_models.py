"""Hostile model files and moments: what works, or a ValueError; whatever their bytes or their header say."""

from __future__ import annotations

import copy
import io
import json
import warnings

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
