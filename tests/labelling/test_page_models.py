"""The models of the page: texts, a part of a large pool first, tables, images, encoders, one's own."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

import badge
from badge.labelling import models
from badge.labelling.command import Options, _learner, installed_encoder
from badge.labelling.models import Tables, Texts, predict_rows, reduction, spread, trainer_of
from badge.labelling.saving import load, save_model
from badge.labelling.session import Session
from badge.labelling.sources import Source, open_source
from badge.training.linear import fit_linear

TEXTS = [f"a {'fine' if i % 2 else 'dull'} film of {i % 7} parts, number {i}" for i in range(200)]


@pytest.fixture
def small_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool of 80 texts is a large one."""
    for name, value in {"TEXT_SAMPLE": 60, "TEXT_BLOCK": 33, "TEXT_PART": 40}.items():
        monkeypatch.setattr(models, name, value)


def test_a_part_of_a_large_pool_is_prepared_first(small_part: None) -> None:
    texts = Texts(2)
    part = texts.part(TEXTS, np.array([0, 1, 2]))
    assert part is not None and len(part[1]) == len(part[0]) == 42
    assert part[0][:3].tolist() == [0, 1, 2] and part[0][-1] == 199 and (np.diff(part[0]) > 0).all()
    rows = texts.prepare(TEXTS)
    np.testing.assert_allclose(rows, texts.transform(TEXTS), atol=1e-5)
    assert texts.part(TEXTS[:79]) is None  # a small one is prepared at once
    assert len(pickle.dumps(texts)) < len(pickle.dumps((texts, rows))) / 2  # a saved model is without the pool
    assert len(spread(200, 40, np.arange(100))) < 80  # no more labelled ones than others


def test_the_reduction_keeps_what_the_exact_one_keeps() -> None:
    counts = TfidfVectorizer(dtype=np.float32).fit_transform(TEXTS)
    found = reduction(counts, 20).numpy()
    np.testing.assert_allclose(found.T @ found, np.eye(20), atol=1e-4)
    exact = np.linalg.svd(counts.toarray(), full_matrices=False)[1]
    kept = np.linalg.norm(counts @ found, axis=0)
    np.testing.assert_allclose(kept[:5], exact[:5], rtol=1e-3)
    assert np.square(kept).sum() > 0.98 * np.square(exact[:20]).sum()
    assert reduction(counts[:3], 20).shape[1] == 2  # two of the three are alike


def test_a_linear_head_is_asked_without_a_copy_of_the_pool() -> None:
    rows = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    head = fit_linear(rows, [0, 1, 2] * 10)[0].eval()
    out, usual = predict_rows(head, rows), badge.predict(head, rows)
    assert out.embeddings.data_ptr() == rows.data_ptr()
    torch.testing.assert_close(out.probabilities, usual.probabilities)


