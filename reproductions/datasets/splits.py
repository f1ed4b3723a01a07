"""Train and test splits in the folder layout of Lee et al. (2022)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

__all__ = ["load_splits"]


def load_splits(folder: Any, *, splits: Any = None) -> Iterator[Bunch]:
    """Read ``train_i.csv`` and ``test_i.csv`` pairs, one split at a time.

    The files have no header; the last column is the sensitive feature (0/1), the last but one the label, the
    rest are features, standardised by the authors on the training rows.

    Parameters
    ----------
    folder : path-like
        The folder with the files of one data set.
    splits : iterable of int, optional
        Which splits to read; default: all that exist.

    Yields
    ------
    Bunch
        ``split``, and for both parts ``X_train``, ``y_train``, ``sensitive_train``, ``X_test``, ``y_test``,
        ``sensitive_test``.

    See Also
    --------
    load_tables : Tables without given splits.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from reproductions.datasets import load_splits
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("train_0.csv", "test_0.csv"):
    ...     _ = (folder / name).write_text("0.5,-1.0,1,0\\n-0.5,1.0,0,1\\n")
    >>> [split.X_train.shape for split in load_splits(folder)]
    [(2, 2)]
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"folder={str(folder)!r} does not exist; it must contain train_0.csv, test_0.csv, ...")
    found = sorted(
        int(match[1]) for path in folder.iterdir() if (match := re.fullmatch(r"train_(\d+)\.csv", path.name))
    )
    wanted = found if splits is None else [int(split) for split in splits]
    missing = [split for split in wanted if not (folder / f"train_{split}.csv").is_file()]
    if missing or not wanted:
        raise FileNotFoundError(
            f"folder={str(folder)!r} has no train_{missing[0] if missing else 0}.csv; it has splits {found}."
        )
    return (_read_split(folder, split) for split in wanted)


def _read_split(folder: Path, split: int) -> Bunch:
    bunch = Bunch(split=split)
    for part in ("train", "test"):
        table = _read_table(folder / f"{part}_{split}.csv")
        bunch[f"X_{part}"] = np.ascontiguousarray(table[:, :-2])
        bunch[f"y_{part}"] = table[:, -2].astype(np.int64)
        bunch[f"sensitive_{part}"] = table[:, -1].astype(np.int64)
    if bunch.X_train.shape[1] != bunch.X_test.shape[1]:
        raise ValueError(
            f"train_{split}.csv has {bunch.X_train.shape[1]} features and test_{split}.csv "
            f"{bunch.X_test.shape[1]}: they must have the same columns."
        )
    return bunch


def _read_table(path: Path) -> np.ndarray:
    if not path.is_file():
        raise FileNotFoundError(f"{str(path)!r} does not exist; each train_i.csv needs its test_i.csv.")
    table = np.loadtxt(path, delimiter=",", ndmin=2)
    if table.shape[1] < 3:
        raise ValueError(
            f"{str(path)!r} has {table.shape[1]} columns; at least one feature, the label and the group are needed."
        )
    return table
