"""What a model says about a pool: `Outputs`, validated once, at this door."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.arrays import as_index, as_tensor, check_finite, chunks, name_rows
from badge.errors import InputError

if TYPE_CHECKING:
    from badge.outputs.parts import PartIds

__all__ = ["Outputs", "row_sum_tolerance"]


@dataclass(frozen=True, eq=False)
class Outputs:
    """Class probabilities [N, C] and penultimate embeddings [N, D] of N examples.

    Numpy or torch, float16, float32 or float64; kept as torch tensors that share the given memory. One probability
    column means a binary problem with p = P(+1) (appendix B of the paper). Memory-mapped arrays stay on disk.

    >>> import badge
    >>> out = badge.Outputs(probabilities=[[0.9, 0.1], [0.4, 0.6]], embeddings=[[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    >>> len(out), out.classes, out[[1]].probabilities.tolist()
    (2, 2, [[0.4, 0.6]])
    """

    probabilities: Tensor
    embeddings: Tensor
    ids: PartIds | NDArray[Any] | None = None  #: the caller's names of the rows, where they came with the outputs
    directory: Path | None = None  #: where all of these rows, and no others, are on disk

    def __init__(self, probabilities: Any, embeddings: Any) -> None:
        p, h = as_tensor(probabilities, "probabilities"), as_tensor(embeddings, "embeddings")
        if p.ndim == 1:
            p = p[:, None]
        _check_shapes(p, h)
        check_finite(p, "probabilities")
        check_finite(h, "embeddings")
        _check_distribution(p)
        self._set(p, h)

    def _set(self, p: Tensor, h: Tensor) -> None:
        object.__setattr__(self, "probabilities", p)
        object.__setattr__(self, "embeddings", h)

    @classmethod
    def trusted(cls, probabilities: Tensor, embeddings: Tensor) -> Outputs:
        """Outputs of arrays that were validated when they were made; nothing is read."""
        out = cls.__new__(cls)
        out._set(probabilities, embeddings)
        return out

    @classmethod
    def from_logits(cls, logits: Any, embeddings: Any) -> Outputs:
        """Outputs of raw scores: softmax over the classes, or the sigmoid where there is one column.

        >>> import badge
        >>> badge.Outputs.from_logits([[0.0, 0.0]], [[1.0]]).probabilities.tolist()
        [[0.5, 0.5]]
        """
        z = as_tensor(logits, "logits")
        z = z[:, None] if z.ndim == 1 else z
        if torch.isnan(z).any() or torch.isposinf(z).any():
            check_finite(z, "logits")
        z = z if z.dtype == torch.float64 else z.float()
        return cls(torch.sigmoid(z) if z.ndim == 2 and z.shape[1] == 1 else torch.softmax(z, dim=-1), embeddings)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Outputs:
        """Outputs that `badge.predict(..., out=directory)` wrote; memory-mapped, nothing is read in.

        One directory or, as `badge.cluster.predict` writes them, many parts; then `ids` are their rows' names.

        >>> import badge, tempfile, torch
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     _ = badge.predict(torch.nn.Linear(4, 3), torch.zeros(9, 4), out=directory)
        ...     badge.Outputs.load(directory)
        Outputs(9 examples, 3 probability columns, 4 embedding columns)
        """
        from badge.outputs import parts, store

        if parts.is_parts(directory):
            opened: Any = parts.open_parts(directory)
            out = cls.trusted(opened.probabilities, opened.embeddings)
            object.__setattr__(out, "ids", opened.ids)
        else:
            p, h = store.read(directory)
            out = cls.trusted(as_tensor(p, "probabilities"), as_tensor(h, "embeddings"))
        object.__setattr__(out, "directory", Path(directory))
        return out

    def __len__(self) -> int:
        return len(self.probabilities)

    def __getitem__(self, ids: Any) -> Outputs:
        """The rows `ids` (positions, a slice or a boolean mask)."""
        if not isinstance(ids, slice):
            ids = as_index(ids, len(self)).to(self.device)
        some = Outputs.trusted(self.probabilities[ids], self.embeddings[ids])
        if self.ids is not None:
            object.__setattr__(some, "ids", self.ids[ids if isinstance(ids, slice) else ids.numpy(force=True)])
        return some

    def __repr__(self) -> str:
        (n, c), d = self.probabilities.shape, self.embeddings.shape[1]
        return f"Outputs({n:,} examples, {c} probability column{'s' * (c > 1)}, {d} embedding columns)"

    @property
    def classes(self) -> int:
        """Number of classes: 2 where there is one probability column."""
        return max(2, self.probabilities.shape[1])

    @property
    def device(self) -> torch.device:
        return self.embeddings.device


def _check_shapes(p: Tensor, h: Tensor) -> None:
    if p.ndim != 2 or h.ndim != 2:
        raise InputError(
            f"probabilities must be [N, C] and embeddings [N, D]; got shapes {tuple(p.shape)} and {tuple(h.shape)}"
        )
    if len(p) != len(h):
        raise InputError(f"probabilities have {len(p)} rows and embeddings {len(h)}: one row each per example")
    if len(p) == 0:
        raise InputError("the pool is empty: probabilities and embeddings have 0 rows")
    if p.shape[1] == 0 or h.shape[1] == 0:
        raise InputError(f"no columns: probabilities {tuple(p.shape)}, embeddings {tuple(h.shape)}")
    if p.device != h.device:
        raise InputError(f"probabilities are on {p.device} and embeddings on {h.device}: move them to one device")


def row_sum_tolerance(dtype: torch.dtype, classes: int) -> float:
    """How far a row of probabilities may sum from 1: rounding over `classes` terms, and printed decimals."""
    return 1e-4 + torch.finfo(dtype).eps * (4 + math.sqrt(classes) / 2)


def _check_distribution(p: Tensor) -> None:
    tolerance = row_sum_tolerance(p.dtype, p.shape[1])
    for part in chunks(p):
        rows = p[part]
        outside = ((rows < -tolerance) | (rows > 1 + tolerance)).any(dim=1).nonzero()[:, 0]
        if len(outside):
            i = int(outside[0])
            raise InputError(
                f"probabilities outside [0, 1] in {name_rows(outside + part.start)}: row {i + part.start} spans "
                f"{float(rows[i].min()):.4g} to {float(rows[i].max()):.4g}; "
                "these look like logits, use Outputs.from_logits"
            )
        if p.shape[1] == 1:
            continue
        sums = rows.sum(dim=1, dtype=torch.float64)
        off = ((sums - 1).abs() > tolerance).nonzero()[:, 0]
        if len(off):
            i = int(off[0])
            raise InputError(
                f"probabilities do not sum to 1 (within {tolerance:.2g}) in {name_rows(off + part.start)}: row "
                f"{i + part.start} sums to {float(sums[i]):.6g}; "
                "normalise them, or use Outputs.from_logits for raw scores"
            )
