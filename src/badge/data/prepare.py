"""From stored arrays to an experiment: split by seed, one-hot, standardised with the training set's statistics."""

import numpy as np

from badge.core.npz import Array
from badge.core.rng import derive


def split(y: Array, seed: int, test_share: float, most: int) -> tuple[Array, Array]:
    """Positions for training and for test: shuffled, `test_share` of them for test, at most `most` for training.

    One row of each class goes to training first: pokerhand's rarest class has two rows in 829,201.

    >>> train, test = split(np.array([0] * 19 + [1]), seed=0, test_share=0.1, most=5)
    >>> len(train), len(test), 19 in train
    (5, 2, True)
    """
    rng = derive(seed, "split")
    order = rng.permutation(len(y))
    _, first = np.unique(y[order], return_index=True)  # the first row of each class in this order
    order = np.concatenate([order[first], np.delete(order, first)])
    cut = int((1 - test_share) * len(y))
    return rng.permutation(order[: min(cut, most)]), order[cut:]


def one_hot(x: Array) -> Array:
    """Each column of categories [N, columns] as one column of 0 and 1 per category that occurs in it.

    >>> one_hot(np.array([[3, 7], [5, 7]])).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    return np.concatenate([(column[:, None] == np.unique(column)).astype(np.float32) for column in x.T], axis=1)


def standardised(train: Array, test: Array) -> tuple[Array, Array]:
    """Columns with mean 0 and standard deviation 1 on `train`; a constant column becomes 0."""
    mean, std = train.mean(axis=0, dtype=np.float64), train.std(axis=0, dtype=np.float64)
    std[std <= 1e-8 * abs(mean)] = 1  # rounding leaves a constant column slightly above 0
    return ((train - mean) / std).astype(np.float32), ((test - mean) / std).astype(np.float32)


def images(train: Array, test: Array, standardise: bool) -> tuple[Array, Array]:
    """Bytes [N, H, W] or [N, H, W, C] as float32 [N, C, H, W], each channel with mean 0 and deviation 1 on `train`.

    A byte has 256 values: statistics come from their counts, and a table of 256 entries turns bytes into numbers.
    """
    train, test = (x if x.ndim == 4 else x[..., None] for x in (train, test))
    tables = [_table(train[..., c], standardise) for c in range(train.shape[-1])]
    train, test = (np.stack([table[x[..., c]] for c, table in enumerate(tables)], axis=1) for x in (train, test))
    return train, test


def _table(channel: Array, standardise: bool) -> Array:
    values = np.arange(256, dtype=np.float64)
    if standardise:
        share = np.bincount(channel.ravel(), minlength=256) / channel.size
        mean = share @ values
        values = (values - mean) / (np.sqrt(share @ (values - mean) ** 2) or 1)
    return values.astype(np.float32)
