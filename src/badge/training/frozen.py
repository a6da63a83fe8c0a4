"""A frozen encoder: its embeddings computed once and kept on disk, and a linear head trained on them in seconds.

The head is a logistic regression, multinomial or one for each label, fitted to the end by full-batch L-BFGS.
"""

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as _of_labels
from torch.nn.functional import cross_entropy

from badge.core.arrays import native
from badge.core.names import name_of, path_of
from badge.core.numbers import flag, positive, whole
from badge.core.writing import cache_folder, folder_for
from badge.errors import InputError, WriteError
from badge.models import predict
from badge.models.digest import whole_digest
from badge.models.pools import OpenPool, open_pool
from badge.training import encoders
from badge.training.encoders import HF, Encoded
from badge.training.trainer import Fit

#: Penalty on the offsets next to that on the weights: so small that it only keeps them finite.
OFFSET_SHARE = 1e-4
MOST_ITERATIONS = 300


class LinearHead(nn.Linear):
    """A linear layer with one output per class that it was shown, ascending: `classes_`, as scikit-learn names them."""

    def __init__(self, weight: Tensor, bias: Tensor, classes: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        super().__init__(weight.shape[1], weight.shape[0])
        with torch.no_grad():
            self.weight.copy_(weight)
            self.bias.copy_(bias)
        self.classes_ = classes


def fit_linear(examples: Any, labels: Any, l2: float = 1.0) -> tuple[LinearHead, int, float]:
    """(head, iterations, training accuracy) at the minimum of Σ cross-entropy + l2/2 ‖W‖².

    Labels [n, L] of 0 and 1 are multi-label: the cross-entropy is then the sum of the labels' binary ones.

    W acts on examples that are centred and divided by one number, their root mean square, so that `l2` means the same
    for every encoder; both are folded into the head that is returned. The minimum is unique, so nothing is random.

    >>> head, _, accuracy = fit_linear([[0.0], [1.0], [9.0], [10.0]], [0, 0, 2, 2])
    >>> head.classes_.tolist(), accuracy, head(torch.tensor([[2.0]])).argmax().item()
    ([0, 2], 1.0, 0)
    """
    x = torch.as_tensor(native(np.asarray(examples)) if not isinstance(examples, Tensor) else examples)
    y = np.asarray(labels)
    y = y.astype(np.int64) if y.dtype.kind == "b" else y
    if x.ndim != 2 or len(x) == 0 or y.shape[:1] != (len(x),) or y.ndim > 2 or y.dtype.kind not in "iu":
        raise InputError(f"rows [n, D] and whole numbers [n] are needed, not {tuple(x.shape)} and {y.dtype} {y.shape}")
    if y.ndim == 2 and (y.shape[1] == 0 or y.min() < 0 or y.max() > 1):
        raise InputError(f"rows of labels hold 0 and 1, one column for each label, not {y[0].tolist()!r:.60}")
    x = x.detach().cpu().float()
    if not bool(x.isfinite().all()):
        raise InputError("the embeddings hold NaN or inf: the encoder fails on some examples")
    if y.ndim == 2:
        seen, target = np.arange(y.shape[1]), y
    else:
        seen = np.unique(y).astype(np.int64)
        if len(seen) == 1:  # one output would mean the sigmoid of a binary problem: the class gets a neighbour
            seen = np.unique([seen[0], 1 if seen[0] == 0 else 0])
        target = np.searchsorted(seen, y).astype(np.int64)
    mean = x.mean(dim=0)
    x = x - mean
    scale = float(x.square().mean().sqrt()) or 1.0
    x /= scale
    weight, bias, iterations = _minimise(x, torch.from_numpy(target), len(seen), l2)
    scores = x @ weight.T + bias
    accuracy = float(((scores.argmax(dim=1) if y.ndim == 1 else scores > 0).numpy() == target).mean())
    weight = weight / scale
    return LinearHead(weight, bias - weight @ mean, seen), iterations, accuracy


class Linear:
    """A trainer of `LinearHead` on rows of numbers, for embeddings that are there already."""

    def __init__(self, l2: float = 1.0) -> None:
        self.l2 = l2
        self.last: Fit | None = None  #: the record of the last fit; its epochs are iterations

    def fit(self, examples: Any, labels: Any, rng: np.random.Generator | None = None) -> LinearHead:
        """The head of labelled rows; `rng` is not needed, the minimum is unique."""
        started = time.perf_counter()
        head, iterations, accuracy = fit_linear(examples, labels, self.l2)
        self.last = Fit(iterations, 0, accuracy, "converged", time.perf_counter() - started)
        return head.eval()


def _minimise(x: Tensor, y: Tensor, classes: int, l2: float) -> tuple[Tensor, Tensor, int]:
    weight = torch.zeros(classes, x.shape[1], requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    options: dict[str, Any] = {"history_size": 20, "line_search_fn": "strong_wolfe", "max_eval": 2 * MOST_ITERATIONS}
    options |= {"max_iter": MOST_ITERATIONS, "tolerance_grad": 1e-4, "tolerance_change": 1e-7}
    optimizer = torch.optim.LBFGS([weight, bias], **options)

    def loss() -> Tensor:
        optimizer.zero_grad()
        penalty = weight.square().sum() + OFFSET_SHARE * bias.square().sum()
        scores = x @ weight.T + bias
        entropy, target = (cross_entropy, y) if y.ndim == 1 else (_of_labels, y.float())
        total = entropy(scores, target, reduction="sum") + l2 / 2 * penalty
        total.backward()  # type: ignore[no-untyped-call]
        return total

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    return weight.detach(), bias.detach(), int(optimizer.state[weight]["n_iter"])


class Frozen(Linear):
    """A trainer for `ActiveLearner` and `badge run` that leaves a pretrained encoder alone and fits a linear head.

    Args:
        encoder: a torch module; "hf:" and a folder or a name of the hub; or a function of a batch. It gives one row of
            numbers per example; tokens or places are averaged.
        tokenizer: the tokenizer or processor of a module that reads texts or images (`hf:` has its own).
        l2: weight of the penalty; the examples are brought to one scale first, so that 1 suits most encoders.
        keep: folder for the embeddings; the user's cache by default. A folder in it belongs to one encoder and one pool. A
            pass that was interrupted goes on where it stopped.
        name: what identifies the encoder: needed where a function's code does not say it all (weights in a closure).
        batch_size: examples per pass of the encoder.
        max_length: most tokens of a text.
        device: where the encoder runs; None: where it is.
        progress: draw a bar on standard error.

    `prepare(pool)` gives the kept embeddings, `fit` takes rows of them; the learner calls both. `join(model)` puts the
    encoder before a trained head again: a classifier of raw examples.

    Raises:
        InputError: the encoder is none of these.
        WriteError: in `fit`, the embeddings cannot be kept in the folder.

    >>> import badge, tempfile
    >>> texts = ["good", "very good", "bad", "so bad"] * 5
    >>> def encode(batch):
    ...     return [[float("good" in text), float("bad" in text), float(len(text))] for text in batch]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frozen = badge.training.Frozen(encode, keep=folder)
    ...     learner = badge.ActiveLearner(texts, frozen, classes=["good", "bad"], seed=0)
    ...     ids = learner.ask(4)
    ...     learner.tell(ids, ["bad" if "bad" in texts[i] else "good" for i in ids])
    ...     learner.outputs
    Outputs(20 examples, 2 probability columns, 3 embedding columns)
    """

    def __init__(
        self,
        encoder: nn.Module | str | Callable[[Any], Any],
        *,
        tokenizer: Any = None,
        l2: float = 1.0,
        keep: str | os.PathLike[str] | None = None,
        name: str | None = None,
        batch_size: int = 64,
        max_length: int | None = None,
        device: torch.device | str | None = None,
        progress: bool = False,
    ) -> None:
        if isinstance(encoder, str) and not encoder.startswith(HF):
            raise InputError(f"an encoder's name begins with {HF!r}, as in hf:folder-or-name; got {encoder!r}")
        if isinstance(encoder, type) or not (isinstance(encoder, str) or callable(encoder)):
            raise InputError(f"an encoder is a torch module, a function or {HF}…, not {encoder!r}")
        super().__init__(positive(l2, "l2"))  # without a penalty the head of separable labels has no end
        self.encoder, self.tokenizer = encoder, tokenizer
        self.name = None if name is None else name_of(name, "an encoder")
        self.keep = path_of(keep, "keep") if keep is not None else cache_folder() / "embeddings"
        self.batch_size, self.device = whole(batch_size, "batch_size"), device
        self.progress = flag(progress, "progress")
        self.max_length = None if max_length is None else whole(max_length, "max_length")
        self._reads: tuple[bool, nn.Module, Any] | None = None  # of hf:… texts or images, the encoder, its tokenizer

    def prepare(self, pool: Any) -> Tensor:
        """The embeddings [N, D] of a pool: read from disk, computed where they are not there yet.

        Args:
            pool: raw examples, as the encoder reads them.

        Returns:
            A tensor [N, D], memory-mapped.

        Raises:
            ModelError: the encoder does not give one row of numbers per example.
        """
        opened = open_pool(pool)
        encoder, tokenizer = self._opened(texts=_holds_texts(opened))
        which = encoders.encoder_digest(encoder if isinstance(self.encoder, str) else self.encoder, self.name)
        which += f" {getattr(encoder, 'about', '')} {self.max_length}"
        encoded = hashlib.sha256(which.encode(errors="surrogatepass")).hexdigest()
        folder = self.keep / f"{encoded[:16]}-{whole_digest(pool, opened)}"
        try:
            folder_for(folder)
        except WriteError as error:
            why = f"{error}; embeddings are kept there"
            raise WriteError(why, in_python="name another folder by Frozen(..., keep=)") from error
        texts = isinstance(pool, list | tuple) and all(isinstance(text, str) for text in pool)
        order = None  # or from the shortest to the longest, so that a batch holds little padding
        if texts and hasattr(tokenizer, "pad"):
            order = np.argsort([len(text) for text in pool], kind="stable")
        how: dict[str, Any] = {"tokenizer": tokenizer, "max_length": self.max_length, "batch_size": self.batch_size}
        how |= {"device": self.device, "progress": self.progress, "out": folder}
        examples = pool if order is None else [pool[i] for i in order]
        kept = predict(Encoded(encoder, encoders.NoHead()), examples, head="head", **how).embeddings
        return kept if order is None else kept[torch.from_numpy(np.argsort(order))]

    def join(self, model: LinearHead) -> nn.Module:
        """The encoder and a head that `fit` gave, as one classifier of raw examples of the kind last prepared.

        Args:
            model: what `fit` returned, e.g. `learner.model`.

        Returns:
            A network that takes raw examples and returns scores [n, classes].
        """
        encoder, tokenizer = self._opened(texts=self._reads is None or self._reads[0])
        return Encoded(encoder, model, tokenizer).eval()

    def _opened(self, texts: bool) -> tuple[nn.Module, Any]:
        """The encoder as a module and its tokenizer; one from Hugging Face is loaded once."""
        if isinstance(self.encoder, str):
            if self._reads is None or self._reads[0] != texts:
                self._reads = (texts, *encoders.from_hf(self.encoder.removeprefix(HF), texts))
            return self._reads[1], self.tokenizer or self._reads[2]
        if not isinstance(self.encoder, nn.Module):
            return encoders.function_module(self.encoder)
        if all(
            callable(getattr(self.encoder, name, None)) for name in ("tokenize", "encode")
        ):  # of sentence_transformers
            return encoders.Sentences(self.encoder), self.tokenizer or self.encoder.tokenize
        return self.encoder, self.tokenizer


def _holds_texts(pool: OpenPool) -> bool:
    first = pool.item(0)
    columns = first.values() if isinstance(first, Mapping) else first if isinstance(first, list | tuple) else (first,)
    return any(isinstance(value, str) for value in columns)
