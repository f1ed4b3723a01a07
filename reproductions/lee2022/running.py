"""Independent jobs on all cores, with results in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sklearn.utils.parallel import Parallel, delayed

from reproductions._outcome import Progress

__all__ = ["Job", "run_jobs"]


class Job(NamedTuple):
    """A call of a module-level function, and its label for the progress bar."""

    label: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def run_jobs(jobs: Sequence[Job], progress: Progress, *, n_jobs: int = -1) -> list[Any]:
    """Results in the order of the jobs; ``n_jobs`` processes, by default one per core, each with one BLAS thread."""
    calls = (delayed(job.function)(*job.arguments) for job in jobs)
    results: list[Any] = []
    progress(0, len(jobs), jobs[0].label if jobs else "")
    for result in Parallel(n_jobs=n_jobs, return_as="generator")(calls):
        results.append(result)
        following = jobs[len(results)].label if len(results) < len(jobs) else "report"
        progress(len(results), len(jobs), following)
    return results
