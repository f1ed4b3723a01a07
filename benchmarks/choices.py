"""What the options of FairPCA cost, as ratios to the plain fit with as many components: relative, nested, a share.

Run: ``python benchmarks/choices.py``.
"""

from __future__ import annotations

import time
from statistics import median

from fairpca import FairPCA
from fairpca.datasets import load_german_credit
from fairpca.linalg import single_blas_thread
from fairpca.moments import group_moments

_ROUNDS = 15


def _seconds(estimator: FairPCA, moments) -> float:
    start = time.process_time()
    estimator.fit_moments(moments)
    return time.process_time() - start


def main() -> None:
    """Print the ratios, interleaved medians of process time with one BLAS thread, moments given."""
    X, sex = load_german_credit(return_X_s=True)
    moments = group_moments(X, sensitive_features=sex)
    chosen = FairPCA(0.8).fit_moments(moments).n_components_
    cases = {
        "relative, 10 components": (FairPCA(10, relative=True), FairPCA(10)),
        "nested, 10 components": (FairPCA(10, nested=True), FairPCA(10)),
        f"share 0.8 ({chosen} components)": (FairPCA(0.8), FairPCA(chosen)),
        f"share 0.8, nested ({chosen} components)": (FairPCA(0.8, nested=True), FairPCA(chosen)),
    }
    with single_blas_thread():
        for name, pair in cases.items():
            times = [[_seconds(one, moments) for one in pair] for _ in range(_ROUNDS)]
            option, plain = (median(column) for column in zip(*times, strict=True))
            print(f"{name:40} {option / plain:6.1f} x the plain fit ({1e3 * plain:.1f} ms)")


if __name__ == "__main__":
    main()
