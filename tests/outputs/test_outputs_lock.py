"""`predict(out=)` twice on one directory: one writes, the other is told; nobody reads rows of another, or zeros."""

from __future__ import annotations

import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import badge
from badge.errors import InputError
from badge.outputs.store import Writer
from forks import FORKS

X = torch.arange(200.0).reshape(40, 5) / 100


class Waiting(nn.Linear):
    """Predicts one batch, then waits until it is let go."""

    def __init__(self) -> None:
        super().__init__(5, 3)
        self.started, self.go = threading.Event(), threading.Event()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.started.set()
        assert self.go.wait(30)
        return super().forward(x)


def test_a_directory_that_is_being_written_is_refused(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, other = Waiting(), nn.Linear(5, 3)
    got: list[badge.Outputs] = []
    first = threading.Thread(target=lambda: got.append(badge.predict(net, X, batch_size=8, out=tmp_path / "o")))
    first.start()
    assert net.started.wait(30)
    with pytest.raises(
        InputError, match="is being written, by another process or another call of this one: wait for it"
    ):
        badge.predict(other, X, out=tmp_path / "o")
    net.go.set()
    first.join(30)
    torch.testing.assert_close(got[0].probabilities[:], badge.predict(net, X).probabilities)
    with pytest.raises(InputError, match="outputs of another model"):
        badge.predict(other, X, out=tmp_path / "o")
    again = badge.predict(net, X, out=tmp_path / "o")  # finished: anyone may read it, as often as they like
    assert len(again) == 40


def hold(folder: Path, held: Connection) -> None:
    writer = Writer(folder, 10, {})
    writer.write(np.full((4, 2), 0.5, np.float32), np.zeros((4, 3), np.float32))
    writer.flush()
    held.send("held")
    time.sleep(60)


def test_the_lock_goes_with_its_process_and_work_goes_on(tmp_path: Path) -> None:
    held, theirs = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=hold, args=(tmp_path / "o", theirs))
    process.start()
    theirs.close()
    assert held.recv() == "held"
    with pytest.raises(InputError, match="is being written"):
        Writer(tmp_path / "o", 10, {})
    process.kill()
    process.join()
    writer = Writer(tmp_path / "o", 10, {})
    assert writer.done == 4
    writer.close()
    assert Writer(tmp_path / "o", 10, {}).done == 4


@pytest.mark.parametrize("content", [b"", b"\n", b"\0" * 80])
def test_an_empty_progress_file_is_progress_0(content: bytes, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "o", 10, {})
    writer.write(np.full((4, 2), 0.5, np.float32), np.zeros((4, 3), np.float32))
    writer.close()
    (tmp_path / "o" / "progress").write_bytes(content)  # what a kill between making and writing it leaves
    again = Writer(tmp_path / "o", 10, {})
    assert again.done == 0
    again.write(np.full((10, 2), 0.5, np.float32), np.ones((10, 3), np.float32))
    again.flush()
    again.close()
    assert (badge.Outputs.load(tmp_path / "o").embeddings[:] == 1).all()
