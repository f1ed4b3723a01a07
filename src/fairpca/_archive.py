"""Models and moments as an uncompressed zip archive of arrays; anything else is rejected before it is read."""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

#: Parsed JSON takes about 25 times as much memory as on disk; names and levels of a hundred thousand columns fit.
_MAX_HEADER_BYTES = 32 * 2**20
#: Exceptions that zipfile, numpy and the checks raise on malformed bytes. A single flipped bit can make zipfile report
#: encryption (RuntimeError), an unknown compression method (NotImplementedError) or an invalid offset (OSError).
DAMAGE = (ValueError, TypeError, LookupError, AttributeError, RuntimeError, OSError, EOFError, zipfile.BadZipFile,
          ArithmeticError, struct.error, SyntaxError)  # fmt: skip


def write_archive(stream: Any, header: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write as ``numpy.savez`` does, which leaves the archive open if a write fails before numpy 2."""
    text = json.dumps(header).encode()
    if len(text) > _MAX_HEADER_BYTES - 128:  # room for the .npy header
        raise ValueError(
            f"{header['class']} cannot be saved: its names, labels and extra take more than {_MAX_HEADER_BYTES:,} "
            "bytes."
        )
    with zipfile.ZipFile(stream, "w") as archive:
        for name, part in {"header": np.frombuffer(text, np.uint8), **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, part, allow_pickle=False)


def read_archive(file: BinaryIO) -> tuple[Any, dict[str, np.ndarray]]:
    """The parsed header, not yet checked, and the arrays by name."""
    found: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        _check_entries(entries, file.seek(0, io.SEEK_END))
        for entry in entries:
            with archive.open(entry) as stream:
                found[entry.filename.removesuffix(".npy")] = _read_array(stream, entry.file_size)
    return json.loads(found.pop("header").tobytes()), found


def _check_entries(entries: list[zipfile.ZipInfo], size: int) -> None:
    """Reject, before reading, what save_model does not write; overlapping entries could exhaust the memory."""
    for entry in entries:
        if not entry.filename.endswith(".npy") or entry.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"it has an unexpected part {entry.filename!r}")
    sizes = {entry.filename: entry.file_size for entry in entries}
    if len(sizes) < len(entries) or sum(sizes.values()) > size:
        raise ValueError("its parts overlap")
    if not 0 < sizes.get("header.npy", 0) <= _MAX_HEADER_BYTES:
        raise ValueError("the header is missing")


def _read_array(stream: Any, size: int) -> np.ndarray:
    """Read one array; its header must match the bytes that follow, so that a false size cannot exhaust the memory."""
    start = stream.tell()
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, fortran_order, dtype = readers[version](stream)
    if dtype.kind not in "biufU" or math.prod(shape) * dtype.itemsize != size - (stream.tell() - start):
        raise ValueError("an array does not match its header")
    content = bytearray(stream.read())
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran_order else "C")
