"""Data sets of texts: JSON lines {"split", "label", "text"}, each text a row of numbers by TF-IDF and SVD.

The vectors come from the texts alone, without labels: words and pairs of words weighted by tf-idf, projected onto the leading
singular directions of the training texts (latent semantic analysis), with a fixed seed.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from badge.core.importing import needs
from badge.core.npz import Array
from badge.data.files import find
from badge.data.sources import Arrays
from badge.errors import DataError, in_short
from badge.tables import read_table

#: What the column "split" says.
PARTS = ("train", "test")
#: Columns of the vectors.
DIMENSIONS = 256


def arrays(name: str) -> Arrays:
    """The arrays of a data set of texts, which comes split."""
    return _arrays(located(name))


def located(name: str) -> Path:
    """The file of a data set of texts."""
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
    """The part that a row belongs to; a row of neither would be lost."""
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
