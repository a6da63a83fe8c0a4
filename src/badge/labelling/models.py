"""Trainers that need no choice: one for texts, one for images, one for tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from badge.core.importing import imported, needs
from badge.core.progress import bar
from badge.core.threads import one_thread
from badge.errors import InputError
from badge.labelling.images import ImageFiles
from badge.labelling.sources import Kind
from badge.learner.ids import IntArray
from badge.models import predict
from badge.outputs import Outputs
from badge.training import Frozen, Trainer
from badge.training.linear import LinearHead, fit_linear
from badge.training.networks import mlp, resnet18

TEXT_COLUMNS = 256  #: columns that TF-IDF is reduced to
TEXT_SAMPLE = 20_000  #: texts that vocabulary and reduction are learnt from
TEXT_BLOCK = 10_000  #: texts that are reduced at a time
TEXT_PART = 5_000  #: texts of a large pool that are prepared first, in half a second
FEW_TEXTS = 200  #: an encoder reads fewer texts than this about as soon as their words are counted
#: pixels along a side, channels of the first layer and epochs of the network for images
SIDE, WIDTH, IMAGE_EPOCHS = 32, 8, 60
#: above this number of files a progress bar is shown
MANY_FILES = 100
MORE, ROUNDS = 10, 3  #: extra columns of the iteration that reduces, and its rounds
EMPTY = 1e-10  #: squared share of the largest singular value below which a column counts as empty
#: most values of a column of texts that get a column each; rarer values are 0 in all of them
MOST_VALUES = 20


def trainer_of(kind: Kind, classes: int, encoder: str | None = None, model: str | None = None) -> Any:
    """What trains on a pool of a kind: the default, a frozen encoder, or one's own `make(classes)`."""
    if encoder is not None and model is not None:
        raise InputError("--encoder and --model exclude each other: give one of them")
    if model is not None:
        made = imported("model", model)(classes)
        if not hasattr(made, "fit"):
            raise InputError(f"{model} must return a trainer (something with fit), not {type(made).__name__}")
        return made
    if encoder is not None:
        if kind == "row":
            raise InputError("--encoder reads texts or images, and this pool holds rows of a table")
        return WordsFirst(encoder, progress=True)
    return {"text": Texts, "image": Images, "row": Tables}[kind](classes)


@torch.inference_mode()
def predict_rows(model: Any, examples: Any) -> Outputs:
    """`badge.predict`; the embeddings of a linear head are the rows that it reads, which are not copied."""
    if isinstance(model, LinearHead) and isinstance(examples, Tensor) and examples.dtype == torch.float32:
        return Outputs.from_logits(model(examples), examples)
    return predict(model, examples)


class _Prepared:
    """Keeps what `prepare` made of a pool: it is asked for before the first label, and again with each model."""

    _part: tuple[Any, IntArray, Tensor] | None = None

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self._kept: tuple[Any, Tensor] | None = None

    def prepare(self, pool: Any) -> Tensor:
        if self._kept is None or self._kept[0] is not pool:
            self._kept = (pool, self._learn(pool))
        return self._kept[1]

    def transform(self, items: Any) -> Tensor:
        """New items as rows of numbers, in the way that the pool was prepared."""
        raise NotImplementedError

    def _learn(self, pool: Any) -> Tensor:
        return self.transform(pool)

    def __getstate__(self) -> dict[str, Any]:
        """For a saved model: without the pool."""
        return {**self.__dict__, "_kept": None, "_part": None}


