"""Write files atomically: they appear complete or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["check_writable", "is_standard_output", "is_stream", "replace_file", "write_text"]

#: Flag for an open file without a name, which disappears with the process that wrote it (Linux only).
_WITHOUT_NAME = getattr(os, "O_TMPFILE", None)
_OPEN_FILES = "/proc/self/fd"

Write = Callable[[BinaryIO], Any]


def write_text(path: Any, text: str) -> Path:
    """Write UTF-8 text."""
    return replace_file(path, lambda stream: stream.write(text.encode()))


def replace_file(path: Any, write: Write) -> Path:
    """Replace ``path`` by a file that ``write`` fills, once it is complete; if writing fails, nothing is left behind.

    If ``path`` is a link, the file it points to is replaced, and keeps its permissions. If it is not a regular file,
    such as a pipe, a device or the standard output, it receives the same bytes once they are complete.
    """
    target = _target(path)
    if is_stream(target):
        with tempfile.TemporaryFile() as complete:
            write(complete)
            complete.seek(0)
            with _opened_stream(target) as stream:
                shutil.copyfileobj(complete, stream)
        return Path(path)
    if not _replace_without_name(target, write):
        _replace_with_name(target, write)
    return Path(path)


def check_writable(path: Any) -> None:
    """Raise OSError, with the reason, if :func:`replace_file` would."""
    target = _target(path)
    if target.exists() and not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(f"{path} is not writable: change its permissions, or choose another name.")
    if is_stream(target):
        return
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as problem:
        raise type(problem)(
            f"{path}: no file can be written in the folder {target.parent} ({problem.strerror}); choose another one."
        ) from None


def is_standard_output(path: Any) -> bool:
    """Whether ``path`` is the destination of the standard output, such as /dev/stdout or a pipe."""
    try:
        found = os.stat(path)
        return os.path.samestat(found, os.fstat(1)) and not os.path.samestat(found, os.stat(os.devnull))
    except OSError:
        return False


def _target(path: Any) -> Path:
    """Resolve links and run the checks that do not require writing."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; pass the name of a file to write.")
    if path.exists() and is_stream(path):
        return path  # links such as /dev/stdout may point to something without a path
    try:
        target = path.resolve()
    except (OSError, RuntimeError):
        target = path
    if target.is_symlink():  # what a loop is resolved to depends on the version of Python
        raise OSError(f"{path} is a link that leads back to itself; remove it, or choose another name.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {target.parent} does not exist; create it first.")
    return target


def is_stream(path: Any) -> bool:
    """Whether ``path`` is a pipe or device, which must not be replaced by a file."""
    with suppress(OSError):
        return not stat.S_ISREG(os.stat(path).st_mode) or is_standard_output(path)
    return False


@contextmanager
def _opened_stream(path: Path) -> Iterator[BinaryIO]:
    """Open the stream; our own standard output is duplicated, because reopening it would start at its beginning."""
    if not is_standard_output(path):
        with path.open("wb") as stream:
            yield stream
        return
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "wb") as stream:
        yield stream


def _replace_without_name(target: Path, write: Write) -> bool:
    """Fill an unnamed file and name it once complete, so that a signal leaves nothing; False if unsupported."""
    if _WITHOUT_NAME is None or not os.path.isdir(_OPEN_FILES):
        return False
    try:
        descriptor = os.open(target.parent, os.O_RDWR | _WITHOUT_NAME, 0o666)
    except OSError:  # not supported here, or the folder is not writable: the fallback raises a clear error
        return False
    with os.fdopen(descriptor, "w+b") as stream:
        write(stream)
        _finish(stream, target)
        try:
            _give_name(descriptor, target)
        except OSError:  # the file system or a security policy does not allow naming it
            stream.seek(0)
            _replace_with_name(target, lambda named: shutil.copyfileobj(stream, named))
    return True


def _give_name(descriptor: int, target: Path) -> None:
    with suppress(FileExistsError):
        _link(descriptor, target)
        return
    temporary = _temporary_name(target)  # linking cannot overwrite an existing file, but renaming can
    _link(descriptor, temporary)
    try:
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _link(descriptor: int, name: Path) -> None:
    folder = os.open(name.parent, os.O_RDONLY)  # any folder: with src_dir_fd, Python follows the link to the open file
    try:
        os.link(f"{_OPEN_FILES}/{descriptor}", name, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _replace_with_name(target: Path, write: Write) -> None:
    """Fill a hidden file next to the target; it stays there if a signal kills the process."""
    temporary = _temporary_name(target)
    try:
        with temporary.open("xb") as stream:
            write(stream)
            _finish(stream, target)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary_name(target: Path) -> Path:
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}")


def _finish(stream: BinaryIO, target: Path) -> None:
    """Flush everything to disk, and copy the owner and permissions of the file that is replaced."""
    stream.flush()
    os.fsync(stream.fileno())
    if not target.exists() or not hasattr(os, "fchmod"):
        return
    old, new = target.stat(), os.fstat(stream.fileno())
    mode = stat.S_IMODE(old.st_mode)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        try:
            os.fchown(stream.fileno(), old.st_uid, old.st_gid)
        except OSError:
            mode &= ~stat.S_IRWXG  # group permissions were meant for another group
    os.fchmod(stream.fileno(), mode)
