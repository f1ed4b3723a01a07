"""Files that appear complete or not at all, and what their metadata tell of columns."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["replace_file", "row_index", "write_text"]


def write_text(path: Any, text: str) -> Path:
    """Write UTF-8 text."""
    return replace_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline="\n"))


def replace_file(path: Any, write: Callable[[Path], Any]) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then move it there; an interruption leaves nothing."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file to write.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist; create it first.")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes files that nobody else may read
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def row_index(schema: Any) -> tuple[str, ...]:
    """Columns that pandas wrote for the index of a frame; no features, unless somebody asks for them."""
    try:
        described = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
        return tuple(name for name in described if isinstance(name, str) and name in schema.names)
    except (ValueError, KeyError, TypeError):  # anybody may write such metadata
        return ()
