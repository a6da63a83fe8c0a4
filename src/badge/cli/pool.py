"""From files to what a model said about a pool: probabilities or logits, embeddings, identifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from badge.cli.columns import read_numbers
from badge.cli.request import Files
from badge.errors import InputError
from badge.tables import Array, Told

if TYPE_CHECKING:
    from badge.outputs import Outputs

#: Probabilities printed with this number of decimals are divided by their sums.
DECIMALS = (1, 2, 3, 4)


class Pool(NamedTuple):
    """A pool, the names of its examples, notes on what was left out or changed, and how each file was read."""

    outputs: Outputs
    ids: list[str] | None
    notes: list[str]
    understood: list[str]


def read_pool(files: Files, named: bool = False) -> Pool:
    """The outputs in `files`. `named`: another file has the identifiers."""
    from badge.outputs import Outputs

    told = Told(*files.layout)
    scores = "logits" if files.probabilities is None else "probabilities"
    of_scores = (scores, files.scores, files.probability_columns)
    both = [
        None if file is None else read_numbers(file, what, columns, files.id_column, told)
        for what, file, columns in (of_scores, ("embeddings", files.embeddings, files.embedding_columns))
    ]
    p, h = (None if numbers is None else numbers.values for numbers in both)
    read = [numbers for numbers in both if numbers is not None]
    found = [numbers.ids for numbers in read if numbers.ids is not None]
    if len(found) == 2:
        _check_same_order(found[0], found[1], files)
    if files.id_column is not None and not found and not named:
        where = " or ".join(str(file) for file in files[:3] if file is not None)
        raise InputError(f"--id-column: there is no column {files.id_column!r} in {where}")
    notes = [note for numbers in read for note in numbers.notes]
    understood = list(dict.fromkeys(numbers.understood for numbers in read if numbers.understood))
    if p is None:
        outputs = Outputs(embeddings=h)
    elif files.logits is not None:
        outputs = Outputs.from_logits(p, h, files.multilabel)
    else:
        p, note = (p, None) if files.multilabel else normalised(p)
        outputs, notes = Outputs(p, h, files.multilabel), notes + ([f"{files.scores}: {note}"] if note else [])
    return Pool(outputs, found[0] if found else None, notes, understood)


def _check_same_order(ids: list[str], others: list[str], files: Files) -> None:
    if len(ids) != len(others):
        raise InputError(f"{files.scores} has {len(ids)} rows and {files.embeddings} {len(others)}")
    if differ := [i for i, (a, b) in enumerate(zip(ids, others, strict=True)) if a != b]:
        row = differ[0]
        raise InputError(
            f"the two files name different examples: row {row} (counted from 0) is {ids[row][:40]!r} in one and "
            f"{others[row][:40]!r} in the other: bring them into one order"
        )


def normalised(p: Array) -> tuple[Array, str | None]:
    """Probabilities that were rounded when they were printed, divided by their sums; others as they are.

    >>> normalised(np.array([[0.33, 0.33, 0.33]]))[1]
    'probabilities rounded to 2 decimals, in sum 0.99 to 0.99, were divided by their sums'
    """
    if p.ndim != 2 or p.shape[1] < 2 or p.dtype.kind != "f" or not p.size:
        return p, None
    step = max(1, 2**24 // p.shape[1])
    sums = np.concatenate([p[i : i + step].sum(axis=1, dtype=np.float64) for i in range(0, len(p), step)])
    if not np.isfinite(sums).all() or abs(sums - 1).max() <= 1e-4 or sums.min() <= 0:
        return p, None
    for decimals in DECIMALS:
        slack = 0.5 * 10.0**-decimals * p.shape[1] * (1 + 1e-6)
        if abs(sums - 1).max() <= min(slack, 0.5) and _rounded(p, decimals):
            how = f"rounded to {decimals} decimal{'s' * (decimals > 1)}, in sum {sums.min():.4g} to {sums.max():.4g}"
            return p / sums[:, None], f"probabilities {how}, were divided by their sums"
    return p, None


def _rounded(p: Array, decimals: int) -> bool:
    scaled = np.asarray(p, dtype=np.float64) * 10.0**decimals
    return bool((p >= 0).all() and (p <= 1).all() and (abs(scaled - scaled.round()) < 1e-3).all())
