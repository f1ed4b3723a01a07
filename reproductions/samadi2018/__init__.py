"""Samadi, Tantipongpipat, Morgenstern, Singh and Vempala (2018), The Price of Fair PCA: One Extra Dimension.

``python -m reproductions samadi2018 --data FOLDER``: errors and losses by group on the faces and the credit table
(Figures 1, 3 and 4), rank d instead of d + 1, and the paper's algorithms compared with ours.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reproductions._differences import difference_tables, sentences
from reproductions._outcome import Outcome, Progress
from reproductions._steps import Steps
from reproductions.samadi2018.claims import claims_of, count_unexamined
from reproductions.samadi2018.comparisons import comparisons_of
from reproductions.samadi2018.drawings import drawings_of
from reproductions.samadi2018.protocol import Data, find_sources, read
from reproductions.samadi2018.study import Study, count_steps, measure
from reproductions.samadi2018.tables import file_name, tables_of

__all__ = ["WHERE", "run"]

WHERE = (
    "the authors' data folder, to which the README of their public repository samirasamadi/Fair-PCA links "
    "(images/sex.txt with images/img0.txt, img1.txt, ... and credit/default_degree.csv), or a folder with .npz files "
    "of images (arrays gray3, lut and sex, or X and groups) and .csv files in the layout of the credit table (a line "
    "of names, then numbers; the group in the column EDUCATION or in the one after ID; the raw UCI file works)."
)


def run(folder: Path, *, quick: bool, errata: bool, progress: Progress) -> Outcome:
    """Repeat the experiments on every file of a known layout in the folder."""
    data, remarks = _read_all(folder, progress)
    compared = [] if quick else [comparison for item in data for comparison in comparisons_of(item)]
    total = sum(count_steps(item, quick=quick, errata=errata) for item in data)
    steps = Steps(progress, total + sum(comparison.steps for comparison in compared))
    studies = [measure(item, quick=quick, errata=errata, step=steps) for item in data]
    differences = [one for comparison in compared for one in comparison.judge(steps)]
    return Outcome(
        "samadi2018",
        "Samadi et al. (2018), The Price of Fair PCA: One Extra Dimension",
        [claim for item in studies for claim in claims_of(item)],
        [*difference_tables(differences), *(table for item in studies for table in tables_of(item))],
        drawings_of(studies),
        [*_remarks(studies), *remarks],
        quick,
        unexamined=sum(map(count_unexamined, studies)),
        differences=sentences(differences),
    )


def _read_all(folder: Path, progress: Progress) -> tuple[list[Data], list[str]]:
    """Every readable file, and a remark on each that is not of a known layout."""
    sources = find_sources(folder)
    data: list[Data] = []
    remarks = []
    for i, source in enumerate(sources):
        progress(i, len(sources), f"reading {source.name}")
        try:
            data.append(_renamed(read(source), data))
        except ValueError as problem:
            remarks.append(f"Left out: {problem}")
    if not data:
        reasons = " ".join(remarks)
        raise FileNotFoundError(
            f"folder={str(folder)!r} holds no data of samadi2018. It needs {WHERE} {reasons}".strip()
        )
    return data, remarks


def _renamed(item: Data, others: list[Data]) -> Data:
    """A second data set of the same name gets a number, so that no table overwrites another."""
    taken = {file_name(other.name) for other in others}
    number, name = 2, item.name
    while file_name(name) in taken:
        name, number = f"{item.name}-{number}", number + 1
    return replace(item, name=name)


def _remarks(studies: list[Study]) -> list[str]:
    remarks = ["Figures 1, 3 and 4 are printed without numbers; statements of the text about them are checked instead."]
    for item in studies:
        remarks += [f"{item.title}: {remark}" for remark in item.remarks]
        if item.errata and item.pooled is not None:
            below = [
                s.dimension for s in item.errata if s.fair < item.pooled.largest[item.fair.row(s.dimension)] - 1e-9
            ]
            remarks.append(
                f"{item.title}: with the erratum of creditProcess.m the script's loss lies below the optimum about the "
                f"common mean at d = {', '.join(map(str, below)) or 'none'}."
            )
    return remarks
