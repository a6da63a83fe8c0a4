"""From files to what a model said about a pool: probabilities or logits, embeddings, identifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from badge.cli.request import Files
from badge.cli.tables import Choice, read_numbers
from badge.cli.tables.columns import Array
from badge.errors import InputError

if TYPE_CHECKING:
    from badge.outputs import Outputs

__all__ = ["Pool", "read_pool"]

#: Printed probabilities with so many decimals or fewer are brought to sum to 1.
DECIMALS = (1, 2, 3, 4)


class Pool(NamedTuple):
    outputs: Outputs
    ids: list[str] | None
    notes: list[str]


def read_pool(files: Files, without_embeddings: bool, without_scores: bool = False, named: bool = False) -> Pool:
    """The outputs in `files`, which may lack embeddings, or probabilities, where nothing looks at them.

    `named`: another file has the identifiers.
    """
    from badge.outputs import Outputs

    files.check(without_embeddings, without_scores)
    scores = files.scores
    values: Array | None = None
    ids: list[str] | None = None
    notes: list[str] = []
    if scores is not None:
        choice = Choice(
            "probabilities" if files.logits is None else "logits",
            "--probability-columns", files.probability_columns, files.id_column, files.header,
        )  # fmt: skip
        read = read_numbers(scores, choice)
        values, ids, notes = read.values, read.ids, list(read.notes)
    embeddings: Array | None = None
    if files.embeddings is not None:
        choice = Choice("embeddings", "--embedding-columns", files.embedding_columns, files.id_column, files.header)
        found = read_numbers(files.embeddings, choice)
        embeddings, notes = found.values, [*notes, *(note for note in found.notes if note not in notes)]
        if ids is not None and found.ids is not None:
            _check_same_order(ids, found.ids, files)
        ids = ids or found.ids
    if files.id_column is not None and ids is None and not named:
        where = " or ".join(str(file) for file in (scores, files.embeddings) if file is not None)
        raise InputError(f"--id-column: there is no column {files.id_column!r} in {where}")
    if values is None:
        return Pool(Outputs(embeddings=embeddings), ids, notes)
    if files.logits is not None:
        return Pool(Outputs.from_logits(values, embeddings, files.multilabel), ids, notes)
    values, note = (values, None) if files.multilabel else normalised(values)
    return Pool(Outputs(values, embeddings, files.multilabel), ids, [*notes, *([f"{scores}: {note}"] if note else [])])


def _check_same_order(ids: list[str], others: list[str], files: Files) -> None:
    if ids == others:
        return
    if len(ids) != len(others):
        raise InputError(
            f"{files.probabilities or files.logits} has {len(ids)} rows and {files.embeddings} {len(others)}"
        )
    row = next(i for i, (a, b) in enumerate(zip(ids, others, strict=True)) if a != b)
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
