"""Readers of folders, and the toy generator."""

import numpy as np
import pytest

from fairpca.datasets import make_toy
from reproductions.datasets import load_table, load_tables


def test_layout(tmp_path):
    (tmp_path / "one.csv").write_text('a,"""b""", c,constant,label,group\n1,2,3,9,0,1\n4,5,6,9,1,0\n1,1,1,9,0,0\n')
    (tmp_path / "two.csv").write_text("x,y,g\n0.5,1,0\n0.25,0,1\n")
    tables = load_tables(tmp_path)
    assert list(tables) == ["one", "two"]
    one = tables["one"]
    assert one.feature_names == ["a", "b", "c"]
    np.testing.assert_array_equal(one.data, [[1, 2, 3], [4, 5, 6], [1, 1, 1]])
    np.testing.assert_array_equal(one.target, [0, 1, 0])
    np.testing.assert_array_equal(one.sensitive_features, [1, 0, 0])
    assert (one.target_name, one.sensitive_name) == ("label", "group")
    assert load_table(tmp_path / "one.csv", drop_constant=False).feature_names == ["a", "b", "c", "constant"]


def test_empty_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no \.csv"):
        load_tables(tmp_path)


@pytest.mark.parametrize("text", ["a,b,g\n1,2,x\n3,4,1\n", "a,b,g\n1,2\n3,4,1\n"])
def test_broken_table_is_named(tmp_path, text):
    (tmp_path / "broken.csv").write_text(text)
    with pytest.raises(ValueError, match=r"broken\.csv"):
        load_table(tmp_path / "broken.csv")


def test_sizes_are_those_of_the_paper(shared_data):
    shapes = {name: table.data.shape for name, table in load_tables(shared_data / "vu2022").items()}
    assert shapes["Biodeg_Data"] == (1055, 40)
    assert shapes["Ecoli_Data"] == (333, 7)
    assert shapes["German_Credit_Data"] == (1000, 48)
    assert shapes["Taiwanese_Credit_Data"] == (29623, 22)


def test_toy_has_the_stated_covariances():
    X, groups = make_toy((200_000, 100_000), random_state=0)
    np.testing.assert_allclose(np.cov(X[groups == 0].T), [[4, 0], [0, 0.2]], atol=0.05)
    np.testing.assert_allclose(np.cov(X[groups == 1].T), [[0.2, 0.4], [0.4, 3]], atol=0.05)
    again, _ = make_toy((200_000, 100_000), random_state=0)
    np.testing.assert_array_equal(X, again)


def test_columns_that_never_vary_are_kept_on_request(tmp_path):
    (tmp_path / "small.csv").write_text("height,fixed,label,group\n1.5,7,1,0\n1.7,7,0,1\n")
    assert load_tables(tmp_path)["small"].feature_names == ["height"]
    assert load_tables(tmp_path, drop_constant=False)["small"].feature_names == ["height", "fixed"]
