"""CSV files: pyarrow reads them, and Python's csv module where a line is odd, which names the line that is wrong."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import itertools
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fairpca._progress import Report
from fairpca.audit.errors import TableError
from fairpca.audit.table import Restart, Table, check_unique, sliced
from fairpca.audit.texts import MissingTokens

__all__ = ["CsvTable"]

#: Bytes of a CSV file that are parsed at a time, unless its header is longer.
_BLOCK_BYTES = 1 << 20
#: A longer line is no line of a table.
_MOST_BYTES_OF_LINE = 1 << 28
_ROWS_OF_BATCH = 10_000
#: The first bytes of files that are not text.
_MAGIC = {b"PAR1": ("Parquet", ".parquet"), b"ARROW1": ("Feather", ".feather"), b"FEA1": ("Feather", ".feather")}


class CsvTable(Table):
    """A CSV file, read by pyarrow; files with odd lines by Python's csv module, which names the line that is wrong."""

    def __init__(self, path: Path, delimiter: str | None, missing: MissingTokens) -> None:
        import pyarrow

        self._path, self._checked = path, False
        #: What is not a regular file can be read only once.
        self._content = None if path.is_file() else path.read_bytes()
        super().__init__(path.name, {}, missing)
        with self._raw() as raw:
            _check_encoding(_Bytes(self._decompressed(raw), self.name, None).read(64), self.name)
        with self._raw() as raw:
            line = next(lines := self._lines(raw), "")
            if not (line.strip() or any(line.strip() for line in lines)):
                raise TableError(f"{self.name} is empty")
        self.delimiter = delimiter or max(",;\t", key=line.count)
        self._careful = not self.delimiter.isascii()  # which pyarrow cannot split at
        with self._raw() as raw:
            written = next(self._records(raw), [])
        if not written:
            raise TableError(f"{self.name} begins with an empty line", "name the columns in the first line")
        names = [text.strip() or f"column {number}" for number, text in enumerate(written, start=1)]
        check_unique(names, self.name, written)
        self.types = dict.fromkeys(names, pyarrow.string())
        self._block_bytes = max(_BLOCK_BYTES, 4 * len(line))
        #: Names whose blanks were removed.
        self.trimmed = [text for text in written if text.strip() and text != text.strip()]

    def sha256(self) -> str:
        with self._raw() as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def batches(self, names: Sequence[str], rows: int, progress: Report, doing: str) -> Iterator[Any]:
        if not self._checked:
            self._check()
        careful, names = self._careful or not names, list(dict.fromkeys(names))
        size, found = self._path.stat().st_size if self._content is None else len(self._content), 0
        with self._raw() if careful else self._native() as raw:
            parsed = self._parsed_by_python(raw, names) if careful else self._parsed_by_arrow(raw, names)
            for batch in sliced(parsed, rows):
                found += batch.num_rows
                progress(raw.tell(), size, doing)
                yield batch
        if not found:
            raise TableError(f"{self.name} has a header but no rows")
        self.n_rows = found

    def _check(self) -> None:
        """Read all bytes once; pyarrow's threads must not call Python, which may end before they do."""
        with self._raw() as raw:
            odd = rf'[\r\n{re.escape(self.delimiter or ",")}] +"'.encode()
            stream = _Bytes(self._decompressed(raw), self.name, odd)
            try:
                while stream.read(_BLOCK_BYTES):
                    pass
            except Restart:
                self._careful = True
        self._checked = True

    def _native(self) -> Any:
        import pyarrow

        return pyarrow.OSFile(str(self._path)) if self._content is None else pyarrow.BufferReader(self._content)

    def _parsed_by_arrow(self, raw: Any, names: list[str]) -> Iterator[Any]:
        import pyarrow.csv

        kinds = {".gz": "gzip", ".zst": "zstd"}
        kind, types = kinds.get(self._path.suffix.lower()), dict.fromkeys(names, pyarrow.string())
        try:
            batches = pyarrow.csv.open_csv(
                raw if kind is None else pyarrow.CompressedInputStream(raw, kind),
                pyarrow.csv.ReadOptions(block_size=self._block_bytes, column_names=list(self.types)),
                pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                pyarrow.csv.ConvertOptions(include_columns=names, column_types=types, strings_can_be_null=False),
            )
            for number, batch in enumerate(batches):
                yield batch if number else batch.slice(1)
        except pyarrow.ArrowException:
            self._careful = True
            raise Restart from None

    def _parsed_by_python(self, raw: Any, names: list[str]) -> Iterator[Any]:
        import pyarrow

        positions = [list(self.types).index(name) for name in names]
        records = itertools.islice(self._records(raw), 1, None)
        numbered = ((number, row) for number, row in enumerate(records, start=2) if row)
        while part := list(itertools.islice(numbered, _ROWS_OF_BATCH)):
            for number, row in part:
                if len(row) != len(self.types):
                    raise TableError(
                        f"{self.name}, line {number}: {len(row)} values, but the header names {len(self.types)} columns"
                    )
            columns = [pyarrow.array([row[j] for _, row in part], pyarrow.string()) for j in positions]
            yield pyarrow.RecordBatch.from_arrays(columns, names)

    def _records(self, raw: Any) -> Iterator[list[str]]:
        try:
            yield from csv.reader(self._lines(raw), delimiter=self.delimiter or ",", skipinitialspace=True)
        except csv.Error as problem:
            raise TableError(f"{self.name} is not valid CSV ({problem})", "correct it") from None

    def _lines(self, raw: Any) -> Iterator[str]:
        """The lines of the file as text; a quoted value may reach over several."""
        stream = io.BufferedReader(_Bytes(self._decompressed(raw), self.name), _BLOCK_BYTES)
        for number in itertools.count(1):
            line = stream.readline(_MOST_BYTES_OF_LINE)
            if not line:
                return
            if len(line) == _MOST_BYTES_OF_LINE:
                raise TableError(f"Line {number} of {self.name} is longer than {len(line):,} bytes", "correct it")
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as problem:
                raise TableError(
                    f"{self.name} is not encoded in UTF-8 (byte 0x{line[problem.start]:02x} in line {number})",
                    f"convert it first, for example with `iconv -f latin1 -t utf-8 {self.name} > converted.csv`",
                ) from None
            yield from io.StringIO(text, newline="")  # old Macs end lines by a carriage return

    def _raw(self) -> Any:
        return self._path.open("rb") if self._content is None else io.BytesIO(self._content)

    def _decompressed(self, raw: Any) -> Any:
        ending = self._path.suffix.lower()
        if ending == ".gz":
            return gzip.GzipFile(fileobj=raw)
        if ending == ".zst":
            import pyarrow

            return pyarrow.CompressedInputStream(raw, "zstd")
        return raw


