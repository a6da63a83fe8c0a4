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
    """A trainer for `ActiveLearner` and `badge run`: a linear head on a pretrained encoder that is never trained.

    Args:
        encoder: a torch module; "hf:" and a folder or a name on the Hugging Face hub; or a function of a batch. It returns
            one row of numbers per example. Outputs per token or per place are averaged.
        tokenizer: the tokenizer or processor of a module that reads texts or images. `hf:` encoders have their own.
        l2: weight of the L2 penalty on the head. The embeddings are scaled first, so 1 suits most encoders.
        keep: the folder for the embeddings; None: the user's cache. It has one folder for each encoder and pool. An
            interrupted pass resumes.
        name: a name that identifies the encoder. Set it if the code of a function does not (weights in a closure).
        batch_size: examples per forward pass of the encoder.
        max_length: most tokens per text; None: the limit of the tokenizer.
        device: the device to run the encoder on; None: the encoder's own.
        progress: show a progress bar on standard error.

    `prepare(pool)` returns the embeddings, and `fit` takes rows of them; the learner calls both. `join(model)` puts the
    encoder in front of a trained head: a classifier of raw examples.

    Raises:
        InputError: the encoder is none of these, or another argument is invalid.
        WriteError: in `prepare`, the embeddings cannot be written to the folder.

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
        """The embeddings of a pool, from disk; they are computed if they are not there yet.

        Args:
            pool: raw examples, as the encoder reads them.

        Returns:
            A tensor [N, D], memory-mapped.

        Raises:
            ModelError: the encoder does not return one row of numbers per example.
            WriteError: the embeddings cannot be written to the folder.
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
        """The encoder and a trained head as one classifier of raw examples, of the kind that `prepare` last got.

        Args:
            model: a head that `fit` returned, e.g. `learner.model`.

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
