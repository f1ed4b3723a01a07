"""Side-by-side timing: candidates take turns, and the median of each is compared."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable


def alternate(
    candidates: dict[str, Callable[[], object]], repeats: int = 5, *, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Median seconds of each candidate; they run in turn, so that a busy moment hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for run in candidates.values():
        run()  # caches, thread pools and lazy imports
    for _ in range(repeats):
        for name, run in candidates.items():
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def peak_memory(run: Callable[[], object]) -> float:
    """Megabytes that numpy and Python allocated on top of what was there."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6
