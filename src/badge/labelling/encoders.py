"""A pretrained encoder that is on this machine already, and the part of a large pool that is ready first."""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

#: small encoders of texts that are taken without being asked for, if the cache of Hugging Face has them
KNOWN = (
    "sentence-transformers/all-MiniLM-L6-v2",
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    "BAAI/bge-small-en-v1.5",
    "intfloat/multilingual-e5-small",
)
#: texts of the largest pool that an encoder is taken for without being asked for: some minutes on one core
MOST = 20_000


def spread(length: int, count: int, also: IntArray | None = None) -> IntArray:
    """Positions of `count` rows of a pool, evenly spaced, and of at most as many others, ascending.

    >>> spread(9, 3, np.array([1, 8])).tolist()
    [0, 1, 4, 8]
    """
    others = np.empty(0, np.int64) if also is None else also
    if len(others) > count:
        others = others[spread(len(others), count)]
    return np.union1d(np.linspace(0, length - 1, count).astype(np.int64), others)


def installed_encoder(kind: str, size: int) -> str | None:
    """The encoder for a pool of texts that BADGE_ENCODER names, or that the cache of Hugging Face holds; or none."""
    if kind != "text" or find_spec("transformers") is None:
        return None
    if named := os.environ.get("BADGE_ENCODER"):
        return named
    if size > MOST:
        return None
    found = (snapshot for name in KNOWN for snapshot in _snapshots(name) if (snapshot / "config.json").is_file())
    whole = (folder for folder in found if any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model.bin")))
    return next((f"hf:{folder}" for folder in whole), None)


def _snapshots(name: str) -> list[Path]:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(os.environ.get("HF_HOME") or Path(cache) / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    return sorted((hub / f"models--{name.replace('/', '--')}" / "snapshots").glob("*"))
