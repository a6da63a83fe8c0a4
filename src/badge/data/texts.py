"""Data sets of texts: JSON lines {"split", "label", "text"}, each text a row of numbers by TF-IDF and SVD.

The vectors come from the texts alone, without labels: words and pairs of words weighted by tf-idf, projected onto the leading
singular directions of the training texts (latent semantic analysis), with a fixed seed.
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from badge.data.files import Array, Arrays, cache_folder
from badge.errors import DataError, MissingExtraError

__all__ = ["arrays", "embedded", "find"]

#: Columns of the vectors.
DIMENSIONS = 256


def find(name: str) -> Path:
    """`<name>.jsonl.xz` or `<name>.jsonl` in `$BADGE_DATA`, then in the user's cache."""
    given = os.environ.get("BADGE_DATA")
    folders = [*([Path(given)] if given else []), cache_folder()]
    for folder in folders:
        for ending in (".jsonl.xz", ".jsonl"):
            if (path := folder / f"{name}{ending}").is_file():
                return path
    looked = " and ".join(str(folder / f"{name}.jsonl.xz") for folder in folders)
    raise DataError(
        f"{name} is not at {looked}{'' if given else ' (BADGE_DATA is not set)'}: put its texts there, one JSON object a "
        'line: {"split": "train" or "test", "label": …, "text": …}'
    )


def arrays(name: str) -> Arrays:
    """The arrays of a data set of texts: those of `<name>.npz` where a set comes split."""
    return _arrays(find(name))


@lru_cache(maxsize=1)  # the same for every seed
def _arrays(path: Path) -> Arrays:
    rows = _rows(path)
    names = sorted({str(row["label"]) for row in rows})
    parts = {part: [row for row in rows if row["split"] == part] for part in ("train", "test")}
    for part, some in parts.items():
        if not some:
            raise DataError(f"{path} has no line with split {part!r}")
    said = {part: [str(row["text"]) for row in some] for part, some in parts.items()}
    x_train, x_test = embedded(said["train"], said["test"])
    y = {part: np.array([names.index(str(row["label"])) for row in some]) for part, some in parts.items()}
    return {
        "X_train": x_train,
        "y_train": y["train"],
        "X_test": x_test,
        "y_test": y["test"],
        "class_names": np.array(names),
    }


def _rows(path: Path) -> list[dict[str, Any]]:
    rows = []
    try:
        with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                row = json.loads(line)
                if not isinstance(row, dict) or not {"split", "label", "text"} <= row.keys():
                    raise DataError(f"{path}, line {number}: needed are split, label and text")
                rows.append(row)
    except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
        raise DataError(f"{path} is damaged: {error}") from error
    return rows


def embedded(train: Sequence[str], test: Sequence[str], dimensions: int = DIMENSIONS) -> tuple[Array, Array]:
    """Vectors of texts, float32 [N, dimensions] (fewer where there are fewer texts or words), fitted on `train`.

    >>> a, b = embedded(["one two", "two three", "three four five"], ["one"], dimensions=2)
    >>> a.shape, b.shape
    ((3, 2), (1, 2))
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.utils.extmath import randomized_svd
    except ImportError:
        raise MissingExtraError("data sets of texts", "scikit-learn", "study") from None
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, dtype=np.float64)
    table = words.fit_transform(train)
    _, _, directions = randomized_svd(table, min(dimensions, *table.shape), random_state=0)
    found = [(part @ directions.T).astype(np.float32) for part in (table, words.transform(test))]
    return found[0], found[1]
