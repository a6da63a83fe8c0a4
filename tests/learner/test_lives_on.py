"""A journal that lives on: skipped items, growing pools, own ids, new classes, several people, history, advice."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge import journal
from badge.errors import InputError, JournalError
from badge.learner.advice import advice, wilson
from badge.learner.agreement import cohen_kappa
from badge.learner.history import History
from small_loop import Trainer, predict

X = np.random.default_rng(0).normal(size=(60, 2))
TRUTH = (X[:, 0] > 0).astype(int)
KEYS = [f"img/{n:03d}.png" for n in np.random.default_rng(1).permutation(60)]


def make(path: Any = None, pool: Any = X, **options: Any) -> badge.ActiveLearner:
    options = {"classes": 2, "predict": predict, **options}
    return badge.ActiveLearner(pool, options.pop("trainer", None) or Trainer(0.0), journal=path, **options)


def rounds(learner: badge.ActiveLearner, asks: int, k: int = 4) -> list[list[Any]]:
    for _ in range(asks):
        ids = learner.ask(k)
        learner.tell(ids, TRUTH[learner.positions(ids)])
    return [batch.tolist() for batch in learner.batches]


# -- skip and release --------------------------------------------------------------------------------------------------


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


# -- the pool ----------------------------------------------------------------------------------------------------------


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
        (X[:40], "its pool has 60 examples, yours 40; a pool may grow, not lose"),
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
    with pytest.raises(JournalError, match="has ids of its own: pass ids="):
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
    for batch in reference:  # each ask in a process of its own, so to speak, and the pool in another order
        with make(tmp_path / "b.jsonl", pool, ids=ids, strategy="albl") as learner:
            assert learner.ask(4).tolist() == batch
            learner.tell(batch, [truth[id] for id in batch])


WRONG_IDS: list[tuple[Any, str]] = [
    (["a"], "1 ids for a pool of 60 examples"),
    ([*KEYS[:-1], KEYS[0]], "stands twice in the pool"),
    ([*KEYS[:-1], 1.5], "ids are text or whole numbers; got 1.5"),
    ([*KEYS[:-1], None], "ids are text or whole numbers; got None"),
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
        assert learner.model.n_features_in_ == 2 and min(learner.labels) >= 1000
    shuffled = table.sample(frac=1, random_state=0)
    with make(tmp_path / "j.jsonl", shuffled, **options) as learner:
        assert learner.ask(2).dtype == np.int64


class Flips(torch.utils.data.Dataset):
    """Random flips from a generator of its own, as augmentation gives them: each look at an item may differ."""

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


# -- classes, strategies, labels from elsewhere ------------------------------------------------------------------------


def test_a_class_is_added(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    options: dict[str, Any] = {"trainer": LogisticRegression(), "predict": badge.predict}
    with make(tmp_path / "j.jsonl", classes=["a", "b"], **options) as learner:
        ids = learner.ask(9)
        learner.tell(ids[:8], np.where(TRUTH[ids[:8]], "b", "a"))
        with pytest.raises(InputError, match=r"label 'c' of id .* is not one of the classes"):
            learner.tell(ids[8:], ["c"])
        learner.add_class("c")
        learner.tell(ids[8:], ["c"])
        assert learner.classes == ["a", "b", "c"] and learner.outputs.probabilities.shape == (60, 3)
        reference = learner.ask(4).tolist()
        for name, message in (("c", "is one of the classes already"), (1.5, "needs a name"), (None, "needs a name")):
            with pytest.raises(InputError, match=message):
                learner.add_class(name)  # type: ignore[arg-type]
    for classes in (["a", "b"], ["a", "b", "c"]):
        with make(tmp_path / "j.jsonl", classes=classes, **options) as learner:
            assert learner.pending.tolist() == reference
    with pytest.raises(JournalError, match=r"its classes is \['a', 'b', 'c'\].*add_class adds one"):
        make(tmp_path / "j.jsonl", classes=["a", "b", "x"], **options)
    numbered = make()
    numbered.add_class()
    assert numbered.classes == [0, 1, 2]
    with pytest.raises(InputError, match="needs the next number, 3"):
        numbered.add_class("cat")


def test_another_strategy_from_now_on(tmp_path: Path) -> None:
    def run(path: Any, close: bool) -> list[list[Any]]:
        learner = make(path, strategy="albl")
        rounds(learner, 3)
        learner.use("marg")
        if close:
            learner.close()
            learner = make(path, strategy="albl")  # the journal's first; or the one in force:
            learner.close()
            learner = make(path, strategy="marg")
        rounds(learner, 2)
        learner.use("albl")  # without memory of its first time
        return rounds(learner, 2)

    assert run(tmp_path / "j.jsonl", close=True) == run(None, close=False)
    used = [event["strategy"] for event in journal.read(tmp_path / "j.jsonl") if event["event"] == "use"]
    assert used == ["marg", "albl"]
    with pytest.raises(JournalError, match=r"its strategy is 'albl', yours is 'badge'.*learner.use changes it"):
        make(tmp_path / "j.jsonl", strategy="badge")
    with pytest.raises(InputError, match="unknown strategy"):
        make().use("nope")


def test_labels_of_ids_that_were_never_asked(tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl") as learner:
        learner.tell([3, 4, 5], TRUTH[[3, 4, 5]], unasked=True)
        ids = learner.ask(3)
        learner.skip([6])
        learner.tell([int(ids[0]), 6], [0, 1], unasked=True)
        assert set(learner.labels) == {3, 4, 5, 6, int(ids[0])} and not learner.skipped
        with pytest.raises(InputError, match="is labelled"):
            learner.tell([3], [1 - int(TRUTH[3])], unasked=True)
        reference = learner.ask(4).tolist()
    with make(tmp_path / "j.jsonl") as learner:
        assert learner.pending.tolist()[-4:] == reference
        assert [row.kind for row in learner.history][:3] == ["unasked"] * 3


def test_labels_from_csv(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("id,label,by\n3,0,ann\n4,1,ben\n5,0,ann\n", encoding="utf-8")
    with make(tmp_path / "j.jsonl") as learner:
        assert learner.import_csv(file) == 3 and learner.import_csv(file) == 0
        assert learner.labels == {3: 0, 5: 0, 4: 1}
        assert [(row.kind, row.by) for row in learner.history] == [
            ("import", "ann"),
            ("import", "ann"),
            ("import", "ben"),
        ]
        for text, message in (
            ("id,label\n3,1\n", "line 2: id 3 is labelled 0 and was told again as 1"),
            ("id,label\n99,1\n", "line 2: id 99 is outside the pool"),
            ("id,label\nx,1\n", "line 2: ids are whole numbers"),
            ("id,label\n7,cat\n", "line 2: label 'cat' of id 7 is not one of the classes"),
            ("id,label\n7\n", "line 2: not as many values as columns"),
            ("key,label\n7,1\n", "has no column 'id'"),
            ("", "has no column 'id'; it has none"),
        ):
            file.write_text(text, encoding="utf-8")
            with pytest.raises(InputError, match=message):
                learner.import_csv(file)
        with pytest.raises(InputError, match="cannot read"):
            learner.import_csv(tmp_path / "absent.csv")
        assert len(learner.labels) == 3


# -- several people ----------------------------------------------------------------------------------------------------


def test_the_majority_counts_and_ties_are_pending(tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl") as learner:
        a, b, c = (int(id) for id in learner.ask(3, of=2))
        learner.tell([a, b, c], [0, 0, 1], by="ann")
        assert len(learner.labels) == 0 and learner.pending.tolist() == [a, b, c]
        learner.tell([a, b], [0, 1], by="ben")
        assert learner.labels == {a: 0} and learner.pending.tolist() == [b, c]
        found = learner.agreement()
        assert found.items == {a: 1.0, b: 0.0} and found.ties == [b]
        with pytest.raises(InputError, match="was asked of 2 people: say whose label it is"):
            learner.tell([c], [1])
        with pytest.raises(InputError, match=r"is labelled 1 and was told again as 0: relabel\(\d+, 0, by='ann'\)"):
            learner.tell([c], [0], by="ann")
        learner.tell([b], [1], by="cid")  # decides the tie
        assert learner.labels == {a: 0, b: 1} and learner.votes[b] == {"ann": 0, "ben": 1, "cid": 1}
    with make(tmp_path / "j.jsonl") as learner:
        assert learner.labels == {a: 0, b: 1} and learner.pending.tolist() == [c]
        learner.relabel(b, 0, by="cid")
        assert learner.labels[b] == 0
        learner.relabel(a, 1, by="ben")  # now a tie
        assert a not in learner.labels and set(learner.pending.tolist()) == {a, c}
        learner.relabel(a, 1)  # decided, whatever the votes
        assert learner.labels[a] == 1
        with pytest.raises(InputError, match="'dan' has not labelled id"):
            learner.relabel(a, 0, by="dan")
        with pytest.raises(InputError, match="by= is the name"):
            learner.tell([c], [1], by=5)  # type: ignore[arg-type]
    assert make(tmp_path / "j.jsonl").labels == learner.labels


def test_kappa_is_cohens() -> None:
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(0)
    for classes in (2, 3, 5):
        for _ in range(20):
            one = rng.integers(classes, size=40)
            other = np.where(rng.random(40) < 0.6, one, rng.integers(classes, size=40))
            assert cohen_kappa(one.tolist(), other.tolist()) == pytest.approx(cohen_kappa_score(one, other), abs=1e-12)
    assert math.isnan(cohen_kappa([1, 1], [1, 1])) and math.isnan(cohen_kappa([], []))


def test_agreement_of_pairs() -> None:
    from sklearn.metrics import cohen_kappa_score

    learner = make(initial={0: 0, 1: 1})
    ids = learner.ask(20, of=3)
    rng = np.random.default_rng(0)
    given = {person: np.where(rng.random(20) < 0.8, TRUTH[ids], 1 - TRUTH[ids]) for person in ("ann", "ben", "cid")}
    for person, labels in given.items():
        learner.tell(ids, labels, by=person)
    found = learner.agreement()
    for (one, other), kappa in found.kappa.items():
        assert kappa == pytest.approx(cohen_kappa_score(given[one], given[other]))
        assert found.counts[one, other] == 20
    assert len(found.kappa) == 3 and not len(learner.pending) and not found.ties
    majority = (sum(given.values()) >= 2).astype(int)
    assert {id: learner.labels[id] for id in ids.tolist()} == dict(zip(ids.tolist(), majority.tolist(), strict=True))
    assert "ann and ben: κ = " in str(found)


# -- history, events, advice -------------------------------------------------------------------------------------------


def test_history_says_when_by_whom_and_what_was_predicted(tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl", initial={0: 0, 1: 1}) as learner:
        ids = learner.ask(6)
        said = learner.outputs.probabilities[ids].argmax(dim=1).tolist()
        learner.tell(ids, TRUTH[ids], by="ann")
        learner.relabel(ids[0], 1 - int(TRUTH[ids[0]]), by="ben")
    with make(tmp_path / "j.jsonl", initial={0: 0, 1: 1}) as learner:
        rows = learner.history
        assert [row.kind for row in rows] == ["initial"] * 2 + ["tell"] * 6 + ["relabel"]
        told = rows.rows[2:8]
        assert [row.predicted for row in told] == said and {row.by for row in told} == {"ann"}
        assert [row.correct for row in told] == (np.array(said) == TRUTH[ids]).tolist()
        assert told[-1].prequential == pytest.approx(np.mean(np.array(said) == TRUTH[ids]))
        assert all(row.at is not None and row.at.endswith("Z") for row in rows)
        table = rows.to_pandas()
        assert len(table) == 9 and table["label"].tolist() == [row.label for row in rows]
        assert "<td>ann</td>" in rows._repr_html_() and "9 labels" in rows._repr_html_()
    assert "&lt;b&gt;" in History([told[0].__class__(**{**vars(told[0]), "by": "<b>"})])._repr_html_()


def test_every_event_is_reported_once_it_is_on_disk(tmp_path: Path) -> None:
    seen: list[tuple[int, str, int]] = []
    path = tmp_path / "j.jsonl"

    def on_event(event: journal.Event) -> None:
        seen.append((event["n"], event["event"], len(journal.read(path))))

    with make(path, on_event=on_event) as learner:
        rounds(learner, 2)
        learner.skip([int(learner.candidates[0])])
        learner.use("marg")
        learner.tell([], [])  # nothing happens
    assert seen == [(n, kind, n) for n, kind in enumerate(["ask", "tell", "ask", "tell", "skip", "use"], start=2)]


def test_a_callback_may_call_the_learner_and_its_error_loses_nothing(tmp_path: Path) -> None:
    learner = make(tmp_path / "j.jsonl")

    def on_event(event: journal.Event) -> None:
        assert threading.current_thread() is threading.main_thread() and learner.labels is not None
        if event["event"] == "tell":
            raise RuntimeError("the tracker is down")

    learner.on_event = on_event
    ids = learner.ask(3)
    with pytest.raises(RuntimeError, match="tracker is down"):
        learner.tell(ids, TRUTH[ids])
    assert len(learner.labels) == 3
    learner.close()
    assert len(make(tmp_path / "j.jsonl").labels) == 3


def test_advice_compares_models_across_restarts(tmp_path: Path) -> None:
    with make(None, initial={0: 0, 1: 1, 2: 0, 3: 1}) as whole:
        rounds(whole, 5)
        reference = whole.advice()
    for _ in range(5):
        with make(tmp_path / "j.jsonl", initial={0: 0, 1: 1, 2: 0, 3: 1}) as learner:
            rounds(learner, 1)
    with make(tmp_path / "j.jsonl", initial={0: 0, 1: 1, 2: 0, 3: 1}) as learner:
        assert learner.advice() == reference
    assert reference.pairs == 3 and reference.changed is not None and 0 <= reference.changed <= 1
    assert reference.interval is not None and reference.predictions == 20
    assert reference.interval[0] < reference.accuracy < reference.interval[1]  # type: ignore[operator]


def test_advice_counts_what_changed() -> None:
    flips = iter([0, 3, 0, 0, 0, 0])  # predictions of the first 3 that are turned round, from model to model

    def scripted(model: Any, pool: Any) -> badge.Outputs:
        p = np.where(TRUTH[:, None] == [0, 1], 0.9, 0.1)
        count = next(flips)
        p[:count] = p[:count, ::-1]
        return badge.Outputs(p, X)

    learner = make(initial={0: 0, 1: 1}, predict=scripted)
    told = []
    for _ in range(6):
        ids = learner.ask(2)
        learner.tell(ids, TRUTH[ids])
        told.append(learner.advice())
    assert [round((each.changed or 0) * 60) for each in told] == [0, 3, 3, 0, 0, 0]
    assert told[0].changed is None and "Two models in a row are needed" in str(told[0])
    assert [each.stop for each in told] == [False, False, False, False, False, True]
    assert told[-1].kappa == 1.0 and "have stabilised" in str(told[-1]) and told[-1].accuracy == 1.0
    assert "still change" in str(told[3])
    assert advice([], History([]), 0).text.startswith("Two models")


def test_the_interval_is_wilsons() -> None:
    from scipy.stats import binomtest

    for right, n in ((0, 5), (5, 5), (90, 100), (1, 2)):
        exact = binomtest(right, n).proportion_ci(method="wilson")
        assert wilson(right, n) == pytest.approx((exact.low, exact.high), abs=1e-6)


def test_explain_after_tell_is_about_the_model_that_picked(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with make(path) as learner:
        with pytest.raises(InputError, match="nothing was asked yet"):
            learner.explain()
        ids = learner.ask(6)
        with pytest.raises(InputError, match="no model picked the last batch"):
            learner.explain()
        learner.tell(ids, TRUTH[ids])
        ids = learner.ask(4)
        before = learner.explain()
        learner.tell(ids, TRUTH[ids])
        assert learner.explain() is before
        learner._explained = None
        assert np.array_equal(learner.explain().norm, before.norm)  # the outputs are still there
        new = learner.explain(ids)  # by the model of now
        assert not np.array_equal(new.norm, before.norm)
        learner._explained = None
        assert np.array_equal(learner.explain().norm, before.norm)  # trained again
        assert np.array_equal(learner.explain(ids).norm, new.norm)
    with make(path) as learner:
        assert np.array_equal(learner.explain().norm, before.norm) and learner.explain().ids.tolist() == ids.tolist()


def test_progress_is_drawn_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    learner = make(initial={0: 0, 1: 1})
    learner.ask(2, progress=True)
    assert "train · predict · pick" in capsys.readouterr().err


# -- a model that cannot be trained yet --------------------------------------------------------------------------------


def estimators() -> dict[str, Any]:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier

    return {
        "calibrated": CalibratedClassifierCV(LogisticRegression(), cv=5),
        "knn": KNeighborsClassifier(n_neighbors=15),
        "early stopping": MLPClassifier((4,), early_stopping=True, max_iter=300, learning_rate_init=0.1),
    }


@pytest.mark.parametrize("kind", ["calibrated", "knn", "early stopping"])
def test_too_few_labels_for_a_model_fall_back_to_uniform_picks(kind: str, tmp_path: Path) -> None:
    def embed(model: Any, pool: Any) -> badge.Outputs:
        return badge.Outputs(model.predict_proba(pool), pool)

    path = tmp_path / "j.jsonl"
    options: dict[str, Any] = {"trainer": estimators()[kind], "predict": embed}
    learner = make(path, initial={int(np.argmax(c == TRUTH)): c for c in (0, 1)}, **options)
    with pytest.warns(
        UserWarning, match=r"no model can be trained on 2 labels, the batch is drawn uniformly: ValueError"
    ):
        ids = learner.ask(30)
    assert len(set(ids.tolist())) == 30
    assert learner.uniform_because is not None and learner.uniform_because.startswith("ValueError: ")
    assert journal.read(path)[-1]["uniform"] == learner.uniform_because
    learner.tell(ids, TRUTH[ids])
    learner.ask(3)  # enough now
    assert learner.uniform_because is None
    learner.close()
    with make(path, **options) as again:
        assert len(again.pending) == 3


def test_xgboost_that_lacks_a_class() -> None:
    xgboost = pytest.importorskip("xgboost")
    learner = make(
        classes=3,
        initial={0: 0, 1: 2, 2: 0, 3: 2},
        trainer=xgboost.XGBClassifier(n_estimators=2, n_jobs=1),
        predict=lambda model, pool: badge.Outputs(model.predict_proba(pool), pool),
    )
    with pytest.warns(UserWarning, match="Invalid classes inferred"):
        ids = learner.ask(5)
    learner.tell(ids, [0, 1, 2, 1, 0])
    learner.ask(3)
    assert learner.uniform_because is None


def test_other_failures_are_not_hidden() -> None:
    class Broken(Trainer):
        error: Exception = RuntimeError("out of memory")

        def fit(self, *arguments: Any) -> Any:
            raise self.error

    trainer = Broken()
    learner = make(trainer=trainer, initial={0: 0, 1: 1})
    for error in (RuntimeError("out of memory"), TypeError("a bug"), InputError("the model gives 3 probabilities")):
        trainer.error = error
        with pytest.raises(type(error), match=str(error)):
            learner.ask(2)
    assert not len(learner.pending)
    learner.trainer = Trainer(0.0)
    learner.tell(ids := learner.ask(2), TRUTH[ids])
    trainer.error, learner.trainer = ValueError("after a fit has succeeded"), trainer
    with pytest.raises(ValueError, match="after a fit has succeeded"):
        learner.ask(2)


def test_lists_of_labels(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    tags = ["right", "high"]
    truth = [[name for name, has in zip(tags, row > 0, strict=True) if has] for row in X]
    options: dict[str, Any] = {"trainer": OneVsRestClassifier(LogisticRegression()), "predict": badge.predict}
    with make(tmp_path / "j.jsonl", classes=tags, multilabel=True, **options) as learner:
        for _ in range(3):
            ids = learner.ask(10)
            learner.tell(ids, [truth[i] for i in ids])
        assert learner.labels[int(ids[0])] == truth[ids[0]]
        assert learner.outputs.probabilities.shape == (60, 2)
        with pytest.raises(InputError, match="is not a list: with multilabel=True"):
            learner.relabel(ids[0], "right")
        assert isinstance(learner.history[-1].predicted, list)
        reference = learner.ask(5).tolist()
    with make(tmp_path / "j.jsonl", classes=tags, multilabel=True, **options) as learner:
        assert learner.pending.tolist() == reference
    assert json.loads((tmp_path / "j.jsonl").read_text().splitlines()[0])["multilabel"] is True


# -- journals of format 1 ----------------------------------------------------------------------------------------------


def test_a_learner_goes_on_with_a_journal_of_format_1(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with make(path) as learner:
        whole = rounds(learner, 4)
    kept = (
        "event",
        "format",
        "pool",
        "classes",
        "strategy",
        "seed",
        "initial",
        "round",
        "ids",
        "labels",
        "select_seconds",
    )
    old = [{key: event[key] for key in kept if key in event} for event in journal.read(path)[:5]]
    old[0]["format"] = 1
    path.write_text("".join(json.dumps(event) + "\n" for event in old), encoding="utf-8")
    with make(path) as learner:
        assert rounds(learner, 2) == whole
    events = journal.read(path)
    assert [event["event"] for event in events][4:8] == ["tell", "format", "ask", "tell"]
    with make(path) as learner:
        assert [batch.tolist() for batch in learner.batches] == whole


# -- after a repair ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", range(2, 12))
def test_the_loop_goes_on_after_any_line_was_lost(line: int, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with make(path, strategy="albl") as learner:
        rounds(learner, 3)
        ids = learner.ask(2, of=2)
        learner.tell(ids, [0, 1], by="ann")
        learner.tell(ids, [0, 0], by="ben")
        learner.add_class()
        learner.tell(learner.candidates[:1], [2], unasked=True)
        labels = learner.labels
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"event":"', b'"event":"x')
    path.write_bytes(b"".join(lines))
    with pytest.raises(JournalError, match=f"line {line}: its checksum"):
        make(path, strategy="albl")
    assert journal.repair(path).lost == [line]
    trainer = Trainer(0.0)
    trainer.fit = lambda examples, labels, rng: np.zeros((3, 2))  # type: ignore[method-assign]
    with make(path, strategy="albl", trainer=trainer) as learner:
        told = {id: label for id, label in learner.labels.items() if id in labels}
        assert len(told) >= len(labels) - 5  # what the lost line held is missing, and nothing else
        learner.tell(list(learner.ask(3)), [0, 1, 0])
    make(path, strategy="albl").close()


def test_memory_of_another_version_is_left_behind_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with make(path, strategy="albl") as learner:
        rounds(learner, 3)
    old = journal.read(path)
    for event in old:
        if "memory" in event:
            event["memory"] = {"all": {"weights_of_an_older_version": [1, 2]}}
    path.unlink()
    with journal.Journal(path) as written:
        written.append(*old)
    with make(path, strategy="albl") as learner:
        with pytest.warns(UserWarning, match="is of another version of it .*: it starts without memory"):
            ids = learner.ask(4)
        learner.tell(ids, TRUTH[ids])
        learner.ask(4)
        assert len(learner.labels) == 16


def test_a_model_of_the_other_kind_is_refused() -> None:
    learner = make(initial={0: [0], 1: [1]}, multilabel=True)
    with pytest.raises(InputError, match="the model gives one label per example, and the classes are for any number"):
        _ = learner.outputs


def test_history_is_read_on(tmp_path: Path) -> None:
    learner = make(tmp_path / "j.jsonl")
    for n in range(1, 5):
        rounds(learner, 1)
        first = learner.history
        assert len(first) == 4 * n and [row.event for row in first] == [row.event for row in learner.history]
    learner.close()
    assert make(tmp_path / "j.jsonl").history.rows == first.rows
