"""One pass of one model over one pool: both are opened and checked first, then the rows are computed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import nn

from badge.core.log import log
from badge.core.names import path_of
from badge.core.progress import bar
from badge.errors import InputError, ModelError, in_short
from badge.models import batches, digest
from badge.models.batches import Encode
from badge.models.borrowed import random_state_kept
from badge.models.encoding import Encoder
from badge.models.estimator import Estimator, final_step, is_skorch, skorch_module
from badge.models.inputs import check_pairs
from badge.models.network import Network, Said, model_dtype, out_of_memory, unwrap
from badge.models.options import Options
from badge.models.pools import OpenPool, open_pool
from badge.models.several import Members, Replicas
from badge.models.sinks import Arrays, Store
from badge.outputs import Outputs
from badge.outputs.store import Writer

#: A model may carry its tokenizer or processor under this name; `frozen.join(model)` gives such models.
READER = "badge_reader"

#: Rows, and numbers in them, that a scikit-learn estimator gets at a time: each call goes through every tree of a forest.
ESTIMATOR_ROWS, ESTIMATOR_NUMBERS = 32_768, 2**25


@dataclass(frozen=True)
class Pass:
    """A model and a pool that fit each other as far as can be told without running the model."""

    model: Any
    pool: Any
    options: Options
    opened: OpenPool
    encode: Encode
    size: int  # examples per batch, unless the pool is a DataLoader
    runner: Network | Estimator | Replicas | Members

    @classmethod
    def of(cls, model: Any, pool: Any, options: Options) -> Pass:
        if isinstance(model, type):
            raise ModelError(f"{model.__name__} is a class: pass a trained instance of it")
        if isinstance(model, list | tuple):
            if len(model) < 2 or options.passes is not None:
                said = f"a list of {len(model)} models" + (" and passes=" if options.passes is not None else "")
                raise ModelError(f"{said}: pass two or more models, or one model without the list")
            each = [cls.of(one, pool, options) for one in model]
            return replace(each[0], runner=Members([cast("Network | Estimator", one.runner) for one in each]))
        if not isinstance(model, nn.Module):
            before, final = final_step(model)
            if before is None and is_skorch(final):
                model = skorch_module(final)
        if isinstance(model, nn.Module):
            plain = unwrap(model)
            options = options.named(plain)
            if options.reader is None:
                options = replace(options, tokenizer=getattr(plain, READER, None))
            network = Network(plain, options)
            opened = open_pool(pool, network.takes)
            if options.reader is not None and not isinstance(pool, Mapping):
                classes = getattr(getattr(plain, "config", None), "label2id", None) or ()
                with random_state_kept():
                    check_pairs(opened.rows, opened.item, set(map(str, classes)))
            encoder = Encoder.of(options.reader, plain, options.max_length)
            encode = batches.for_network(opened, plain, encoder, network.takes)
            runner: Network | Replicas | Members = network
            if isinstance(options.device, tuple):
                runner = Replicas(network, options.device)
            elif options.passes is not None:
                runner = Members([network], options.passes)
            return cls(plain, pool, options, opened, encode, options.batch_size, runner)
        if not callable(getattr(model, "fit", None)):
            raise ModelError(
                f"a model of type {type(model).__name__} is neither a torch module nor a scikit-learn estimator: run it "
                "yourself and use badge.Outputs(probabilities, embeddings) with badge.select_from"
            )
        if options.passes is not None:
            raise ModelError(
                f"several passes differ by dropout: a {type(model).__name__} has none, pass a list of models"
            )
        opened = open_pool(pool, (1, 1), features=frozenset(getattr(model, "feature_names_in_", ())))
        fit = ESTIMATOR_NUMBERS // max(1, getattr(model, "n_features_in_", 1))
        size, encode = max(options.batch_size, 4096, min(ESTIMATOR_ROWS, fit)), batches.for_estimator(opened)
        return cls(model, pool, options, opened, encode, size, Estimator(model, options, opened.rows))

    @property
    def rows(self) -> int:
        return self.opened.rows

    @property
    def several(self) -> bool:
        """Whether each example gets several answers: passes with dropout, or an ensemble."""
        return isinstance(self.runner, Members)

    def outputs(self, out: str | os.PathLike[str] | None = None) -> Outputs:
        """Run the model over the pool; `out` is a directory to write to, from where an interrupted pass stopped."""
        several = self.runner if isinstance(self.runner, Members) else None
        if several is not None and out is not None:
            raise InputError("what several passes or models say is kept in memory: do not pass out=")
        sink = Arrays(self.rows) if out is None else self._store(out)
        wanted, started = self.options.embeddings, time.perf_counter()
        if sink.done:
            log.info("%s holds %d of %d rows: the pass goes on from there", out, sink.done, self.rows)
        if sink.done < self.rows:
            shown = bar("predicting", self.rows, enabled=self.options.progress)
            with closing(sink), self.runner.running() as run, shown as advance:
                advance(sink.done)
                for rows, said in self._answers(run, sink):
                    if wanted and isinstance(said.embeddings, str):
                        raise ModelError(f"there are no embeddings: {said.embeddings}")
                    sink.write(said if wanted != "only" else said._replace(scores=None))
                    advance(rows)
        outputs = sink.outputs()
        if several is not None:
            outputs.expected_entropy = torch.cat(several.entropies).cpu()
        log.info("%s said %r in %.2f s", type(self.model).__name__, outputs, time.perf_counter() - started)
        if not outputs.has_embeddings:
            log.info("no embeddings: %s", outputs.missing)
        return outputs

    def _answers(
        self, run: Network | Estimator | Replicas | Members, sink: Arrays | Store
    ) -> Iterator[tuple[int, Said]]:
        """(rows, what the model said) of the batches behind those that are done.

        A device that has no memory left gets batches of a quarter of the size, once.
        """
        if isinstance(run, Network):
            run.room = sink.room
        fixed = self.opened.loader is not None or not isinstance(self.model, nn.Module)
        size, tried = self.size, ""
        while True:
            some = batches.in_order(self.opened, self.encode, size, sink.done)
            try:
                if isinstance(run, Replicas):
                    yield from run.answers(some)
                else:
                    yield from ((rows, run(rows, batch)) for rows, batch in some)
                return
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
                if tried or fixed or size < 4:
                    said = f"the device has no memory left{tried} ({in_short(error, 120)})"
                    raise ModelError(said, in_python="pass a smaller batch_size=, or device='cpu'") from error
            size //= 4
            tried = f", in batches of {size} too"
            log.warning("out of memory: the pass goes on from row %d in batches of %d", sink.done, size)

    def _store(self, out: str | os.PathLike[str]) -> Store:
        identity = {
            "model": digest.model_digest(self.model),
            "pool": digest.whole_digest(self.pool, self.opened),
            "set of options": self.options.identity(),
        }
        half = isinstance(self.model, nn.Module) and model_dtype(self.model) == torch.float16
        return Store(Writer(path_of(out, "out"), self.rows, identity), half)
