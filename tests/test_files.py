"""Results appear complete or not at all, where they were asked for, as visible as they were."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from fairpca import _files
from fairpca._files import check_writable, is_standard_output, replace_file, write_text
from fairpca.audit.command import main

OLD, NEW = "an older result", "the new result"
needs_posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX system")


@pytest.fixture(params=["without a name", "with a name"])
def any_way(request, monkeypatch):
    """Both ways to fill a file: only some systems know files without a name."""
    if request.param == "with a name":
        monkeypatch.setattr(_files, "_WITHOUT_NAME", None)
    elif _files._WITHOUT_NAME is None:
        pytest.skip("this system has no files without a name")
    return request.param


@pytest.mark.usefixtures("any_way")
class TestReplacing:
    def test_new_file_has_the_usual_permissions(self, tmp_path):
        (tmp_path / "usual").touch()
        write_text(tmp_path / "new", NEW)
        assert (tmp_path / "new").read_text() == NEW
        assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode

    @needs_posix
    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
    def test_permissions_stay(self, tmp_path, mode):
        path = tmp_path / "secret"
        path.write_text(OLD)
        path.chmod(mode)
        write_text(path, NEW)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert path.read_text() == NEW

    @needs_posix
    def test_links_stay_and_lead_to_the_new_content(self, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        real, link = tmp_path / "elsewhere" / "real", tmp_path / "link"
        link.symlink_to(real)
        for text in (OLD, NEW):  # the link leads nowhere at first
            write_text(link, text)
            assert link.is_symlink()
            assert real.read_text() == text
        assert sorted(os.listdir(tmp_path)) == ["elsewhere", "link"]
        assert os.listdir(real.parent) == ["real"]

    def test_failure_in_the_middle_leaves_the_old_file_alone(self, tmp_path):
        path = tmp_path / "result"
        path.write_text(OLD)

        def fail(stream):
            stream.write(b"half")
            raise RuntimeError("in the middle")

        with pytest.raises(RuntimeError, match="in the middle"):
            replace_file(path, fail)
        assert os.listdir(tmp_path) == ["result"]
        assert path.read_text() == OLD


@needs_posix
def test_a_pipe_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    received = []
    reader = threading.Thread(target=lambda: received.append(path.read_text()))
    reader.start()
    write_text(path, NEW)
    reader.join()
    assert received == [NEW]
    assert stat.S_ISFIFO(path.stat().st_mode)


@needs_posix
def test_devices_stay_devices():
    write_text("/dev/null", NEW)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(OSError, match="No space"):
        write_text("/dev/full", NEW)


@needs_posix
def test_link_that_leads_to_itself(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="leads back to itself"):
        write_text(tmp_path / "loop", NEW)


def write_table(folder: Path) -> Path:
    path = folder / "people.csv"
    path.write_text("a,b,sex\n" + "".join(f"{i % 7},{i * i % 11},{'fm'[i % 2]}\n" for i in range(60)))
    return path


@pytest.fixture
def people(tmp_path):
    return write_table(tmp_path)


def test_the_standard_output_gets_the_result_alone(people, tmp_path):
    """In a file at that: it is written on, not replaced."""
    assert main(["fit", str(people), "--sensitive", "sex", "--out", str(tmp_path / "model.npz")]) == 0
    call = [
        sys.executable,
        "-m",
        "fairpca.audit.command",
        "transform",
        tmp_path / "model.npz",
        people,
        "--out",
        "/dev/stdout",
    ]
    with (tmp_path / "collected").open("w") as stream:
        stream.write("before\n")
        stream.flush()
        done = subprocess.run(call, check=True, stdout=stream, stderr=subprocess.PIPE, text=True)
    lines = (tmp_path / "collected").read_text().splitlines()
    assert lines[:2] == ["before", '"fairpca0","fairpca1"']
    assert len(lines) == 2 + 60
    assert done.stderr.startswith("60 rows, 2 scores each")


def test_silence_is_not_the_standard_output():
    """Both may go to /dev/null, which is no reason to tell results elsewhere."""
    outcome = os.open(os.devnull, os.O_WRONLY)
    kept = os.dup(1)
    try:
        os.dup2(outcome, 1)
        found = is_standard_output(os.devnull)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(outcome)
    assert not found
    assert not is_standard_output("no such file")


@pytest.mark.parametrize("command", ["fit", "audit", "transform"])
@pytest.mark.parametrize("name", ["people.csv", "link.csv", "./people.csv"])
def test_the_input_is_not_replaced(people, capsys, monkeypatch, command, name):
    monkeypatch.chdir(people.parent)
    Path("link.csv").symlink_to("people.csv")
    before = people.read_bytes()
    data = ["people.csv", "--sensitive", "sex"] if command != "transform" else ["no-model.npz", "people.csv"]
    assert main([command, *data, "--out", name]) == 2
    assert "the input people.csv itself" in capsys.readouterr().err
    assert people.read_bytes() == before


@contextlib.contextmanager
def without_privileges():
    """Permissions do not bind the superuser."""
    superuser = os.geteuid() == 0
    if superuser:
        os.seteuid(65534)
    try:
        yield
    finally:
        if superuser:
            os.seteuid(0)


@needs_posix
@pytest.mark.parametrize("command", ["fit", "audit", "demo", "transform"])
def test_a_folder_that_may_not_be_written_is_noticed_before_the_work(capsys, command):
    data = {"demo": [], "transform": ["no-model.npz", "no-data.csv"]}.get(command, ["no-data.csv", "--sensitive", "s"])
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        with without_privileges():
            assert main([command, *data, "--out", f"{folder}/result.csv"]) == 2
    captured = capsys.readouterr()
    assert "no file can be written in the folder" in captured.err
    assert captured.out == ""


@needs_posix
def test_a_file_that_may_not_be_written_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        path = Path(folder) / "kept"
        path.write_text(OLD)
        path.chmod(0o444)
        with without_privileges(), pytest.raises(PermissionError, match="change its permissions"):
            check_writable(path)


#: Writes in several pieces and stops at one of them, by a signal or by a limit to the size of files.
INTERRUPTED = """
import importlib.util, os, resource, signal, sys
source, way, path, piece, event = *sys.argv[1:4], int(sys.argv[4]), sys.argv[5]
spec = importlib.util.spec_from_file_location("_files", source)  # without the package, which takes a second
_files = importlib.util.module_from_spec(spec)
spec.loader.exec_module(_files)
if way == "with a name":
    _files._WITHOUT_NAME = None
if event == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000 * piece, 1000 * piece))
def write(stream):
    for i in range(3):
        if i == piece and event != "full":
            stream.flush()
            os.kill(os.getpid(), getattr(signal, event))
        stream.write(b"x" * 1000)
try:
    _files.replace_file(path, write)
except OSError as problem:
    raise SystemExit(f"{problem}")
"""


@needs_posix
@pytest.mark.parametrize("event", ["SIGTERM", "SIGHUP", "SIGKILL", "full"])
@pytest.mark.parametrize("piece", [0, 2])
def test_interrupted_writes_leave_nothing(any_way, tmp_path, piece, event):
    if any_way == "with a name" and event != "full":
        pytest.skip("nobody cleans up then, where files must have a name")
    path = tmp_path / "result"
    path.write_text(OLD)
    call = [sys.executable, "-c", INTERRUPTED, _files.__file__, any_way, str(path), str(piece), event]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if event == "full" else -getattr(signal, event))
    assert ("too large" in done.stderr) == (event == "full")
    assert os.listdir(tmp_path) == ["result"]
    assert path.read_text() == OLD
