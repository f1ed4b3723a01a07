"""CSV files: pyarrow reads them, and Python's csv module where a line is odd, which names the line that is wrong."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairpca._progress import Report
from fairpca.audit.errors import Remedy, TableError
from fairpca.audit.table import Table, check_unique, sliced
from fairpca.audit.texts import MissingTokens

#: Bytes of a CSV file that are parsed at a time, unless its header is longer.
_BLOCK_BYTES = 1 << 20
_ROWS_OF_BATCH = 10_000
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


class CsvTable(Table):
    """A CSV file, read by pyarrow; files with odd lines by Python's csv module, which names the line that is wrong."""

    def __init__(self, path: Path, delimiter: str | None, missing: MissingTokens) -> None:
        import pyarrow

        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n\0 '):
            problem = f"The delimiter {delimiter!r} is not a single character other than a quotation mark or a space"
            raise TableError(problem, Remedy("give one such as ';'", "delimiter"))
        self.name, self._path = path.name, path
        self._odd: bool | None = None
        self._compression = _COMPRESSIONS.get(path.suffix.lower())
        #: What is not a regular file can be read only once.
        self._content = None if path.is_file() else path.read_bytes()
        with self._stream() as stream:
            _check_encoding(stream.read(64), self.name)
        line = next(lines := self._lines(), "")
        if not line.strip():
            if any(other.strip() for other in lines):
                raise TableError(f"{self.name} begins with an empty line", "name the columns in the first line")
            raise TableError(f"{self.name} is empty")
        self.delimiter = delimiter or max(",;\t", key=line.count)
        written = next(self._records())
        names = [text.strip() or f"column {number}" for number, text in enumerate(written, start=1)]
        check_unique(names, self.name, written)
        super().__init__(path.name, pyarrow.schema(dict.fromkeys(names, pyarrow.string())), missing)
        self._block_bytes = max(_BLOCK_BYTES, 4 * len(line))
        self.trimmed = [text for text in written if text.strip() and text != text.strip()]

    def sha256(self) -> str:
        return hashlib.file_digest(self._opened(), "sha256").hexdigest()

    def batches(self, names: Sequence[str], rows: int, progress: Report, doing: str) -> Iterator[Any]:
        if self._odd is None:
            self._odd = self._is_odd(self.delimiter or ",")
        raw, found = self._opened(), 0
        for batch in sliced(self._parsed(raw, list(names)), rows):
            found += batch.num_rows
            progress(raw.tell(), raw.size(), doing)
            yield batch
        if not found:
            raise TableError(f"{self.name} has a header but no rows")
        self.n_rows = found

    def _is_odd(self, delimiter: str) -> bool:
        """Read all bytes once; pyarrow's threads must not call Python, which may end before they do.

        Python reads files with a blank before a quotation mark: pyarrow takes the mark for a part of the text, Python's
        csv module for the start of a quoted value. Nor can pyarrow split at every character.
        """
        pattern, seen = re.compile(rf'[\r\n{re.escape(delimiter)}] +"'.encode()), b"\n"
        odd = not delimiter.isascii()
        with self._stream() as stream:
            while block := stream.read(_BLOCK_BYTES):
                if b"\0" in block:
                    raise _not_text(self.name)
                seen = seen[-64:] + block
                odd = odd or (b' "' in seen and pattern.search(seen) is not None)
        return odd

    def _parsed(self, raw: Any, names: list[str]) -> Iterator[Any]:
        """The rows as pyarrow reads them; from the first block on that it does not understand, as Python does."""
        import pyarrow.csv

        found = 0
        if not self._odd:
            texts = dict.fromkeys(names, pyarrow.string())
            try:
                batches = pyarrow.csv.open_csv(
                    self._decompressed(raw),
                    pyarrow.csv.ReadOptions(block_size=self._block_bytes, column_names=self.schema.names),
                    pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                    pyarrow.csv.ConvertOptions(include_columns=names, column_types=texts, strings_can_be_null=False),
                )
                for number, batch in enumerate(batches):
                    rows = batch if number else batch.slice(1)
                    found += rows.num_rows
                    yield rows
                return
            except pyarrow.ArrowException:
                self._odd = True
        yield from self._parsed_by_python(names, found)

    def _parsed_by_python(self, names: list[str], done: int) -> Iterator[Any]:
        """The rows after those that are done."""
        import pyarrow

        positions = [self.schema.get_field_index(name) for name in names]
        rows = ((number, row) for number, row in enumerate(self._records(), start=1) if row and number > 1)
        left = itertools.islice(rows, done, None)
        while part := list(itertools.islice(left, _ROWS_OF_BATCH)):
            for number, row in part:
                if len(row) != len(self.types):
                    raise TableError(
                        f"{self.name}, line {number}: {len(row)} values, but the header names {len(self.types)} columns"
                    )
            columns = [pyarrow.array([row[j] for _, row in part], pyarrow.string()) for j in positions]
            yield pyarrow.RecordBatch.from_arrays(columns, names)

    def _records(self) -> Iterator[list[str]]:
        try:
            yield from csv.reader(self._lines(), delimiter=self.delimiter or ",", skipinitialspace=True)
        except csv.Error as problem:
            raise TableError(f"{self.name} is not valid CSV ({problem})", "correct it") from None

    def _lines(self) -> Iterator[str]:
        """The lines of the file as text; a quoted value may reach over several. Old Macs end lines by "\\r"."""
        with self._stream() as stream:
            for number, line in enumerate(io.BufferedReader(stream, _BLOCK_BYTES), start=1):
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as problem:
                    raise TableError(
                        f"{self.name} is not encoded in UTF-8 (byte 0x{line[problem.start]:02x} in line {number})",
                        f"convert it first, for example with `iconv -f latin1 -t utf-8 {self.name} > converted.csv`",
                    ) from None
                yield from io.StringIO(text, newline="")

    @contextmanager
    def _stream(self) -> Iterator[Any]:
        """The bytes of the file."""
        try:
            yield self._decompressed(self._opened())
        except OSError as problem:
            if self._compression is None:
                raise
            reason = str(problem).splitlines()[0].rstrip(".")
            raise TableError(f"{self.name} cannot be decompressed ({reason})", "compress the file again") from None

    def _opened(self) -> Any:
        import pyarrow

        return pyarrow.OSFile(str(self._path)) if self._content is None else pyarrow.BufferReader(self._content)

    def _decompressed(self, raw: Any) -> Any:
        import pyarrow

        return raw if self._compression is None else pyarrow.CompressedInputStream(raw, self._compression)


def _check_encoding(start: bytes, name: str) -> None:
    """Raise an error for files that are not text, and for text of two or four bytes per letter."""
    if b"\0" not in start:
        return
    for encoding in (encoding for mark, encoding in _MARKS.items() if start.startswith(mark)):
        raise TableError(
            f"{name} is encoded in {encoding}, not in UTF-8",
            "save it as UTF-8",
            f"convert it with `iconv -f {encoding} -t UTF-8 {name} > converted.csv`",
        )
    raise _not_text(name)


def _not_text(name: str) -> TableError:
    remedy = "name Parquet and Feather files .parquet and .feather"
    return TableError(f"{name} is not a text file in UTF-8", "use CSV", remedy)
