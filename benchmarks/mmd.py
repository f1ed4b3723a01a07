"""MMDFairPCA: the authors' saved solutions, cost of one evaluation, scaling, full Adult, Figure 1, least MMD^2.

    python benchmarks/mmd.py [table] [evaluation] [scaling] [adult] [figure1] [least] [pymanopt]
    [--data FOLDER] [--splits 0,1]

Everything by default except pymanopt, which must be installed for it. Data: --data, the variable
FAIRPCA_DATA, or ../shared/data. Timings are ratios measured side by side in one run.
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from _papers import FILE, Method, Saved, holds_against, load_splits, project_sample, read_saved
from sklearn.decomposition import PCA

from fairpca import MMDFairPCA
from fairpca._validation import check_groups
from fairpca.datasets import make_same_moments
from fairpca.linalg import blas_threads
from fairpca.metrics import median_bandwidth, mmd2
from fairpca.moments import group_moments
from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments.bandwidths import Bandwidth, halved_bandwidths
from fairpca.moments.fourier import FourierKernel
from fairpca.moments.kernel_means import exact_kernel
from fairpca.problems.mmd import DiscrepancyProblem, all_pairs
from fairpca.solvers.stiefel.quasi_newton import descend_on_stiefel, minimise_on_stiefel

PARTS = ("table", "evaluation", "scaling", "adult", "figure1", "least")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=PARTS, help="what to run")
    default = os.environ.get("FAIRPCA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--splits", type=lambda text: [int(part) for part in text.split(",")], default=None)
    parser.add_argument("--only", default="", help="only settings whose name contains this")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in arguments.parts:
        print(f"\n== {part}")
        globals()[f"run_{part}"](arguments)


def run_table(arguments: argparse.Namespace) -> None:
    """Every saved setting of MbF-PCA: authors against ours, on the authors' training rows."""
    print(f"{'setting':>26} split |  authors: %var     MMD2 |  ours: %var      MMD2  conv |   gain  verdict    s")
    folder = arguments.data / "lee2022"
    for (name, d, method), solutions in read_saved(folder / FILE).items():
        label = f"{name} d={d} {method}"
        if not method.startswith("MbF-PCA") or arguments.only not in label:
            continue
        tau = float(method.split("(")[1].rstrip(")"))
        gains, holds = [], 0
        for split in load_splits(folder / "datasets" / name, splits=arguments.splits or sorted(solutions)):
            verdict, gain = _compare(label, split, d, tau, solutions[split.split])
            gains.append(gain)
            holds += verdict
        print(
            f"{label:>26}   all | {holds}/{len(gains)} hold; mean gain {100 * np.mean(gains):+.3f} points",
            flush=True,
        )


def _compare(label: str, split: object, d: int, tau: float, saved: Saved) -> tuple[bool, float]:
    began = time.perf_counter()
    pca = MMDFairPCA(d, tolerance=tau, bandwidth="median").fit(split.X_train, sensitive_features=split.sensitive_train)
    seconds = time.perf_counter() - began
    ours = float(pca.explained_variance_ratio_.sum())
    holds = holds_against(saved, variance=ours, discrepancy=pca.mmd2_, tolerance=tau)
    print(
        f"{label:>26} {split.split:>5} | {100 * saved.var_train:>13.4f} {saved.mmd2_train:.2e} | {100 * ours:>11.4f} "
        f"{pca.mmd2_:.3e} {pca.converged_!s:>5} | {100 * (ours - saved.var_train):+.3f}  "
        f"{'ok' if holds else 'WORSE':>7} {seconds:4.0f}",
        flush=True,
    )
    return holds, ours - saved.var_train


