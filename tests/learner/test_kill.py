"""SIGKILL at every journal system call and at many random moments: nothing is lost, and the picks stay the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from forks import printed

HERE = Path(__file__).parents[1] / "support"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="SIGKILL and fork are POSIX")


def test_a_loop_killed_at_every_system_call_and_at_random(tmp_path: Path) -> None:
    killed = printed(HERE / "kill_loop.py", tmp_path)  # 100 SIGKILLs, of the long run a hundredth
    assert killed["steps"] > 40 and killed["steps"] + killed["moments"] >= 100


def test_a_grid_killed_at_random(tmp_path: Path) -> None:
    killed = printed(HERE / "kill_grid.py", tmp_path)
    assert killed["moments"] >= 15 and killed["parents"] == 2
