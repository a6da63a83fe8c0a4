"""Output that cannot be written: one line, an exit code, and nothing half-written under the final name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badge import stats
from select_command import P, Z

PROGRAM = "import sys; from badge.cli import main; sys.argv = ['badge', *sys.argv[1:]]; main()"
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")


def badge(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.run(command, text=True, env=env, stderr=subprocess.PIPE, check=False, **options)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("p.npy", P)
    np.save("z.npy", Z)
    stats.write(stats.example(), "all.csv")
    return tmp_path


SELECT = ("select", "--probabilities", "p.npy", "--embeddings", "z.npy", "-k", "3")


@needs_full
@pytest.mark.parametrize("arguments", [SELECT, ("export", "all.csv", "-o", "out.csv")], ids=["select", "export"])
def test_standard_output_that_is_full(arguments: tuple[str, ...], folder: Path) -> None:
    with FULL.open("w") as full:
        done = badge(*arguments, stdout=full)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: standard output cannot be written: No space left on device"
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_standard_output_that_is_closed(folder: Path) -> None:
    done = badge(*SELECT, preexec_fn=lambda: os.close(1))
    assert done.returncode == 2
    assert done.stderr == "error: standard output is closed: name a file with --output\n"


def test_a_reader_that_stops_early_is_no_error(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = badge(*SELECT, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_files_that_cannot_be_written(run: Any) -> None:
    for output in ("no/such/dir", ".", *(["/dev/full"] if FULL.exists() else [])):
        code, out, err = run("-k", 3, "--output", output)
        assert (code, out) == (2, "") and err.startswith(f"error: {output} cannot be written") and err.count("\n") == 1
    assert {path.name for path in Path.cwd().iterdir()} == {"p.npy", "z.npy"}


def test_an_earlier_file_stays_when_the_disk_is_full(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run("-k", 3, "--output", "picks.txt")
    before = Path("picks.txt").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, _, err = run("-k", 5, "--output", "picks.txt")
    assert code == 2 and err == "error: picks.txt cannot be written: No space left on device\n"
    assert Path("picks.txt").read_bytes() == before
    assert {path.name for path in Path.cwd().iterdir()} == {"p.npy", "z.npy", "picks.txt"}


def test_a_link_is_written_through_and_rights_are_kept(run: Any) -> None:
    Path("real.txt").write_text("old")
    Path("real.txt").chmod(0o640)
    Path("link.txt").symlink_to("real.txt")
    run("-k", 3, "--output", "link.txt")
    assert Path("link.txt").is_symlink() and len(Path("real.txt").read_text().split()) == 3
    assert Path("real.txt").stat().st_mode & 0o777 == 0o640


def test_what_is_read_is_not_written_over(run: Any) -> None:
    before = Path("p.npy").read_bytes()
    Path("link.npy").symlink_to("z.npy")
    for output in ("p.npy", "z.npy", "link.npy"):
        code, out, err = run("-k", 3, "--output", output)
        assert (code, out) == (2, "") and "is one of the files that are read: name another" in err
    assert Path("p.npy").read_bytes() == before
