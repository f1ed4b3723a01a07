"""Erasure beside the package concept-erasure, and what readers still see of the group on new rows after each remedy.

    python benchmarks/erasure.py [time] [half] [readers] [--rows 1000000] [--splits 10]

1. time: fit by batches and transform of 1,000,000 x 768 float32 rows; both packages take every batch in turn.
2. half: float16 and bfloat16 rows, 1,000,000 x 256 in batches: what is left of the group covariance of these rows.
3. readers: held-out AUC of linear, RBF and boosting readers before and after each remedy, with the utility kept.

Parts 1 and 2 need torch and concept-erasure (the dependency group ``torch``).
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import LeaceEraser, MMDFairPCA, ParityPCA
from fairpca.metrics import readability

PARTS = ("time", "half", "readers")
#: Rows per batch: 32 texts of 512 tokens.
BATCH, GROUPS = 16_384, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=PARTS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    absent = [name for name in ("torch", "concept_erasure") if importlib.util.find_spec(name) is None]
    for part in options.parts:
        if part != "readers" and absent:
            print(f"{part}: left out, because {' and '.join(absent)} cannot be imported (pip install --group torch)")
        else:
            {"time": timing, "half": half_precision, "readers": readers}[part](options)


def batches(rows: int, p: int, width: str, seed: int = 0) -> Iterator[tuple[Any, Any]]:
    """Tensors that are made again for each pass, and the group of each row."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    offsets = 0.3 * torch.randn(GROUPS, p, generator=generator)
    mixing = torch.eye(p) + 0.5 * torch.randn(p, p, generator=generator) / p**0.5
    for start in range(0, rows, BATCH):
        size = min(BATCH, rows - start)
        groups = torch.randint(0, GROUPS, (size,), generator=generator)
        block = torch.randn(size, p, generator=generator) @ mixing + offsets[groups] + 1.0
        yield block.to(getattr(torch, width)), groups


def fitter(p: int, dtype: Any) -> Any:
    from concept_erasure import LeaceFitter

    return LeaceFitter(p, GROUPS, dtype=dtype, shrinkage=False, constrain_cov_trace=False)


