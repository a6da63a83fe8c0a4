"""A labelling server that is killed at random: every answer that it confirmed is in the journal, once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from forks import printed

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="SIGKILL and fork are POSIX")
def test_a_server_killed_at_random(tmp_path: Path) -> None:
    """A hundredth of the long run that docs/loop.md reports."""
    assert printed(SUPPORT / "kill_page.py", tmp_path, "--times", 5)["kills"] == 5