def authors_formula(first: np.ndarray, second: np.ndarray, basis: np.ndarray, sigma: float) -> tuple[float, np.ndarray]:
    """Value and gradient as in section G of the paper: kernel matrices, then X^T (H - K) X V."""

    def kernel(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        squares = (left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T
        return np.exp(-squares / (2 * sigma**2))

    m, n = len(first), len(second)
    of_first, of_second, across = (
        kernel(first @ basis, first @ basis),
        kernel(second @ basis, second @ basis),
        kernel(first @ basis, second @ basis),
    )
    value = of_first.sum() / m**2 + of_second.sum() / n**2 - 2 * across.sum() / (m * n)

    def within(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        return -2 / (len(rows) ** 2 * sigma**2) * rows.T @ (np.diag(matrix.sum(1)) - matrix) @ rows @ basis

    mixed = first.T @ across @ second
    between = first.T @ np.diag(across.sum(1)) @ first + second.T @ np.diag(across.sum(0)) @ second
    between = -1 / (m * n * sigma**2) * (between - mixed - mixed.T) @ basis
    return float(value), within(first, of_first) + within(second, of_second) - 2 * between


def _median_seconds(function: object, repeats: int) -> float:
    function()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def _example(n: int, p: int, d: int, seed: int = 0) -> tuple[GroupedSample, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    sample = GroupedSample.from_rows(X, check_groups(np.arange(n) < 0.67 * n, n))
    return sample, np.linalg.qr(rng.standard_normal((p, d)))[0], float(np.sqrt(d))


PAIR = np.array([[1.0, -1.0], [-1.0, 1.0]])


def run_evaluation(arguments: argparse.Namespace) -> None:
    """One value and gradient at the size of the authors' Adult sample."""
    sample, basis, sigma = _example(2261, 97, 10)
    first, second = np.split(sample.rows, [sample.starts[1]])

    def ours(bandwidth: Bandwidth = sigma) -> tuple[float, np.ndarray]:
        means = exact_kernel(bandwidth)(sample, basis, True)
        return float((PAIR * means.values).sum()), means.gradient(PAIR)

    candidates = {
        "authors' formula": functools.partial(authors_formula, first, second, basis, sigma),
        "ours": ours,
    }
    seconds = _in_rounds(candidates, rounds=8, repeats=4)
    theirs = np.median(seconds["authors' formula"])
    print(f"n=2261 p=97 d=10: authors' formula {1e3 * theirs:.1f} ms")
    value, gradient = candidates["authors' formula"]()
    here = ours()
    error = np.linalg.norm(here[1] - gradient) / np.linalg.norm(gradient)
    ratios = np.median(seconds["authors' formula"], axis=1) / np.median(seconds["ours"], axis=1)
    print(
        f"  ours: {1e3 * np.median(seconds['ours']):.1f} ms, {theirs / np.median(seconds['ours']):.1f} x faster "
        f"(in rounds {ratios.min():.1f} to {ratios.max():.1f}); value differs by {abs(here[0] - value):.1e}, "
        f"gradient by {error:.1e} (relative)"
    )
    widths = {"one": sigma, "four": halved_bandwidths(sigma)}
    _compare_scales({name: functools.partial(ours, width) for name, width in widths.items()})


def _compare_scales(evaluations: dict[str, Callable]) -> None:
    """The kernel at four scales against one, on one core and on all; without the authors' formula in between, whose
    idle threads would take a core from the next evaluation.
    """
    every = blas_threads()
    for n_cores in sorted({1, every}):
        with mock.patch("fairpca.moments.kernel_means.blas_threads", lambda n=n_cores: n):
            seconds = _in_rounds(evaluations, rounds=12, repeats=8)
        one, four = seconds["one"], seconds["four"]
        ratios = np.median(four, axis=1) / np.median(one, axis=1)
        print(
            f"  four scales, cores: {n_cores}: {1e3 * np.median(four):.1f} ms, "
            f"{np.median(four) / np.median(one):.2f} x the time of one (in rounds {ratios.min():.2f} to "
            f"{ratios.max():.2f}; of the fastest {four.min() / one.min():.2f})"
        )


def _in_rounds(candidates: dict[str, Callable], rounds: int, repeats: int) -> dict[str, np.ndarray]:
    """Seconds of shape (rounds, repeats); each candidate warms up in every round, since waiting threads of the one
    before would slow it down.
    """
    seconds: dict[str, list[list[float]]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, run in candidates.items():
            for _ in range(3):
                run()
            line = []
            for _ in range(repeats):
                began = time.perf_counter()
                run()
                line.append(time.perf_counter() - began)
            seconds[name].append(line)
    return {name: np.array(lines) for name, lines in seconds.items()}


def run_scaling(arguments: argparse.Namespace) -> None:
    """Cost of one evaluation as n doubles."""
    before: dict[str, float] = {}
    for n in (4000, 8000, 16000, 32000):
        sample, basis, sigma = _example(n, 97, 2)
        kernels = {
            "exact": exact_kernel(sigma),
            "fourier": FourierKernel(sigma, 2, 1000, np.random.default_rng(0)),
        }
        for name, kernel in kernels.items():
            seconds = _median_seconds(functools.partial(kernel, sample, basis, True), 3)
            ratio = f", x {seconds / before[name]:.2f}" if name in before else ""
            before[name] = seconds
            print(f"n={n:>6} {name:>14}: {1e3 * seconds:8.1f} ms{ratio}", flush=True)


def load_adult(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """All 48,842 rows: fnlwgt and race dropped, categories one-hot ("?" is one of them), standardised;
    sex.
    """
    lines = []
    for name in ("adult.data", "adult.test"):
        lines += [
            line.strip().rstrip(".").split(", ")
            for line in (folder / name).read_text().splitlines()
            if line.count(",") == 14
        ]
    columns = [np.array(column) for column in zip(*lines, strict=True)]
    numeric, dropped, sex = {0, 4, 10, 11, 12}, {2, 8, 9, 14}, columns[9]
    features = []
    for j, column in enumerate(columns):
        if j in numeric:
            features.append(column.astype(float))
        elif j not in dropped:
            features += [(column == level).astype(float) for level in np.unique(column)]
    X = np.column_stack(features)
    return (X - X.mean(0)) / X.std(0), sex


def run_adult(arguments: argparse.Namespace) -> None:
    """Full Adult, d = 2: the kernel of the paper with tau = 1e-3, and the defaults."""
    X, sex = load_adult(arguments.data / "uci")
    for options in ({"tolerance": 1e-3, "bandwidth": "median"}, {"bandwidth": "median"}, {}):
        _fit_adult(X, sex, options)


def _fit_adult(X: np.ndarray, sex: np.ndarray, options: dict) -> None:
    began = time.perf_counter()

    def news(state: dict) -> None:
        if os.environ.get("VERBOSE"):
            print(
                f"  {time.perf_counter() - began:6.1f} s {state['stage']:>8} rho={state['penalty']:.3g} "
                f"%var={-100 * state['loss']:.3f} mmd2={state['constraint']:.3e}",
                flush=True,
            )

    pca = MMDFairPCA(2, callback=news, **options).fit(X, sensitive_features=sex)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ordinary = PCA(2).fit(X)
    print(
        f"{X.shape[0]} rows, {X.shape[1]} features, {options or 'defaults'}: {seconds:.0f} s, peak {peak:.2f} GiB; "
        f"exact MMD2 {pca.mmd2_:.3e} "
        f"(converged {pca.converged_}, tolerance {pca.tolerance_:.1e}, random level {pca.random_level_:.1e}), "
        f"{100 * pca.explained_variance_ratio_.sum():.3f} % variance (PCA "
        f"{100 * ordinary.explained_variance_ratio_.sum():.3f} %, MMD2 "
        f"{mmd2(ordinary.transform(X), sensitive_features=sex, bandwidth=pca.bandwidth_):.3e}); "
        f"{pca.n_oracle_calls_} evaluations"
    )


def run_figure1(arguments: argparse.Namespace) -> None:
    """Synthetic data 1: equal means and covariances, different distributions; ten samples."""
    methods = (Method("PCA"), Method("FPCA", 0.1), Method("FPCA", 0.0), Method("MbF-PCA", 1e-3))
    samples = [project_sample(seed, methods) for seed in range(10)]
    ours = methods[-1].name
    above = [(seed, sample) for seed, sample in enumerate(samples) if sample.mmd2[ours] > 1e-3]
    level = samples[-1].random_level[ours]
    print(f"MMDFairPCA within 1e-3 on {10 - len(above)} of 10 samples; random level {level:.1e}")
    ratios = [sample.mmd2[ours] / _lowest_plane(seed) for seed, sample in above]
    print(f"  the others, relative to the lowest of 2000 planes: {', '.join(f'{ratio:.4f}' for ratio in ratios)}")
    for method in methods:
        low, median, high = np.quantile([sample.mmd2[method.name] for sample in samples], (0, 0.5, 1))
        share = 100 * np.median([sample.variance[method.name] for sample in samples])
        print(f"{method.name:>15}: MMD2 median {median:.2e} ({low:.1e} to {high:.1e}), {share:.1f} % variance")


def _lowest_plane(seed: int) -> float:
    """The least MMD^2 of 2000 planes in three dimensions."""
    X, groups = make_same_moments(300, random_state=seed)
    sigma = median_bandwidth(PCA(2).fit_transform(X))
    normals = np.random.default_rng(0).standard_normal((2000, 1, 3))
    return min(
        mmd2(X @ np.linalg.svd(normal)[2][1:].T, sensitive_features=groups, bandwidth=sigma) for normal in normals
    )


def run_least(arguments: argparse.Namespace, problems: int = 80, seeds: int = 6) -> None:
    """The least MMD^2 found where no projection is within the tolerance, next to the best of several random states."""
    found = np.array([[_least(problem, seed) for seed in range(seeds)] for problem in range(problems)])
    excess = found[..., 0] / found[..., 0].min(axis=1, keepdims=True) - 1.0
    print(f"{problems} problems of 80 rows, 5 to 8 features, 2 to 4 components, 2 or 3 groups; {seeds} random states")
    print(f"more than 0.5 % above the best of them: {100 * (excess > 5e-3).mean():.1f} % of the fits")
    print(f"mean excess {100 * excess.mean():.1f} %, largest {100 * excess.max():.0f} %")
    print(f"evaluations per fit: {found[..., 1].mean():.0f}")


def _least(number: int, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(number)
    p, d, k = rng.integers(5, 9), rng.integers(2, 5), rng.integers(2, 4)
    groups, X = np.arange(80) % k, rng.normal(size=(80, p))
    X = np.sign(X) if number % 2 else X
    for a in range(k):
        X[groups == a] = X[groups == a] @ (np.eye(p) + 0.5 * rng.normal(size=(p, p))) + rng.normal(size=p)
    pca = MMDFairPCA(int(d), tolerance=1e-6, random_state=seed).fit(X, sensitive_features=groups)
    return pca.mmd2_, pca.n_oracle_calls_


def _penalised(problem: DiscrepancyProblem, penalty: float) -> Callable:
    def objective(basis: np.ndarray) -> tuple[float, np.ndarray]:
        here = problem.evaluate(basis)
        gradient = here.loss_gradient + penalty * here.constraint_gradient(np.ones(1))
        return here.loss + penalty * float(here.constraints.sum()), gradient

    return objective


def _run_ours(solve: Callable, problem: DiscrepancyProblem, start: np.ndarray, penalty: float) -> float:
    return solve(_penalised(problem, penalty), start, tol=1e-4, max_iter=1000).value


def _run_with_curvature(problem: DiscrepancyProblem, start: np.ndarray, penalty: float) -> float:
    scale = 2 * abs(problem.evaluate(start).loss) / start.shape[1]
    precondition = problem.curvature(start).preconditioner(penalty, scale)
    return _run_ours(functools.partial(minimise_on_stiefel, precondition=precondition), problem, start, penalty)


def _run_theirs(name: str, problem: DiscrepancyProblem, start: np.ndarray, penalty: float) -> float:
    import pymanopt

    objective = _penalised(problem, penalty)
    manifold = pymanopt.manifolds.Grassmann(*start.shape)
    cost = pymanopt.function.numpy(manifold)(lambda basis: objective(basis)[0])
    slope = pymanopt.function.numpy(manifold)(lambda basis: objective(basis)[1])
    optimizer = getattr(pymanopt.optimizers, name)(
        verbosity=0, min_gradient_norm=1e-4, max_iterations=1000, max_time=60
    )
    return optimizer.run(pymanopt.Problem(manifold, cost, euclidean_gradient=slope), initial_point=start).cost


def run_pymanopt(arguments: argparse.Namespace) -> None:
    """One penalised problem (German, first split) to the same gradient norm, with pymanopt's methods too."""
    split = next(load_splits(arguments.data / "lee2022" / "datasets" / "German", splits=[0]))
    X, groups = split.X_train, split.sensitive_train
    sample = GroupedSample.from_rows(X, check_groups(groups, len(X)))
    covariance = group_moments(X, sensitive_features=groups).pooled_covariance()
    methods = {
        "ours, quasi-Newton": functools.partial(_run_ours, minimise_on_stiefel),
        "ours, gradient": functools.partial(_run_ours, descend_on_stiefel),
        "ours, with curvature": _run_with_curvature,
        "pymanopt ConjugateGradient": functools.partial(_run_theirs, "ConjugateGradient"),
        "pymanopt SteepestDescent": functools.partial(_run_theirs, "SteepestDescent"),
    }
    for d in (2, 10):
        start = PCA(d).fit(X).components_.T
        sigma = median_bandwidth(X @ start)
        features = FourierKernel(sigma, d, 700, np.random.default_rng(0))
        for name, method in methods.items():
            problem = DiscrepancyProblem(sample, covariance, exact_kernel(sigma), all_pairs(2), features)
            began = time.perf_counter()
            value = method(problem, start, 30.0)
            seconds = time.perf_counter() - began
            calls = problem.n_evaluations
            print(f"d={d:>2} {name:>27}: {value:.8f}, {calls:>5} evaluations, {seconds:6.2f} s", flush=True)


if __name__ == "__main__":
    main()
