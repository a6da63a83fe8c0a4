"""What a model says about a pool: `Outputs`, validated once, at this door."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.arrays import as_index, as_tensor, check_finite, chunks, name_rows
from badge.core.names import path_of
from badge.core.rows import RowSource
from badge.errors import InputError

if TYPE_CHECKING:
    from badge.outputs.parts import PartIds

__all__ = ["Outputs", "check_rows", "check_scale", "row_sum_tolerance"]


class Outputs:
    """Class probabilities [N, C] and penultimate embeddings [N, D] of N examples.

    Numpy or torch, float16, float32 or float64; kept as torch tensors that share the given memory. One probability
    column means a binary problem with p = P(+1) (appendix B of the paper). Memory-mapped arrays stay on disk. One of the
    two may be missing: `conf`, `marg`, `entropy` and `rand` look at no embeddings, `coreset` at no probabilities.

    `multilabel=True`: an example may have any number of labels, and a column is the probability of one of them;
    rows need not sum to 1.

    >>> import badge
    >>> out = badge.Outputs(probabilities=[[0.9, 0.1], [0.4, 0.6]], embeddings=[[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    >>> len(out), out.classes, out[[1]].probabilities.tolist()
    (2, 2, [[0.4, 0.6]])
    >>> badge.select_from(badge.Outputs(probabilities=[[0.9, 0.1], [0.4, 0.6]]), k=1, strategy="conf").tolist()
    [1]
    >>> badge.Outputs([[0.9, 0.8, 0.1]], [[1.0, 2.0]], multilabel=True).classes
    3
    """

    _p: RowSource | None
    _h: RowSource | None
    _rows: int
    _missing: str
    #: the caller's names of the rows, where they came with the outputs
    ids: PartIds | NDArray[Any] | None = None
    #: where all of these rows, and no others, are on disk
    directory: Path | None = None
    #: an example may have any number of labels; each column is the probability of one
    multilabel: bool = False

    def __init__(self, probabilities: Any = None, embeddings: Any = None, multilabel: bool = False) -> None:
        p = None if probabilities is None else as_tensor(probabilities, "probabilities")
        h = None if embeddings is None else as_tensor(embeddings, "embeddings")
        p = p[:, None] if p is not None and p.ndim == 1 else p
        _check_shapes(p, h)
        check_rows(p, h, multilabel)
        check_scale(h)
        self._set(p, h, multilabel=multilabel)

    def _set(
        self, p: RowSource | None, h: RowSource | None, missing: str = "", rows: int = 0, multilabel: bool = False
    ) -> None:
        self._p, self._h, self._missing, self.multilabel = p, h, missing, bool(multilabel)
        held = p if h is None else h
        self._rows = rows if held is None else len(held)

    @classmethod
    def trusted(
        cls,
        probabilities: RowSource | None,
        embeddings: RowSource | None,
        missing: str = "",
        multilabel: bool = False,
    ) -> Outputs:
        """Outputs of arrays that were validated when they were made; nothing is read. `missing`: why one is not there."""
        out = cls.__new__(cls)
        out._set(probabilities, embeddings, missing, multilabel=multilabel)
        return out

    @classmethod
    def unread(cls, rows: int) -> Outputs:
        """What a strategy that reads nothing is given: a number of rows."""
        out = cls.__new__(cls)
        out._set(None, None, "the strategy declared that it reads nothing", rows)
        return out

    @property
    def probabilities(self) -> Tensor:
        """[N, C]; an error where there are none."""
        return self._there(self._p, "probabilities")

    @property
    def embeddings(self) -> Tensor:
        """[N, D]; an error where there are none."""
        return self._there(self._h, "embeddings")

    @property
    def has_probabilities(self) -> bool:
        return self._p is not None

    @property
    def has_embeddings(self) -> bool:
        return self._h is not None

    @property
    def missing(self) -> str:
        """Why probabilities or embeddings are not there; empty where both are, or nobody said."""
        return self._missing

    def _there(self, array: RowSource | None, name: str) -> Tensor:
        if array is None:
            way_out = f"pass {name}= too" + ", or use conf, marg, entropy or rand" * (name == "embeddings")
            raise InputError(f"the outputs hold no {name}: {self._missing or way_out}")
        return cast(Tensor, array)  # strategies that read blocks, and only they, are given other sources of rows

    def map(self, change: Callable[[Tensor], RowSource]) -> Outputs:
        """Outputs with both arrays, where they are there, changed by one function."""
        p, h = (None if x is None else change(cast(Tensor, x)) for x in (self._p, self._h))
        out = Outputs.trusted(p, h, self._missing, self.multilabel)
        out._rows = len(self) if p is None and h is None else out._rows
        return out

    def only(self, names: frozenset[str]) -> Outputs:
        """The same without what is not among `names`, of "probabilities" and "embeddings"."""
        p, h = (x if name in names else None for name, x in (("probabilities", self._p), ("embeddings", self._h)))
        out = Outputs.trusted(p, h, self._missing, self.multilabel)
        out._rows = len(self)
        return out

    def with_probabilities(self, probabilities: Tensor) -> Outputs:
        """The same embeddings, if any, with other valid probabilities."""
        return Outputs.trusted(probabilities, self._h, self._missing, self.multilabel)

    @classmethod
    def from_logits(cls, logits: Any, embeddings: Any = None, multilabel: bool = False) -> Outputs:
        """Outputs of raw scores: softmax over the classes, or the sigmoid where there is one column or one per label.

        >>> import badge
        >>> badge.Outputs.from_logits([[0.0, 0.0]], [[1.0]]).probabilities.tolist()
        [[0.5, 0.5]]
        """
        z = as_tensor(logits, "logits")
        z = z[:, None] if z.ndim == 1 else z
        if torch.isnan(z).any() or torch.isposinf(z).any():
            check_finite(z, "logits")
        z = z if z.dtype == torch.float64 else z.float()
        logistic = multilabel or (z.ndim == 2 and z.shape[1] == 1)
        if not logistic and z.ndim == 2 and _are_probabilities(z):
            raise InputError(
                "every row of the logits lies within [0, 1] and sums to 1: these are probabilities, and a softmax of them is "
                "not. Pass them as probabilities (their logarithms are logits too)"
            )
        return cls(torch.sigmoid(z) if logistic else torch.softmax(z, dim=-1), embeddings, multilabel)

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

        directory = path_of(directory, "a directory of outputs")
        if parts.is_parts(directory):
            opened = parts.open_parts(directory)
            out = cls.trusted(opened.probabilities, opened.embeddings, multilabel=opened.multilabel)
            out.ids = opened.ids
        else:
            p, h = store.read(directory)
            labels, missing = store.described(directory)
            held = [as_tensor(x, n) if x.shape[1] else None for x, n in ((p, "probabilities"), (h, "embeddings"))]
            out = cls.trusted(held[0], held[1], missing, labels)
        out.directory = directory
        return out

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, ids: Any) -> Outputs:
        """The rows `ids` (positions, a slice or a boolean mask)."""
        if not isinstance(ids, slice):
            ids = as_index(ids, len(self)).to(self.device)
        some = self.map(lambda x: x[ids])
        if self.ids is not None:
            some.ids = self.ids[ids if isinstance(ids, slice) else ids.numpy(force=True)]
        return some

    def __repr__(self) -> str:
        named = ((self._p, "probability"), (self._h, "embedding"))
        named = named if not self.multilabel else ((self._p, "label"), (self._h, "embedding"))
        columns = (f"{x.shape[1]} {name} column{'s' * (x.shape[1] > 1)}" for x, name in named if x is not None)
        return f"Outputs({', '.join([f'{len(self):,} examples', *columns])})"

    @property
    def classes(self) -> int:
        """Number of classes (2 where there is one probability column), or of labels."""
        columns = self.probabilities.shape[1]
        return columns if self.multilabel else max(2, columns)

    @property
    def device(self) -> torch.device:
        array = self._p if self._h is None else self._h
        return torch.device("cpu") if array is None else array.device


def _check_shapes(p: Tensor | None, h: Tensor | None) -> None:
    if p is None or h is None:
        given, name = (h, "embeddings") if p is None else (p, "probabilities")
        if given is None:
            raise InputError("neither probabilities nor embeddings were given: pass one of them, or both")
        if given.ndim != 2 or 0 in given.shape:
            raise InputError(
                f"{name} must be a matrix with at least one row and column, not of shape {tuple(given.shape)}"
            )
        return
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


def _are_probabilities(z: Tensor) -> bool:
    """Whether scores are probabilities already; of one row it cannot be told."""
    if len(z) < 2 or not bool(((z[:1] >= 0) & (z[:1] <= 1)).all()):
        return False
    tolerance = row_sum_tolerance(torch.float32, z.shape[1])
    return bool((z >= 0).all() and (z <= 1 + tolerance).all() and ((z.sum(dim=1) - 1).abs() <= tolerance).all())


def row_sum_tolerance(dtype: torch.dtype, classes: int) -> float:
    """How far a row of probabilities may sum from 1: rounding over `classes` terms, and printed decimals."""
    return 1e-4 + torch.finfo(dtype).eps * (4 + math.sqrt(classes) / 2)


def check_rows(
    p: Tensor | None,
    h: Tensor | None,
    multilabel: bool,
    start: int = 0,
    advice: str = "drop or repair these rows",
) -> None:
    """Refuse numbers that cannot be outputs, naming the rows; `start` is the number of the first."""
    if p is not None:
        _check_distribution(p, multilabel, start, advice)
    if h is not None:
        check_finite(h, "embeddings", start, advice)


def check_scale(h: RowSource | None) -> None:
    """Refuse embeddings that are all so small that their squares lose digits: distances could not be told apart."""
    if h is None or h.dtype.itemsize < 4:  # in float16 no number but 0 is below 6e-8, which is squared in float32
        return
    limits = torch.finfo(h.dtype)
    least, largest = math.sqrt(limits.tiny / limits.eps), 0.0
    for part in (slice(0, 64), *chunks(h)):  # almost always the first few rows tell
        largest = max(largest, float(h[part].abs().max()))
        if largest >= least:
            return
    if largest > 0:
        raise InputError(
            f"the embeddings are at most {largest:.3g} in size, and their squares underflow: multiply them by {1 / least:.0e}"
        )


def _plainly_fine(rows: Tensor, tolerance: float, multilabel: bool) -> bool:
    """A quick look that passes what is clearly within bounds; only the rest is worth the exact one."""
    low, high = torch.aminmax(rows)
    if not (float(low) >= -tolerance and float(high) <= 1 + tolerance):  # NaN is neither
        return False
    if rows.shape[1] == 1 or multilabel:
        return True
    sums = (
        rows.float() @ rows.new_ones(rows.shape[1], dtype=torch.float32) if rows.dtype.itemsize < 4 else rows.sum(dim=1)
    )
    return float(sums.sub_(1).abs_().max()) < tolerance / 2


def _check_distribution(p: Tensor, multilabel: bool, start: int, advice: str) -> None:
    tolerance = row_sum_tolerance(p.dtype, p.shape[1])
    for part in chunks(p):
        rows, first = p[part], part.start + start
        if _plainly_fine(rows, tolerance, multilabel):
            continue
        check_finite(rows, "probabilities", first, advice)
        outside = ((rows < -tolerance) | (rows > 1 + tolerance)).any(dim=1).nonzero()[:, 0]
        if len(outside):
            i = int(outside[0])
            raise InputError(
                f"probabilities outside [0, 1] in {name_rows(outside + first)}: row {i + first} spans "
                f"{float(rows[i].min()):.4g} to {float(rows[i].max()):.4g}; "
                "these look like logits: use Outputs.from_logits (on the command line --logits)"
            )
        if p.shape[1] == 1 or multilabel:
            continue
        sums = rows.sum(dim=1, dtype=torch.float64)
        off = ((sums - 1).abs() > tolerance).nonzero()[:, 0]
        if len(off):
            i = int(off[0])
            raise InputError(
                f"probabilities do not sum to 1 (within {tolerance:.2g}) in {name_rows(off + first)}: row "
                f"{i + first} sums to {float(sums[i]):.6g}; "
                "normalise them, use Outputs.from_logits for raw scores, or multilabel=True for labels of their own "
                "(--logits, --multilabel)"
            )
