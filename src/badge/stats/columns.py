"""The columns of a table of results: which there are, and a look at every value once, when a table is made."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge.core.names import unmasked
from badge.errors import InputError

#: Columns that every table of results has.
REQUIRED = ("data", "model", "strategy", "batch_size", "seed", "labels", "test_accuracy")
#: Columns that a table may have; missing values are NaN.
OPTIONAL = (
    "round", "train_accuracy", "epochs", "restarts", "train_seconds", "predict_seconds", "select_seconds", "mean_norm",
    "log_det", "rows", "total_rows", "macro_f1", "rare_recall",
)  # fmt: skip
#: The columns that tell runs apart.
RUN = ("data", "model", "batch_size", "strategy", "seed")
#: The most characters of a name: files are called after it.
LONGEST = 300
#: Those that hold texts; the others hold numbers.
TEXT = ("data", "model", "strategy")
_WHOLE = ("batch_size", "seed", "labels")


class Note(NamedTuple):
    """A note for readers of the statistics: something was missing, skipped or left out."""

    topic: str
    text: str


def cleaned(columns: Mapping[str, Any]) -> tuple[dict[str, NDArray[Any]], list[Note]]:
    """The known columns as arrays, checked, sorted by run and labels; and notes on rows that were left out."""
    if missing := [name for name in REQUIRED if name not in columns]:
        lacking = f"column{'s' * (len(missing) > 1)} {', '.join(missing)}"
        raise InputError(f"results lack the {lacking}; needed: {', '.join(REQUIRED)}")
    held = {name: _column(columns[name], name) for name in (*REQUIRED, *OPTIONAL) if name in columns}
    sizes = {name: len(column) for name, column in held.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(f"columns differ in length: {sizes}")
    if not sizes["data"]:
        raise InputError("there are no results: the table has 0 rows")
    typed = held | {name: held[name].astype(np.str_) for name in TEXT}
    typed |= {name: _whole(held[name], name) for name in _WHOLE}
    if "log_det" in typed and "mean_norm" in typed:  # a batch with norms and no log-determinant: tables leave −∞ out
        unsaid = np.isnan(typed["log_det"]) & ~np.isnan(typed["mean_norm"])
        typed["log_det"] = np.where(unsaid, -np.inf, typed["log_det"])
    _check(typed)
    return _without_gaps_and_repeats(typed)


def _column(values: Any, name: str) -> NDArray[Any]:
    """A column as an array of texts, or of float64."""
    kind = "texts" if name in TEXT else "numbers"
    try:
        array = np.asarray(unmasked(values, f"the values of {name}"))
        if name not in TEXT and array.dtype.kind in "biufO":
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise InputError(f"the column {name} must be {kind}: {error}") from None
    texts = array.dtype.kind == "U" or (array.dtype.kind == "O" and all(isinstance(text, str) for text in array.flat))
    if array.ndim != 1 or not (texts or not array.size if name in TEXT else array.dtype == np.float64):
        raise InputError(f"the column {name} must be {kind}, not {array.dtype} of shape {array.shape}")
    return array


def _whole(numbers: NDArray[np.float64], name: str) -> NDArray[np.int64]:
    bad = ~((abs(numbers) < 2.0**53) & (numbers == np.round(numbers)))
    if bad.any():
        raise InputError(f"{name} must be whole numbers; row {int(bad.argmax()) + 1} has {numbers[bad.argmax()]}")
    return numbers.astype(np.int64)


def _check(columns: Mapping[str, NDArray[Any]]) -> None:
    for name in TEXT:
        for text in np.unique(columns[name]).tolist():
            if not text.isprintable() or len(text) > LONGEST:  # no page and no file can show it
                why = f"has more than {LONGEST} characters" if text.isprintable() else "cannot be shown"
                raise InputError(f"{name} {text[:60]!r} {why}: rename it")
    for name, lowest in (("batch_size", 1), ("labels", 0), ("seed", 0)):
        if (columns[name] < lowest).any():
            raise InputError(f"{name} must be ≥ {lowest}; the smallest is {columns[name].min()}")
    accuracy = columns["test_accuracy"]
    if len(outside := np.flatnonzero((accuracy < 0) | (accuracy > 1))):
        found = f"row {outside[0] + 1} has {accuracy[outside[0]]} (divide percentages by 100)"
        raise InputError(f"test_accuracy must lie between 0 and 1; {found}")


def _without_gaps_and_repeats(columns: dict[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], list[Note]]:
    """The columns sorted by run and labels, without rows that have no accuracy or that repeat another row."""
    notes = []
    blank = np.isnan(columns["test_accuracy"])
    if blank.all():
        raise InputError("there are no results: no row has a test accuracy")
    if blank.any():
        notes.append(Note("rows left out", f"{int(blank.sum()):,} rows without a test accuracy"))
        columns = {name: values[~blank] for name, values in columns.items()}
    keys = [columns[name] for name in (*RUN, "labels")]
    ranks = [np.unique(key, return_inverse=True)[1] if key.dtype.kind == "U" else key for key in keys]
    order = np.lexsort(ranks[::-1])
    columns = {name: values[order] for name, values in columns.items()}
    first = changes([key[order] for key in ranks])
    if not first.all():
        again, accuracy = np.flatnonzero(~first), columns["test_accuracy"]
        clash = again[accuracy[again] != accuracy[again - 1]]
        if len(clash):
            i = int(clash[0])
            where = ", ".join(f"{name} {columns[name][i]}" for name in RUN)
            both = f"test accuracies {accuracy[i - 1]:.6g} and {accuracy[i]:.6g} at {columns['labels'][i]} labels"
            way_out = "give repeats different seeds, or remove one of the two"
            raise InputError(f"two runs claim to be the same: {where} has {both}; {way_out}")
        notes.append(Note("rows left out", f"{len(again):,} rows that repeat another row exactly"))
        columns = {name: values[first] for name, values in columns.items()}
    return columns, notes


def changes(keys: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
    """True where a row has other keys than the row before, and in the first row."""
    changes = np.zeros(len(keys[0]), dtype=bool)
    changes[0] = True
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return changes
