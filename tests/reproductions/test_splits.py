"""The folder layout of Lee et al."""

import numpy as np
import pytest

from reproductions.datasets import load_splits


@pytest.fixture
def folder(tmp_path):
    for split in (0, 2, 10):
        for part, n in (("train", 3), ("test", 2)):
            table = np.column_stack([np.full((n, 2), split + 0.5), np.arange(n) % 2, np.arange(n) % 2 == 0])
            np.savetxt(tmp_path / f"{part}_{split}.csv", table, delimiter=",")
    return tmp_path


def test_columns_and_order(folder):
    splits = list(load_splits(folder))
    assert [split.split for split in splits] == [0, 2, 10]
    first = splits[0]
    assert first.X_train.tolist() == [[0.5, 0.5]] * 3
    assert first.y_train.tolist() == [0, 1, 0]
    assert first.sensitive_train.tolist() == [1, 0, 1]
    assert first.X_test.shape == (2, 2)
    assert [split.split for split in load_splits(folder, splits=[10])] == [10]


def test_errors(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no train_1\.csv; it has splits \[0, 2, 10\]"):
        load_splits(folder, splits=[1])
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_splits(tmp_path / "nowhere")
    (folder / "test_2.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"needs its test_i\.csv"):
        list(load_splits(folder))
    (folder / "test_2.csv").write_text("1,0,1\n")
    with pytest.raises(ValueError, match="same columns"):
        list(load_splits(folder))


def test_authors_files(shared_data):
    split = next(load_splits(shared_data / "lee2022" / "datasets" / "German"))
    assert split.X_train.shape == (700, 57)
    assert split.X_test.shape == (300, 57)
    assert np.abs(split.X_train.mean(axis=0)).max() < 1e-12
    assert set(split.sensitive_train) == {0, 1}
