"""The loop, sentence by sentence: ask, tell, relabel, pools and trainers, and everything that it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge.errors import InputError
from three_classes import TRUTH, Centroids, N, X, make, predict, run

# -- ask ---------------------------------------------------------------------------------------------------------------


def test_ask_before_any_label_draws_uniformly() -> None:
    trainer = Centroids()
    firsts = np.array([make(trainer=trainer, seed=seed).ask(10) for seed in range(300)])
    assert trainer.fits == 0
    assert all(len(set(batch)) == 10 for batch in firsts.tolist())
    counts = np.bincount(firsts.ravel(), minlength=N)
    chi2 = ((counts - 50) ** 2 / 50).sum() / (1 - 10 / N)  # without replacement: the variance is smaller by that much
    assert 30 < chi2 < 98  # 59 degrees of freedom: p between 0.001 and 0.999


def test_labels_of_one_class_teach_nothing_yet() -> None:
    trainer = Centroids()
    learner = make(trainer=trainer, initial={0: 1, 1: 1})
    learner.ask(5)
    assert trainer.fits == 0
    learner.tell(learner.pending, [0, 1, 1, 1, 1])
    learner.ask(5)
    assert trainer.fits == 1


def test_initial_brings_in_labels_that_exist_already(tmp_path: Path) -> None:
    initial = {int(i): int(TRUTH[i]) for i in range(20)}
    learner = make(tmp_path / "j.jsonl", initial=initial)
    assert learner.labels == initial
    assert not set(learner.ask(40).tolist()) & set(initial)
    learner.close()
    with make(tmp_path / "j.jsonl") as again:
        assert again.labels == initial  # recorded: need not be given again
    make(tmp_path / "j.jsonl", initial=dict(reversed(initial.items()))).close()  # nor in that order


def test_asked_ids_are_int64_and_distinct_until_the_pool_is_exhausted() -> None:
    learner = make()
    batches = [learner.ask(20)]
    learner.tell(batches[0], TRUTH[batches[0]])
    batches += [learner.ask(20), learner.ask(20)]
    assert all(batch.dtype == np.int64 for batch in batches)
    assert sorted(np.concatenate(batches).tolist()) == list(range(N))
    with pytest.raises(InputError, match=r"asked for 1 of 0 candidates \(20 of 60 are labelled, 40 pending\)"):
        learner.ask(1)


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "3", None])
def test_k_must_be_a_positive_whole_number(k: Any) -> None:
    with pytest.raises(InputError, match="k must be a whole number ≥ 1"):
        make().ask(k)


def test_picks_depend_on_seed_and_labels_only() -> None:
    assert run(make(seed=3), 4) == run(make(seed=3), 4)
    assert run(make(seed=3), 4) != run(make(seed=4), 4)
    assert run(make(seed=3), 4)[2:] != run(make(seed=3), 4, truth=TRUTH[::-1])[2:]


def test_parts_order_and_extra_looks_do_not_change_the_picks() -> None:
    reference = run(make(), 4)
    learner = make()
    for _ in range(4):
        ids = learner.ask(5)
        for id in ids[::-1]:
            learner.tell([id], [TRUTH[id]])
            assert learner.model is learner.model  # trained once per set of labels
    assert [batch.tolist() for batch in learner.batches] == reference


# -- tell --------------------------------------------------------------------------------------------------------------


def test_a_batch_can_be_told_in_parts() -> None:
    learner = make()
    ids = learner.ask(6)
    assert learner.pending.tolist() == ids.tolist()
    learner.tell(ids[2:4], TRUTH[ids[2:4]])
    assert learner.pending.tolist() == [*ids[:2].tolist(), *ids[4:].tolist()]
    more = learner.ask(10)
    assert not set(more.tolist()) & set(ids.tolist())
    assert learner.pending.tolist() == [*ids[:2].tolist(), *ids[4:].tolist(), *more.tolist()]
    assert learner.labels == {int(i): int(TRUTH[i]) for i in ids[2:4]}
    assert set(learner.candidates.tolist()) == set(range(N)) - set(ids.tolist()) - set(more.tolist())


WRONG: dict[str, tuple[Callable[[badge.ActiveLearner], None], str]] = {
    "not asked": (lambda a: a.tell([0], [1]), "id 0 was not asked: labels that exist already go into `initial`"),
    "not asked, in a batch": (lambda a: a.tell([*a.pending, 0], [0, 0, 0]), "id 0 was not asked"),
    "outside the pool": (lambda a: a.tell([60], [1]), "id 60 is outside the pool of 60 examples"),
    "negative": (lambda a: a.tell([-1], [1]), "id -1 is outside the pool"),
    "not a number": (lambda a: a.tell(["x"], [1]), "ids are whole numbers, positions in the pool; got 'x'"),
    "outside the classes": (lambda a: a.tell(a.pending[:1], [3]), r"label 3 of id \d+ is not one of the classes"),
    "a float": (lambda a: a.tell(a.pending[:1], [1.0]), r"label 1.0 of id \d+ is not one of the classes"),
    "a bool": (lambda a: a.tell(a.pending[:1], [True]), r"label True of id \d+ is not one of the classes"),
    "a list": (lambda a: a.tell(a.pending[:1], [[1]]), r"label \[1\] of id \d+ is not one of the classes"),
    "an id alone": (lambda a: a.tell(5, [0]), "ids are a list or an array, also where there is only one; got 5"),
    "a label alone": (lambda a: a.tell(a.pending[:1], "0"), "labels are a list or an array"),
    "too few labels": (lambda a: a.tell(a.pending, [1]), "2 ids and 1 labels"),
    "twice in one call": (
        lambda a: a.tell([a.pending[0]] * 2, [0, 1]),
        "labelled 0 and was told again as 1: tell it once",
    ),
    "twice": (lambda a: a.tell([5], [1]), r"id 5 is labelled 0 and was told again as 1; relabel\(5, 1\) corrects"),
    "relabel pending": (lambda a: a.relabel(a.pending[0], 1), r"id \d+ has no label to correct: tell it first"),
    "relabel unknown": (lambda a: a.relabel(0, 1), "id 0 has no label to correct: ask it first"),
    "relabel outside": (lambda a: a.relabel(5, 7), "label 7 of id 5 is not one of the classes"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_refused_and_nothing_written(case: str, tmp_path: Path) -> None:
    learner = make(
        tmp_path / "j.jsonl", initial={5: 0, 6: 1}, strategy=lambda out, k, rng, labeled=None: np.arange(8, 10)
    )
    learner.ask(2)
    before, state = (tmp_path / "j.jsonl").read_bytes(), (learner.labels, learner.pending.tolist())
    call, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        call(learner)
    assert (tmp_path / "j.jsonl").read_bytes() == before
    assert (learner.labels, learner.pending.tolist()) == state


def test_the_same_label_again_is_no_matter(tmp_path: Path) -> None:
    learner = make(tmp_path / "j.jsonl")
    ids = learner.ask(3)
    learner.tell(ids, [0, 1, 2])
    before = (tmp_path / "j.jsonl").read_bytes()
    learner.tell(ids, [0, 1, 2])
    learner.relabel(ids[0], 0)
    assert (tmp_path / "j.jsonl").read_bytes() == before


def test_relabel_corrects_and_changes_the_next_model(tmp_path: Path) -> None:
    learner = make(tmp_path / "j.jsonl")
    run(learner, 2)
    id = int(learner.batches[0][0])
    before = learner.model
    learner.relabel(id, (int(TRUTH[id]) + 1) % 3)
    assert learner.labels[id] == (TRUTH[id] + 1) % 3
    assert not np.array_equal(learner.model, before)
    learner.close()
    assert make(tmp_path / "j.jsonl").labels == learner.labels


def test_class_names_are_the_labels(tmp_path: Path) -> None:
    names = ["cat", "dog", "eel"]
    learner = make(tmp_path / "j.jsonl", classes=names, initial={0: "eel"})
    ids = learner.ask(6)
    learner.tell(ids, np.array(names)[TRUTH[ids]])
    assert learner.labels == {0: "eel"} | {int(i): names[TRUTH[i]] for i in ids}
    with pytest.raises(InputError, match="label 1 of id 0 is not one of the classes: \\['cat', 'dog', 'eel'\\]"):
        learner.relabel(0, 1)
    learner.close()
    with_numbers = make()
    with_numbers.tell(with_numbers.ask(6), TRUTH[with_numbers.pending])
    learner = make(tmp_path / "j.jsonl", classes=names)
    assert learner.labels[0] == "eel"


@pytest.mark.parametrize("classes", [1, 0, ["a"], ["a", "a"], [1.5, 2.5], [True, False], "ab", 2.5])
def test_classes_must_be_at_least_two_and_distinct(classes: Any) -> None:
    with pytest.raises(InputError, match="classes"):
        make(classes=classes)


# -- pools and trainers ------------------------------------------------------------------------------------------------


class Pairs(torch.utils.data.Dataset):
    """A Dataset that carries labels, which the loop must not look at."""

    def __len__(self) -> int:
        return N

    def __getitem__(self, i: int) -> tuple[torch.Tensor, str]:
        return torch.from_numpy(X[i]), "not to be read"


@pytest.mark.parametrize("pool", [torch.from_numpy(X), list(X), Pairs()], ids=["tensor", "list", "dataset"])
def test_every_kind_of_pool_gives_the_same_picks_and_the_same_journal(pool: Any, tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl") as learner:
        reference = run(learner, 4)
    assert run(make(pool=pool), 4) == reference
    make(tmp_path / "j.jsonl", pool=pool).close()


def test_a_pool_that_changes_from_look_to_look_can_be_reopened(tmp_path: Path) -> None:
    class Augmented(Pairs):
        def __getitem__(self, i: int) -> tuple[torch.Tensor, str]:
            return torch.from_numpy(X[i]) + torch.randn(3), "not to be read"

    make(tmp_path / "j.jsonl", pool=Augmented()).close()
    make(tmp_path / "j.jsonl", pool=Augmented()).close()


@pytest.mark.parametrize("pool", [iter([1, 2]), [], np.zeros((0, 3)), 7])
def test_pools_that_cannot_be_indexed_are_refused(pool: Any) -> None:
    with pytest.raises(InputError, match="pool"):
        make(pool=pool)


def test_scikit_learn_estimators_serve_as_trainers() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def embed(model: Any, pool: Any) -> badge.Outputs:
        return badge.Outputs(model.predict_proba(pool), np.asarray(pool))

    forest = RandomForestClassifier(5)
    runs = [run(make(trainer=forest, predict=embed, seed=seed), 3) for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]
    assert not hasattr(forest, "estimators_") and forest.random_state is None  # it was cloned

    learner = make(trainer=make_pipeline(StandardScaler(), LogisticRegression()), predict=badge.predict)
    run(learner, 4)
    assert learner.outputs.probabilities.shape == (N, 3)


def test_texts_and_tables_with_a_pipeline(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = [f"{'good nice' if label else 'bad ugly'} word{i}" for i, label in enumerate(TRUTH > 0)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    for pool, trainer in [(texts, model), (pandas.DataFrame(X, columns=list("abc")), LogisticRegression())]:
        path = tmp_path / f"{type(pool).__name__}.jsonl"
        options: dict[str, Any] = {"pool": pool, "trainer": trainer, "predict": badge.predict, "classes": ["no", "yes"]}
        with make(path, **options) as learner:
            for _ in range(3):
                ids = learner.ask(8)
                learner.tell(ids, np.where(TRUTH[ids] > 0, "yes", "no"))
        with make(path, **options) as again:
            assert len(again.labels) == 24 and again.outputs.probabilities.shape == (N, 2)


def test_a_class_without_labels_has_probability_zero() -> None:
    from sklearn.linear_model import LogisticRegression

    learner = make(trainer=LogisticRegression(), predict=badge.predict, initial={0: 0, 1: 2, 2: 0, 3: 2})
    learner.ask(5)
    assert learner.outputs.probabilities.shape == (N, 3)
    assert (learner.outputs.probabilities[:, 1] == 0).all()


def test_what_cannot_train_is_refused() -> None:
    from sklearn.svm import LinearSVC

    with pytest.raises(InputError, match="object has no fit"):
        make(trainer=object())
    with pytest.raises(InputError, match="LinearSVC gives no probabilities"):
        make(trainer=LinearSVC())
    with pytest.raises(InputError, match="seed must be a whole number"):
        make(seed=-1)
    with pytest.raises(InputError, match="no model before the first label"):
        _ = make().model
    with pytest.raises(InputError, match="nothing was asked yet"):
        make().explain()
    with pytest.raises(InputError, match="predict gave 59 rows for a pool of 60"):
        _ = make(initial={0: 0, 1: 1}, predict=lambda model, pool: predict(model, pool[:-1])).outputs


def test_seconds_and_explanation_of_the_last_batch() -> None:
    learner = make()
    run(learner, 3)
    assert all(learner.seconds[part] > 0 for part in ("train", "predict", "select"))
    why = learner.explain()
    assert why.mean_norm > 0


def test_the_model_of_a_round_does_not_depend_on_the_models_before() -> None:
    learner = make()
    run(learner, 3)
    fresh = make(initial=learner.labels)
    fresh._book.ledger().label_round = learner.round
    assert np.array_equal(learner.model, fresh.model)


def test_a_label_is_encoded_once_and_nothing_of_ones_own_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from badge.journal import lines, schema
    from badge.learner.classes import Classes

    with make(tmp_path / "j.jsonl") as learner:
        ids = learner.ask(20)
        encoded: list[Any] = []
        real = Classes.encode
        monkeypatch.setattr(Classes, "encode", lambda self, label, id: encoded.append(id) or real(self, label, id))
        for module, name in ((lines, "decode"), (schema, "check"), (lines, "check"), (schema, "typed")):
            monkeypatch.setattr(module, name, lambda *given: pytest.fail("reads its own event"))
        learner.tell(ids, TRUTH[ids])
        assert len(encoded) == 20 and len(learner.labels) == 20


def test_the_old_name_of_the_number_of_people_is_taken() -> None:
    learner = make()
    learner.ask(2, of=2)
    learner.ask(2, 2)
    assert set(learner._book.ledger().pending.values()) == {2}


def test_a_strategy_that_declares_nothing_gets_everything_labelled_outputs_included() -> None:
    seen: list[Any] = []

    def own(outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: badge.Outputs | None = None) -> Any:
        seen.append((outputs.probabilities.shape, outputs.embeddings.shape, None if labeled is None else len(labeled)))
        return np.arange(k)

    learner = make(strategy=own, initial={i: int(TRUTH[i]) for i in range(10)})
    learner.ask(3)
    assert seen == [((50, 3), (50, 3), 10)]
