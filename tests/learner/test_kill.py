"""SIGKILL at every journal system call and at many random moments: nothing is lost, and the picks stay the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "support"
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join([str(HERE.parents[1] / "src"), str(HERE)]),
}

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="SIGKILL and fork are POSIX")


def run(script: str, folder: Path) -> dict[str, int]:
    command = [
        sys.executable,
        str(HERE / script),
        str(folder),
    ]  # kill_loop.py: 100 SIGKILLs, of the long run a hundredth
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=900, check=False)
    assert result.returncode == 0, result.stderr
    return dict(json.loads(result.stdout))


def test_a_loop_killed_at_every_system_call_and_at_random(tmp_path: Path) -> None:
    killed = run("kill_loop.py", tmp_path)
    assert killed["steps"] > 40 and killed["steps"] + killed["moments"] >= 100


def test_a_grid_killed_at_random(tmp_path: Path) -> None:
    killed = run("kill_grid.py", tmp_path)
    assert killed["moments"] >= 15 and killed["parents"] == 2
