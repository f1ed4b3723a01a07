"""Readers for the data of Samadi et al. (2018): face images and the default-credit table."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

__all__ = ["load_credit", "load_faces"]

#: Values of EDUCATION that count as higher education: graduate school and university.
_HIGHER = (1, 2)
_SEX = np.array(["women", "men"])
_IDENTIFIERS = ("", "id")
#: A table may have this many lines before its numbers: two in the authors' file.
_HEADER_LINES = 5


def load_faces(path: Any) -> Bunch:
    """Load images and their groups.

    Parameters
    ----------
    path : str or path
        An ``.npz`` file that holds either ``gray3``, ``lut`` and ``sex`` (pixels ``lut[gray3]`` from 0 to 255, divided
        by 255 here as in the paper; sex 1 = men, 0 = women) or ``X`` and ``groups`` (used unchanged). Or the
        authors' folder: ``sex.txt`` and one file ``img0.txt``, ``img1.txt``, ... per row of it.

    Returns
    -------
    Bunch
        ``data`` (one image per row) and ``sensitive_features``.

    See Also
    --------
    load_credit : The other data of the same paper.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from reproductions.datasets import load_faces
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.npz"
    >>> np.savez(path, gray3=[[0, 1], [1, 1]], lut=[0.0, 255.0], sex=[1, 0])
    >>> faces = load_faces(path)
    >>> faces.data.tolist(), faces.sensitive_features.tolist()
    ([[0.0, 1.0], [1.0, 1.0]], ['men', 'women'])
    """
    path = Path(path)
    if path.is_dir():
        pixels, sex = _read_images(path)
        return _checked(pixels / 255.0, _SEX[sex], path)
    with np.load(path, allow_pickle=False) as file:
        if {"gray3", "lut", "sex"} <= set(file):
            lut = np.asarray(file["lut"], dtype=float) / 255.0
            return _checked(lut[file["gray3"]], _SEX[_binary(file["sex"], path)], path)
        if {"X", "groups"} <= set(file):
            return _checked(np.asarray(file["X"], dtype=float), file["groups"], path)
        held = ", ".join(sorted(file)) or "nothing"
    raise ValueError(f"{path} contains {held}; it needs the arrays gray3, lut and sex, or X and groups.")


def _read_images(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    sex = _binary(np.loadtxt(folder / "sex.txt", ndmin=1), folder / "sex.txt")
    rows = [
        np.array((folder / f"img{i}.txt").read_text(encoding="utf-8").split(), dtype=float) for i in range(len(sex))
    ]
    if len({len(row) for row in rows}) != 1:
        raise ValueError(f"{folder}: the images img0.txt, img1.txt, ... differ in their number of pixels.")
    return np.stack(rows), sex


def _binary(values: np.ndarray, path: Path) -> np.ndarray:
    values = np.asarray(values).reshape(-1)
    if not np.isin(values, (0, 1)).all():
        raise ValueError(f"{path}: sex must be 0 (women) or 1 (men) throughout.")
    return values.astype(np.intp)


def _checked(data: np.ndarray, groups: np.ndarray, path: Path) -> Bunch:
    groups = np.asarray(groups).reshape(-1)
    if data.ndim != 2 or len(data) != len(groups):
        raise ValueError(f"{path}: {len(groups)} group labels for data of shape {data.shape}; one per row is needed.")
    return Bunch(data=data, sensitive_features=groups)


def load_credit(path: Any) -> Bunch:
    """Load a table in the layout of the authors' ``default_degree.csv``.

    Parameters
    ----------
    path : str or path
        A ``.csv`` file whose last line before the numbers contains the column names. The sensitive column is EDUCATION
        or, if there is none, the first one after ID. Values 1 and 2 form one group (higher education), all others the
        other; if one of these would be empty, the two values that occur are the groups. ID and the label of the raw
        UCI file (``default...``) are not features; all remaining columns are.

    Returns
    -------
    Bunch
        ``data``, ``sensitive_features``, ``feature_names``, ``sensitive_name``. Nothing is standardised.

    See Also
    --------
    load_faces : The other data of the same paper.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from reproductions.datasets import load_credit
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.csv"
    >>> _ = path.write_text("ID,EDUCATION,AGE,LIMIT\\n1,2,30,10\\n2,3,40,20\\n")
    >>> credit = load_credit(path)
    >>> credit.feature_names, credit.sensitive_features.tolist()
    (['AGE', 'LIMIT'], ['higher education', 'lower education'])
    """
    path = Path(path)
    names, skipped = _header(path)
    sensitive = _sensitive_column(names, path)
    try:
        table = np.loadtxt(path, delimiter=",", skiprows=skipped, ndmin=2, quotechar='"', encoding="utf-8-sig")
    except ValueError as error:
        raise ValueError(f"{path} is not a table of numbers below its header: {error}") from None
    if table.shape[1] != len(names):
        raise ValueError(f"{path} has {len(names)} names for {table.shape[1]} columns.")
    kept = [j for j, name in enumerate(names) if j != sensitive and _is_feature(name)]
    return Bunch(
        data=table[:, kept],
        sensitive_features=_two_groups(table[:, sensitive], names[sensitive], path),
        feature_names=[names[j] for j in kept],
        sensitive_name=names[sensitive],
    )


def _header(path: Path) -> tuple[list[str], int]:
    """The names, and the number of lines above the numbers."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(itertools.islice(csv.reader(file), _HEADER_LINES + 1))
    numbers = [i for i, row in enumerate(rows) if row and _holds_numbers(row)]
    if not numbers or numbers[0] == 0:
        raise ValueError(f"{path} is not a table of numbers below a line with their names.")
    return [name.strip() for name in rows[numbers[0] - 1]], numbers[0]


def _holds_numbers(row: list[str]) -> bool:
    try:
        np.array(row, dtype=float)
    except ValueError:
        return False
    return True


def _sensitive_column(names: list[str], path: Path) -> int:
    upper = [name.upper() for name in names]
    if "EDUCATION" in upper:
        return upper.index("EDUCATION")
    if len(names) > 2 and names[0].lower() in _IDENTIFIERS:
        return 1
    raise ValueError(f"{path} has neither a column EDUCATION nor a first column ID with the group after it.")


def _is_feature(name: str) -> bool:
    return name.lower() not in _IDENTIFIERS and not name.lower().startswith("default")


def _two_groups(values: np.ndarray, name: str, path: Path) -> np.ndarray:
    higher = np.isin(values, _HIGHER)
    if 0 < higher.sum() < len(values):
        names = (
            ("lower education", "higher education") if name.upper() == "EDUCATION" else (f"other {name}", f"{name} 1-2")
        )
        return np.array(names)[higher.astype(np.intp)]
    found = np.unique(values)
    if len(found) != 2:
        raise ValueError(f"{path}: column {name} does not divide the rows into two groups.")
    return np.array([f"{name} {value:g}" for value in found])[(values == found[1]).astype(np.intp)]