class Texts(_Prepared):
    """TF-IDF of words and pairs of words, reduced to a few hundred columns, and logistic regression on these.

    The vocabulary, its weights and the reduction (latent semantic analysis) come from the pool, labelled or not: from all
    of it, or from TEXT_SAMPLE texts of a larger one. So a round costs what a linear head on embeddings costs.
    """

    _steps: tuple[Any, Tensor] | None = None  # vocabulary with weights, and reduction

    def part(self, pool: Sequence[str], also: IntArray | None = None) -> tuple[IntArray, Tensor] | None:
        """Positions of TEXT_PART texts and of `also`, and their rows; None: the pool is not much larger."""
        return None if len(pool) < 2 * TEXT_PART else _part_of(self, pool, also)

    def _learn(self, pool: Sequence[str]) -> Tensor:
        if len(pool) <= TEXT_SAMPLE:
            return self._fitted(list(pool))
        columns = self._fitted([pool[place] for place in spread(len(pool), TEXT_SAMPLE).tolist()]).shape[1]
        rows = torch.empty(len(pool), columns)
        for start in range(0, len(pool), TEXT_BLOCK):  # all at once would take some times the memory
            rows[start : start + TEXT_BLOCK] = self.transform(pool[start : start + TEXT_BLOCK])
        return rows

    def transform(self, items: Sequence[str]) -> Tensor:
        assert self._steps is not None
        return self._reduced(self._steps[0].transform([str(item) or " " for item in items]))

    def _fitted(self, texts: list[str]) -> Tensor:
        """Learn the steps from texts; the rows of these."""
        with needs("labelling texts", "scikit-learn", "label"):
            from sklearn.feature_extraction.text import TfidfVectorizer
        usual: dict[str, Any] = {"sublinear_tf": True, "dtype": np.float32}
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=2 if len(texts) > 100 else 1, **usual)
        try:
            counts = words.fit_transform(texts)
        except ValueError:  # no word at all, as in texts of other scripts or of single signs
            words = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3), **usual)
            counts = words.fit_transform([text or " " for text in texts])
        self._steps = words, reduction(counts, min(TEXT_COLUMNS, max(1, min(counts.shape) - 1)))
        return self._reduced(counts)

    def _reduced(self, counts: Any) -> Tensor:
        assert self._steps is not None
        return nn.functional.normalize(torch.from_numpy(counts @ self._steps[1].numpy()), dim=1)

    def fit(self, examples: Tensor, labels: Any, rng: np.random.Generator) -> LinearHead:
        return fit_linear(examples, labels)[0].eval()


def _part_of(trainer: Texts | WordsFirst, pool: Sequence[str], also: IntArray | None) -> tuple[IntArray, Tensor]:
    """Positions of up to TEXT_PART texts and of `also`, and their rows of TF-IDF, which the trainer keeps."""
    if trainer._part is None or trainer._part[0] is not pool:
        places = spread(len(pool), min(TEXT_PART, len(pool)), also)
        trainer._part = pool, places, Texts(2).prepare([pool[place] for place in places.tolist()])
    return trainer._part[1:]


def reduction(counts: Any, columns: int) -> Tensor:
    """The first right singular vectors [V, columns] of a sparse matrix [n, V], fewer where its rank is less.

    Randomised subspace iteration (Halko, Martinsson & Tropp 2011), as in scikit-learn, with eigenvectors of small Gram
    matrices in place of LU, QR and SVD of tall ones. These took most of the time, and ten times as long on two threads of a
    busy machine.
    """
    width = min(columns + MORE, *counts.shape)
    start = np.random.default_rng(0).normal(size=(counts.shape[1], width)).astype(np.float32)
    with one_thread():
        rows = _orthonormal(torch.from_numpy(counts @ start))
        for _ in range(ROUNDS):
            rows = _orthonormal(torch.from_numpy(counts @ (counts.T @ rows.numpy())))
        return _orthonormal(torch.from_numpy(counts.T @ rows.numpy()))[:, :columns].contiguous()


def _orthonormal(x: Tensor) -> Tensor:
    """An orthonormal basis of the columns of a tall matrix, along its singular vectors, the largest first."""
    wide = x.double()
    values, vectors = torch.linalg.eigh(wide.T @ wide)
    values, vectors = values.flip(0), vectors.flip(1)
    kept = values > EMPTY * values[0]
    basis: Tensor = wide @ (vectors[:, kept] / values[kept].sqrt())
    return basis.float()


def spread(length: int, count: int, also: IntArray | None = None) -> IntArray:
    """Positions of `count` evenly spaced rows of a pool and of at most `count` of `also`, ascending.

    >>> spread(9, 3, np.array([1, 8])).tolist()
    [0, 1, 4, 8]
    """
    others = np.empty(0, np.int64) if also is None else also
    if len(others) > count:
        others = others[spread(len(others), count)]
    return np.union1d(np.linspace(0, length - 1, count).astype(np.int64), others)


