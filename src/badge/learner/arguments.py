"""What a learner is given, checked at the door."""

import os
from typing import Any

from badge import strategies
from badge.core.catalog import check_first
from badge.errors import InputError
from badge.journal import Journal
from badge.outputs import Outputs
from badge.strategies import Strategy
from badge.training.fit import is_estimator


def check_arguments(trainer: Any, journal: Any, initial: Any, predict: Any) -> None:
    if not hasattr(trainer, "fit"):
        raise InputError(f"a trainer has fit(examples, labels, rng) -> model; {type(trainer).__name__} has no fit")
    if is_estimator(trainer) and not hasattr(trainer, "predict_proba"):
        raise InputError(f"{type(trainer).__name__} gives no probabilities (predict_proba): use one that does")
    if not isinstance(journal, str | os.PathLike | Journal | None):
        raise InputError(f"a journal is a file name, not {journal!r}")
    if initial is not None and not hasattr(initial, "items"):
        raise InputError(f"initial holds labels by id, {{id: label}}, not {type(initial).__name__}")
    if not callable(predict):
        raise InputError(f"predict is a function (model, pool) -> Outputs, not {type(predict).__name__}")


def first_batch(first: Any, embeddings: Any, trainer: Any, rows: int) -> tuple[Strategy, Outputs | None] | None:
    """The strategy of the first batch and its outputs (None: those of a frozen encoder); None: a uniform draw."""
    if first is None:
        if embeddings is not None:
            raise InputError("embeddings are for the first batch: name what picks it, first='typiclust'")
        return None
    strategy = strategies.get(first)
    if embeddings is None:
        check_first(first)
        if not hasattr(trainer, "prepare"):
            raise InputError(f"first={first!r} picks from embeddings of a pretrained model: pass embeddings= [N, D]")
        return strategy, None
    outputs = embeddings if isinstance(embeddings, Outputs) else Outputs(embeddings=embeddings)
    if not outputs.has_probabilities:
        check_first(first)
    if len(outputs) != rows:
        raise InputError(f"embeddings have {len(outputs)} rows for a pool of {rows}")
    return strategy, outputs
