"""The trainer: from scratch, reproducible, bounded."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import badge
from badge.errors import InputError, ModelError
from badge.training.networks import mlp
from badge.training.trainer import Fit


def blobs(n: int = 200, classes: int = 4, columns: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    centres = rng.normal(size=(classes, columns)) * 3
    return (centres[y] + rng.normal(size=(n, columns))).astype(np.float32), y


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def record(trainer: badge.Trainer) -> Fit:
    assert trainer.last is not None
    return trainer.last


def same(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(p, q) for p, q in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def close(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.allclose(p, q, 1e-4, 1e-5) for p, q in zip(a.parameters(), b.parameters(), strict=True))


class Batched(nn.Module):
    """A network with BatchNorm and dropout, which hold state and draw at random."""

    def __init__(self, columns: int = 6, classes: int = 4) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(columns, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(32, classes)
        self.sizes: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.sizes.append(len(x))
        scores: Tensor = self.head(self.body(x))
        return scores


class Recorder:
    """A build that keeps what it has made."""

    def __init__(self, build: Callable[[], nn.Module]) -> None:
        self.build, self.made = build, []  # type: ignore[var-annotated]

    def __call__(self) -> nn.Module:
        self.made.append(self.build())
        return self.made[-1]


def test_trains_to_more_than_the_target() -> None:
    x, y = blobs()
    trainer = badge.Trainer(partial(mlp, 6, 4), lr=1e-2)
    model = trainer.fit(x, y, rng())
    assert not model.training
    fit = record(trainer)
    assert fit.stopped == "accuracy" and fit.train_accuracy > 0.99 and fit.restarts == 0
    assert 1 < fit.epochs < 200 and fit.seconds > 0
    with torch.no_grad():
        assert (model(torch.from_numpy(x)).argmax(1).numpy() == y).mean() > 0.97


def test_accuracy_is_counted_while_training_and_must_exceed_the_target() -> None:
    """A plain loop in the test: as many epochs, the same accuracy, the same bits."""
    x, y = (torch.from_numpy(a) for a in blobs(70))
    trainer = badge.Trainer(partial(mlp, 6, 4), lr=1e-2, batch_size=32)
    model = trainer.fit(x, y, rng())

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng().integers(2**63)))
        plain = mlp(6, 4)
        adam = torch.optim.Adam(plain.parameters(), lr=1e-2, fused=True)
        epochs, accuracy = 0, 0.0
        while accuracy <= 0.99:
            correct = 0
            for batch in torch.split(torch.randperm(70), 32):
                scores = plain(x[batch])
                adam.zero_grad()
                nn.functional.cross_entropy(scores, y[batch]).backward()
                adam.step()
                correct += int((scores.argmax(1) == y[batch]).sum())
            epochs, accuracy = epochs + 1, correct / 70
    assert (record(trainer).epochs, record(trainer).train_accuracy) == (epochs, accuracy)
    assert close(model, plain)


def test_adam_is_the_plain_one() -> None:
    """Two epochs of the fused step against torch's default Adam: equal up to rounding."""
    x, y = blobs(60)
    model = badge.Trainer(partial(mlp, 6, 4), lr=1e-2, max_epochs=2, batch_size=100).fit(x, y, rng())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng().integers(2**63)))
        plain = mlp(6, 4)
        adam = torch.optim.Adam(plain.parameters(), lr=1e-2, fused=False, foreach=False)
        for _ in range(2):
            adam.zero_grad()
            nn.functional.cross_entropy(plain(torch.from_numpy(x)), torch.from_numpy(y)).backward()
            adam.step()
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)


def test_same_rng_state_same_bits_and_no_trace_in_torchs_own_state() -> None:
    x, y = blobs()
    before = torch.random.get_rng_state()
    first = badge.Trainer(Batched, lr=1e-2).fit(x, y, rng(7))
    assert torch.equal(before, torch.random.get_rng_state())
    torch.rand(3)  # another state of torch's own generator
    assert same(first, badge.Trainer(Batched, lr=1e-2).fit(x, y, rng(7)))
    assert not same(first, badge.Trainer(Batched, lr=1e-2).fit(x, y, rng(8)))


