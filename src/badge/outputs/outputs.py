"""What a model says about a pool: `Outputs`, validated once, at this door."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.arrays import as_index, as_tensor, check_finite, row_norms
from badge.core.catalog import without
from badge.core.rows import RowSource, small
from badge.errors import InputError
from badge.outputs.checks import are_probabilities, check_rows, check_scale, check_shapes

if TYPE_CHECKING:
    from badge.outputs.part_rows import PartIds


class Outputs:
    """Class probabilities [N, C] and penultimate embeddings [N, D] of N examples.

    Both are numpy or torch, in float16, float32 or float64. They are kept as torch tensors that share the given memory, and
    memory-mapped arrays stay on disk. A single probability column means a binary problem with p = P(+1) (appendix B of the
    paper). Either array may be missing: `badge strategies` lists what each strategy needs.

    Args:
        probabilities: [N, C], or None.
        embeddings: [N, D], the input of the output layer, or None.
        multilabel: an example may have any number of labels. Each column is the probability of one label, and rows need not
            sum to 1.

    Raises:
        InputError: shapes do not match, a number is not finite, or rows do not sum to 1.

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
    #: why probabilities or embeddings are not there; empty if both are there, or if no reason was given
    missing: str = ""
    #: ‖h‖ of each row, [N, 1] in float64, where the check of the embeddings found them
    norms: RowSource | None = None
    #: mean entropy of the single answers, [N, 1], where the probabilities are the mean of several passes or models
    expected_entropy: RowSource | None = None
    #: the caller's names of the rows, where they came with the outputs
    ids: PartIds | NDArray[Any] | None = None
    #: where all of these rows, and no others, are kept: a directory, or the URL of an object store
    directory: Path | str | None = None
    #: an example may have any number of labels; each column is the probability of one
    multilabel: bool = False

    def __init__(self, probabilities: Any = None, embeddings: Any = None, multilabel: bool = False) -> None:
        p = None if probabilities is None else as_tensor(probabilities, "probabilities")
        h = None if embeddings is None else as_tensor(embeddings, "embeddings")
        p = p[:, None] if p is not None and p.ndim == 1 else p
        check_shapes(p, h)
        if h is not None and small(h):
            norms = row_norms(h)[:, None]
            self.norms = norms if bool(norms.sum().isfinite()) else None  # NaN and inf survive a sum
        check_rows(p, h if self.norms is None else None, multilabel)
        check_scale(h)
        held = p if h is None else h
        assert held is not None  # else the shapes were refused
        self._p, self._h, self._rows, self.multilabel = p, h, len(held), bool(multilabel)

    @classmethod
    def trusted(
        cls, p: RowSource | None, h: RowSource | None, missing: str = "", multilabel: bool = False, rows: int = 0
    ) -> Outputs:
        """Outputs of arrays that were validated when they were made; nothing is read.

        `missing` says why one of them is not there, `rows` is their number where neither is.
        """
        out, held = cls.__new__(cls), p if h is None else h
        out._p, out._h, out.missing, out.multilabel = p, h, missing, bool(multilabel)
        out._rows = rows if held is None else len(held)
        return out

    @classmethod
    def unread(cls, rows: int) -> Outputs:
        """What a strategy that reads nothing is given: a number of rows."""
        return cls.trusted(None, None, "the strategy declared that it reads nothing", rows=rows)

    @property
    def probabilities(self) -> Tensor:
        """Class probabilities [N, C]. Raises InputError if there are none."""
        return self._there(self._p, "probabilities")

    @property
    def embeddings(self) -> Tensor:
        """Penultimate embeddings [N, D]. Raises InputError if there are none."""
        return self._there(self._h, "embeddings")

    @property
    def has_probabilities(self) -> bool:
        return self._p is not None

    @property
    def has_embeddings(self) -> bool:
        return self._h is not None

    def _there(self, array: RowSource | None, name: str) -> Tensor:
        if array is None:
            way_out = self.missing or f"pass {name}= too, or use {without(name)}"
            raise InputError(f"the outputs hold no {name}: {way_out}")
        return cast(Tensor, array)  # strategies that read blocks, and only they, are given other sources of rows

    def map(self, change: Callable[[Tensor], RowSource]) -> Outputs:
        """Outputs with both arrays, where they are there, changed by one function."""
        held = (self._p, self._h, self.norms, self.expected_entropy)
        p, h, norms, entropy = (None if x is None else change(cast(Tensor, x)) for x in held)
        out = Outputs.trusted(p, h, self.missing, self.multilabel, len(self))
        out.norms, out.expected_entropy = norms, entropy
        return out

    def only(self, names: frozenset[str]) -> Outputs:
        """These outputs with only what `names` lists, of "probabilities" and "embeddings"."""
        p, h = (x if name in names else None for name, x in (("probabilities", self._p), ("embeddings", self._h)))
        out = Outputs.trusted(p, h, self.missing, self.multilabel, len(self))
        out.norms = None if h is None else self.norms
        out.expected_entropy = None if p is None else self.expected_entropy
        return out

    def with_probabilities(self, probabilities: Tensor, expected_entropy: RowSource | None) -> Outputs:
        """These outputs with other valid probabilities; the embeddings, if any, stay."""
        out = Outputs.trusted(probabilities, self._h, self.missing, self.multilabel)
        out.norms, out.expected_entropy = self.norms, expected_entropy
        return out

    @classmethod
    def from_logits(cls, logits: Any, embeddings: Any = None, multilabel: bool = False) -> Outputs:
        """Outputs from raw scores, by softmax; by sigmoid for a single column or with `multilabel`.

        Args:
            logits: scores before softmax, [N, C]; [N, 1] for a binary problem.
            embeddings: [N, D], the input of the output layer, or None.
            multilabel: each column is the logit of one label, and an example may have any number of labels.

        Returns:
            `Outputs` with the probabilities of these scores.

        Raises:
            InputError: the shapes do not match, or a score is not finite.

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
        if not logistic and z.ndim == 2 and are_probabilities(z):
            found = "every row of the logits lies within [0, 1] and sums to 1: these are probabilities"
            raise InputError(f"{found}; pass them as probabilities (their logarithms are logits too)")
        return cls(torch.sigmoid(z) if logistic else torch.softmax(z, dim=-1), embeddings, multilabel)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Outputs:
        """Open the outputs that `badge.predict(..., out=directory)` wrote. They are memory-mapped, not read.

        A directory that `badge.cluster.predict` wrote holds many parts, and `ids` holds the names of their rows. It may be
        in an object store (`s3://…`, `gs://…`); what you read of it is kept on the disk of this machine.

        Args:
            directory: the `out` of the pass, a path or a URL.

        Returns:
            The same outputs that the pass returned.

        Raises:
            InputError: the directory holds no outputs, or an unfinished pass.

        >>> import badge, tempfile, torch
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     _ = badge.predict(torch.nn.Linear(4, 3), torch.zeros(9, 4), out=directory)
        ...     badge.Outputs.load(directory)
        Outputs(9 examples, 3 probability columns, 4 embedding columns)
        """
        from badge.outputs import parts, store

        place = parts.place_of(directory)
        if not isinstance(place, parts.Near) or parts.is_parts(place):
            return parts.open_parts(place)
        meta, arrays = store.read(place.where)
        p, h = (as_tensor(x, name) if x.shape[1] else None for x, name in zip(arrays, store.ARRAYS, strict=True))
        out = cls.trusted(p, h, meta.missing, meta.multilabel)
        out.directory = place.where
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
        named = ((self._p, "label" if self.multilabel else "probability"), (self._h, "embedding"))
        columns = (f"{x.shape[1]} {name} column{'s' * (x.shape[1] > 1)}" for x, name in named if x is not None)
        return f"Outputs({', '.join([f'{len(self):,} examples', *columns])})"

    @property
    def classes(self) -> int:
        """Number of classes (2 for a single probability column), or of labels."""
        columns = self.probabilities.shape[1]
        return columns if self.multilabel else max(2, columns)

    @property
    def device(self) -> torch.device:
        array = self._p if self._h is None else self._h
        return torch.device("cpu") if array is None else array.device
