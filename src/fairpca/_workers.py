"""Worker processes that exit when their parent process does, even if it is killed."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from sklearn.utils.parallel import Parallel, delayed

__all__ = ["delayed", "parallel"]


def parallel(n_jobs: int | None, **options: Any) -> Parallel:
    """Scikit-learn's ``Parallel`` with workers that exit with this process; joblib's own would linger for minutes.

    Examples
    --------
    >>> from fairpca._workers import delayed, parallel
    >>> parallel(2)(delayed(abs)(number) for number in (-1, 2, -3))
    [1, 2, 3]
    """
    return Parallel(n_jobs=n_jobs, initializer=_watch(), initargs=(os.getpid(),), **options)


@functools.cache  # joblib reuses its processes as long as it gets the same function
def _watch() -> Callable[[int], None]:
    """A function without a module, so that the worker need not import fairpca, which takes a second, to run it."""

    def end_with_parent(parent: int) -> None:
        import os
        import threading
        import time

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(0.2)
            os._exit(1)

        if os.name == "posix":  # elsewhere the parent's process id does not change when it exits
            threading.Thread(target=watch, daemon=True).start()

    return end_with_parent
