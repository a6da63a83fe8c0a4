"""From files to what a model said about a pool: which columns hold probabilities, logits or embeddings, and which the ids."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from badge.cli.request import Files
from badge.errors import InputError
from badge.tables import NOTHING, Array, Table, Told, first_few, read_table

if TYPE_CHECKING:
    from badge.outputs import Outputs

#: What pandas and parquet call an index without a name.
UNNAMED = ("", "Unnamed: 0", "__index_level_0__")
#: Columns with these names are not features, even if they hold numbers.
NOT_FEATURES = ("id", "ids", "idx", "index", "label", "labels", "target", "targets", "class")
SINGULAR = {"probabilities": "probability", "embeddings": "embedding", "logits": "logit"}
#: Probabilities printed with this number of decimals are divided by their sums.
DECIMALS = (1, 2, 3, 4)


class Pool(NamedTuple):
    """A pool, the names of its examples, notes on what was left out or changed, and how each file was read."""

    outputs: Outputs
    ids: list[str] | None
    notes: list[str]
    understood: list[str]


class Numbers(NamedTuple):
    """Rows of numbers (memory-mapped where the file is npy), identifiers if a column has them, notes, how it was read."""

    values: Array
    ids: list[str] | None
    notes: list[str]
    understood: str


def read_pool(files: Files, named: bool = False) -> Pool:
    """The outputs in `files`. `named`: another file has the identifiers."""
    from badge.outputs import Outputs

    scores = "logits" if files.probabilities is None else "probabilities"
    both = [
        None if file is None else read_numbers(file, what, columns, files.id_column, Told(*files.layout))
        for what, file, columns in (
            (scores, files.scores, files.probability_columns),
            ("embeddings", files.embeddings, files.embedding_columns),
        )
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
    for row, (one, other) in enumerate(zip(ids, others, strict=True)):
        if one != other:
            differ = f"row {row} (counted from 0) is {one[:40]!r} in one and {other[:40]!r} in the other"
            raise InputError(f"the two files name different examples: {differ}: bring them into one order")


def normalised(p: Array) -> tuple[Array, str | None]:
    """Probabilities that were rounded when they were printed, divided by their sums; others as they are.

    >>> normalised(np.array([[0.33, 0.33, 0.33]]))[1]
    'probabilities rounded to 2 decimals, in sum 0.99 to 0.99, were divided by their sums'
    """
    if p.ndim != 2 or p.shape[1] < 2 or p.dtype.kind != "f" or not p.size:
        return p, None
    step = max(1, 2**24 // p.shape[1])
    sums = np.concatenate([p[i : i + step].sum(axis=1, dtype=np.float64) for i in range(0, len(p), step)])
    off = abs(sums - 1).max()
    if not np.isfinite(sums).all() or off <= 1e-4 or sums.min() <= 0:
        return p, None
    for decimals in DECIMALS:
        slack = 0.5 * 10.0**-decimals * p.shape[1] * (1 + 1e-6)
        if off <= min(slack, 0.5) and (p >= 0).all() and (p <= 1).all():
            scaled = np.asarray(p, dtype=np.float64) * 10.0**decimals
            if (abs(scaled - scaled.round()) < 1e-3).all():
                how = f"{decimals} decimal{'s' * (decimals > 1)}, in sum {sums.min():.4g} to {sums.max():.4g}"
                return p / sums[:, None], f"probabilities rounded to {how}, were divided by their sums"
    return p, None


def read_numbers(
    file: Path, what: str, patterns: Sequence[str] = (), id_column: str | None = None, told: Told = NOTHING
) -> Numbers:
    """The numbers in a file: `what` is "probabilities", "logits" or "embeddings".

    They are in the columns that `patterns` name, else in all that look like it.
    """
    table = read_table(file, told, what, numbers=True, keep=(id_column,), array=what)
    option = "--embedding-columns" if what == "embeddings" else "--probability-columns"
    own = table.names.index(id_column) if id_column in table.names else None
    rest = [i for i in range(len(table.names)) if i != own]
    taken = _named(table, rest, patterns, option, file) if patterns else _found(table, rest, what, option, file)
    notes = []
    if not patterns:
        _check_features(table, taken, what, option, file)
        if left := [table.names[i] or "the first, unnamed" for i in rest if i not in taken]:
            notes.append(f"{file}: column{'s' * (len(left) > 1)} left out of the {what}: {first_few(left)}")
    if table.array is not None and taken == list(range(len(table.names))):
        values = table.array
    else:
        values = np.column_stack([table.columns[i] for i in taken])
    ids = None if own is None else [str(value).strip() for value in table.columns[own]]
    return Numbers(values, ids, notes, table.understood)


def _kind(column: Array | list[Any]) -> str:
    if isinstance(column, list) or column.dtype.kind == "U":
        return "text"
    return "list" if column.ndim == 2 else "float" if column.dtype.kind == "f" else "whole"


def _named(table: Table, rest: Sequence[int], patterns: Sequence[str], option: str, file: Path) -> list[int]:
    names = table.names
    for pattern in patterns:
        if not any(fnmatchcase(names[i], pattern) for i in rest):
            raise InputError(f"{option} {pattern!r} matches no column of {file}: {first_few(names)}")
    taken = [i for i in rest if any(fnmatchcase(names[i], pattern) for pattern in patterns)]
    kinds = [_kind(table.columns[i]) for i in taken]
    if "text" in kinds:
        wrong = taken[kinds.index("text")]
        raise InputError(f"{option}: column {names[wrong]!r} of {file} {_no_numbers(table.columns[wrong])}")
    if "list" in kinds and set(kinds) != {"list"}:
        raise InputError(f"{option}: columns of lists and of numbers cannot be mixed: {first_few(names)}")
    return taken


def _found(table: Table, rest: Sequence[int], what: str, option: str, file: Path) -> list[int]:
    """The column of lists (the one of a fitting name, or the only one), else all columns of numbers but an index."""
    kinds, names = [_kind(column) for column in table.columns], table.names
    others = {word for name in SINGULAR if name != what for word in (name, SINGULAR[name])}
    lists = [i for i in rest if kinds[i] == "list" and names[i].lower() not in others]
    fitting = [i for i in lists if names[i].lower() in (what, SINGULAR[what])]
    lists = fitting if len(fitting) == 1 else lists
    if len(lists) > 1:
        shown = first_few([names[i] for i in lists])
        raise InputError(f"{what}: {file} has several columns of lists ({shown}): name one with {option}")
    index = [i for i in rest if names[i] == UNNAMED[2] or (i == 0 and names[i] in UNNAMED)]
    taken = lists or [i for i in rest if kinds[i] in ("float", "whole") and i not in index]
    if not taken:
        ragged = [f"; {names[i]!r} {_no_numbers(table.columns[i])}" for i in rest if kinds[i] == "text"]
        why = ragged[0] if len(ragged) == 1 else ""
        raise InputError(f"{what}: {file} has no column of numbers; its columns: {first_few(names)}{why}")
    return taken


def _no_numbers(column: Array | list[Any]) -> str:
    if any(isinstance(value, list) for value in column):
        return "holds lists that differ in length, or are missing"
    return "does not hold numbers"


def _check_features(table: Table, taken: Sequence[int], what: str, option: str, file: Path) -> None:
    """Refuse a column that hardly is a feature: it counts the rows, holds whole numbers beside fractions, or is "id"."""
    kinds = [_kind(table.columns[i]) for i in taken]
    if len(taken) < 2 or "list" in kinds:
        return
    for i, kind in zip(taken, kinds, strict=True):
        name, column = table.names[i], table.columns[i]
        if name.lower() in NOT_FEATURES:
            why = "does not sound like a feature"
        elif kind == "whole" and "float" in kinds and table.array is None and np.ptp(column) != 0:
            why = "holds whole numbers, and others do not"
        elif i == 0 and len(column) >= 3 and bool((np.asarray(column[:1000]) == np.arange(len(column[:1000]))).all()):
            why = "counts the rows"
        else:
            continue
        use = [table.names[j] for j in taken if j != i]
        start = use[0][:1]
        alike = start.isalpha() and all(other.startswith(start) for other in use)
        example = f"{option} '{f'{start}*' if alike else ','.join(use[:2])}' (all of them: '*')"
        way_out = f"name the columns to use, e.g. {example}, or the identifiers with --id-column"
        raise InputError(f"{what}: column {name!r} of {file} {why}: {way_out}")
