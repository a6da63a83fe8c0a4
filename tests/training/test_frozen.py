"""A frozen encoder: embeddings kept once, a head that is the minimum, the learner and cells over it."""

from __future__ import annotations

import json
import pickle
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import badge
from badge.cli import app
from badge.errors import InputError, ModelError, WriteError
from badge.experiment import Cell, journal_path, run_cell
from badge.models.answers import rows_of
from badge.training import Frozen
from badge.training.examples import take_pixels
from badge.training.linear import fit_linear


class Counting(nn.Module):
    """An encoder that counts the rows that it was given."""

    def __init__(self, seed: int = 0, width: int = 6) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(4, width)
        self.rows = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rows += len(x)
        return torch.tanh(self.layer(x))


def blobs(n: int, classes: int = 3, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    return (np.eye(classes, 4)[y] * 3 + rng.normal(size=(n, 4))).astype(np.float32), y


# -- the head ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("l2", [0.1, 1.0, 30.0])
def test_the_head_is_scikit_learns(l2: float) -> None:
    from sklearn.linear_model import LogisticRegression

    x, y = blobs(200)
    head, _, accuracy = fit_linear(x, y, l2)
    mean, scale = x.mean(axis=0), np.sqrt(np.mean((x - x.mean(axis=0)) ** 2))
    peer = LogisticRegression(C=1 / l2, tol=1e-8, max_iter=2000).fit((x - mean) / scale, y)
    ours = torch.softmax(head(torch.from_numpy(x)), dim=1).detach().numpy()
    np.testing.assert_allclose(ours, peer.predict_proba((x - mean) / scale), atol=2e-3)
    assert accuracy == pytest.approx(peer.score((x - mean) / scale, y), abs=0.011)


def test_the_head_does_not_depend_on_the_scale_or_place_of_the_embeddings() -> None:
    x, y = blobs(150)
    plain, _, _ = fit_linear(x, y)
    moved, _, _ = fit_linear(x * 1000 + 5000, y)
    p, q = (torch.softmax(h(torch.from_numpy(z)), 1).detach() for h, z in ((plain, x), (moved, x * 1000 + 5000)))
    assert float((p - q).abs().max()) < 0.02


def test_one_class_alone_and_classes_left_out() -> None:
    x, _ = blobs(10)
    for label in (0, 3):
        head, _, accuracy = fit_linear(x, np.full(10, label))
        assert accuracy == 1.0 and len(head.classes_) == 2 and label in head.classes_
    head, _, _ = fit_linear(x, np.array([1, 4] * 5))
    assert head.classes_.tolist() == [1, 4]


def test_nothing_is_random() -> None:
    x, y = blobs(80)
    first, second = (fit_linear(x, y)[0].weight for _ in range(2))
    assert torch.equal(first, second)


def test_rows_that_are_no_numbers() -> None:
    with pytest.raises(InputError, match="NaN or inf"):
        fit_linear([[float("nan")], [1.0]], [0, 1])
    with pytest.raises(InputError, match="rows \\[n, D\\]"):
        fit_linear([1.0, 2.0], [0, 1])


# -- what encoders give ------------------------------------------------------------------------------------------------


def test_rows_of_tokens_and_places() -> None:
    assert rows_of(torch.ones(2, 3, 4, 5)).shape == (2, 3)
    assert rows_of((torch.ones(2, 7),)).shape == (2, 7)
    tokens = torch.arange(12.0).reshape(2, 3, 2)
    mask = torch.tensor([[1, 0, 0], [1, 1, 1]])
    assert rows_of({"last_hidden_state": tokens}, mask).tolist() == [[0.0, 1.0], [8.0, 9.0]]
    for wrong in (torch.ones(3), torch.ones(3, 2, dtype=torch.int64), "text"):
        with pytest.raises(ModelError, match="must give numbers"):
            rows_of(wrong)


# -- kept on disk ------------------------------------------------------------------------------------------------------


def test_embeddings_are_computed_once_for_an_encoder_and_a_pool(tmp_path: Path) -> None:
    x, _ = blobs(300)
    encoder = Counting()
    first = Frozen(encoder, keep=tmp_path).prepare(x)
    assert encoder.rows == 300
    again = Frozen(encoder, keep=tmp_path).prepare(x)
    assert encoder.rows == 300 and torch.equal(first, again)
    changed = x.copy()
    changed[157, 2] += 1  # one number in the middle of the pool
    other = Frozen(encoder, keep=tmp_path).prepare(changed)
    assert encoder.rows == 600 and not torch.equal(first[157], other[157])
    second = Counting(seed=1)
    assert not torch.equal(Frozen(second, keep=tmp_path).prepare(x), first)


def test_an_interrupted_pass_goes_on(tmp_path: Path) -> None:
    class Failing(Counting):
        limit = 150

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.rows + len(x) > self.limit:
                raise RuntimeError("pulled the plug")
            return super().forward(x)

    x, _ = blobs(300)
    encoder = Failing()
    with pytest.raises(ModelError, match="plug"):
        Frozen(encoder, keep=tmp_path, batch_size=50).prepare(x)
    encoder.limit = 300
    kept = Frozen(encoder, keep=tmp_path, batch_size=50).prepare(x)
    assert encoder.rows == 300  # 150 before, 150 after
    assert torch.allclose(kept, torch.tanh(encoder.layer(torch.from_numpy(x))), atol=1e-6)


def test_functions_of_texts_and_of_arrays(tmp_path: Path) -> None:
    calls = []

    def lengths(batch: Any) -> list[list[float]]:
        calls.append(len(batch))
        return [[float(len(text)), 1.0] for text in batch]

    texts = ["a", "bb", "ccc"] * 30
    assert Frozen(lengths, keep=tmp_path, batch_size=40).prepare(texts)[:3, 0].tolist() == [1.0, 2.0, 3.0]
    assert calls == [40, 40, 10]
    assert torch.equal(Frozen(lambda x: x * 2, keep=tmp_path).prepare(torch.ones(5, 3)), torch.full((5, 3), 2.0))
    assert torch.equal(Frozen(lambda x: x * 3, keep=tmp_path).prepare(torch.ones(5, 3)), torch.full((5, 3), 3.0))


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random BERT with its tokenizer, as `save_pretrained` leaves them."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    folder = tmp_path_factory.mktemp("bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "very", "film"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20}
    transformers.BertModel(transformers.BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)
    return folder