def test_the_first_batch_of_a_large_pool_comes_from_a_part_of_it(
    small_part: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = Texts(2)
    monkeypatch.setattr(texts, "prepare", lambda pool: pytest.fail("the whole pool was prepared"))
    learner = badge.ActiveLearner(TEXTS, texts, classes=2, seed=0, first="typiclust")
    part = texts.part(TEXTS)
    assert part is not None
    first = learner.ask(10)
    learner.tell(first[:5], [0] * 5)  # of one class: there is no model yet
    second = learner.ask(10)
    assert {*first.tolist(), *second.tolist()} <= set(part[0].tolist()) and len({*first, *second}) == 20
    again = badge.ActiveLearner(TEXTS, Texts(2), classes=2, seed=0, first="typiclust")
    assert again.ask(10).tolist() == first.tolist()


def test_where_the_part_is_used_up_the_whole_pool_is_picked_from(small_part: None) -> None:
    learner = badge.ActiveLearner(TEXTS, Texts(2), classes=2, seed=0, first="typiclust")
    assert len({*learner.ask(30).tolist(), *learner.ask(30).tolist()}) == 60


def _until(held: Any) -> None:
    end = time.monotonic() + 30
    while not held():
        assert time.monotonic() < end
        time.sleep(0.02)


def _answer(session: Session, numbers: range) -> list[dict[str, Any]]:
    """Label the items that come; these items."""
    shown = []
    for number in numbers:
        shown.append(task := session.next("c", "ann"))
        label = "good" if "fine" in task["item"]["text"] else "bad"
        session.answer(str(number), "c", "ann", task["id"], task["shown"], label)
    return shown


def _picked_by_a_model(session: Session, first: int) -> Callable[[], bool]:
    """Answers one item per call; whether a model picked it."""
    numbers = iter(range(first, 1000))
    return lambda: any(
        task["guesses"] for number in [next(numbers)] for task in _answer(session, range(number, number + 1))
    )


def test_gains_of_picks_from_the_part(small_part: None) -> None:
    """What each pick added to the objective on the part, while the rest of the pool is not prepared."""
    learner = badge.ActiveLearner(TEXTS, Texts(2), classes=["bad", "good"], seed=0, strategy="auto")
    learner.tell(range(30), ["bad", "good"] * 15, unasked=True)
    learner.team.ask(6)
    why = learner.explain()
    assert learner._part is not None and int(why.coverage.sum()) == len(learner._part.places) < 200
    assert why.gain is not None and (why.gain > 0).all() and (np.diff(why.gain) <= 1e-9).all()


@pytest.mark.parametrize("answers_before", [0, 8])
def test_a_model_picks_from_the_part_before_the_whole_pool_is_prepared(
    small_part: None, answers_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where answers of two classes came before the part was ready."""
    texts = Texts(2)
    learn, fitted = texts._learn, Texts._fitted
    asked, part_ready, whole_ready = threading.Event(), threading.Event(), threading.Event()

    def slowly(own: Texts, some: Any) -> Any:
        asked.set()
        part_ready.wait(30)
        return fitted(own, some)

    texts._learn = lambda pool: whole_ready.wait(30) and learn(pool)  # type: ignore[method-assign,assignment,return-value]
    monkeypatch.setattr(Texts, "_fitted", slowly)
    learner = badge.ActiveLearner(TEXTS, texts, classes=["bad", "good"], seed=0, first="typiclust")
    session = Session(learner, Source("text", TEXTS, None), batch_size=6)
    assert asked.wait(30)  # typical items are asked for before the first answer
    assert all(task["batch"] is None for task in _answer(session, range(answers_before)))
    part_ready.set()
    _until(lambda: len(learner.pending) >= 6 and not session.picker.busy)
    part = texts.part(TEXTS)
    assert part is not None
    first = _answer(session, range(20, 23))[1:]  # one was shown before, and half a batch of labels brings others
    assert all(task["batch"] is not None and "typical" in task["why"] for task in first)
    _until(_picked_by_a_model(session, 30))
    assert not whole_ready.is_set()
    why = " ".join(session.picker.why.values())  # not every pick stands for others
    assert "its best guess gets" in why and why.count("items are nearest") == why.count("of 40 items are nearest")
    places = set(part[0].tolist())
    assert {*(id for batch in learner.batches for id in batch.tolist())} <= places
    whole_ready.set()
    _until(lambda: learner._work.is_prepared)
    _answer(session, range(2000, 2018))
    _until(lambda: not {*(id for batch in learner.batches for id in batch.tolist())} <= places)
    session.close()


def test_an_encoder_that_is_on_this_machine_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    monkeypatch.delenv("BADGE_ENCODER", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert installed_encoder("text", 100) is None
    snapshot = tmp_path / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots" / "1a2b"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    assert installed_encoder("text", 100) is None  # without weights: a download that was interrupted
    (snapshot / "model.safetensors").write_bytes(b"")
    assert installed_encoder("text", 100) == f"hf:{snapshot}"
    assert installed_encoder("image", 100) is None and installed_encoder("text", 10**6) is None
    monkeypatch.setenv("BADGE_ENCODER", "hf:mine")
    assert installed_encoder("text", 10**6) == "hf:mine"


def test_while_an_encoder_reads_the_pool_a_model_of_words_picks(tmp_path: Path) -> None:
    ready = threading.Event()

    def encode(batch: list[str]) -> list[list[float]]:
        ready.wait(30)
        return [[float("fine" in text), float("dull" in text), float(len(text))] for text in batch]

    encoder = models.WordsFirst(encode, keep=tmp_path)
    assert encoder.part(TEXTS[:150]) is None  # that takes no time
    learner = badge.ActiveLearner(TEXTS, encoder, classes=["bad", "good"], seed=0, first="typiclust")
    session = Session(learner, Source("text", TEXTS, None), batch_size=6)
    _until(lambda: len(learner.pending) >= 6 and not session.picker.busy)
    assert "typical" in _answer(session, range(2))[1]["why"]
    _until(_picked_by_a_model(session, 2))
    assert not learner._work.is_prepared
    ready.set()
    _until(lambda: learner._work.is_prepared)
    assert learner.outputs.embeddings.shape == (200, 3)  # those of the encoder
    session.close()


def test_a_table_is_learnt(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [{"kind": "ab"[i % 2], "size": f"{rng.normal():.3f}", "missing": None if i % 3 else "4"} for i in range(80)]
    table = Tables(2)
    prepared = table.prepare(rows)
    assert prepared.shape == (80, 4) and bool(prepared.isfinite().all())
    model = table.fit(prepared[:40], np.arange(40) % 2, rng)
    said = badge.predict(model, prepared).probabilities.argmax(dim=1).numpy()
    assert (said == np.arange(80) % 2).mean() > 0.95


@pytest.fixture
def vit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An encoder of images that knows nothing, by its name."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.ViTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, image_size=16, patch_size=8
    )
    transformers.ViTModel(config).save_pretrained(tmp_path / "vit")
    transformers.ViTImageProcessor(size={"height": 16, "width": 16}).save_pretrained(tmp_path / "vit")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return f"hf:{tmp_path / 'vit'}"


def test_an_own_trainer_and_an_encoder_of_images(tmp_path: Path, vit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    (tmp_path / "photos").mkdir()
    for i in range(6):
        image.new("RGB", (20 + i, 30), (200 * (i % 2), 0, 100)).save(tmp_path / "photos" / f"{i}.png")
    (tmp_path / "photos" / "broken.jpg").write_bytes(b"\xff\xd8 nothing")
    source = open_source(tmp_path / "photos")
    frozen = trainer_of("image", 2, encoder=vit)
    rows = frozen.prepare(source.pool)
    assert rows.shape == (7, 8) and not np.allclose(rows[0], rows[1])
    small = trainer_of("image", 2)
    model = small.fit(small.prepare(source.pool)[:6], np.arange(6) % 2, np.random.default_rng(0))
    assert badge.predict(model, small.prepare(source.pool)).probabilities.shape == (7, 2)
    (tmp_path / "own_label_models.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n\n\ndef make(classes):\n    return LogisticRegression()\n"
    )
    monkeypatch.chdir(tmp_path)
    assert type(trainer_of("row", 2, model="own_label_models:make")).__name__ == "LogisticRegression"


def test_images_with_an_encoder_begin_with_typical_ones_and_go_on_by_auto(tmp_path: Path, vit: str) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    (tmp_path / "photos").mkdir()
    for i in range(24):
        image.new("RGB", (20, 20), (200 * (i % 2), 5 * i, 100)).save(tmp_path / "photos" / f"{i:02}.png")
    source = open_source(tmp_path / "photos")
    options = Options("dark,light", tmp_path / "j.jsonl", encoder=vit)
    with _learner(source, options, ["dark", "light"], trainer_of("image", 2, vit)) as learner:
        assert learner.strategy == "auto" and learner.team.starts_typical
        for by_model in (False, True):
            learner.tell(learner.ask(6), ["dark", "light"] * 3)
            ask = next(event for event in reversed(badge.journal.read(options.journal)) if event["event"] == "ask")
            assert ("select_seconds" in ask) == by_model and "uniform" not in ask
    header = badge.journal.read(options.journal)[0]
    assert (header["strategy"], header["first"]) == ("auto", "typiclust")


def test_texts_without_words() -> None:
    assert Texts(2).prepare(["!", "?", "!?", ""]).shape[0] == 4
    assert Texts(2).prepare(["日本", "日本語", "語学"]).isfinite().all()


@pytest.mark.parametrize("kind", ["row", "image", "image by an encoder"])
def test_models_are_saved_and_predict_new_items(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    encoder = request.getfixturevalue("vit") if "encoder" in kind else None
    if kind == "row":
        (tmp_path / "p.csv").write_text("a,b\n" + "".join(f"{i % 2 * 3.0},{'xy'[i % 2]}\n" for i in range(30)))
        source, new = open_source(tmp_path / "p.csv"), ['{"a": "3.0", "b": "y"}', '{"a": "0.0", "b": "x"}']
    else:
        image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
        (tmp_path / "p").mkdir()
        rng = np.random.default_rng(0)
        for i in range(30):
            pixels = np.zeros((40, 60, 3), dtype=np.uint8)
            pixels[..., i % 2] = 200 + rng.integers(40, size=(40, 60))
            image.fromarray(pixels).save(tmp_path / "p" / f"{i:02}.png")
        source = open_source(tmp_path / "p")
        new = [str(tmp_path / "p" / "01.png"), str(tmp_path / "p" / "02.png")]
    trainer = trainer_of(source.kind, 2, encoder)
    learner = badge.ActiveLearner(source.pool, trainer, classes=["even", "odd"], ids=source.ids)
    ids = [source.id(i) for i in range(20)]
    learner.tell(ids, [("even", "odd")[i % 2] for i in range(20)], unasked=True)
    save_model(learner, source.kind, tmp_path / "model")
    assert load(tmp_path / "model").predict(new) == ["odd", "even"]
