"""A disk that is full at any write: one sentence, exit code 2, and the older result as it was."""

from __future__ import annotations

import errno
import io
import itertools
import os

import numpy as np
import pytest

from fairpca import _files
from fairpca.audit.command import main

OLD = "an older result"
pytestmark = pytest.mark.skipif(_files._WITHOUT_NAME is None, reason="counts the writes to files without a name")


class _SmallDisk(io.FileIO):
    """A file whose writes fail from a certain one on."""

    writes_left = 0

    def write(self, content):
        if not _SmallDisk.writes_left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _SmallDisk.writes_left -= 1
        return super().write(content)


@pytest.fixture
def writes_left(monkeypatch):
    """A function that says after how many writes the disk is full."""
    real = os.fdopen

    def fdopen(descriptor, mode="r", *arguments, **named):
        if mode != "w+b":
            return real(descriptor, mode, *arguments, **named)
        return io.BufferedRandom(_SmallDisk(descriptor, "r+b"))

    monkeypatch.setattr(os, "fdopen", fdopen)
    return lambda count: setattr(_SmallDisk, "writes_left", count)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    lines = [f"{a:.9f},{b:.9f},{'fm'[i % 2]}" for i, (a, b) in enumerate(rng.normal(size=(400, 2)))]
    (tmp_path / "people.csv").write_text("\n".join(["x,y,sex", *lines]))
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "people.csv", "--sensitive", "sex", "--out", "model.npz"]) == 0
    return tmp_path


AUDIT = ["--components", "1", "--methods", "PCA", "--jobs", "1", "--permutations", "19", "--no-points"]


@pytest.mark.parametrize(
    ("command", "out"),
    [
        (["fit", "people.csv", "--sensitive", "sex"], "new.npz"),
        (["transform", "model.npz", "people.csv", "--keep", "sex"], "new.csv"),
        (["transform", "model.npz", "people.csv"], "new.parquet"),
        (["transform", "model.npz", "people.csv"], "new.feather"),
        (["audit", "people.csv", "--sensitive", "sex", *AUDIT], "new.html"),
    ],
    ids=["model", "csv", "parquet", "feather", "report"],
)
def test_disk_full_at_any_write(folder, writes_left, capsys, command, out):
    if out.endswith(("parquet", "feather")):
        pytest.importorskip("pyarrow")
    (folder / out).write_text(OLD)
    before = sorted(os.listdir(folder))
    for count in itertools.count():
        writes_left(count)
        code = main([*command, "--out", out])
        said = capsys.readouterr().err
        assert sorted(os.listdir(folder)) == before
        if code == 0:
            break
        assert code == 2
        assert said.startswith("fairpca: ")
        assert said.count("\n") == 1
        assert "No space left" in said
        assert (folder / out).read_text() == OLD
    assert count > 0
    assert (folder / out).read_bytes() != OLD.encode()
