"""After a signal nothing of ours runs on, no temporary file stays, and older results are as they were."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fairpca.audit.command import main

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
#: A longer run, with this many random moments for each command and signal.
MOMENTS = int(os.environ.get("FAIRPCA_FUZZ_KILLS", "0"))
SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]
OLD = "an older result"


def write_data(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    sex = np.where(rng.random(rows) < 0.4, "female", "male")
    lines = [f"{a:.5f},{b:.5f},{c:.5f},{s}" for (a, b, c), s in zip(rng.normal(size=(rows, 3)), sex, strict=True)]
    path.write_text("\n".join(["a,b,c,sex", *lines]))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    write_data(folder / "small.csv", 300)
    write_data(folder / "large.csv", 60_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["fit", "small.csv", "--sensitive", "sex", "--out", "model.npz"]) == 0
    return folder


@pytest.fixture
def commands(inputs, tmp_path):
    """Arguments of each command, and the file it would replace."""
    folder = tmp_path / "results"
    folder.mkdir()
    data = [str(inputs / "large.csv"), "--sensitive", "sex"]
    arguments = {
        "audit": ["audit", *data, "--components", "1,2", "--jobs", "2", "--permutations", "19"],
        "fit": ["fit", *data],
        "transform": ["transform", str(inputs / "model.npz"), data[0], "--keep", "sex"],
    }
    names = {"audit": "old.html", "fit": "old.npz", "transform": "old.csv"}
    return {
        name: (folder / names[name], [*given, "--out", str(folder / names[name])]) for name, given in arguments.items()
    }


class Session:
    """A command in a session of its own, by which all that it starts can be found."""

    def __init__(self, arguments: list[str], temporary: Path) -> None:
        temporary.mkdir(exist_ok=True)
        self.temporary = temporary
        environment = os.environ | {"TMPDIR": str(temporary), "JOBLIB_TEMP_FOLDER": str(temporary)}
        self.process = subprocess.Popen(
            arguments, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def members(self) -> list[int]:
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._belongs(pid)]

    def _belongs(self, pid: int) -> bool:
        try:
            state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):  # gone in the meantime
            return False
        return int(session) == self.process.pid and state != "Z"

    def wait_for(self, members: int) -> None:
        while len(self.members()) < members and self.process.poll() is None:
            time.sleep(0.01)

    def kill(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait()

    def check_nothing_is_left(self) -> float:
        """The seconds it took; they depend on what else the machine does, so the limit is a wide one."""
        start = time.monotonic()
        while self.members() and time.monotonic() < start + 20:
            time.sleep(0.01)
        seconds = time.monotonic() - start
        assert self.members() == []
        assert list(self.temporary.rglob("*")) == []
        return seconds


def command_line(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "fairpca.audit.command", *arguments]


def test_workers_end_with_an_audit_that_is_killed(commands, tmp_path):
    out, arguments = commands["audit"]
    out.write_text(OLD)
    smaller = [text.replace("large", "small") for text in arguments]
    for number in SIGNALS:  # one after the other: one that waited for its turn could have ended by itself
        session = Session(command_line(smaller), tmp_path / str(int(number)))
        session.wait_for(members=5)  # itself, two workers, two trackers of their resources
        session.kill(number)
        session.check_nothing_is_left()
        assert session.process.returncode == -number
    assert out.read_text() == OLD
    assert os.listdir(out.parent) == [out.name]


@pytest.mark.skipif(not MOMENTS, reason="FAIRPCA_FUZZ_KILLS says how many moments")
@pytest.mark.parametrize("command", ["audit", "fit", "transform"])
@pytest.mark.parametrize("number", SIGNALS)
def test_killed_at_random_moments(commands, tmp_path, command, number):
    out, arguments = commands[command]
    rng = np.random.default_rng(number)
    start = time.monotonic()
    Session(command_line(arguments), tmp_path / "whole").process.wait()
    whole = time.monotonic() - start
    complete = out.read_bytes()
    seconds: list[float] = []
    for moment in np.sort(rng.random(MOMENTS)) * whole:
        out.write_text(OLD)
        session = Session(command_line(arguments), tmp_path / "temporary")
        time.sleep(moment)
        session.kill(number)
        seconds.append(session.check_nothing_is_left())
        assert os.listdir(out.parent) == [out.name]
        found = out.read_bytes()  # complete, if the command was killed when all but its own end was done
        assert found == OLD.encode() or (found[-20:] == complete[-20:] and abs(len(found) - len(complete)) < 200)
    sys.stdout.write(f"{command}, {number.name}: {len(seconds)} kills, nothing left after {max(seconds):.2f} s\n")
