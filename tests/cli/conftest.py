from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from select_command import Command


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """`badge select` in a new directory, with p.npy and z.npy."""
    monkeypatch.chdir(tmp_path)
    return Command(monkeypatch, capsys)


@pytest.fixture
def pick(run: Command) -> Callable[..., tuple[int, str, str]]:
    """Seven picks from two files, and more options."""
    return lambda p, z, *more: run("--probabilities", p, "--embeddings", z, "-k", 7, *more, arrays=False)
