"""Pools of every kind, and labels that nobody reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
)

import badge
from badge.errors import InputError
from forks import FORKS

N = 29
X = torch.randn(N, 5, generator=torch.Generator().manual_seed(0))
NET = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
REFERENCE = badge.predict(NET, X)


class Poison:
    """A label that cannot be read: whatever is done with it raises."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"a label was read: {name}")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("a label was compared")

    __hash__ = None  # type: ignore[assignment]


class Items(Dataset[Any]):
    """A map-style dataset whose item is made by `form` from x and an unreadable label."""

    def __init__(self, form: Any) -> None:
        self.form = form

    def __len__(self) -> int:
        return N

    def __getitem__(self, i: int) -> Any:
        if not 0 <= i < N:
            raise IndexError(i)
        return self.form(X[i], Poison())


FORMS: dict[str, Any] = {
    "x": lambda x, y: x,
    "x as an array": lambda x, y: x.numpy(),
    "x as a list": lambda x, y: x.tolist(),
    "(x, y)": lambda x, y: (x, y),
    "(x, y, index)": lambda x, y: (x, y, 3),
    "[x, y]": lambda x, y: [x, y],
    "{image, label}": lambda x, y: {"image": x, "label": y},
    "{input, target} named as forward names it": lambda x, y: {"target": y, "input": x, "id": 3},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_datasets_with_labels_that_cannot_be_read(form: Any, tmp_path: Path) -> None:
    out = badge.predict(NET, Items(form), batch_size=6)
    torch.testing.assert_close(out.probabilities, REFERENCE.probabilities)
    torch.testing.assert_close(out.embeddings, REFERENCE.embeddings)
    badge.predict(NET, Items(form), batch_size=6, out=tmp_path / "out")  # nor does the fingerprint read them


def test_the_poison_works() -> None:
    with pytest.raises(AssertionError, match="a label was read"):
        badge.predict(NET, DataLoader(Items(lambda x, y: (x, y)), batch_size=6))  # a loader collates its own labels


def test_arrays_and_loaders(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X.numpy())
    labels = torch.arange(N)
    dataset = TensorDataset(X, labels)
    pools = {
        "array": X.numpy(),
        "float64": X.double().numpy(),
        "Fortran order": np.asfortranarray(X.numpy()),
        "backwards twice": X.numpy()[::-1].copy()[::-1],
        "read-only memmap": np.load(tmp_path / "x.npy", mmap_mode="r"),
        "TensorDataset": dataset,
        "Subset": Subset(dataset, range(N)),
        "list of tensors": list(X),
        "list of arrays": list(X.numpy()),
        "loader": DataLoader(dataset, batch_size=8),
        "loader of x": DataLoader(X, batch_size=8),  # type: ignore[arg-type]
        "loader with a batch sampler": DataLoader(
            dataset, batch_sampler=BatchSampler(SequentialSampler(dataset), 4, False)
        ),
        "loader with its own collate": DataLoader(
            dataset,
            batch_size=8,
            collate_fn=lambda items: {"input": torch.stack([x for x, _ in items]), "labels": None},
        ),
        "dict of columns": {"input": X, "labels": labels},
    }
    for name, pool in pools.items():
        out = badge.predict(NET, pool, batch_size=6)
        torch.testing.assert_close(out.probabilities, REFERENCE.probabilities, msg=name)
        torch.testing.assert_close(out.embeddings, REFERENCE.embeddings, msg=name)


def test_workers_and_the_loaders_own_generator() -> None:
    loader = DataLoader(
        TensorDataset(X),
        batch_size=8,
        num_workers=1,
        generator=torch.Generator().manual_seed(4),
        multiprocessing_context=FORKS,  # a process that Ray's client lives in cannot be forked on Python 3.13
    )
    state = loader.generator.get_state()
    torch.testing.assert_close(badge.predict(NET, loader).embeddings, REFERENCE.embeddings)
    assert torch.equal(loader.generator.get_state(), state)


class Stream(IterableDataset[Tensor]):
    def __iter__(self) -> Any:
        return iter(X)


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (DataLoader(TensorDataset(X), shuffle=True), "draws by RandomSampler: positions would mean nothing"),
        (DataLoader(TensorDataset(X), sampler=SubsetRandomSampler(range(N))), "SubsetRandomSampler"),
        (DataLoader(TensorDataset(X), batch_sampler=[[1, 0]]), "draws by list"),
        (DataLoader(TensorDataset(X), batch_size=8, drop_last=True), "drops its last batch"),
        (DataLoader(TensorDataset(X), batch_size=None), "with a batch_size"),
        (DataLoader(Stream(), batch_size=4), "IterableDataset"),
        (Stream(), "has no length or no positions"),
        (iter(X), "has no length or no positions"),
        (X[:0], "the pool is empty"),
        ([], "the pool is empty"),
        (torch.tensor(1.0), "a single number"),
        ([X[0], X[1][:2]], "cannot be put in one batch"),
        ({"input": X, "other": X[:3]}, "different lengths"),
        ({"a": X, "b": X}, "name the keys as forward names its inputs"),
        ([Path("a"), Path("b")], "items of type PosixPath cannot be put in one batch"),
    ],
)
def test_pools_that_are_refused(pool: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        badge.predict(NET, pool)


def test_a_collate_that_drops_rows_is_an_error() -> None:
    loader = DataLoader(TensorDataset(X), batch_size=8, collate_fn=lambda items: torch.stack([x for (x,) in items[1:]]))
    with pytest.raises(badge.errors.ModelError, match="for 8 examples"):
        badge.predict(NET, loader)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.out = nn.Linear(5, 4), nn.Linear(5, 4), nn.Linear(8, 3)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.out(torch.cat([self.a(left), self.b(right)], dim=1))


def test_models_of_two_inputs() -> None:
    net, other = Pair(), X.flip(0)
    with torch.no_grad():
        expected = net(X, other).softmax(dim=1)
    for pool in (
        TensorDataset(X, other),
        TensorDataset(X, other, torch.arange(N)),
        {"right": other, "left": X, "labels": torch.arange(N)},
        [((a, b), 1) for a, b in zip(X, other, strict=True)],
        DataLoader([((a, b), 1) for a, b in zip(X, other, strict=True)], batch_size=8),  # type: ignore[arg-type]
        DataLoader(TensorDataset(X, other, torch.arange(N)), batch_size=8),
    ):
        torch.testing.assert_close(badge.predict(net, pool, batch_size=6).probabilities, expected)
    with pytest.raises(InputError, match="the inputs of an item are 2, and the model's forward takes 1"):
        badge.predict(NET, [((a, b), 1) for a, b in zip(X, other, strict=True)])
