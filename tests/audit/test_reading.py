"""Files are read according to their extension; errors name other encodings and wrong extensions, with a remedy."""

from __future__ import annotations

import pytest
from tests.audit.files import rows, write

from fairpca.audit import prepare, read_table

pyarrow = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("name", ["people.csv", "people"])
@pytest.mark.parametrize("kind", ["Parquet", "Feather"])
def test_a_wrong_extension_is_reported_with_the_right_one(tmp_path, name, kind):
    table = pyarrow.table({"x": [0.1, 0.2], "sex": ["f", "m"]})
    path = tmp_path / name
    parquet.write_table(table, path) if kind == "Parquet" else feather.write_feather(table, str(path))
    with pytest.raises(ValueError, match=rf"{name} is not a text file in UTF-8: .* files \.parquet and \.feather\.$"):
        read_table(path)


def test_other_binary_files_and_utf_16_are_refused(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"PK\x03\x04\xff\0\0\0")
    with pytest.raises(ValueError, match=r"people\.csv is not a text file in UTF-8: use CSV"):
        read_table(path)
    path.write_bytes("age,sex\n1,f\n".encode("utf-16"))
    with pytest.raises(ValueError, match="is encoded in UTF-16, not in UTF-8"):
        read_table(path)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_and_byte_order_mark(tmp_path, delimiter):
    text = "\ufeff" + rows().replace(",", delimiter)
    assert list(read_table(write(tmp_path, text)).types) == ["age", "city", "sex", "default"]


def test_other_encodings_name_line_and_remedy(tmp_path):
    with pytest.raises(ValueError, match=r"not encoded in UTF-8 \(byte 0xf6 in line 4\).*iconv"):
        prepare(write(tmp_path, rows(), encoding="latin1"), "sex")


@pytest.mark.parametrize(("encoding", "named"), [("utf-16", "UTF-16"), ("utf-32", "UTF-32")])
def test_wide_encodings_are_named_in_the_remedy(tmp_path, encoding, named):
    path = write(tmp_path, rows(), encoding=encoding)
    with pytest.raises(ValueError, match=rf"in {named}, not in UTF-8.*iconv -f {named} -t UTF-8") as caught:
        read_table(path)
    converted = path.read_bytes().decode(str(caught.value).split("iconv -f ")[1].split()[0])
    assert converted == rows()
