"""Several threads at once, and what a fit leaves behind: nothing but its result."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import fairpca.moments._accumulate
from fairpca import FairPCA, KernelParityPCA, LeacePCA, MMDFairPCA, ParityPCA, RobustFairPCA
from fairpca.linalg import blas_threads, scipy_threads_only, single_blas_thread, threads_for
from fairpca.model_selection import compare, frontier

ESTIMATORS = [
    FairPCA(2),
    FairPCA(2, criterion="error"),
    FairPCA(2, solver="mw", max_iter=20),
    RobustFairPCA(2),
    RobustFairPCA(2, solver="subgradient", n_init=2, max_iter=10, random_state=0),
    ParityPCA(2),
    ParityPCA(2, mean_tolerance=0.1),
    KernelParityPCA(2, random_state=0),
    LeacePCA(2),
    MMDFairPCA(2, tolerance=0.1, bandwidth="median", random_state=0, max_iter=5),
    MMDFairPCA(2, tolerance=0.1, bandwidth="median", random_state=0, max_iter=5, approximation="fourier"),
]


def numbers_of_threads():
    return [library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()]


@pytest.fixture
def two_threads():
    """Each BLAS library may use two, so that a limit of one that stays is seen."""
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        yield


@pytest.mark.usefixtures("two_threads")
def test_limits_that_overlap_end_with_the_last():
    before = numbers_of_threads()
    first, second = single_blas_thread(), scipy_threads_only()
    first.__enter__()
    second.__enter__()
    assert set(numbers_of_threads()) == {1}
    assert blas_threads() == max(before)
    first.__exit__(None, None, None)
    assert numbers_of_threads() != before or len(before) == 0
    second.__exit__(None, None, None)
    assert numbers_of_threads() == before


@pytest.mark.usefixtures("two_threads")
def test_only_short_work_is_limited():
    before = numbers_of_threads()
    with threads_for(1e6):
        assert set(numbers_of_threads()) == {1}
    with threads_for(1e12):
        assert numbers_of_threads() == before
    with pytest.raises(RuntimeError), threads_for(1e6):
        raise RuntimeError
    assert numbers_of_threads() == before


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("short", [True, False])
def test_short_fits_take_one_thread(two_groups, monkeypatch, short):
    """Seen where the work is done: in the search, and in the sums over the rows."""
    X, groups = two_groups
    seen: dict[str, list[int]] = {}

    def watched(owner, name):
        real = getattr(owner, name)

        def watch(*arguments, **named):
            seen.setdefault(name, []).append(max(numbers_of_threads()))
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, watch)

    watched(fairpca.moments._accumulate, "_moments_of")
    for estimator in (FairPCA, RobustFairPCA, ParityPCA):
        watched(estimator, "_solve")
        if not short:
            monkeypatch.setattr("fairpca.linalg._SHORT_WORK", 0.0)
        estimator(2).fit(X, sensitive_features=groups)
    assert seen == {"_moments_of": [1 if short else 2] * 3, "_solve": [1 if short else 2] * 3}


def open_files():
    """Numbers and targets, so that a new file is seen even if it has the number of one that was closed."""
    found, folder = set(), Path("/proc/self/fd")
    for number in os.listdir(folder) if folder.exists() else []:
        with contextlib.suppress(FileNotFoundError):  # the listing itself, which is closed by now
            found.add((number, os.readlink(folder / number)))
    return found


def global_state():
    gc.collect()  # closes files that earlier tests left to the garbage collector
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    return {
        "BLAS threads": numbers_of_threads(),
        "warning filters": list(warnings.filters),
        "random state": np.random.get_state()[1].tolist(),  # noqa: NPY002
        "environment": dict(os.environ),
        "floating-point errors": np.geterr(),
        "descriptors": open_files(),
        "children": children.read_text() if children.exists() else "",
        "threads": threading.active_count(),
        "folder": os.getcwd(),
    }


def fit(estimator, X, groups):
    found = type(estimator)(**estimator.get_params()).fit(X, sensitive_features=groups)
    return found.transform(X)


@pytest.mark.usefixtures("two_threads")
def test_eight_threads_fit_every_estimator_at_once(two_groups):
    X, groups = two_groups[0][::4, :4], two_groups[1][::4]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations are meant; filters of the process are not for threads to set
        expected = [fit(estimator, X, groups) for estimator in ESTIMATORS]
        before = global_state()
        tasks = [(position, estimator) for position, estimator in enumerate(ESTIMATORS) for _ in range(8)]
        order = np.random.default_rng(0).permutation(len(tasks))
        with ThreadPoolExecutor(8) as pool:
            runs = [(tasks[i][0], pool.submit(fit, tasks[i][1], X, groups)) for i in order]
            found = [(position, run.result()) for position, run in runs]
        after = global_state()
    for position, scores in found:
        # Sums of Fourier features are float32, and direct the search. 1e-6 is below their rounding: adding the same
        # terms in reverse order changes scores of data like these by 2e-7 to 2e-4, and threads may change the order.
        tolerance = 1e-5 if getattr(ESTIMATORS[position], "approximation", "") == "fourier" else 1e-6
        message = str(ESTIMATORS[position])
        np.testing.assert_allclose(scores, expected[position], rtol=tolerance, atol=tolerance, err_msg=message)
    for name, value in before.items():
        if name == "descriptors":  # what earlier tests left may be closed meanwhile
            assert after[name] <= value
        else:
            assert after[name] == value, name


@pytest.mark.usefixtures("two_threads")
def test_comparison_and_frontier_leave_nothing_behind(two_groups):
    X, groups = two_groups
    before = global_state()
    compare(X, sensitive_features=groups, n_components=2, methods=["PCA", "FairPCA"], n_permutations=19)
    frontier(X, sensitive_features=groups, n_components=2, n_points=5)
    after = global_state()
    for name, value in before.items():
        if name == "descriptors":  # what earlier tests left may be closed meanwhile
            assert after[name] <= value
        else:
            assert after[name] == value, name