def test_one_fit_takes_one_draw_from_rng_however_often_it_restarts() -> None:
    x, y = blobs(20)
    a, b = rng(), rng()
    badge.Trainer(partial(mlp, 6, 4), lr=1e-2).fit(x, y, a)
    badge.Trainer(partial(mlp, 6, 4), lr=1e-7, patience=2, max_epochs=9).fit(x, y, b)
    assert a.integers(2**40) == b.integers(2**40)


def test_a_round_does_not_depend_on_the_round_before() -> None:
    """The leak test: BatchNorm statistics, weights and Adam's moments all start anew."""
    x, y = blobs(seed=1)
    other_x, other_y = blobs(seed=2)
    trainer = badge.Trainer(Batched, lr=1e-2)
    trainer.fit(100 * other_x, other_y, rng(1))
    after_another_round = trainer.fit(x, y, rng(2))
    alone = badge.Trainer(Batched, lr=1e-2).fit(x, y, rng(2))
    assert same(after_another_round, alone)
    assert float(alone.get_buffer("body.1.running_mean").abs().sum()) > 0  # there was state that could have leaked


def test_a_module_that_was_trained_before_is_refused() -> None:
    x, y = blobs()
    network = mlp(6, 4)
    trainer = badge.Trainer(lambda: network, lr=1e-2)
    trainer.fit(x, y, rng())
    with pytest.raises(ModelError, match="same module twice"):
        trainer.fit(x, y, rng())


@pytest.mark.parametrize(("n", "sizes"), [(65, [65]), (129, [64, 65]), (66, [64, 2]), (64, [64]), (128, [64, 64])])
def test_no_batch_of_one(n: int, sizes: list[int]) -> None:
    x, y = blobs(n)
    made = Recorder(Batched)
    badge.Trainer(made, lr=1e-2, max_epochs=1).fit(x, y, rng())
    assert made.made[0].sizes == sizes


@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_labels_with_batch_norm(n: int) -> None:
    x, y = blobs(n)
    trainer = badge.Trainer(Batched, lr=1e-2, batch_size=2)
    model = trainer.fit(x, y, rng())
    assert record(trainer).stopped == "accuracy"
    assert model(torch.from_numpy(x)).isfinite().all()


def test_every_example_is_seen_once_an_epoch_in_an_order_of_its_own() -> None:
    seen: list[Tensor] = []

    class Watching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(1, 2)

        def forward(self, x: Tensor) -> Tensor:
            seen.append(x[:, 0].int())
            scores: Tensor = self.head(x)
            return scores

    x = np.arange(100, dtype=np.float32)[:, None]
    badge.Trainer(Watching, lr=1e-9, max_epochs=2).fit(x, np.arange(100) % 2, rng())
    first, second = torch.cat(seen[:2]), torch.cat(seen[2:])
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(100))
    assert not torch.equal(first, second) and not torch.equal(first, torch.arange(100).int())


def test_labels_of_one_class_and_a_class_without_labels() -> None:
    x, _ = blobs(50)
    trainer = badge.Trainer(partial(mlp, 6, 4), lr=1e-2)
    assert trainer.fit(x, np.full(50, 2), rng())(torch.from_numpy(x)).argmax(1).unique().tolist() == [2]
    model = trainer.fit(x, np.arange(50) % 2 * 3, rng())  # 0 and 3 of four classes
    assert model(torch.from_numpy(x)).shape == (50, 4)


def test_cap_on_epochs_is_recorded() -> None:
    x, y = blobs()
    trainer = badge.Trainer(partial(mlp, 6, 4), lr=1e-4, max_epochs=3)
    trainer.fit(x, y, rng())
    assert (record(trainer).epochs, record(trainer).restarts, record(trainer).stopped) == (3, 0, "cap")
    assert record(trainer).train_accuracy < 0.99


def dead() -> nn.Module:
    """A network whose hidden units are all dead: it never learns."""
    network = mlp(6, 4)
    nn.init.constant_(network[1].bias, -1e6)  # type: ignore[index, arg-type]
    return network


