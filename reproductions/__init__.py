"""Reproductions: one folder per paper, with its claims, the experiments, the published values and the tolerances.

``python -m reproductions PAPER --data FOLDER`` on the command line, :func:`reproduce` from Python.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from reproductions._outcome import Claim, Drawing, Outcome, Progress, Table

__all__ = ["PAPERS", "Claim", "Drawing", "Outcome", "Progress", "Table", "reproduce"]

#: Folder name and title of each paper.
PAPERS = {
    "samadi2018": "Samadi et al. 2018, The Price of Fair PCA: One Extra Dimension",
    "lee2022": "Lee et al. 2022, Fast and Efficient MMD-Based Fair PCA via Optimization over Stiefel Manifold",
    "vu2022": "Vu et al. 2022, Distributionally Robust Fair Principal Components via Geodesic Descents",
}


def reproduce(
    paper: str, data: Any, *, quick: bool = False, errata: bool = False, progress: Progress | None = None
) -> Outcome:
    """Repeat the experiments of a paper on its authors' public data.

    Parameters
    ----------
    paper : str
        One of :data:`PAPERS`.
    data : path
        The authors' data folder as they publish it, or a folder that holds it under the name of the paper.
    quick : bool, default=False
        A smaller run that takes less than a minute and gives no verdicts, neither on published values nor on
        differences between groups.
    errata : bool, default=False
        Repeat the known errata of the authors' scripts too, so that their printed values can be traced.
    progress : callable, optional
        Called with the number of completed steps, the total number of steps and the next step.

    Returns
    -------
    Outcome
        ``outcome.write(folder)`` writes the report, the tables and the figures.
    """
    if paper not in PAPERS:
        raise ValueError(f"paper={paper!r} is not one of {', '.join(PAPERS)}.")
    module = importlib.import_module(f"reproductions.{paper}")
    return module.run(_folder(paper, data, module.WHERE), quick=quick, errata=errata, progress=progress or _silent)


def _folder(paper: str, data: Any, where: str) -> Path:
    """The paper's own folder: the one given, or the one of that name inside it."""
    if data is None:
        raise FileNotFoundError(f"{paper} needs its data: {where} Then give the folder with --data.")
    folder = Path(data)
    if not folder.is_dir():
        raise FileNotFoundError(f"data={str(folder)!r} is not a folder. {paper} needs its data: {where}")
    return folder / paper if (folder / paper).is_dir() else folder


def _silent(done: int, total: int, next_step: str) -> None:
    return None
