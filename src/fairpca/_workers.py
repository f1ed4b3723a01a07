"""Worker processes that end when their parent does, however it ends."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from sklearn.utils.parallel import Parallel, delayed

__all__ = ["delayed", "parallel"]


def parallel(n_jobs: int | None, **options: Any) -> Parallel:
    """Scikit-learn's ``Parallel``, whose processes do not outlive this one: joblib's own wait for minutes.

    Examples
    --------
    >>> from fairpca._workers import delayed, parallel
    >>> parallel(2)(delayed(abs)(number) for number in (-1, 2, -3))
    [1, 2, 3]
    """
    return Parallel(n_jobs=n_jobs, initializer=_watch(), initargs=(os.getpid(),), **options)


@functools.cache  # joblib keeps its processes as long as it is given the same function
def _watch() -> Callable[[int], None]:
    """A function without a module: it runs in a process that has not imported fairpca yet, which takes a second."""

    def end_with_parent(parent: int) -> None:
        import os
        import threading
        import time

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(0.2)
            os._exit(1)

        if os.name == "posix":  # elsewhere the number of a parent stays when it is gone
            threading.Thread(target=watch, daemon=True).start()

    return end_with_parent