class _Bytes(io.RawIOBase):
    """The bytes of a CSV file, checked as they are read: text has no zero bytes.

    :class:`Restart` is raised where ``odd`` matches, which is a blank before a quotation mark: pyarrow takes the mark
    for a part of the text, Python's csv module for the start of a quoted value. With None nothing is checked.
    """

    def __init__(self, stream: Any, name: str, odd: bytes | None = b"") -> None:
        self._stream, self._name, self._odd, self._last = stream, name, odd, b"\n"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            block = self._stream.read(len(buffer))
        except (OSError, EOFError, zlib.error) as problem:
            if isinstance(self._stream, io.BufferedReader):
                raise
            reason = str(problem).splitlines()[0].rstrip(".") if str(problem) else type(problem).__name__
            raise TableError(f"{self._name} cannot be decompressed ({reason})", "compress the file again") from None
        if self._odd is not None and b"\0" in block:
            raise TableError(f"{self._name} is not a text file", "use CSV", _NAMES_OF_OTHERS)
        if self._odd and b' "' in (seen := self._last + block) and re.search(self._odd, seen):
            raise Restart
        self._last = block[-64:]
        buffer[: len(block)] = block
        return len(block)


_NAMES_OF_OTHERS = "name Parquet and Feather files .parquet and .feather"


def _check_encoding(start: bytes, name: str) -> None:
    """Raise an error for files that are not text, and for text of two or four bytes per letter."""
    encoding = _wide_encoding(start)
    if encoding is not None:
        raise TableError(
            f"{name} is encoded in {encoding}, not in UTF-8",
            "save it as UTF-8",
            f"convert it with `iconv -f {encoding} -t UTF-8 {name} > converted.csv`",
        )
    for magic, (kind, ending) in _MAGIC.items():
        if start.startswith(magic) and b"\0" in start:
            raise TableError(f"{name} is not a text file but {kind}", f"rename it so that it ends in {ending}")
    if b"\0" in start:
        raise TableError(f"{name} is not a text file", "use CSV", _NAMES_OF_OTHERS)


def _wide_encoding(start: bytes) -> str | None:
    """Detect UTF-16 or UTF-32 by the byte order mark, or by the zero bytes of a first line in Latin letters."""
    if b"\0" not in start:
        return None
    for encoding, mark in (("UTF-32", b"\xff\xfe\0\0"), ("UTF-32", b"\0\0\xfe\xff"), ("UTF-16", b"\xff\xfe"),
                           ("UTF-16", b"\xfe\xff")):  # fmt: skip
        if start.startswith(mark):
            return encoding
    if start[1::2] == bytes(len(start) // 2) and start[::2].isascii():
        return "UTF-16LE"
    return "UTF-16BE" if start[::2] == bytes((len(start) + 1) // 2) and start[1::2].isascii() else None
