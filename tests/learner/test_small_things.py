"""Conveniences: labels as a mapping, a score, the name of the strategy, the recorded seed, copies, the log."""

from __future__ import annotations

import copy
import logging
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import badge
from badge import journal
from badge.core.catalog import ONE_PASS
from badge.errors import InputError, JournalError
from sixty import TRUTH, X, make, rounds


def test_labels_as_a_mapping() -> None:
    learner = make()
    ids = learner.ask(4).tolist()
    learner.tell({id: int(TRUTH[id]) for id in ids}, by="ann")
    assert learner.labels == {id: int(TRUTH[id]) for id in ids} and learner.history[0].by == "ann"
    with pytest.raises(InputError, match=r"labels are missing: tell\(ids, labels\), or tell\(\{id: label\}\)"):
        learner.tell(learner.ask(2))


def test_the_score_on_other_examples() -> None:
    learner = make(initial={i: int(TRUTH[i]) for i in range(30)})
    model = learner.model
    said = -((X[:, None] - model[None]) ** 2).sum(-1)
    assert learner.score(X, TRUTH) == np.mean(said.argmax(1) == TRUTH) > 0.8
    with pytest.raises(InputError, match="60 examples and 3 labels"):
        learner.score(X, [0, 1, 0])


def test_a_remark_on_an_unknown_id_is_refused_before_it_is_written(tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl") as learner, pytest.raises(InputError, match="id 999 is outside the pool"):
        learner.team.remark(999, "ann", "odd", flag=True, request="r1")
    with make(tmp_path / "j.jsonl") as learner:
        assert learner.team.flagged == set() and len(journal.read(tmp_path / "j.jsonl")) == 1


def test_the_strategy_by_name() -> None:
    learner = make(strategy="badge")
    assert learner.strategy == "badge"
    learner.use("marg")
    assert learner.strategy == "marg"

    def own(outputs: object, k: int, rng: object, labeled: object = None) -> np.ndarray:
        return np.arange(k)

    learner.use(own)
    assert learner.strategy is own


def test_a_journal_goes_on_with_its_seed_and_says_when_the_strategy_was_changed(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with make(path, seed=5) as learner:
        rounds(learner, 2)
        reference = learner.ask(4).tolist()
    (tmp_path / "k.jsonl").write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.warns(UserWarning, match="is missing"), make(tmp_path / "k.jsonl") as learner:
        assert learner.seed == 5 and learner.ask(4).tolist() == reference
        learner.use("marg")
    with pytest.raises(JournalError, match="its seed is 5, yours is 6"):
        make(path, seed=6)
    with pytest.warns(UserWarning, match="began with badge and uses marg since"), make(tmp_path / "k.jsonl") as learner:
        assert learner.strategy == "marg"
    assert make().seed == 0
    assert [event["event"] for event in journal.read(path)].count("use") == 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_learner_cannot_be_copied(copied: object) -> None:
    with pytest.raises(InputError, match="holds an open journal and cannot be copied or pickled"):
        copied(make())  # type: ignore[operator]


def test_what_can_be_copied() -> None:
    rng = np.random.default_rng(0)
    out = badge.Outputs.from_logits(rng.normal(size=(30, 3)), rng.normal(size=(30, 4)))
    for way in (copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
        again = way(out)
        assert again.probabilities[:].equal(out.probabilities[:])
        why = badge.explain(out, [3, 4])
        assert np.array_equal(way(why).norm, why.norm)
        for name in ONE_PASS:
            strategy = way(badge.strategies.get(name))
            picks = strategy(out, 3, np.random.default_rng(0), labeled=out[[1, 2]])
            assert len(set(picks.tolist())) == 3


def test_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    with make(tmp_path / "j.jsonl") as learner:
        rounds(learner, 2)
    assert capfd.readouterr() == ("", "")  # silent by default
    with caplog.at_level(logging.INFO, "badge"), make(tmp_path / "j.jsonl") as learner:
        learner.ask(3)
    said = [record.getMessage() for record in caplog.records if record.name == "badge"]
    assert [text.split()[0] for text in said] == ["resuming", "trained", "predicted", "picked"]
    caplog.clear()
    with caplog.at_level(logging.INFO, "badge"):
        make(initial={0: 1}).ask(2)
    assert caplog.records[-1].levelname == "WARNING" and "all 1 labels so far are 1" in caplog.text


@pytest.mark.parametrize("kind", ["array", "table"])
def test_trees_on_unknown_numbers_are_told_before_labels_are_paid_for(kind: str) -> None:
    pool = X.copy()
    pool[3, 1] = np.nan
    given = pool if kind == "array" else pd.DataFrame(pool)
    tree = DecisionTreeClassifier()
    for strategy in ("badge", "coreset"):
        learner = badge.ActiveLearner(given, tree, classes=2, strategy=strategy, seed=0)
        with pytest.raises(
            InputError, match=r"there will be no embeddings: .* use conf, marg, .* or put a SimpleImputer"
        ):
            learner.ask(5)
        assert not len(learner.pending)
    for fine in (
        badge.ActiveLearner(given, tree, classes=2, strategy="marg", seed=0),
        badge.ActiveLearner(given, make_pipeline(SimpleImputer(), tree), classes=2, seed=0),
        badge.ActiveLearner(X, tree, classes=2, seed=0),
    ):
        for _ in range(2):
            ids = fine.ask(20)
            fine.tell(ids, TRUTH[ids])
