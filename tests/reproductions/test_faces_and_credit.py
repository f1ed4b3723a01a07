"""Readers of images and of the credit table."""

import numpy as np
import pytest

from reproductions.datasets import load_credit, load_faces


def test_pixels_are_looked_up_and_scaled(tmp_path):
    np.savez(tmp_path / "a.npz", gray3=[[0, 2], [1, 0], [2, 2]], lut=[0.0, 51.0, 255.0], sex=[0, 1, 1])
    faces = load_faces(tmp_path / "a.npz")
    np.testing.assert_allclose(faces.data, [[0, 1], [0.2, 0], [1, 1]])
    assert faces.sensitive_features.tolist() == ["women", "men", "men"]


def test_features_and_groups_are_taken_as_they_are(tmp_path):
    np.savez(tmp_path / "a.npz", X=[[300.0, 2.0], [1.0, 0.0]], groups=["x", "y"])
    faces = load_faces(tmp_path / "a.npz")
    assert faces.data.tolist() == [[300, 2], [1, 0]]
    assert faces.sensitive_features.tolist() == ["x", "y"]


def test_folder_of_images(tmp_path):
    (tmp_path / "sex.txt").write_text("1\n0\n")
    (tmp_path / "img0.txt").write_text("0 255\n51 0\n")
    (tmp_path / "img1.txt").write_text("255 255 255 255\n")
    faces = load_faces(tmp_path)
    np.testing.assert_allclose(faces.data, [[0, 1, 0.2, 0], [1, 1, 1, 1]])
    assert faces.sensitive_features.tolist() == ["men", "women"]
    (tmp_path / "img1.txt").write_text("255\n")
    with pytest.raises(ValueError, match="number of pixels"):
        load_faces(tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"pixels": [[1.0]]}, "contains pixels; it needs"),
        ({"X": [[1.0], [2.0]], "groups": [1, 2, 3]}, "3 group labels"),
        ({"gray3": [[0], [0]], "lut": [1.0], "sex": [1, 2]}, "sex must be 0"),
    ],
)
def test_other_arrays_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load_faces(tmp_path / "a.npz")


def test_no_objects_are_unpickled(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(2), groups=np.array(["a", None], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        load_faces(tmp_path / "a.npz")


def _write(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    return path


def test_authors_layout_has_two_lines_of_names(tmp_path):
    path = _write(tmp_path, ",X3,X2,X1\nID,EDUCATION,SEX,LIMIT\n1,2,1,10\n2,3,2,20\n3,0,2,30\n4,1,1,40\n")
    credit = load_credit(path)
    assert credit.feature_names == ["SEX", "LIMIT"]
    assert credit.data.tolist() == [[1, 10], [2, 20], [2, 30], [1, 40]]
    assert credit.sensitive_features.tolist() == [
        "higher education", "lower education", "lower education", "higher education",
    ]  # fmt: skip


def test_raw_layout_has_the_group_elsewhere_and_a_label(tmp_path):
    credit = load_credit(_write(tmp_path, "LIMIT,EDUCATION,AGE,default.payment.next.month\n1,1,5,0\n2,3,6,1\n"))
    assert credit.feature_names == ["LIMIT", "AGE"]
    assert credit.sensitive_features.tolist() == ["higher education", "lower education"]


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ("12", ["SEX 1", "SEX 2"]),
        ("34", ["SEX 3", "SEX 4"]),
        ("01", ["other SEX", "SEX 1-2"]),
        ("1203", ["SEX 1-2", "SEX 1-2", "other SEX", "other SEX"]),
    ],
)
def test_any_column_after_the_identifier_divides_the_rows(tmp_path, values, groups):
    rows = "".join(f"{i},{value},{i * i}\n" for i, value in enumerate(values))
    credit = load_credit(_write(tmp_path, "ID,SEX,AGE\n" + rows))
    assert credit.sensitive_features.tolist() == groups
    assert credit.feature_names == ["AGE"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "neither a column EDUCATION"),
        ("1,2\n3,4\n", "below a line with their names"),
        ("ID,EDUCATION,AGE\n1,3,4\n2,3,4\n", "two groups"),
        ("ID,EDUCATION,AGE\n1,1,4\n2,3,old\n", "not a table of numbers"),
        ("ID,EDUCATION\n1,1,4\n2,3,5\n", "2 names for 3 columns"),
        ("", "below a line with their names"),
    ],
)
def test_other_tables_are_refused_with_a_reason(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        load_credit(_write(tmp_path, text))
