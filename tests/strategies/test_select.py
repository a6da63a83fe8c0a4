"""`badge.select`: a model and a pool in, positions out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import badge
from badge.core.arrays import CHUNK_BYTES
from badge.core.catalog import ONE_PASS
from badge.errors import InputError, UnknownNameError
from forks import printed

X = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    """Counts the rows that it sees."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.fc, self.rows = nn.Linear(6, 16), nn.Linear(16, 4), 0

    def forward(self, x: Tensor) -> Tensor:
        self.rows += len(x)
        return self.fc(torch.relu(self.body(x)))


@pytest.mark.parametrize("strategy", ONE_PASS)
def test_the_same_picks_as_in_two_steps(strategy: str) -> None:
    net = Net()
    labeled = X[:20]
    ids = badge.select(net, X[20:], k=7, strategy=strategy, seed=3, labeled=labeled)
    assert ids.dtype == np.int64 and len(set(ids.tolist())) == 7
    out, done = badge.predict(net, X[20:]), badge.predict(net, labeled)
    assert (ids == badge.select_from(out, 7, strategy=strategy, seed=3, labeled=done)).all()
    assert (ids == badge.select(net, X[20:], k=7, strategy=strategy, seed=3, labeled=done)).all()


def test_the_network_runs_once_however_many_strategies_select() -> None:
    net = Net()
    out = badge.predict(net, X)
    for strategy in ONE_PASS:
        badge.select_from(out, 5, strategy=strategy, labeled=out[:9])
    assert net.rows == len(X)


def test_exclude() -> None:
    mask = np.arange(200) < 150
    for exclude in (range(150), list(range(150)), mask, torch.from_numpy(mask)):
        assert badge.select(Net(), X, k=50, exclude=exclude).min() == 150
    assert (badge.select(Net(), X, k=5, strategy="coreset", exclude=range(9)) >= 9).all()


@pytest.mark.parametrize("strategy", ONE_PASS)
def test_labels_change_nothing(strategy: str) -> None:
    a, b = (TensorDataset(X, torch.randint(4, (200,), generator=torch.Generator().manual_seed(s))) for s in (1, 2))
    picks = [badge.select(Net(), pool, k=6, strategy=strategy, labeled=X[:9]) for pool in (a, b)]
    assert (picks[0] == picks[1]).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"strategy": "bagde"}, UnknownNameError, "unknown strategy 'bagde'"),
        (
            {"strategy": "coreset"},
            InputError,
            "coreset is conditioned on the labelled examples; pass labeled=, or exclude=",
        ),
        ({"k": 0}, InputError, "k must be"),
        ({"k": 201}, InputError, "asked for 201 of 200"),
        ({"k": 2.0}, InputError, "k must be"),
        ({"k": 20, "exclude": range(190)}, InputError, "asked for 20 of 10 candidates: 200 in the pool, 190 excluded"),
        ({"device": "cuda:99"}, InputError, "device='cuda:99' cannot be used"),
        ({"device": "abacus"}, InputError, "device='abacus' cannot be used"),
        ({"seed": -1}, InputError, "seed"),
    ],
)
def test_mistakes_are_found_before_the_network_runs(options: Any, error: type[Exception], message: str) -> None:
    net = Net()
    with pytest.raises(error, match=message):
        badge.select(net, X, **{"k": 3, **options})
    assert net.rows == 0


def test_out_serves_many_selections(tmp_path: Path) -> None:
    net = Net()
    first = badge.select(net, X, k=5, out=tmp_path / "o")
    again = badge.select(net, X, k=5, out=tmp_path / "o")
    assert (first == again).all() and net.rows == len(X)
    assert (first == badge.select(net, X, k=5)).all()


MEMORY = """
import json, sys, threading, time
import torch
import badge

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))

def watch():
    global peak
    while True:
        peak = max(peak, anonymous())
        time.sleep(0.002)

peak, grown = 0, {}
torch.set_num_threads(1)
threading.Thread(target=watch, daemon=True).start()
out = badge.Outputs.load(sys.argv[1])
# the first warms up
for strategy, excluded in (("rand", 1), ("badge", 0), ("badge", 9), ("kcenter-grad", 0), ("entropy", 9)):
    start = peak = anonymous()
    badge.select_from(out, 200, strategy=strategy, exclude=range(excluded))
    grown[f"{strategy}, {excluded} excluded"] = max(peak, anonymous()) - start
print(json.dumps(grown))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outputs on disk of 300,000 × (10 + 512) in float16: 313 MB."""
    from badge.outputs.store import Writer

    path, rng, part = tmp_path_factory.mktemp("large"), np.random.default_rng(0), 10_000
    writer = Writer(path, 300_000, {})
    h = rng.normal(size=(part, 512)).astype(np.float16)
    for _ in range(30):
        z = torch.from_numpy(rng.normal(size=(part, 10)) * 4)
        h = np.roll(h, 7, axis=1)
        writer.write(z.softmax(dim=1).half().numpy(), h)
    writer.flush()
    return path


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_selecting_from_outputs_on_disk_keeps_memory_bounded(large: Path, tmp_path: Path) -> None:
    """Anonymous memory grows by at most two chunks of the stated size and 100 bytes per row; the pool takes 313 MB."""
    (tmp_path / "memory.py").write_text(MEMORY)
    grown = printed(tmp_path / "memory.py", large)
    assert len(grown) == 5 and all(used < 2 * CHUNK_BYTES + 100 * 300_000 for used in grown.values()), grown
