"""Everything runs on a device that is not the host: no operation mixes the two, and the picks are the same.

`benchmarks.stand_in` is such a device without its hardware. The first tests show that it refuses what a device refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import badge
from badge.core.catalog import CATALOG
from badge.errors import InputError, ModelError
from badge.features import Exact
from badge.samplers import kcenter, kdpp, kmeanspp
from badge.samplers.nearest import Bounds
from benchmarks.devices import waits
from benchmarks.stand_in import DEVICE, Held, MixedDevices, present

N, K = 700, 30


def arrays(n: int = N, dtype: Any = np.float32, classes: int = 5, width: int = 48) -> tuple[Any, Any]:
    """Probabilities and embeddings, a tenth of the rows twice."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(classes, width))
    h = np.maximum(0, means[rng.integers(classes, size=n)] + 0.7 * rng.normal(size=(n, width)))
    logits = h @ means.T * rng.uniform(0.2, 1.5, size=(n, 1)) / 3
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    h[-n // 10 :], p[-n // 10 :] = h[: n // 10], p[: n // 10]
    return (p / p.sum(axis=1, keepdims=True)).astype(dtype), h.astype(dtype)


def there(p: Any, h: Any, **options: Any) -> badge.Outputs:
    return badge.Outputs(torch.from_numpy(p).to(DEVICE), torch.from_numpy(h).to(DEVICE), **options)


# --- the device --------------------------------------------------------------------------------------------------------

REFUSED: dict[str, Callable[[torch.Tensor], Any]] = {
    "a sum with a tensor of the host": lambda x: x + torch.ones(6),
    "a tensor of the host first": lambda x: torch.ones(6) * x,
    "rows by an index on the host": lambda x: x.index_select(0, torch.tensor([1])),
    "an index on the host": lambda x: x[torch.tensor([1, 2])],
    "a mask on the host": lambda x: x[torch.arange(6) > 2],
    "joined with a tensor of the host": lambda x: torch.cat([x, torch.ones(1)]),
    "numpy without a copy": lambda x: x.numpy(),
    "numpy by its protocol": np.asarray,
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_device_refuses_what_a_device_refuses(name: str) -> None:
    with present(), pytest.raises((MixedDevices, TypeError)):
        REFUSED[name](torch.arange(6.0).to(DEVICE))


WAITING: dict[str, Callable[[torch.Tensor], Any]] = {
    "a number": lambda x: float(x[1]),
    "a truth": lambda x: bool((x > 1).any()),
    "a copy": lambda x: x.cpu(),
    "a list": lambda x: x.tolist(),
    "positions": lambda x: (x > 2).nonzero(),
    "a mask": lambda x: x[x > 2],
    "a write to the host": lambda x: torch.empty(6).copy_(x),
    "distinct values": torch.unique,
}


@pytest.mark.parametrize("name", WAITING)
def test_the_device_counts_what_the_host_waits_for(name: str) -> None:
    with present() as traffic:
        x = torch.arange(6.0).to("cuda")
        assert traffic.total == 0 and traffic.sent == 1
        WAITING[name](x)
        assert traffic.total == 1


def test_numbers_stay_there_and_one_number_of_the_host_may_join() -> None:
    with present() as traffic:
        x = torch.zeros(3, device=DEVICE)
        y = (x + torch.tensor(2.0)).sub_(1)[:2]
        assert isinstance(y, Held) and y.device == DEVICE and torch.full_like(y, 1.0).device == DEVICE
        assert traffic.total == 0
        assert y.cpu().tolist() == [1.0, 1.0] and type(y.cpu()) is torch.Tensor


# --- selection ---------------------------------------------------------------------------------------------------------


CASES = [(spec.name, np.float32) for spec in CATALOG if not spec.passes]
CASES += [(name, dtype) for name in ("badge", "coreset", "kcenter-grad") for dtype in (np.float16, np.float64)]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_strategy_picks_there_what_it_picks_here(name: str, dtype: Any) -> None:
    p, h = arrays(400, dtype)
    here, k = badge.Outputs(p, h), 12
    expected = badge.select_from(here[60:], k, name, seed=1, labeled=here[:60])
    with present():
        device = there(p, h)
        found = badge.select_from(device[60:], k, name, seed=1, labeled=device[:60])
        excluded = badge.select_from(device, k, name, seed=1, labeled=device[:60], exclude=range(60))
    assert found.tolist() == expected.tolist() == (excluded - 60).tolist()


@pytest.mark.parametrize(("name", "k"), [("badge", 20), ("badge", 400), ("kcenter-grad", 200), ("coreset", 100)])
def test_the_host_waits_a_few_times_a_round(name: str, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = badge.Outputs(*arrays(3000))
    found = waits(outputs, name, k)
    assert found.same and found.per_round <= 15
    if name == "kcenter-grad":  # a wrong variant: a read for each row that is compared
        monkeypatch.setattr(Exact, "sq_dists", read_one_by_one(Exact.sq_dists))
        assert waits(outputs, name, k).per_round > 15


def read_one_by_one(function: Any) -> Any:
    def wrong(self: Exact, i: torch.Tensor, other: Exact, j: torch.Tensor) -> torch.Tensor:
        for one in i:
            int(one)
        return function(self, i, other, j)

    return wrong


def test_a_variant_that_forgets_the_device_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_the_host(self: Bounds, index: torch.Tensor) -> torch.Tensor:
        return torch.full((len(index),), torch.inf, dtype=torch.float64)

    monkeypatch.setattr(Bounds, "at", on_the_host)
    p, h = arrays()
    assert len(badge.select_from(badge.Outputs(p, h), 200)) == 200
    with present(), pytest.raises(MixedDevices):
        badge.select_from(there(p, h), 200)


def samplers(x: Any, given: Any) -> dict[str, Callable[[], Any]]:
    def rng() -> np.random.Generator:
        return np.random.default_rng(2)

    return {
        "kmeanspp": lambda: kmeanspp(x, K, rng()),
        "kmeanspp of all": lambda: kmeanspp(x, len(x), rng()),
        "kmeanspp from the longest": lambda: kmeanspp(x, K, rng(), first="max-norm"),
        "kmeanspp with given": lambda: kmeanspp(x, K, rng(), given=given),
        "kcenter": lambda: kcenter(x, K, rng()),
        "kcenter with given": lambda: kcenter(x, 600, rng(), given=given),
        "kdpp": lambda: kdpp(x, 8, rng()),
        "kdpp from Cholesky": lambda: kdpp(x, 8, rng(), start="cholesky"),
        "kdpp exact": lambda: kdpp(x, 8, rng(), method="exact"),
    }


@pytest.mark.parametrize("kind", ["gradients", "with bias", "vectors"])
def test_every_sampler_picks_there_what_it_picks_here(kind: str) -> None:
    def features(out: badge.Outputs) -> Any:
        return badge.Dense(out.embeddings) if kind == "vectors" else badge.gradient_embedding(out, kind == "with bias")

    p, h = arrays()
    x = features(badge.Outputs(p, h))
    expected = {name: draw().tolist() for name, draw in samplers(x, x[:20]).items()}
    with present():
        y = features(there(p, h))
        found = {name: draw().tolist() for name, draw in samplers(y, y[:20]).items()}
        assert y.sq_norms.device == DEVICE
        assert torch.equal(y.sq_norms.cpu(), x.sq_norms)
        assert torch.equal(y.gram(y[:3]).cpu(), x.gram(x[:3])) and torch.equal(y.as_matrix().cpu(), x.as_matrix())
    assert found == expected


def test_labels_of_their_own_and_one_column_too() -> None:
    rng = np.random.default_rng(0)
    p, h = rng.random((N, 6)), rng.normal(size=(N, 8))
    for probabilities, options in ((p, {"multilabel": True}), (p[:, :1], {})):
        expected = badge.select_from(badge.Outputs(probabilities, h, **options), K)
        with present():
            assert badge.select_from(there(probabilities, h, **options), K).tolist() == expected.tolist()


def test_explain_says_there_what_it_says_here() -> None:
    p, h = arrays()
    expected = badge.explain(badge.Outputs(p, h), [5, 60, 7])
    with present():
        found = badge.explain(there(p, h), [5, 60, 7])
    for name, value in vars(expected).items():
        if value is None:
            assert vars(found)[name] is None, name
        else:
            np.testing.assert_allclose(vars(found)[name], value, rtol=1e-12, err_msg=name)


# --- models ------------------------------------------------------------------------------------------------------------


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


POOL = np.random.default_rng(3).normal(size=(300, 6)).astype(np.float32)
TRUTH = (POOL[:, 0] > 0).astype(np.int64) + (POOL[:, 1] > 0.5)


def test_predict_sends_the_model_there_and_brings_the_outputs_home() -> None:
    net = network()
    before = [p.detach().clone() for p in net.parameters()]
    expected = badge.predict(net, POOL, batch_size=64)
    with present() as traffic:
        found = badge.predict(net, POOL, batch_size=64, device="cuda")
        assert traffic.total <= 2 * 5 + 12
    assert type(found.embeddings) is torch.Tensor
    assert torch.equal(found.probabilities, expected.probabilities) and torch.equal(
        found.embeddings, expected.embeddings
    )
    for now, then in zip(net.parameters(), before, strict=True):
        assert type(now) is nn.Parameter and torch.equal(now, then)


def test_predict_where_the_model_is_there_already() -> None:
    expected = badge.select(network(), POOL, k=20)
    with present():
        net = network().to(DEVICE)
        assert badge.select(net, POOL, k=20).tolist() == expected.tolist()
        assert all(isinstance(p, Held) for p in net.parameters())


def test_half_precision_there() -> None:
    expected = badge.predict(network().half(), POOL)
    with present():
        found = badge.predict(network().half(), POOL, device="cuda")
    assert torch.equal(found.probabilities, expected.probabilities)


def test_predict_on_two_devices_at_once() -> None:
    net = network()
    expected = badge.predict(net, POOL, batch_size=64)
    with present():
        found = badge.predict(net, POOL, batch_size=64, device=["cpu", "cuda:0"])
        picks = badge.select(net, POOL, k=20, batch_size=64, device=("cuda:0", "cpu"))
    assert torch.equal(found.probabilities, expected.probabilities) and torch.equal(
        found.embeddings, expected.embeddings
    )
    assert picks.tolist() == badge.select_from(expected, 20).tolist()
    assert all(type(p) is nn.Parameter for p in net.parameters())


def test_a_list_of_devices_names_each_once() -> None:
    for wrong in ([], ["cpu", "cpu"]):
        with pytest.raises(InputError, match="a list names each of its devices once"):
            badge.predict(network(), POOL, device=wrong)
    with pytest.raises(InputError, match="'nowhere' cannot be used"):
        badge.predict(network(), POOL, device=["cpu", "nowhere"])


class Full(nn.Sequential):
    """A network on a device with memory for a few rows: `sizes` are the batches that it was asked for."""

    def __init__(self, room: int, error: type[Exception] = torch.cuda.OutOfMemoryError) -> None:
        super().__init__(*network())
        self.room, self.error, self.sizes = room, error, list[int]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.sizes.append(len(x))
        if len(x) > self.room:
            raise self.error("out of memory. Tried to allocate 2.00 GiB.\nSee documentation")
        return super().forward(x)


@pytest.mark.parametrize("error", [torch.cuda.OutOfMemoryError, RuntimeError])
def test_no_memory_left_means_a_smaller_batch_once(error: type[Exception], tmp_path: Path) -> None:
    expected = badge.predict(network(), POOL)
    net = Full(70, error)
    found = badge.predict(net, POOL, batch_size=256)
    assert net.sizes == [256, 64, 64, 64, 64, 44]
    torch.testing.assert_close(found.probabilities, expected.probabilities)
    torch.testing.assert_close(badge.predict(Full(70), POOL, out=tmp_path).embeddings, expected.embeddings)
    with pytest.raises(
        ModelError, match=r"the device has no memory left, in batches of 64 too .*smaller batch_size"
    ) as said:
        badge.predict(Full(3, error), POOL)
    assert "\n" not in str(said.value)
    loader: Any = torch.utils.data.DataLoader(torch.from_numpy(POOL), batch_size=256)  # keeps its own batches
    with pytest.raises(ModelError, match="the device has no memory left \\(out of memory"):
        badge.predict(Full(70, error), loader)


@pytest.mark.skipif(
    torch.__version__.startswith("2.4.") and torch.version.cuda is not None, reason="this build asks for a CUDA driver"
)
def test_the_trainer_and_the_learner_there() -> None:
    def labelled(device: str) -> tuple[list[list[int]], Any]:
        trainer = badge.Trainer(network, lr=1e-2, max_epochs=20, device=device)
        learner = badge.ActiveLearner(POOL, trainer, classes=3, seed=0)
        picks = []
        for _ in range(3):
            ids = learner.ask(15)
            learner.tell(ids, TRUTH[ids])
            picks.append(ids.tolist())
        return picks, learner

    expected, _ = labelled("cpu")
    with present():
        found, learner = labelled("cuda")
        assert all(isinstance(p, Held) for p in learner.model.parameters())
    assert found == expected
