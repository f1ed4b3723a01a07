"""CSV files: pyarrow reads them, and Python's csv module where a line is odd, which names the line that is wrong."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fairpca._progress import Report
from fairpca.audit.errors import TableError
from fairpca.audit.table import Table, check_unique, sliced
from fairpca.audit.texts import MissingTokens

#: Bytes of a CSV file that are parsed at a time, unless its header is longer.
_BLOCK_BYTES = 1 << 20
#: A longer line is no line of a table.
_MOST_BYTES_OF_LINE = 1 << 28
_ROWS_OF_BATCH = 10_000
_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
#: The first bytes of files that are not text.
_MAGIC = {b"PAR1": ("Parquet", ".parquet"), b"ARROW1": ("Feather", ".feather"), b"FEA1": ("Feather", ".feather")}


class CsvTable(Table):
    """A CSV file, read by pyarrow; files with odd lines by Python's csv module, which names the line that is wrong."""

    def __init__(self, path: Path, delimiter: str | None, missing: MissingTokens) -> None:
        import pyarrow

        self._path, self._checked = path, False
        self._compression = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix.lower())
        #: What is not a regular file can be read only once.
        self._content = None if path.is_file() else path.read_bytes()
        super().__init__(path.name, {}, missing)
        with self._opened() as raw:
            _check_encoding(self._bytes(raw, check=False).read(64), self.name)
        with self._opened() as raw:
            line = next(lines := self._lines(raw), "")
            if not line.strip():
                if any(other.strip() for other in lines):
                    raise TableError(f"{self.name} begins with an empty line", "name the columns in the first line")
                raise TableError(f"{self.name} is empty")
        self.delimiter = delimiter or max(",;\t", key=line.count)
        self._careful = not self.delimiter.isascii()  # which pyarrow cannot split at
        with self._opened() as raw:
            written = next(self._records(raw))
        names = [text.strip() or f"column {number}" for number, text in enumerate(written, start=1)]
        check_unique(names, self.name, written)
        self.types = dict.fromkeys(names, pyarrow.string())
        self._block_bytes = max(_BLOCK_BYTES, 4 * len(line))
        #: Names whose blanks were removed.
        self.trimmed = [text for text in written if text.strip() and text != text.strip()]

    def sha256(self) -> str:
        with self._opened() as raw:
            return hashlib.file_digest(raw, "sha256").hexdigest()

    def batches(self, names: Sequence[str], rows: int, progress: Report, doing: str) -> Iterator[Any]:
        if not self._checked:
            self._check()
        names, found = list(dict.fromkeys(names)), 0
        with self._opened() as raw:
            size = raw.size()
            for batch in sliced(self._parsed(raw, names), rows):
                found += batch.num_rows
                progress(raw.tell(), size, doing)
                yield batch
        if not found:
            raise TableError(f"{self.name} has a header but no rows")
        self.n_rows = found

    def _check(self) -> None:
        """Read all bytes once; pyarrow's threads must not call Python, which may end before they do.

        Python reads files with a blank before a quotation mark: pyarrow takes the mark for a part of the text, Python's
        csv module for the start of a quoted value.
        """
        odd, seen = re.compile(rf'[\r\n{re.escape(self.delimiter or ",")}] +"'.encode()), b"\n"
        with self._opened() as raw:
            stream = self._bytes(raw)
            while block := stream.read(_BLOCK_BYTES):
                seen = seen[-64:] + block
                self._careful = self._careful or (b' "' in seen and odd.search(seen) is not None)
        self._checked = True

    def _parsed(self, raw: Any, names: list[str]) -> Iterator[Any]:
        """The rows as pyarrow reads them; from the first block on that it does not understand, as Python does."""
        found = 0
        if names and not self._careful:
            import pyarrow

            try:
                for batch in self._parsed_by_arrow(raw, names):
                    found += batch.num_rows
                    yield batch
                return
            except pyarrow.ArrowException:
                self._careful = True
        with self._opened() as again:
            for batch in self._parsed_by_python(again, names):
                done, found = min(found, batch.num_rows), found - min(found, batch.num_rows)
                yield batch.slice(done)

    def _parsed_by_arrow(self, raw: Any, names: list[str]) -> Iterator[Any]:
        import pyarrow.csv

        batches = pyarrow.csv.open_csv(
            self._decompressed(raw),
            pyarrow.csv.ReadOptions(block_size=self._block_bytes, column_names=list(self.types)),
            pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pyarrow.csv.ConvertOptions(
                include_columns=names, column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=False
            ),
        )
        for number, batch in enumerate(batches):
            yield batch if number else batch.slice(1)

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
        stream = io.BufferedReader(self._bytes(raw), _BLOCK_BYTES)
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

    def _opened(self) -> Any:
        import pyarrow

        return pyarrow.OSFile(str(self._path)) if self._content is None else pyarrow.BufferReader(self._content)

    def _decompressed(self, raw: Any) -> Any:
        import pyarrow

        return raw if self._compression is None else pyarrow.CompressedInputStream(raw, self._compression)

    def _bytes(self, raw: Any, *, check: bool = True) -> _Bytes:
        return _Bytes(self._decompressed(raw), self.name, self._compression, check=check)


class _Bytes(io.RawIOBase):
    """The bytes of a CSV file, perhaps checked as they are read: text has no zero bytes."""

    def __init__(self, stream: Any, name: str, compression: str | None, *, check: bool = True) -> None:
        self._stream, self._name, self._compression, self._check = stream, name, compression, check

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            block = self._stream.read(len(buffer))
        except OSError as problem:
            if self._compression is None:
                raise
            reason = str(problem).splitlines()[0].rstrip(".")
            raise TableError(f"{self._name} cannot be decompressed ({reason})", "compress the file again") from None
        if self._check and b"\0" in block:
            raise TableError(f"{self._name} is not a text file", "use CSV", _NAMES_OF_OTHERS)
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
    """UTF-16 or UTF-32, by the byte order mark or by a first line in Latin letters."""
    if b"\0" not in start:
        return None
    marked = (encoding for mark, encoding in _MARKS.items() if start.startswith(mark))
    latin = (encoding for encoding in ("UTF-16LE", "UTF-16BE") if start.decode(encoding, "ignore").isascii())
    return next(marked, None) or next(latin, None)
