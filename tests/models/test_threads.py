"""Several threads and one model: every pass reads its own calls, and the model comes back as it was."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor, nn

import badge
import predict_from_threads
from badge.models import borrowed


def test_many_threads_predict_with_one_model() -> None:
    """A hundredth of what `tests/support/predict_from_threads.py` runs."""
    found = predict_from_threads.main(threads=64, times=10)
    assert {name: count for name, count in found.items() if count} == {"answers": 640}


class Meeting(nn.Module):
    """Passes only if two threads are in `forward` at the same time."""

    def __init__(self, meeting: threading.Barrier) -> None:
        super().__init__()
        self.fc, self.meeting = nn.Linear(2, 3), meeting

    def forward(self, x: Tensor) -> Tensor:
        self.meeting.wait()
        return self.fc(x)  # type: ignore[no-any-return]


def in_threads(*calls: Any) -> list[Any]:
    found: list[Any] = [None] * len(calls)

    def run(i: int) -> None:
        try:
            found[i] = calls[i]()
        except Exception as error:
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_two_models_run_side_by_side() -> None:
    meeting = threading.Barrier(2, timeout=20)
    first, second = Meeting(meeting), Meeting(meeting)
    said = in_threads(*(lambda m=m: badge.predict(m, torch.zeros(4, 2)) for m in (first, second)))
    assert all(isinstance(out, badge.Outputs) for out in said)


def test_models_that_share_a_parameter_wait_for_each_other() -> None:
    """The two can never meet: one gives up waiting inside its pass, before the other may begin."""
    meeting = threading.Barrier(2, timeout=0.3)
    first, second = Meeting(meeting), Meeting(meeting)
    second.fc.weight = first.fc.weight
    said = in_threads(*(lambda m=m: badge.predict(m, torch.zeros(4, 2)) for m in (first, second)))
    assert all(isinstance(error, badge.errors.ModelError) for error in said)
    assert not borrowed._in_use


def test_a_pass_within_a_pass_does_not_wait() -> None:
    net = nn.Linear(2, 3)

    class Pool(torch.utils.data.Dataset[Tensor]):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, i: int) -> Tensor:
            return badge.predict(net, torch.zeros(1, 2)).embeddings[0]

    assert len(badge.predict(net, Pool())) == 3


def test_the_random_state_is_kept_when_passes_overlap() -> None:
    """The first pass to end must not leave the state that the second one saw."""
    torch.manual_seed(0)
    before = torch.get_rng_state()
    entered, leave = threading.Event(), threading.Event()

    def long() -> None:
        with borrowed.random_state_kept():
            torch.manual_seed(1)
            entered.set()
            leave.wait(20)

    thread = threading.Thread(target=long)
    thread.start()
    entered.wait(20)
    with borrowed.random_state_kept():
        leave.set()
        thread.join()
    assert torch.equal(torch.get_rng_state(), before)
