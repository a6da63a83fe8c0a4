"""Data sets by name: the paper's, scikit-learn's digits, two sets of short texts, and the user's.

Protocol, the same for the built-in ones and for `--data mypkg.mod:load`:

    load(seed: int) -> badge.data.Dataset
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from badge.core.importing import imported, needs
from badge.core.names import name_of
from badge.core.numbers import flag, whole
from badge.core.writing import cache_folder
from badge.data import prepare, sources, texts
from badge.data.dataset import Dataset
from badge.data.texts import is_own_file, load_file
from badge.errors import DataError, UnknownNameError

__all__ = ["NAMES", "Dataset", "cache_folder", "load", "load_file", "resolve"]

#: The authors' code takes at most this many rows of an OpenML set for training.
MOST_TRAINING_ROWS = 50_000


@dataclass(frozen=True)
class _About:
    """A built-in data set: the number of rows of the complete set, and how rows become examples."""

    total: int
    images: bool = False
    categorical: bool = False
    test_share: float = 0.1
    texts: bool = False


_ABOUT = {
    "digits": _About(1_797, images=True, test_share=0.2),
    "mnist": _About(60_000 + 10_000, images=True),
    "svhn": _About(73_257 + 26_032, images=True),
    "cifar10": _About(50_000 + 10_000, images=True),
    "letter": _About(20_000),
    "pokerhand": _About(829_201),
    "randomrbf": _About(1_000_000),
    "kropt": _About(28_056, categorical=True),
    "banking77": _About(10_003 + 3_080, texts=True),
    "trec": _About(5_452 + 500, texts=True),
}
#: The names of the built-in data sets, in display order.
NAMES = list(_ABOUT)


def load(name: str, seed: int = 0, standardise: bool = True, progress: bool = True) -> Dataset:
    """Load a data set by name, from `$BADGE_DATA/<name>.npz`, else from the user's cache, else from its source.

    banking77 and trec are texts: they are read from `<name>.jsonl.xz` in the first two places, and never downloaded. You
    can put your own `<name>.npz` into `$BADGE_DATA`, with the same arrays. Sets without a split are shuffled and split by
    `seed`; the training set then starts with one row of each class.

    Args:
        name: a name of `badge.data.NAMES`, or of a file in `$BADGE_DATA`, without its ending.
        seed: the seed of the split, for sets without one.
        standardise: scale the columns of tables, and the channels of images, to mean 0 and variance 1 on the training set.
        progress: show a progress bar during a download.

    Returns:
        A `Dataset`: the pool and the test set.

    Raises:
        UnknownNameError: no data set has this name.
        DataError: the data cannot be downloaded, or the file is damaged.

    >>> import badge
    >>> badge.data.load("digits")
    Dataset(digits: 1,437 training and 360 test examples of shape (1, 8, 8), 10 classes; from 1,797 of 1,797 rows)
    """
    check_name(name)
    seed = whole(seed, "seed", least=0)
    flag(standardise, "standardise")
    if name in _ABOUT:
        about = _ABOUT[name]
        stored = (
            _digits() if name == "digits" else texts.arrays(name) if about.texts else sources.arrays(name, progress)
        )
    elif path := sources.own_file(name):
        stored = sources.read(path, "make it again with numpy.savez")
        x = stored["X"] if "X" in stored else stored["X_train"]  # bytes of three or four dimensions are images
        rows = sum(len(stored[y]) for y in ("y", "y_train", "y_test") if y in stored)
        about = _About(rows, images=x.dtype == np.uint8 and x.ndim in (3, 4))
    else:
        raise DataError(f"badge.data.load takes names; the file or function {name} is for badge.data.resolve")
    if "X" in stored:
        x, y = stored["X"], stored["y"]
        if about.categorical:
            x = prepare.one_hot(x)
        train, test = prepare.split(y, seed, about.test_share, MOST_TRAINING_ROWS if name in _ABOUT else len(y))
        x_train, y_train, x_test, y_test = x[train], y[train], x[test], y[test]
        rows = len(y)
    else:
        x_train, y_train, x_test, y_test = (stored[key] for key in ("X_train", "y_train", "X_test", "y_test"))
        rows = len(y_train) + len(y_test)
    if about.images:
        for x in (x_train, x_test):
            if x.dtype != np.uint8 or x.ndim not in (3, 4):
                found = f"{x.dtype} of shape {x.shape}"
                raise DataError(f"{name}: images must be bytes [N, H, W] or [N, H, W, C], not {found}")
        x_train, x_test = prepare.images(x_train, x_test, standardise)
    elif standardise:
        x_train, x_test = prepare.standardised(x_train, x_test)
    else:
        x_train, x_test = x_train.astype(np.float32), x_test.astype(np.float32)
    names = tuple(stored["class_names"].tolist()) if "class_names" in stored else ()
    classes = len(names) or int(max(y_train.max(), y_test.max())) + 1
    return Dataset(x_train, y_train, x_test, y_test, classes, name, names, rows, about.total)


def check_name(name: str) -> None:
    """Refuse a name that is neither a built-in set, a table, a file in `$BADGE_DATA` nor package.module:load."""
    known = ":" in name_of(name, "a data set") or name in _ABOUT or is_own_file(name)
    if not known and sources.own_file(name) is None:
        own = "your own as a file (.csv, .jsonl, …), package.module:load, or <name>.npz in the folder of BADGE_DATA"
        raise UnknownNameError("data set", name, NAMES, own)


def resolve(name: str, seed: int = 0, standardise: bool = True, progress: bool = True) -> Dataset:
    """Load a data set by its name, from a file (`load_file`), or by your own function.

    Args:
        name: a name of `badge.data.NAMES`, a path, or "package.module:load", a function of the seed that returns a
            `Dataset`.
        seed: the seed of the split, or the argument of your own function.
        standardise: scale the columns of tables, and the channels of images, to mean 0 and variance 1 on the training set.
        progress: show a progress bar during a download.

    Returns:
        A `Dataset`.

    Raises:
        UnknownNameError: no data set has this name.
        DataError: the data cannot be downloaded or read.

    >>> resolve("digits").classes
    10
    """
    if is_own_file(name):
        return load_file(name, seed, standardise=standardise)
    if ":" not in name:
        return load(name, seed, standardise, progress)
    found = imported("data set", name)(seed)
    if not isinstance(found, Dataset):
        raise DataError(f"{name} must return a badge.data.Dataset, not {type(found).__name__}")
    return found


@lru_cache(maxsize=1)  # scikit-learn parses a text file on every call, which takes about as long as a run on digits
def _digits() -> sources.Arrays:
    with needs("the data set digits", "scikit-learn", "study"):
        from sklearn.datasets import load_digits
    bunch = load_digits()
    return {"X": bunch.images.astype(np.uint8), "y": bunch.target}
