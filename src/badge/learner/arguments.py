"""What a learner is given, checked at the door; and is this the pool of that journal?

A pool may grow at its end; with ids from the caller it may be reordered. It is identified by its length and a digest of 64
of its examples. If examples differ from look to look (random crops and flips) there is no digest, and the length alone is
compared.
"""

import os
from typing import Any

from badge import strategies
from badge.core.catalog import check_first
from badge.errors import InputError, JournalError
from badge.journal import Journal
from badge.journal.events import PoolId
from badge.learner.ids import Ids
from badge.models.digest import sample_digest, sample_of
from badge.models.pools import open_pool
from badge.outputs import Outputs
from badge.strategies import Strategy
from badge.training.fit import is_estimator

#: the most columns of a table that are recorded, with their types
MOST_COLUMNS = 1000


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


def identify(pool: Any, ids: Ids) -> PoolId:
    """Length, the ids of the sample (where they are the caller's) and its digest.

    >>> identify(["a", "b", "c"], Ids(3)).length
    3
    """
    sample = ids.order[sample_of(ids.length)]
    named = None if ids.own is None else ids.at(sample)
    digest = sample_digest(open_pool(pool), sample)
    return PoolId(length=ids.length, sample=named, digest=digest, columns=_columns(pool))


def _columns(pool: Any) -> dict[str, str] | None:
    """The columns of a table and the types of their values, where they are not too many to write down."""
    types = getattr(pool, "dtypes", None)
    if types is None or not hasattr(pool, "columns") or len(pool.columns) > MOST_COLUMNS:
        return None
    return {str(name): str(kind) for name, kind in zip(pool.columns, types, strict=True)}


def _changed_column(recorded: dict[str, str] | None, pool: Any) -> str:
    """How the columns of a table differ from the recorded ones, in words; "" if they do not."""
    yours = _columns(pool)
    if recorded is None or yours is None:
        return ""
    for name in {**recorded, **yours}:
        if name not in yours or name not in recorded:
            return f"; the column {name!r} is only in {'yours' if name in yours else 'the recorded one'}"
        if yours[name] != recorded[name]:
            return f"; the column {name!r} held {recorded[name]} and holds {yours[name]} now: read it as it was"
    return ""


def check_pool(recorded: PoolId, pool: Any, ids: Ids, path: object) -> None:
    """Refuse a pool unless it is the recorded one, perhaps with examples added at its end."""
    theirs, yours = recorded.length, ids.length
    sizes = f"its pool has {theirs:,} examples, yours {yours:,}"
    if (recorded.sample is not None) != (ids.own is not None):
        begun = "with your own ids: give them again" if recorded.sample else "without ids: examples go by position"
        raise JournalError(f"{path} was begun {begun}", in_python="pass ids=" if recorded.sample else "leave out ids=")
    if recorded.sample is None and yours < theirs:
        why = "only a pool with your own ids may lose examples"
        raise JournalError(f"{path} belongs to another pool, or it shrank: {sizes}; {why}")
    if recorded.sample is None:
        sample = sample_of(theirs)
    else:
        gone = [id for id in recorded.sample if id not in ids]
        if len(gone) > len(recorded.sample) // 2:
            missing = f"the id {gone[0]!r} is not in yours, nor are {len(gone) - 1} others of {len(recorded.sample)}"
            raise JournalError(f"{path} belongs to another pool: {sizes}, and {missing} that were looked for")
        if gone:
            return  # some examples were withdrawn: the others are known by their ids
        sample = ids.positions(recorded.sample)
    digest = sample_digest(open_pool(pool), sample)
    if None not in (digest, recorded.digest) and digest != recorded.digest:
        grown = f"the first {theirs:,} of yours" if yours > theirs and ids.own is None else "its examples"
        differ = f"{grown} are different (digest {recorded.digest}, yours {digest})"
        changed = f"{path} belongs to another pool, or its examples were changed: {sizes}, and {differ}"
        way_out = "`badge journal export` carries the labels on to a new journal"
        raise JournalError(f"{changed}{_changed_column(recorded.columns, pool)}; {way_out}")
