"""Readers of folders of prepared tables."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

__all__ = ["load_table", "load_tables"]


def load_tables(folder: Any, *, drop_constant: bool = True) -> dict[str, Bunch]:
    """Load every table of a folder in the layout of Vu et al. (2022).

    Parameters
    ----------
    folder : str or path
        Holds ``*.csv`` files with a header line; the last column is the group, the last but one the label,
        the others are features.
    drop_constant : bool, default=True
        Drop constant columns before features, label and group are identified by position, as the authors' own reader
        does. (If the label is constant, the feature before it is then taken as the label.)

    Returns
    -------
    dict
        Maps each file name without suffix to what :func:`load_table` returns.

    See Also
    --------
    load_table : One table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from reproductions.datasets import load_tables
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "small.csv").write_text("height,weight,label,group\\n1.5,50,1,0\\n1.7,80,0,1\\n")
    >>> table = load_tables(folder)["small"]
    >>> table.data.shape, table.feature_names, table.sensitive_features.tolist()
    ((2, 2), ['height', 'weight'], [0, 1])
    """
    folder = Path(folder)
    paths = sorted(folder.glob("*.csv"))
    if not paths:
        raise FileNotFoundError(f"folder={str(folder)!r} contains no .csv file; pass the folder with the tables.")
    return {path.stem: load_table(path, drop_constant=drop_constant) for path in paths}


def load_table(path: Any, *, drop_constant: bool = True) -> Bunch:
    """Load one table: features, then the label, then the group, under a header line.

    Parameters
    ----------
    path : str or path
        A ``.csv`` file in the layout that :func:`load_tables` describes.
    drop_constant : bool, default=True
        As in :func:`load_tables`.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``sensitive_features``, ``feature_names``, ``target_name``, ``sensitive_name``.
        Nothing is standardised.

    See Also
    --------
    load_tables : All tables of a folder.

    Examples
    --------
    >>> import os, tempfile
    >>> from reproductions.datasets import load_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "people.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("age,income,default,sex\\n30,2,0,1\\n40,3,1,0\\n")
    ...     people = load_table(path)
    >>> people.feature_names, people.sensitive_name
    (['age', 'income'], 'sex')
    """
    path = Path(path)
    with path.open(newline="", encoding="utf-8") as file:
        names = [name.strip().strip('"') for name in next(csv.reader(file, skipinitialspace=True))]
    try:
        table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2, quotechar='"', encoding="utf-8")
    except ValueError as error:
        raise ValueError(f"{path} is not a table of numbers under one header line: {error}") from None
    if table.shape[1] != len(names) or len(names) < 3:
        raise ValueError(
            f"{path} has {len(names)} names for {table.shape[1]} columns; it needs at least one feature, a "
            "label and a group column, each with a name."
        )
    if drop_constant:
        varying = np.ptp(table, axis=0) > 0
        table, names = table[:, varying], [name for name, kept in zip(names, varying, strict=True) if kept]
    return Bunch(
        data=table[:, :-2].copy(),
        target=_labels(table[:, -2]),
        sensitive_features=_labels(table[:, -1]),
        feature_names=names[:-2],
        target_name=names[-2],
        sensitive_name=names[-1],
    )


def _labels(column: np.ndarray) -> np.ndarray:
    """Whole numbers as integers."""
    return column.astype(np.int64) if (column == np.rint(column)).all() else column.copy()