def timing(options: Any) -> None:
    import torch

    ours, theirs = LeaceEraser(), fitter(768, torch.float32)
    seconds = {name: [0.0, 0.0] for name in ("fit", "transform, tensors", "transform, arrays")}

    def take(name: str, which: int, run: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = run()
        seconds[name][which] += time.perf_counter() - start
        return result

    for number, (X, groups) in enumerate(batches(options.rows, 768, "float32")):
        calls = [
            lambda X=X, groups=groups: ours.partial_fit(X, sensitive_features=groups),
            lambda X=X, groups=groups: theirs.update(X, torch.nn.functional.one_hot(groups, GROUPS)),
        ]
        for which in (0, 1) if number % 2 else (1, 0):
            take("fit", which, calls[which])
    take("fit", 0, lambda: ours.mean_)
    eraser = take("fit", 1, lambda: theirs.eraser)
    for number, (X, _) in enumerate(batches(options.rows, 768, "float32")):
        for which in (0, 1) if number % 2 else (1, 0):
            take("transform, tensors", which, (lambda X=X: eraser(X)) if which else (lambda X=X: ours.transform(X)))
            take(
                "transform, arrays",
                which,
                (lambda X=X: eraser(X)) if which else (lambda X=X: ours.transform(X.numpy())),
            )
    print(f"{options.rows:,} x 768 float32 in batches of {BATCH:,}, {GROUPS} groups, {torch.get_num_threads()} threads")
    for name, (mine, other) in seconds.items():
        print(
            f"  {name:<20} LeaceEraser {mine:6.2f} s, concept-erasure {other:6.2f} s: {mine / other:.2f} x", flush=True
        )


def half_precision(options: Any) -> None:
    import torch

    print(
        f"{options.rows:,} x 256 in batches of {BATCH:,}: largest group covariance left, relative to that of the rows"
    )
    for width in ("float16", "bfloat16"):
        dtype = getattr(torch, width)
        ours, theirs = (
            LeaceEraser(),
            {"in its input's type": fitter(256, dtype), "in float32": fitter(256, torch.float32)},
        )
        for X, groups in batches(options.rows, 256, width):
            ours.partial_fit(X, sensitive_features=groups)
            for one in theirs.values():
                one.update(X, torch.nn.functional.one_hot(groups, GROUPS))
        maps: dict[str, tuple[Any, Any]] = {
            "LeaceEraser": (np.eye(256) - ours.erased_directions_.T @ ours.erased_coefficients_, ours.transform)
        }
        for name, one in theirs.items():
            try:
                maps[f"concept-erasure, sums {name}"] = (one.eraser.P.double().numpy(), one.eraser)
            except RuntimeError as problem:
                print(f"  {width:<9} concept-erasure, sums {name:<20} {problem}")
        sums: dict[str, Any] = dict.fromkeys(("rows", *maps), 0.0)
        counts, means = np.zeros(GROUPS), dict.fromkeys(sums, 0.0)
        for X, groups in batches(options.rows, 256, width):
            indicators = torch.nn.functional.one_hot(groups, GROUPS).double()
            counts += indicators.sum(0).numpy()
            for name in sums:
                rows = (X if name == "rows" else maps[name][1](X)).double()
                sums[name] += (rows.T @ indicators).numpy()
                means[name] += rows.sum(0).numpy()
        covariances = {
            name: (sums[name] - np.outer(means[name], counts) / counts.sum()) / counts.sum() for name in sums
        }
        whole = np.abs(covariances["rows"]).max()
        for name, (matrix, _) in maps.items():
            exact, rounded = (np.abs(one).max() / whole for one in (matrix @ covariances["rows"], covariances[name]))
            print(f"  {width:<9} {name:<42} map in float64 {exact:.1e}, returned rows {rounded:.1e}", flush=True)


Data = tuple[np.ndarray, np.ndarray, np.ndarray]


def simulated(split: int) -> tuple[Data, Data]:
    """Two sites that differ in the mean and in the spread of five of 20 features, and a label related to the site."""
    rng = np.random.default_rng([34, split])
    mixing = np.random.default_rng(34).normal(size=(20, 20)) / np.sqrt(20)

    def draw(n: int) -> Data:
        site = rng.integers(0, 2, n)
        label = (rng.random(n) < np.where(site == 1, 0.65, 0.35)).astype(int)
        X = rng.normal(size=(n, 20))
        X[:, :5] *= np.where(site == 1, 1.6, 1.0)[:, None]
        X[:, 5:8] += 0.8 * site[:, None]
        X[:, 8:11] += 0.8 * label[:, None]
        return X @ mixing, site, label

    return draw(1200), draw(1200)


def texts(split: int, n_splits: int = 10) -> tuple[Data, Data]:
    """TF-IDF and SVD of a part of the sentences from four sources, with their sentiment; parts are disjoint."""
    source, label, sentences = all_texts()
    rows = np.random.default_rng(34).permutation(len(source))[split::n_splits]
    train, test = train_test_split(rows, test_size=0.5, random_state=0, stratify=source[rows])
    words = TfidfVectorizer(min_df=3, sublinear_tf=True).fit(sentences[train])
    svd = TruncatedSVD(50, random_state=0).fit(words.transform(sentences[train]))
    found = [(svd.transform(words.transform(sentences[part])), source[part], label[part]) for part in (train, test)]
    return found[0], found[1]


@functools.cache
def all_texts() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sentences of clear sentiment in the source archive of vaderSentiment 3.3.2 (MIT): reviews, editorials, tweets."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = ["--no-deps", "--no-binary", ":all:", "vaderSentiment==3.3.2", "--dest", folder]
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *wanted], check=True)
        with tarfile.open(next(Path(folder).glob("*.tar.gz"))) as outer:
            inside = next(name for name in outer.getnames() if name.endswith("hutto_ICWSM_2014.tar.gz"))
            with tarfile.open(fileobj=outer.extractfile(inside)) as inner:
                names = sorted(name for name in inner.getnames() if name.endswith("_GroundTruth.txt"))
                contents = [inner.extractfile(name).read().decode() for name in names]  # type: ignore[union-attr]
    rows = [
        (Path(name).name.partition("_")[0], *line.split("\t")[1:3])
        for name, content in zip(names, contents, strict=True)
        for line in content.splitlines()
        if line.count("\t") >= 2
    ]
    source, rating, sentences = (np.array(column) for column in zip(*rows, strict=True))
    clear = np.abs(rating.astype(float)) > 1  # of a scale from -4 to 4
    return source[clear], (rating.astype(float) > 0).astype(int)[clear], sentences[clear]