class WordsFirst(Frozen):
    """A frozen encoder. While it goes over the texts of a pool, which takes minutes, the page works with their words."""

    _part: tuple[Any, IntArray, Tensor] | None = None

    def part(self, pool: Any, also: IntArray | None = None) -> tuple[IntArray, Tensor] | None:
        """Positions of texts and their rows of TF-IDF; None: the pool is small, or holds no texts."""
        return None if not isinstance(pool, list) or len(pool) < FEW_TEXTS else _part_of(self, pool, also)

    def __getstate__(self) -> dict[str, Any]:
        """For a saved model: without the pool."""
        return {**self.__dict__, "_part": None}


class Images(_Prepared):
    """A small residual network on pictures of 32 × 32 pixels."""

    def transform(self, items: ImageFiles | Sequence[Any]) -> Tensor:
        """Bytes [N, 3, 32, 32] of files, or of their names, squeezed to a square."""
        files = items if isinstance(items, ImageFiles) else ImageFiles([Path(item) for item in items])
        pixels = np.empty((len(files), 3, SIDE, SIDE), dtype=np.uint8)
        with bar("reading images", len(files), enabled=len(files) > MANY_FILES) as advance:
            for position in range(len(files)):
                pixels[position] = np.asarray(files[position].resize((SIDE, SIDE))).transpose(2, 0, 1)
                advance(1)
        return torch.from_numpy(pixels)

    def fit(self, examples: Tensor, labels: Any, rng: np.random.Generator) -> nn.Module:
        build = partial(resnet18, self.classes, width=WIDTH)
        trainer = Trainer(build, lr=1e-3, max_epochs=IMAGE_EPOCHS, patience=IMAGE_EPOCHS)
        return nn.Sequential(_Scaled(), trainer.fit(_Scaled()(examples), labels, rng)).eval()


class _Scaled(nn.Module):
    """Bytes as numbers from −1 to 1."""

    def forward(self, pixels: Tensor) -> Tensor:
        return pixels.float() / 127.5 - 1


class Tables(_Prepared):
    """A perceptron with one hidden layer on standardised numbers and on the commonest values of other columns."""

    def _learn(self, pool: Sequence[dict[str, Any]]) -> Tensor:
        names = list(dict.fromkeys(name for row in pool for name in row))
        self._columns = {name: _Column.of([row.get(name) for row in pool]) for name in names}
        return self.transform(pool)

    def transform(self, items: Sequence[dict[str, Any]]) -> Tensor:
        parts = [column.numbers([row.get(name) for row in items]) for name, column in self._columns.items()]
        return torch.from_numpy(np.concatenate(parts, axis=1).astype(np.float32))

    def fit(self, examples: Tensor, labels: Any, rng: np.random.Generator) -> nn.Module:
        trainer = Trainer(lambda: mlp(examples.shape[1], self.classes), lr=1e-3, max_epochs=300)
        return trainer.fit(examples, labels, rng)


@dataclass(frozen=True)
class _Column:
    """How a column of a table becomes numbers: standardised, or one column per common value."""

    mean: float = 0.0
    spread: float = 1.0
    values: tuple[str, ...] | None = None  #: None: the column holds numbers

    @classmethod
    def of(cls, values: list[Any]) -> _Column:
        numbers = [_number(value) for value in values]
        if all(number is not None or value in (None, "") for number, value in zip(numbers, values, strict=True)):
            known = np.array([number for number in numbers if number is not None and math.isfinite(number)])
            return cls(float(known.mean()), float(known.std()) or 1.0) if len(known) else cls()
        common, counts = np.unique([str(value) for value in values], return_counts=True)
        return cls(values=tuple(common[np.argsort(-counts, kind="stable")][:MOST_VALUES].tolist()))

    def numbers(self, values: list[Any]) -> NDArray[np.float64]:
        """[N, 1] with what is missing at the mean, or [N, number of values]."""
        if self.values is not None:
            texts = np.array([str(value) for value in values])
            same: NDArray[np.bool_] = texts[:, None] == np.array(self.values)
            return same.astype(np.float64)
        found = [_number(value) for value in values]
        filled = [n if n is not None and math.isfinite(n) else self.mean for n in found]
        return ((np.array(filled) - self.mean) / self.spread)[:, None]


def _number(value: Any) -> float | None:
    try:
        return None if value is None or value == "" else float(value)
    except (TypeError, ValueError):
        return None
