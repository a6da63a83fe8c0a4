"""A frozen encoder: its embeddings computed once and kept on disk, and a linear head trained on them in seconds."""

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from badge.core.names import name_of, path_of
from badge.core.numbers import flag, positive, whole
from badge.core.writing import cache_folder, folder_for
from badge.errors import InputError, WriteError
from badge.models import predict
from badge.models.digest import whole_digest
from badge.models.pools import OpenPool, open_pool
from badge.training import encoders
from badge.training.encoders import HF, Encoded
from badge.training.linear import Linear, LinearHead


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
        of_sentence_transformers = all(callable(getattr(self.encoder, name, None)) for name in ("tokenize", "encode"))
        if of_sentence_transformers:
            return encoders.Sentences(self.encoder), self.tokenizer or self.encoder.tokenize
        return self.encoder, self.tokenizer


def _holds_texts(pool: OpenPool) -> bool:
    first = pool.item(0)
    columns = first.values() if isinstance(first, Mapping) else first if isinstance(first, list | tuple) else (first,)
    return any(isinstance(value, str) for value in columns)
