"""The journal of a loop: reopened anywhere, torn, of another run, and never behind what was said."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badge import journal
from badge.errors import InputError, JournalError
from badge.journal.events import Record, RunSettings, Start
from badge.learner.memory import changes, merged
from three_classes import TRUTH, Centroids, X, make, run


@pytest.mark.parametrize("strategy", ["badge", "albl", "rand", "coreset"])
def test_reopening_at_every_step_gives_the_same_picks(tmp_path: Path, strategy: str) -> None:
    reference = run(make(strategy=strategy), 5)
    for _ in range(5):
        with make(tmp_path / "j.jsonl", strategy=strategy) as learner:
            ids = learner.ask(5)
        with make(tmp_path / "j.jsonl", strategy=strategy) as learner:
            assert learner.pending.tolist() == ids.tolist()
            learner.tell(ids[:2], TRUTH[ids[:2]])
        with make(tmp_path / "j.jsonl", strategy=strategy) as learner:
            learner.tell(ids[2:], TRUTH[ids[2:]])
    assert [batch.tolist() for batch in learner.batches] == reference


@pytest.mark.parametrize("strategy", ["badge", "albl"])
def test_asks_without_new_labels_are_the_same_reopened_or_not(tmp_path: Path, strategy: str) -> None:
    plain = make(strategy=strategy, initial={i: int(TRUTH[i]) for i in range(10)})
    reference = [plain.ask(4).tolist() for _ in range(3)]
    for n in range(3):
        with make(tmp_path / "j.jsonl", strategy=strategy, initial={i: int(TRUTH[i]) for i in range(10)}) as learner:
            assert learner.ask(4).tolist() == reference[n]


def test_opening_trains_nothing_until_it_is_needed(tmp_path: Path) -> None:
    run(make(tmp_path / "j.jsonl"), 3)
    trainer = Centroids()
    learner = make(tmp_path / "j.jsonl", trainer=trainer)
    assert len(learner.labels) == 15 and trainer.fits == 0
    learner.ask(5)
    learner.ask(5)
    assert trainer.fits == 1


def test_memory_is_written_in_parts_that_do_not_grow(tmp_path: Path) -> None:
    run(make(tmp_path / "j.jsonl", strategy="albl"), 8)
    asks = [e for e in journal.read(tmp_path / "j.jsonl") if e["event"] == "ask"]
    assert all(len(event["memory"].get("add", {}).get("importance", {})) == 5 for event in asks[2:])


MEMORIES: list[tuple[dict[str, Any] | None, dict[str, Any]]] = [
    (None, {"a": 1}),
    ({"a": 1, "t": {"x": 1}}, {"a": 1, "t": {"x": 1}}),
    ({"a": 1, "t": {"x": 1}}, {"a": 2, "t": {"x": 3, "y": 4}}),
    ({"a": 1, "t": {"x": 1}}, {"a": [], "t": {"y": 4}}),
    ({"a": 1}, {"t": {}}),
    ({"t": {}}, {"t": None}),
    ({"t": None}, {"t": {"x": {"y": 1}}}),
]


@pytest.mark.parametrize(("old", "new"), MEMORIES)
def test_changes_of_a_memory_give_the_memory(old: dict[str, Any] | None, new: dict[str, Any]) -> None:
    assert merged(old, changes(old, new)) == new


def test_a_failed_ask_leaves_no_trace(tmp_path: Path) -> None:
    class Fails(Centroids):
        def fit(self, *arguments: Any) -> Any:
            raise RuntimeError("out of memory")

    reference = run(make(strategy="albl"), 4)
    learner = make(tmp_path / "j.jsonl", strategy="albl")
    for _ in range(4):
        trainer, learner.trainer = learner.trainer, Fails()
        if len(learner.labels):
            with pytest.raises(RuntimeError, match="out of memory"):
                learner.ask(5)
        learner.trainer = trainer
        learner.tell(ids := learner.ask(5), TRUTH[ids])
    assert [batch.tolist() for batch in learner.batches] == reference


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "pool": ({"pool": X + 1e-9}, r"its pool has 60 examples, yours 60, and its examples are different \(digest \w+"),
    "pool length": (
        {"pool": X[:-1]},
        "its pool has 60 examples, yours 59; only a pool with your own ids may lose examples",
    ),
    "classes": ({"classes": 4}, "its set of classes is 3, yours is 4"),
    "class names": ({"classes": ["a", "b", "c"]}, r"its set of classes is 3, yours is \['a', 'b', 'c'\]"),
    "strategy": ({"strategy": "rand"}, "its strategy is 'badge', yours is 'rand'"),
    "seed": ({"seed": 1}, "its seed is 0, yours is 1"),
    "initial": ({"initial": {3: 1}}, r"its set of initial labels is \{'ids': \[\], .*, yours is \{'ids': \[3\]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_journal_of_another_run_is_refused(case: str, tmp_path: Path) -> None:
    run(make(tmp_path / "j.jsonl"), 2)
    options, message = REFUSED[case]
    before = (tmp_path / "j.jsonl").read_bytes()
    with pytest.raises(JournalError, match=f"belongs to another .*: {message}"):
        make(tmp_path / "j.jsonl", **options)
    assert (tmp_path / "j.jsonl").read_bytes() == before
    make(tmp_path / "j.jsonl").close()  # the lock is free again


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"text": "hello"}\n', encoding="utf-8")
    with pytest.raises(JournalError, match="line 1: a line without number and checksum; this is not a journal"):
        make(tmp_path / "data.jsonl")
    with journal.Journal(tmp_path / "other.jsonl") as other:
        other.append(Start(cell=RunSettings(data="digits", model="mlp", strategy="rand", batch_size=10)))
    with pytest.raises(JournalError, match="something else than a learner's journal"):
        make(tmp_path / "other.jsonl")


def test_parameters_of_a_strategy_object_count(tmp_path: Path) -> None:
    class Offset:
        def __init__(self, by: int) -> None:
            self.by = by

        def __call__(self, outputs: Any, k: int, rng: Any, labeled: Any = None) -> Any:
            return np.arange(self.by, self.by + k)

    with make(tmp_path / "j.jsonl", strategy=Offset(2)) as learner:
        run(learner, 2)
    make(tmp_path / "j.jsonl", strategy=Offset(2)).close()
    with pytest.raises(JournalError, match=r"its strategy is '.*Offset\(by=2\)', yours is '.*Offset\(by=3\)'"):
        make(tmp_path / "j.jsonl", strategy=Offset(3))


@pytest.mark.parametrize("picks", [[0, 0, 1], [0, 1], [0, 1, 99], [-1, 0, 1], [[0], [1], [2]]])
def test_a_strategy_that_returns_nonsense_is_named(picks: list[Any]) -> None:
    learner = make(strategy=lambda out, k, rng, labeled=None: np.array(picks), initial={0: 0, 1: 1})
    with pytest.raises(InputError, match=r"where 3 distinct positions \(whole numbers below 58\)"):
        learner.ask(3)


def test_a_torn_last_line_is_dropped_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    reference = run(make(path), 3)
    whole, written = path.read_bytes(), [timeless(event) for event in journal.read(path)]
    path.write_bytes(whole[:-7])  # the last tell was interrupted
    path.with_name("j.jsonl.last").unlink()  # which is written after it
    with (
        pytest.warns(UserWarning, match="the last write was interrupted"),
        pytest.warns(UserWarning, match="is missing"),
    ):
        learner = make(path)
    assert learner.pending.tolist() == reference[2]
    learner.tell(learner.pending, TRUTH[learner.pending])
    learner.close()
    again = path.read_bytes()
    assert [timeless(event) for event in journal.read(path)] == written and again[: len(whole) - 200] == whole[:-200]


def timeless(event: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key != "at"}


def test_truncated_at_any_byte_it_opens_and_ends_in_the_same_picks(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with make(path) as learner:
        reference = run(learner, 3)
    whole = path.read_bytes()
    for cut in np.random.default_rng(1).integers(0, len(whole), size=60):
        path.write_bytes(whole[:cut])
        path.with_name("j.jsonl.last").unlink()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            learner = make(path)
        torn = bool(whole[:cut]) and b"\n" not in (whole[cut - 1 : cut], whole[cut : cut + 1])
        assert any("was interrupted" in str(warning.message) for warning in caught) == torn
        with learner:
            while len(learner.labels) < 15:
                ids = learner.pending if len(learner.pending) else learner.ask(5)
                learner.tell(ids, TRUTH[ids])
        assert [batch.tolist() for batch in learner.batches] == reference


def test_events_that_contradict_each_other_are_named_by_line(tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl") as learner:
        run(learner, 2)
    header, ask, tell, *rest = journal.records_of(tmp_path / "j.jsonl")

    def opened(*events: Record) -> None:
        (tmp_path / "k.jsonl").unlink(missing_ok=True)
        with journal.Journal(tmp_path / "k.jsonl") as written:
            written.append(*events)
        make(tmp_path / "k.jsonl").close()

    opened(header, ask, tell, *rest)
    opened(header, ask, *rest)  # the first tell was never made
    with pytest.raises(JournalError, match=r"k\.jsonl, line 2: id \d+ was not asked.*changed by hand"):
        opened(header, tell, *rest)
    with pytest.raises(JournalError, match="line 6: ask 0 is out of order or repeats ids"):
        opened(header, ask, tell, *rest, ask)
    with pytest.raises(JournalError, match="line 4: a second header"):
        opened(header, ask, tell, header)


def test_two_learners_cannot_write_one_journal(tmp_path: Path) -> None:
    learner = make(tmp_path / "j.jsonl")
    with pytest.raises(JournalError, match=r"already open for writing.*learner\.close\(\)"):
        make(tmp_path / "j.jsonl")
    learner.close()
    with make(tmp_path / "j.jsonl"), pytest.raises(JournalError, match="is closed"):
        learner.ask(1)


def test_no_seed_records_the_one_drawn(tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl", seed=None) as learner:
        reference = run(learner, 3)
    assert journal.read(tmp_path / "j.jsonl")[0]["seed"] == learner.seed
    assert run(make(seed=learner.seed), 3) == reference
    with make(tmp_path / "j.jsonl", seed=None) as again:
        assert again.seed == learner.seed
    make(tmp_path / "j.jsonl", seed=learner.seed).close()
    assert make(seed=None).seed != make(seed=None).seed


def test_what_is_asked_and_told_is_on_disk_when_the_call_returns(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    learner = make(path)
    ids = learner.ask(3)
    assert json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["ids"] == ids.tolist()
    learner.tell(ids[:1], [2])
    last = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    assert {**last, "at": 0, "sum": 0} == {
        "n": 3,
        "event": "tell",
        "ids": [int(ids[0])],
        "labels": [2],
        "at": 0,
        "sum": 0,
    }