def test_a_folder_of_hugging_face(bert_folder: Path, tmp_path: Path) -> None:
    texts = ["good film", "bad", "very very good film", "bad bad film"] * 8
    frozen = Frozen(f"hf:{bert_folder}", keep=tmp_path)
    rows = frozen.prepare(texts)
    assert rows.shape == (32, 16)
    alone = Frozen(f"hf:{bert_folder}", keep=tmp_path / "one", batch_size=1).prepare(texts)
    assert torch.allclose(rows, alone, atol=1e-5)  # padding does not count
    learner = badge.ActiveLearner(texts, frozen, classes=["good", "bad"], seed=0)
    ids = learner.ask(12)
    learner.tell(ids, ["good" if "good" in texts[i] else "bad" for i in ids])
    whole = frozen.join(learner.model)
    raw = badge.predict(whole, texts)  # the tokenizer comes with it
    assert torch.allclose(raw.probabilities, learner.outputs.probabilities, atol=1e-4)
    with pytest.raises(ModelError, match="cannot be loaded as an encoder of texts"):
        Frozen(f"hf:{tmp_path / 'nothing'}", keep=tmp_path).prepare(texts)


@pytest.mark.parametrize("kind", ["dataset", "table", "dicts", "columns", "tokens cut"])
def test_texts_in_a_table(bert_folder: Path, tmp_path: Path, kind: str) -> None:
    datasets, pandas = pytest.importorskip("datasets"), pytest.importorskip("pandas")
    texts = ["good film", "bad", "very very good film", "bad bad film"] * 8
    columns = {"text": texts, "label": [0] * 32}
    pool: Any = {
        "dataset": lambda: datasets.Dataset.from_dict(columns),
        "table": lambda: pandas.DataFrame(columns),
        "dicts": lambda: [{"text": text} for text in texts],
        "columns": lambda: columns,
        "tokens cut": lambda: texts,
    }[kind]()
    longest = 3 if kind == "tokens cut" else None
    rows = Frozen(f"hf:{bert_folder}", keep=tmp_path, max_length=longest).prepare(pool)
    same = Frozen(f"hf:{bert_folder}", keep=tmp_path).prepare(texts)
    assert torch.allclose(rows, same, atol=1e-5) == (kind != "tokens cut")


