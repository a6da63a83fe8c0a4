from __future__ import annotations

from pathlib import Path

import pytest

from select_command import Command


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """`badge select` in a directory of its own, with p.npy and z.npy."""
    monkeypatch.chdir(tmp_path)
    return Command(monkeypatch, capsys)
