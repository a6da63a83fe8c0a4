"""Pools that live on: skipped and released items, growth, own ids, random flips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge import journal
from badge.errors import InputError, JournalError
from sixty import KEYS, TRUTH, X, make, rounds
from small_loop import Trainer, predict


def test_skipped_ids_are_never_asked_and_do_not_count(tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl") as learner:
        ids = learner.ask(5)
        learner.skip(ids[:2], "blurred")
        learner.skip([int(learner.candidates[0])])
        assert learner.pending.tolist() == ids[2:].tolist() and len(learner.labels) == 0
        with pytest.raises(InputError, match="is skipped: unskip it first"):
            learner.tell(ids[:1], [0])
        with pytest.raises(InputError, match=r"asked for 55 of 54 candidates .*3 skipped"):
            learner.ask(55)
        assert not set(learner.ask(54).tolist()) & set(learner.skipped)
        before = (tmp_path / "j.jsonl").read_bytes()
        learner.skip(ids[:2], "blurred")  # known already
        assert (tmp_path / "j.jsonl").read_bytes() == before
    with make(tmp_path / "j.jsonl") as learner:
        assert learner.skipped[int(ids[0])] == "blurred"
        learner.unskip(ids[:1])
        assert learner.ask(1).tolist() == ids[:1].tolist()
        learner.tell(ids[:1], [1])
        with pytest.raises(InputError, match="is labelled, so it cannot be skipped"):
            learner.skip(ids[:1])
        with pytest.raises(InputError, match="a reason is a text"):
            learner.skip(ids[1:2], 5)  # type: ignore[arg-type]


def test_released_ids_go_back_to_the_pool(tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl") as learner:
        ids = learner.ask(6)
        learner.release(ids[:4])
        assert learner.pending.tolist() == ids[4:].tolist() and set(ids[:4]) <= set(learner.candidates)
        with pytest.raises(InputError, match="was not asked"):
            learner.tell(ids[:1], [0])
    with make(tmp_path / "j.jsonl") as learner:
        assert learner.pending.tolist() == ids[4:].tolist()


def test_a_pool_may_grow_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with make(path, X[:40]) as learner:
        old = rounds(learner, 2)
    with make(path, X) as learner:
        assert rounds(learner, 0) == old and len(learner.candidates) == 52
        reference = learner.ask(5).tolist()
    with make(path, X) as learner:
        assert learner.pending.tolist() == reference
        assert [event["event"] for event in journal.read(path)].count("pool") == 1
    for pool, message in (
        (X[:40], "its pool has 60 examples, yours 40; only a pool with your own ids may lose"),
        (X[::-1], "different"),
    ):
        with pytest.raises(JournalError, match=message):
            make(path, pool)
    changed = np.concatenate([X[:40] + 1, X])
    with pytest.raises(
        JournalError, match=r"its pool has 60 examples, yours 100, and the first 60 of yours are different"
    ):
        make(path, changed)


def test_own_ids_everywhere_and_any_order(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with make(path, ids=KEYS, initial={KEYS[0]: 1}) as learner:
        reference = rounds(learner, 3)
        assert all(isinstance(id, str) and id in KEYS for batch in reference for id in batch)
        assert set(learner.labels) <= set(KEYS) and learner.labels[KEYS[0]] == 1
        learner.skip([learner.candidates[0]])
        more = learner.ask(3).tolist()
        assert learner.explain().ids.tolist() == more
        with pytest.raises(InputError, match="id 3 is not one of the 60 ids of the pool"):
            learner.tell([3], [0])
    order = np.random.default_rng(2).permutation(60)
    with make(path, X[order], ids=[KEYS[i] for i in order]) as learner:
        assert learner.pending.tolist() == more
        here = [batch.tolist() for batch in learner.batches]
        assert here == [*reference, more]
        assert np.array_equal(X[order][learner.positions(more)], X[[KEYS.index(id) for id in more]])
        later = learner.ask(4).tolist()
    with make(tmp_path / "k.jsonl", X[order], ids=[KEYS[i] for i in order], initial={KEYS[0]: 1}) as other:
        got = []
        for batch in reference:
            got.append(other.ask(len(batch)).tolist())
            other.tell(batch, [int(TRUTH[KEYS.index(id)]) for id in batch])
        assert got == reference  # the same picks from a pool in another order
    assert len(later) == 4
    with pytest.raises(JournalError, match="was begun with your own ids: give them again; pass ids="):
        make(path)
    with pytest.raises(JournalError, match=r"the id 'img/.*' is not in yours"):
        make(path, ids=[f"new{i}" for i in range(60)])
    make(path, np.concatenate([X, X]), ids=[*KEYS, *(f"new{i}" for i in range(60))]).close()  # grown


def test_a_strategy_with_memory_and_own_ids(tmp_path: Path) -> None:
    with make(tmp_path / "a.jsonl", ids=KEYS, strategy="albl") as learner:
        reference = rounds(learner, 4)
    order = np.random.default_rng(3).permutation(60)
    pool, ids = X[order], [KEYS[i] for i in order]
    truth = dict(zip(KEYS, TRUTH.tolist(), strict=True))
    for batch in reference:  # a new learner for each ask, as after a restart, and the pool in another order
        with make(tmp_path / "b.jsonl", pool, ids=ids, strategy="albl") as learner:
            assert learner.ask(4).tolist() == batch
            learner.tell(batch, [truth[id] for id in batch])


WRONG_IDS: list[tuple[Any, str]] = [
    (["a"], "1 ids for a pool of 60 examples"),
    ([*KEYS[:-1], KEYS[0]], "stands twice in the pool"),
    ([*KEYS[:-1], 1.5], r"ids are text or whole numbers below 2\*\*64; got 1.5"),
    ([*KEYS[:-1], None], r"ids are text or whole numbers below 2\*\*64; got None"),
    ("key", "names a column, and the pool .* has none of that name"),
    (5, "ids are a list or an array"),
]


@pytest.mark.parametrize(("ids", "message"), WRONG_IDS)
def test_ids_that_cannot_be(ids: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(ids=ids)


def test_ids_from_a_column_of_a_table(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    from sklearn.linear_model import LogisticRegression

    table = pandas.DataFrame({"key": np.arange(1000, 1060), "a": X[:, 0], "b": X[:, 1]})
    options: dict[str, Any] = {"trainer": LogisticRegression(), "predict": badge.predict, "ids": "key"}
    with make(tmp_path / "j.jsonl", table, **options) as learner:
        rounds(learner, 3)
        assert learner.model.n_features_in_ == 2 and min(map(int, learner.labels)) >= 1000
    shuffled = table.sample(frac=1, random_state=0)
    with make(tmp_path / "j.jsonl", shuffled, **options) as learner:
        assert learner.ask(2).dtype == np.int64


class Flips(torch.utils.data.Dataset):
    """Random flips, as augmentation gives them, from a private generator: an item may differ each time it is read."""

    def __init__(self, share: float = 0.5) -> None:
        self.share, self.rng = share, np.random.default_rng()

    def __len__(self) -> int:
        return 60

    def __getitem__(self, i: int) -> torch.Tensor:
        x = torch.from_numpy(X[i])
        return x.flip(0) if self.rng.random() < self.share else x


@pytest.mark.parametrize("share", [0.5, 0.02])
def test_a_pool_with_random_flips_opens_its_own_journal(tmp_path: Path, share: float) -> None:
    def embed(model: Any, pool: Any) -> badge.Outputs:
        return predict(model, np.stack([np.asarray(item) for item in pool]))

    for again in range(10):
        with make(tmp_path / "j.jsonl", Flips(share), predict=embed, trainer=Means()) as learner:
            assert len(learner.labels) == again
            learner.tell(ids := learner.ask(1), TRUTH[ids])
    with pytest.raises(JournalError, match="its pool has 60 examples, yours 59"):
        make(tmp_path / "j.jsonl", torch.utils.data.Subset(Flips(share), range(59)), predict=embed, trainer=Means())


class Means(Trainer):
    def fit(self, examples: Any, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return super().fit(np.asarray(examples), labels, rng)


def test_a_table_that_came_back_with_other_types_names_the_column(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    from sklearn.linear_model import LogisticRegression

    table = pandas.DataFrame({"a": X[:, 0], "b": np.arange(60, dtype=np.int32)})
    options: dict[str, Any] = {"trainer": LogisticRegression(), "predict": badge.predict}
    make(tmp_path / "j.jsonl", table, **options).close()
    make(tmp_path / "j.jsonl", table.copy(), **options).close()
    with pytest.raises(JournalError, match="the column 'a' held float64 and holds float32 now: read it as it was"):
        make(tmp_path / "j.jsonl", table.astype({"a": np.float32}), **options)
    with pytest.raises(JournalError, match="the column 'c' is only in yours"):
        make(tmp_path / "j.jsonl", table.assign(c=1.0), **options)
