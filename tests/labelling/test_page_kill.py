"""A labelling server that is killed at random: every answer that it confirmed is in the journal, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="SIGKILL and fork are POSIX")
def test_a_server_killed_at_random(tmp_path: Path) -> None:
    """A hundredth of the long run that docs/loop.md reports."""
    paths = os.pathsep.join([str(SUPPORT.parents[1] / "src"), str(SUPPORT)])
    command = [sys.executable, str(SUPPORT / "kill_page.py"), str(tmp_path), "--times", "5"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kills"] == 5