def test_restart_when_stuck() -> None:
    x, y = blobs()
    made = Recorder(lambda: dead() if len(made.made) < 2 else mlp(6, 4))
    trainer = badge.Trainer(made, lr=1e-2, patience=5)
    trainer.fit(x, y, rng())
    fit = record(trainer)
    assert fit.restarts == 2 and len(made.made) == 3 and fit.stopped == "accuracy"
    assert fit.epochs > 2 * 5


def test_at_the_cap_the_best_attempt_is_returned() -> None:
    x, y = blobs()
    y = np.where(np.arange(200) % 10 == 0, (y + 1) % 4, y)  # wrong labels: a linear network cannot reach 99 %
    made = Recorder(lambda: nn.Linear(6, 4) if not made.made else dead())
    trainer = badge.Trainer(made, lr=1e-1, patience=10, max_epochs=300)
    model = trainer.fit(x, y, rng())
    fit = record(trainer)
    assert model is made.made[0]
    assert fit.restarts == len(made.made) - 1 >= 2 and fit.epochs == 300 and fit.stopped == "cap"
    assert 0.7 < fit.train_accuracy < 0.99


def test_examples_as_arrays_tensors_and_data_sets_train_alike() -> None:
    x, y = blobs()
    trainer = badge.Trainer(partial(mlp, 6, 4), lr=1e-2)
    expected = trainer.fit(x, y, rng())
    pairs = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    read_only = x.copy()
    read_only.setflags(write=False)
    for examples in (torch.from_numpy(x), x.astype(np.float64), list(x), pairs, read_only, x[::-1][::-1]):
        assert same(expected, trainer.fit(examples, torch.from_numpy(y), rng()))
    assert same(expected, trainer.fit(x, y.astype(np.uint8).tolist(), rng()))


def test_float64_network_and_token_numbers() -> None:
    x, y = blobs()
    model = badge.Trainer(lambda: mlp(6, 4).double(), lr=1e-2).fit(x, y, rng())
    assert next(model.parameters()).dtype == torch.float64
    tokens = badge.Trainer(lambda: nn.Sequential(nn.EmbeddingBag(10, 8), nn.Linear(8, 2)), lr=1e-1)
    tokens.fit(torch.tensor([[1, 2], [3, 4]]), [0, 1], rng())
    assert record(tokens).stopped == "accuracy"


def test_works_below_no_grad_and_survives_pickling() -> None:
    x, y = blobs()
    trainer = badge.Trainer(partial(mlp, 6, 4), lr=1e-2)
    with torch.no_grad():
        expected = trainer.fit(x, y, rng())
    assert record(trainer).stopped == "accuracy"
    assert same(expected, pickle.loads(pickle.dumps(trainer)).fit(x, y, rng()))


def test_frozen_parameters_stay() -> None:
    def build() -> nn.Module:
        network = mlp(6, 4)
        network[1].weight.requires_grad_(False)  # type: ignore[index, union-attr]
        return network

    made = Recorder(build)
    x, y = blobs()
    trainer = badge.Trainer(made, lr=1e-2, max_epochs=2)
    trainer.fit(x, y, rng())
    assert made.made[0][1].weight.grad is None


