"""Compressed CSV files, decompressed in memory."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from fairpca._optional import require
from fairpca.tables.errors import TableError

__all__ = ["decompressed", "is_compressed"]

#: A small compressed file may expand to more than the memory holds.
_MOST_BYTES = 4 * 2**30
_BLOCK_BYTES = 1 << 20
#: Modules that decompress Zstandard: Python's own from 3.14 on, and two packages.
_ZSTD_MODULES = ("compression.zstd", "backports.zstd", "zstandard")


def is_compressed(path: Any) -> bool:
    """Whether the file name ends in .gz or .zst."""
    return Path(path).suffix.lower() in _OPENERS


def decompressed(content: bytes, name: str) -> bytes:
    """The contents of a .gz or .zst file; other files are returned unchanged."""
    opener = _OPENERS.get(Path(name).suffix.lower())
    if opener is None:
        return content
    parts, size = [], 0
    try:
        with opener(content) as stream:
            while block := stream.read(_BLOCK_BYTES):
                parts.append(block)
                size += len(block)
                if size > _MOST_BYTES:
                    raise TableError(f"{name} expands to more than {_MOST_BYTES:,} bytes", "convert it to Parquet")
    except (OSError, EOFError, zlib.error, ValueError) as problem:
        if isinstance(problem, TableError):
            raise
        reason = str(problem).splitlines()[0].rstrip(".") if str(problem) else type(problem).__name__
        raise TableError(f"{name} cannot be decompressed ({reason})", "compress the file again") from None
    return b"".join(parts)


def _open_gzip(content: bytes) -> BinaryIO:
    return gzip.GzipFile(fileobj=io.BytesIO(content))  # type: ignore[return-value]


def _open_zstd(content: bytes) -> Any:
    for module in _ZSTD_MODULES:
        with contextlib.suppress(ImportError):
            return importlib.import_module(module).open(io.BytesIO(content), "rb")
    pyarrow = require("pyarrow", "Reading .zst files", otherwise="Or decompress the file first: zstd -d FILE.")
    return pyarrow.CompressedInputStream(pyarrow.BufferReader(content), "zstd")


_OPENERS: dict[str, Callable[[bytes], Any]] = {".gz": _open_gzip, ".zst": _open_zstd}
