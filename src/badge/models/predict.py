"""Any model in: `predict` runs a classifier once over a pool, `select` picks what to label next from what it says."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from badge.core.names import path_of
from badge.core.numbers import flag, whole
from badge.core.progress import bar
from badge.errors import InputError, ModelError
from badge.models import batches, digest, estimator
from badge.models import network as torch_models
from badge.models.encoding import Encoder
from badge.models.inputs import positional
from badge.models.pools import length, open_pool
from badge.models.sinks import Arrays, Sink, Store
from badge.outputs import Outputs
from badge.outputs.store import Writer
from badge.strategies.protocol import Strategy, reads
from badge.strategies.select import candidates, choose, request, select_from

__all__ = ["predict", "select"]

#: Rows that a scikit-learn estimator gets at least at a time: a call costs it far more than a row.
ESTIMATOR_ROWS = 4096


def predict(
    model: Any,
    pool: Any,
    *,
    batch_size: int = 256,
    device: str | torch.device | None = None,
    head: str | nn.Module | None = None,
    tokenizer: Any = None,
    processor: Any = None,
    max_length: int | None = None,
    autocast: bool | torch.dtype | None = None,
    multilabel: bool | None = None,
    embeddings: bool | Literal["only"] | None = None,
    progress: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> Outputs:
    """Probabilities and penultimate embeddings of every example of a pool: one pass, in eval mode, without labels.

    model:      a PyTorch or Hugging Face classifier, a fitted scikit-learn estimator or pipeline, or a skorch net.
                It is afterwards exactly as it was before.
    pool:       a tensor, array or memmap; a Dataset or DataLoader; a datasets.Dataset; a list of texts, of pairs of
                texts or of items; a dict of columns; a table or column of pandas or polars. Labels are ignored: what
                is named so, and a number behind an input.
    batch_size: examples per forward pass (a DataLoader keeps its own).
    device:     where to run; the model's own by default. The outputs are gathered on the host.
    head:       the output layer, a module or its dotted name, where it cannot be found by itself.
    tokenizer:  for texts; pads batches that were tokenized without padding.
    processor:  the same for images: a transformers image processor, or any function of a list of examples.
    max_length: tokens of a text at most; without it the tokenizer's limit, or the model's positions.
    autocast:   True or a torch dtype: run in mixed precision. Outputs are float32 all the same.
    multilabel: True: each score is the logit of one label, of which an example may have any number. None: as the model
                says (its problem_type, a sigmoid at its end, an estimator fitted on several labels).
    embeddings: False: probabilities alone, which is all that conf, marg and entropy look at; an output layer need not be
                found then. None: where there are any (trees on NaN, categories or hashed texts have none). True: an error
                where there are none. "only": no probabilities; of a model without a head what it returns is the
                embedding, the mean over tokens (those under the attention mask) or places.
    progress:   draw a progress bar on standard error.
    out:        a directory: outputs are memory-mapped there, and an interrupted pass goes on where it stopped.

    >>> import badge, torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> badge.predict(net, torch.zeros(100, 4))
    Outputs(100 examples, 3 probability columns, 8 embedding columns)
    """
    batch_size = whole(batch_size, "batch_size")
    multilabel = None if multilabel is None else flag(multilabel, "multilabel")
    progress = flag(progress, "progress")
    if not (
        embeddings is None or isinstance(embeddings, bool) or (isinstance(embeddings, str) and embeddings == "only")
    ):
        raise InputError(f"embeddings must be True, False, 'only' or None, not {embeddings!r:.60}")
    if isinstance(model, type):
        raise ModelError(f"{model.__name__} is a class: pass a trained instance of it")
    network = model
    if not isinstance(model, nn.Module):
        before, final = estimator.final_step(model)
        if before is None and estimator.is_skorch(final):
            network = estimator.skorch_module(final)
    if tokenizer is not None and processor is not None:
        raise InputError("tokenizer= and processor= are one thing under two names: pass one of them")
    call = processor if tokenizer is None else tokenizer
    if call is not None and not callable(call):
        name = "processor" if tokenizer is None else "tokenizer"
        raise InputError(f"{name}= is called with a list of examples, and a {type(call).__name__} cannot be")
    if isinstance(network, nn.Module):
        plain = torch_models.unwrap(network)
        opened = open_pool(pool, positional(plain))
        encoder = Encoder.of(call, plain, max_length)
        parts = batches.for_network(opened, plain, batch_size, encoder)
        how: dict[str, Any] = {"device": device, "head": head, "autocast": autocast, "multilabel": multilabel}
        running = torch_models.running(network, **how, embeddings=True if embeddings is None else embeddings)
    elif callable(getattr(model, "fit", None)):
        if call is not None or max_length is not None:
            raise InputError("tokenizer, processor and max_length are for networks: put a vectorizer into the pipeline")
        opened = open_pool(pool, (1, 1))
        parts = batches.for_estimator(opened, max(batch_size, ESTIMATOR_ROWS))
        how = {"device": device, "head": head, "autocast": autocast, "multilabel": multilabel}
        how |= {"embeddings": embeddings is not False, "rows_in_all": opened.rows}
        running = estimator.running_estimator(model, **how)
    else:
        raise ModelError(
            f"a model of type {type(model).__name__} is neither a torch module nor a scikit-learn estimator: run it "
            "yourself and use badge.Outputs(probabilities, embeddings) with badge.select_from"
        )
    sink: Sink
    if out is None:
        sink = Arrays(opened.rows)
    else:
        settings = f"head={_name(plain, head)} autocast={autocast}" if isinstance(network, nn.Module) else ""
        settings += f" multilabel={multilabel}" if multilabel is not None else ""
        settings += f" embeddings={embeddings}" if embeddings in (False, "only") else ""
        if call is not None:
            size = len(call) if hasattr(call, "__len__") else ""
            settings += f" tokenizer={type(call).__name__}:{size} longest={encoder.longest}"
        identity = {
            "model": digest.model_digest(network),
            "pool": digest.whole_digest(pool, opened),
            "set of options": settings.strip(),
        }
        half = isinstance(network, nn.Module) and torch_models.model_dtype(network) == torch.float16
        sink = Store(Writer(path_of(out, "out"), opened.rows, identity), half)
    if sink.done < opened.rows:
        with closing(sink), running as run, bar("predicting", opened.rows, enabled=progress) as advance:
            advance(sink.done)
            for rows, batch in parts(sink.done):
                said = run(rows, batch)
                if embeddings and isinstance(said.embeddings, str):
                    raise ModelError(f"there are no embeddings: {said.embeddings}")
                sink.write(said if embeddings != "only" else said._replace(probabilities=None))
                advance(rows)
    return sink.outputs()


def _name(model: nn.Module, head: str | nn.Module | None) -> str:
    from badge.models.heads import named_head

    return "found" if head is None else named_head(model, head)[0]


def select(
    model: Any,
    pool: Any,
    k: int,
    *,
    strategy: str | Strategy = "badge",
    seed: int | None = 0,
    labeled: Any = None,
    exclude: Any = None,
    bias: bool = False,
    batch_size: int = 256,
    device: str | torch.device | None = None,
    head: str | nn.Module | None = None,
    tokenizer: Any = None,
    processor: Any = None,
    max_length: int | None = None,
    autocast: bool | torch.dtype | None = None,
    multilabel: bool | None = None,
    progress: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Positions in `pool` of the k examples to label next, in the order in which they were picked.

    labeled: the examples that have labels, as a pool of any kind or as `Outputs` (for coreset and albl).
    exclude: positions of the pool that may not be picked, or a mask of them.
    strategy, seed, bias: as in `badge.select_from`; the other arguments as in `badge.predict`.

    >>> import badge, torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> ids = badge.select(net, torch.randn(100, 4), k=5, seed=0)
    >>> ids.shape, ids.dtype
    ((5,), dtype('int64'))
    """
    chosen, rng = request(strategy, seed, labeled, exclude, bias)  # what is wrong is said before the pass, not after it
    k, left = candidates(k, length(pool), exclude)
    options: dict[str, Any] = {
        "batch_size": batch_size,
        "device": device,
        "head": head,
        "tokenizer": tokenizer,
        "processor": processor,
        "max_length": max_length,
        "autocast": autocast,
        "multilabel": multilabel,
        "progress": progress,
    }
    looks_at = reads(chosen)
    if looks_at == "nothing" and out is None:
        return choose(chosen, length(pool), k, rng, left)
    of_reads: dict[str, Any] = {"blocks": True, "vectors": "only", "probabilities": None if out is not None else False}
    options["embeddings"] = of_reads.get(looks_at)
    outputs = predict(model, pool, out=out, **options)
    if labeled is not None and not isinstance(labeled, Outputs):
        labeled = predict(model, labeled, **options)
    return select_from(outputs, k, strategy=chosen, seed=seed, labeled=labeled, exclude=exclude)
