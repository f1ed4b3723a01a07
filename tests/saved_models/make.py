"""Make the models of a new date: ``python tests/saved_models/make.py 2026-11-19``. Only a new format needs one."""

import sys
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

from fairpca.estimators import ESTIMATORS
from fairpca.persistence import save_model

HERE = Path(__file__).parent
OPTIONS = {"MMDFairPCA": {"n_components": 1, "tolerance": 0.1}, "LeaceEraser": {}}


def make(date: str) -> None:
    folder = HERE / date
    folder.mkdir()
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(40, 3)), np.repeat(["f", "m"], 20)
    scores = {"rows": rng.normal(size=(5, 3))}
    for name, estimator_class in ESTIMATORS.items():
        model = estimator_class(**OPTIONS.get(name, {"n_components": 1})).fit(X, sensitive_features=groups)
        scores[name] = model.transform(scores["rows"])
        save_model(model, folder / f"{name}.npz")
    pca = PCA(1).fit(X)
    scores["PCA"] = pca.transform(scores["rows"])
    save_model(pca, folder / "PCA.npz")
    np.savez(folder / "scores.npz", **scores)


if __name__ == "__main__":
    make(sys.argv[1])