def remedies() -> dict[str, Callable[[Data], Callable[[np.ndarray], np.ndarray]]]:
    """What is fitted to training rows and returns the map of rows."""

    def fitted(estimator: Any) -> Callable[[Data], Callable[[np.ndarray], np.ndarray]]:
        return lambda train: estimator.fit(train[0], train[2], sensitive_features=train[1]).transform

    def noisy(train: Data) -> Callable[[np.ndarray], np.ndarray]:
        rng, spread = np.random.default_rng(35), train[0].std(axis=0)
        return lambda X: X + spread * rng.normal(size=X.shape)

    return {
        "as they are": lambda train: lambda X: X,
        "LeaceEraser()": fitted(LeaceEraser()),
        'LeaceEraser(preserve="label")': fitted(LeaceEraser(preserve="label")),
        "ParityPCA(10)": fitted(ParityPCA(10)),
        "MMDFairPCA(10)": fitted(MMDFairPCA(10)),
        "PCA(10)": lambda train: PCA(10).fit(train[0]).transform,
        "PCA(2)": lambda train: PCA(2).fit(train[0]).transform,
        "noise as large as each feature": noisy,
    }


def readers(options: Any) -> None:
    columns = ["linear", "rbf", "boosting", "level", "label", "kept head", "purity"]
    for name, draw in (("simulated", simulated), ("texts", texts)):
        table: dict[str, list[list[float]]] = {remedy: [] for remedy in remedies()}
        for split in range(options.splits):
            train, test = draw(split)
            for remedy, fit in remedies().items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    table[remedy].append(judged(fit(train), train, test))
        largest = np.unique(test[1], return_counts=True)[1].max() / len(test[1])
        print(
            f"{name}: means over {options.splits} independent splits with 95 % intervals; largest source {largest:.2f}"
        )
        print(f"  {'':<32}" + "".join(f"{column:>15}" for column in columns))
        for remedy, lines in table.items():
            mean, spread = np.mean(lines, axis=0), np.std(lines, axis=0, ddof=1) / np.sqrt(len(lines))
            reach = stats.t.ppf(0.975, len(lines) - 1) * spread
            print(
                f"  {remedy:<32}" + "".join(f"{m:8.3f} ± {r:.3f}" for m, r in zip(mean, reach, strict=True)), flush=True
            )


def judged(change: Callable[[np.ndarray], np.ndarray], train: Data, test: Data) -> list[float]:
    """The largest AUC of each reader over pairs of groups, their level by chance, and what is kept.

    That is the accuracy of a label by a classifier trained on the changed rows, and by one trained on rows as they
    were; and how pure clusters are: the share of rows whose source is the most frequent one of their cluster.
    """
    first, second = change(train[0]), change(test[0])
    found = [
        readability(second, sensitive_features=test[1], train=(first, train[1]), family=family)
        for family in ("linear", "rbf", "boosting")
    ]
    task, head = (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(rows, train[2])
        for rows in (first, train[0])
    )
    kept = head.score(second, test[2]) if second.shape == test[0].shape else np.nan
    k = len(np.unique(test[1]))
    clusters = KMeans(k, n_init=10, random_state=0).fit_predict(second)
    counts = np.array([[np.sum((clusters == c) & (test[1] == one)) for one in np.unique(test[1])] for c in range(k)])
    level = max(one.level for one in found)
    purity = counts.max(axis=1).sum() / len(second)
    return [*(one.auc for one in found), level, task.score(second, test[2]), kept, purity]


if __name__ == "__main__":
    main()