@pytest.mark.parametrize("pooling", ["cls_token", "max_tokens", "mean_tokens", "lasttoken"])
@pytest.mark.parametrize("unit", [True, False])
def test_the_folders_own_pooling_is_used(bert_folder: Path, tmp_path: Path, pooling: str, unit: bool) -> None:
    transformers = pytest.importorskip("transformers")
    folder = tmp_path / "sentences"
    shutil.copytree(bert_folder, folder)
    kinds = ["Transformer", "Pooling", *["Normalize"] * unit]
    modules = [
        {"path": f"{i}_{k}" if i else "", "type": f"sentence_transformers.models.{k}"} for i, k in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    asked = {
        f"pooling_mode_{mode}": mode == pooling for mode in ("cls_token", "max_tokens", "mean_tokens", "lasttoken")
    }
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 16, **asked}))
    texts = ["good film", "bad", "very very good film"] * 3
    rows = Frozen(f"hf:{folder}", keep=tmp_path / "kept").prepare(texts)
    model, tokenizer = (
        transformers.AutoModel.from_pretrained(folder).eval(),
        transformers.AutoTokenizer.from_pretrained(folder),
    )
    for text, row in zip(texts, rows, strict=True):
        with torch.no_grad():
            tokens = model(**tokenizer([text], return_tensors="pt")).last_hidden_state[0]
        wanted = {"cls_token": tokens[0], "max_tokens": tokens.amax(0), "lasttoken": tokens[-1]}.get(
            pooling, tokens.mean(0)
        )
        assert torch.allclose(row, wanted / wanted.norm() if unit else wanted, atol=1e-5)
    modules.append({"path": "3_Dense", "type": "sentence_transformers.models.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelError, match=r"pass sentence_transformers.SentenceTransformer"):
        Frozen(f"hf:{folder}", keep=tmp_path / "kept").prepare(texts)


class SentenceTransformer(nn.Module):
    """What the class of that name looks like from outside: one dict in, one dict out."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Embedding(256, 5)

    def tokenize(self, texts: list[str]) -> dict[str, torch.Tensor]:
        width = max(map(len, texts))
        ids = torch.tensor([[*text.encode(), *[0] * (width - len(text))] for text in texts])
        return {"input_ids": ids, "attention_mask": (ids > 0).long()}

    def encode(self, texts: list[str]) -> torch.Tensor:
        return self(self.tokenize(texts))["sentence_embedding"]  # type: ignore[no-any-return]

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        tokens, mask = self.layer(features["input_ids"]), features["attention_mask"][:, :, None]
        return {"token_embeddings": tokens, "sentence_embedding": (tokens * mask).sum(1)}


def test_a_sentence_transformer_is_an_encoder(tmp_path: Path) -> None:
    pandas, encoder = pytest.importorskip("pandas"), SentenceTransformer()
    texts = ["good film", "bad", "a longer text"] * 4
    for i, pool in enumerate((texts, pandas.DataFrame({"text": texts}), [{"text": text} for text in texts])):
        frozen = Frozen(encoder, keep=tmp_path / str(i))
        assert torch.allclose(frozen.prepare(pool), encoder.encode(texts), atol=1e-5)
    head = frozen.fit(frozen.prepare(texts), [0, 1, 0] * 4)
    assert badge.predict(frozen.join(head), texts).classes == 2


def test_texts_are_encoded_from_the_shortest_to_the_longest(bert_folder: Path, tmp_path: Path) -> None:
    texts = ["bad", "good " * 30] * 20
    frozen = Frozen(f"hf:{bert_folder}", keep=tmp_path, batch_size=20)
    encoder, shapes = frozen._opened(True)[0], []
    encoder.register_forward_pre_hook(
        lambda m, args, kwargs: shapes.append(kwargs["input_ids"].shape), with_kwargs=True
    )
    rows = frozen.prepare(texts)
    assert sorted(shapes) == [(20, 3), (20, 32)]
    assert torch.allclose(rows[0], rows[2], atol=1e-6) and not torch.allclose(rows[0], rows[1], atol=1e-2)


def test_labels_of_true_and_false(tmp_path: Path) -> None:
    head, _, _ = fit_linear([[0.0], [1.0]], [False, True])
    assert head.classes_.tolist() == [0, 1]


def test_what_is_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="begins with 'hf:'"):
        Frozen("bert-base-uncased")
    with pytest.raises(InputError, match="an encoder is"):
        Frozen(Counting)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="l2 must be a number above 0"):
        Frozen(Counting(), l2=0)


# -- learner and cells -------------------------------------------------------------------------------------------------


def test_the_learner_learns_and_encodes_the_pool_once(tmp_path: Path) -> None:
    x, y = blobs(400)
    encoder = Counting()
    with badge.ActiveLearner(
        x, Frozen(encoder, keep=tmp_path), classes=3, seed=0, journal=tmp_path / "labels.jsonl"
    ) as learner:
        for _ in range(3):
            ids = learner.ask(20)
            learner.tell(ids, y[ids])
        picks = learner.ask(10)
        said = learner.outputs.probabilities.argmax(dim=1).numpy()
        assert (said == y).mean() > 0.85
    assert encoder.rows == 400
    with badge.ActiveLearner(
        x, Frozen(encoder, keep=tmp_path), classes=3, seed=0, journal=tmp_path / "labels.jsonl"
    ) as again:
        assert again.pending.tolist() == picks.tolist()
        again.tell(picks, y[picks])
        again.ask(5)
    assert encoder.rows == 400


def test_a_cell_on_ones_own_frozen_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "frozen_make.py").write_text(
        "import badge\n\n\ndef make(shape, classes):\n"
        f"    return badge.training.Frozen(lambda x: x.flatten(1) / 3, keep={str(tmp_path / 'kept')!r})\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    cell = Cell("digits", "frozen_make:make", "badge", batch_size=50, initial=50, labels=150)
    run_cell(cell, tmp_path)
    rounds = [event for event in badge.journal.read(journal_path(cell, tmp_path)) if event["event"] == "round"]
    assert [event["labels"] for event in rounds] == [50, 100, 150]
    assert rounds[-1]["test_accuracy"] > 0.85
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert len(kept) == 2  # the pool and the test set
    arguments = ["run", "--data", "digits", "--model", "frozen_make:make", "--labels", "100", "--batch-size", "50"]
    done = CliRunner().invoke(app, [*arguments, "--initial", "50", "--out", str(tmp_path / "runs"), "--workers", "1"])
    assert done.exit_code == 0, done.output


def test_a_home_that_cannot_be_written_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(WriteError, match=r"cannot be written: .*name another folder by Frozen\(\.\.\., keep=\)"):
        Frozen(torch.nn.Linear(3, 2)).prepare(torch.zeros(4, 3))
    assert len(Frozen(torch.nn.Linear(3, 2), keep=tmp_path / "kept").prepare(torch.zeros(4, 3))) == 4


def test_a_saved_model_finds_its_parts_in_later_versions() -> None:
    """A model is saved as a pickle, which names modules: these are the names in files that people have."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    take_pixels(network, (torch.zeros(1, 3, 2, 2, dtype=torch.uint8),), {})
    head, _, _ = fit_linear(torch.eye(4), np.array([0, 1, 0, 1]))
    saved = pickle.dumps([Frozen(Counting()), head, network], protocol=2)  # in which modules are plain words
    named = {name.decode() for name in re.findall(rb"c(badge[.\w]+\n\w+)\n", saved)}
    known = ("frozen\nFrozen", "linear\nLinearHead", "examples\n_scale")
    assert named == {f"badge.training.{name}" for name in known}, "models that people have saved would not open"
