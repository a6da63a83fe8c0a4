"""Tables as data sets: the built-in texts, JSON lines {"split", "label", "text"}; and a user's file of texts or numbers.

Each text is a row of numbers by TF-IDF and SVD. The vectors come from the texts alone, without labels: words and pairs of
words weighted by tf-idf, projected onto the leading singular directions of the training texts (latent semantic analysis),
with a fixed seed.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from badge.core.importing import needs
from badge.core.npz import Array
from badge.data import prepare
from badge.data.dataset import Dataset
from badge.data.sources import Arrays, find
from badge.errors import DataError, in_short
from badge.tables import Table, Told, first_few, is_table, read_table

#: Columns that are taken where none is named.
LABEL, TEXT, SPLIT = "label", "text", "split"
#: What the column "split" says, and the share that is held out where there is none.
PARTS, TEST_SHARE = ("train", "test"), 0.2
#: Columns of the vectors.
DIMENSIONS = 256


def arrays(name: str) -> Arrays:
    """The arrays of a data set of texts, which comes split."""
    return _arrays(located(name))


def located(name: str) -> Path:
    path, looked = find(f"{name}.jsonl.xz", f"{name}.jsonl")
    if path is not None:
        return path
    line = '{"split": "train" or "test", "label": …, "text": …}'
    raise DataError(f"{name} is not at {looked}: put its texts there, one JSON object a line: {line}")


@lru_cache(maxsize=1)  # the same for every seed
def _arrays(path: Path) -> Arrays:
    texts, labels = read(path)
    x_train, x_test = embedded(texts["train"], texts["test"])
    return {"X_train": x_train, "X_test": x_test, **labels}


def read(path: Path) -> tuple[dict[str, list[str]], Arrays]:
    """The texts of the parts "train" and "test", and their labels: `y_train`, `y_test` and `class_names`."""
    rows = read_table(path).rows()
    for number, row in enumerate(rows, start=1):
        if any(row.get(name) is None for name in ("split", "label", "text")):
            raise DataError(f"{path}, line {number}: needed are split, label and text")
        row["split"] = part_of(row["split"], f"{path}, line {number}")
    names = sorted({str(row["label"]) for row in rows})
    texts, labels = {}, {"class_names": np.array(names)}
    for part in PARTS:
        some = [row for row in rows if row["split"] == part]
        if not some:
            raise DataError(f"{path} has no line with split {part!r}")
        texts[part] = [str(row["text"]) for row in some]
        labels[f"y_{part}"] = np.array([names.index(str(row["label"])) for row in some])
    return texts, labels


def part_of(said: Any, where: str) -> str:
    """The part that a row belongs to, train or test. Anything else is refused, since the row would be lost."""
    part = "" if said is None else str(said).strip()
    if part not in PARTS:
        found = in_short(part, 40) if part else "empty"
        raise DataError(f"{where}: split is {found}: write train or test, or take it out")
    return part


def embedded(train: Sequence[str], test: Sequence[str], dimensions: int = DIMENSIONS) -> tuple[Array, Array]:
    """Vectors of texts, float32 [N, dimensions] (fewer where there are fewer texts or words), fitted on `train`.

    >>> a, b = embedded(["one two", "two three", "three four five"], ["one"], dimensions=2)
    >>> a.shape, b.shape
    ((3, 2), (1, 2))
    """
    with needs("data sets of texts", "scikit-learn", "study"):
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.utils.extmath import randomized_svd
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, dtype=np.float64)
    try:
        table = words.fit_transform(train)
    except ValueError as error:
        if "empty vocabulary" not in str(error):
            raise
        none = "no text to train on has a word of two or more letters, and the vectors count words"
        raise DataError(f"{none}: give --encoder", in_python="pass encode=") from None
    _, _, directions = randomized_svd(table, min(dimensions, *table.shape), random_state=0)
    found = [(part @ directions.T).astype(np.float32) for part in (table, words.transform(test))]
    return found[0], found[1]


def is_own_file(name: str) -> bool:
    """Whether a data set is named by a table: reviews.csv, runs/reviews.jsonl.gz.

    >>> is_own_file("reviews.csv"), is_own_file("digits")
    (True, False)
    """
    return ":" not in name and is_table(Path(name)) and Path(name).suffix != ".npz"


def load_file(
    name: str,
    seed: int = 0,
    text: str | None = None,
    label: str | None = None,
    encode: Callable[[list[str]], Array] | None = None,
    standardise: bool = True,
) -> Dataset:
    """Load your own file as a data set.

    Texts become vectors by `encode`, else by TF-IDF and SVD, fitted on the training texts. A column "split" with the values
    train and test defines the test set. Without one, `seed` draws a fifth of the rows.

    Args:
        name: the path of a csv, tsv, jsonl, xlsx or parquet file.
        seed: the seed of the split.
        text: the name of the column of texts. None: "text", if there is one; else all other columns are features and hold
            numbers.
        label: the name of the column of labels; None: "label".
        encode: a function of a list of texts that returns their vectors [n, D].
        standardise: scale columns of numbers, and the vectors of `encode`, to mean 0 and variance 1 on the training set.

    Returns:
        A `Dataset`.

    Raises:
        DataError: the file cannot be read, or a column is missing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sizes.csv"
    ...     _ = file.write_text("width,height,label\\n" + "1.5,2,small\\n9,8.5,large\\n" * 10)
    ...     load_file(str(file))
    Dataset(sizes.csv: 16 training and 4 test examples of shape (2,), 2 classes; from 20 of 20 rows)
    """
    path = Path(name)
    label = label or LABEL
    table = read_table(path, Told(header=True), numbers=True, keep=(label, text or TEXT, SPLIT), what="--data")
    text = text or (TEXT if TEXT in table.names else None)
    for option, column in (("--label", label), ("--text", text)):
        if column is not None and column not in table.names:
            raise DataError(f"{option} {column}: {path} has no such column; it has {first_few(table.names)}")
    labels = [None if value is None else str(value).strip() or None for value in table.column(label)]
    said = _complete(labels, "label", label, path)
    words = None if text is None else _complete(table.column(text), "text", text, path)
    names = sorted(set(said))
    y = np.searchsorted(names, said).astype(np.int64)
    if SPLIT in table.names:
        train, test = _split(table.column(SPLIT), path)
    else:
        train, test = prepare.split(y, seed, TEST_SHARE, len(y))
    if words is None or encode is not None:
        x = encode(words) if words is not None and encode else _numbers(table, (label, SPLIT), path)
        x_train, x_test = x[train], x[test]
        if standardise:
            x_train, x_test = prepare.standardised(x_train, x_test)
    else:
        x_train, x_test = embedded([words[i] for i in train], [words[i] for i in test])
    return Dataset(x_train, y[train], x_test, y[test], len(names), path.name, tuple(names))


def _complete(values: list[Any], what: str, column: str, path: Path) -> list[str]:
    if None in values:
        where = f"no {column!r} in row {values.index(None)} (counted from 0)"
        raise DataError(f"{path} has {where}: a run needs the {what} of every example")
    return [str(value) for value in values]


def _split(said: list[Any], path: Path) -> tuple[Array, Array]:
    parts = np.array([part_of(value, f"{path}, row {row} (counted from 0)") for row, value in enumerate(said)])
    train, test = (np.flatnonzero(parts == part) for part in PARTS)
    if not len(train) or not len(test):
        raise DataError(f"{path}: the column {SPLIT!r} says train or test; both are needed")
    return train, test


def _numbers(table: Table, without: tuple[str, ...], path: Path) -> Array:
    taken = [i for i, name in enumerate(table.names) if name not in without]
    wrong = [table.names[i] for i in taken if isinstance(table.columns[i], list)]
    if wrong or not taken:
        what = f"column {wrong[0]!r} of {path} does not hold numbers" if wrong else f"{path} has no column of numbers"
        raise DataError(f"{what}: name the column of texts with --text, or take it out")
    return np.column_stack([table.columns[i] for i in taken]).astype(np.float32)