def test_errors_state_condition_and_values() -> None:
    x, y = blobs()
    trainer = badge.Trainer(partial(mlp, 6, 4), lr=1e-2)
    for examples, labels, error, message in (
        (x[:0], y[:0], InputError, "0 labelled examples"),
        (x, y[:3], InputError, r"200 examples with labels of shape \(3,\)"),
        (x, y - 1, InputError, "labels must be whole numbers from 0, not from -1"),
        (x, y / 2, InputError, "labels must be whole numbers from 0, not float64"),
        (abs(x).astype(np.int16), y, InputError, "dtype torch.int16: float32 is needed"),
        (abs(x).astype(np.int64), y, ModelError, "whole numbers are tokens here: give others as float32"),
        (np.where(x > 5, np.nan, x), y, InputError, "NaN or inf"),
        (x, y + 1, ModelError, "4 outputs, but labels go up to 4"),
    ):
        with pytest.raises(error, match=message):
            trainer.fit(examples, labels, rng())
    with pytest.raises(ModelError, match=r"raw scores \[n, classes\], not shape \(64, 2, 3\)"):
        badge.Trainer(lambda: nn.Sequential(nn.Linear(6, 6), nn.Unflatten(1, (2, 3))), lr=1.0).fit(x, y, rng())
    with pytest.raises(ModelError, match=r"must return a torch.nn.Module, not int"):
        badge.Trainer(lambda: 3, lr=1.0).fit(x, y, rng())  # type: ignore[arg-type, return-value]
    with pytest.raises(ModelError, match=r"diverged .* lower lr \(now 1e\+30\)"):
        badge.Trainer(partial(mlp, 6, 4), lr=1e30, max_epochs=3).fit(x, y, rng())
    with pytest.raises(InputError, match="a function that makes a new network, not Sequential"):
        badge.Trainer(mlp(6, 4), lr=1.0)
    wrong: dict[str, list[object]] = {"lr": [0.0, float("nan"), "x", None], "device": ["gpu", 3.5]}
    wrong |= {"target": ["high", 1.0], "batch_size": [0], "max_epochs": [0], "patience": [1.5]}
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InputError, match=name):
                badge.Trainer(**{"build": partial(mlp, 6, 4), "lr": 1.0, name: value})  # type: ignore[arg-type]


def test_the_benchmark_runs_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.train_cost import measure

    x, y = blobs(80)
    np.savez(tmp_path / "letter.npz", X=x, y=y)
    monkeypatch.setenv("BADGE_DATA", str(tmp_path))
    found = measure(repeats=1, labels=70)
    assert found["epochs"] > 1
    assert found["ratio"] == found["fit"] / min(found["bare, default Adam"], found["bare, fused Adam"]) > 0


# -- images of 0 to 255 ------------------------------------------------------------------------------------------------


def small_images(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Bright on the left or on the right, [n, 3, 6, 6]."""
    y = np.arange(n) % 2
    images = np.random.default_rng(0).integers(0, 120, size=(n, 3, 6, 6), dtype=np.uint8)
    images[y == 0, :, :, :3] += 130
    images[y == 1, :, :, 3:] += 130
    return images, y


def conv_net() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 2))


class OwnScale(nn.Module):
    """Takes images of 0 to 255 by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.net = conv_net()

    def forward(self, x: Tensor) -> Tensor:
        assert x.dtype == torch.uint8
        scores: Tensor = self.net((x.float() - 120) / 60)
        return scores


def test_images_of_uint8_are_fractions_in_training_and_afterwards(tmp_path: Path) -> None:
    images, y = small_images()
    trainer = badge.Trainer(conv_net, lr=1e-2, max_epochs=30)
    model = trainer.fit(images, y, rng())
    fractions = torch.from_numpy(images).float() / 255
    expected = trainer.fit(fractions, y, rng())
    assert same(model, expected)
    said = badge.predict(model, images)
    torch.testing.assert_close(said.probabilities, badge.predict(expected, fractions).probabilities)
    assert bool((said.probabilities.argmax(dim=1).numpy() == y).all())
    torch.save(model, tmp_path / "m.pt")  # the hook goes with the module
    again = torch.load(tmp_path / "m.pt", weights_only=False)
    assert torch.equal(again(torch.from_numpy(images)), model(torch.from_numpy(images)))
    with pytest.raises(InputError, match="scale it as in training"):  # of this one nobody knows
        badge.predict(expected, images)


def test_a_network_that_takes_uint8_is_left_alone() -> None:
    images, y = small_images()
    model = badge.Trainer(OwnScale, lr=1e-2, max_epochs=30).fit(images, y, rng())
    assert not model._forward_pre_hooks
    assert bool((badge.predict(model, images).probabilities.argmax(dim=1).numpy() == y).all())


def test_the_loop_on_images_of_uint8() -> None:
    images, y = small_images()
    picks = []
    for pool in (images, torch.from_numpy(images), torch.from_numpy(images).float() / 255):
        learner = badge.ActiveLearner(pool, badge.Trainer(conv_net, lr=1e-2, max_epochs=10), classes=2, seed=0)
        for k in (10, 5):
            ids = learner.ask(k)
            learner.tell(ids, y[ids])
        picks.append(learner.ask(5).tolist())
    assert picks[0] == picks[1] == picks[2]
