"""Where a pass over a pool puts what the model says: arrays in memory, or a directory.

Batches are small, and looking through each of them costs more than the pass. They are gathered, and looked through a chunk
at a time; what is wrong is said before another chunk is computed.
"""

import time
from collections.abc import Callable
from math import isfinite

import numpy as np
import torch
from torch import Tensor

from badge.core.arrays import as_single, chunks
from badge.errors import InputError, ModelError
from badge.models.network import Said, unchanged
from badge.outputs import Outputs
from badge.outputs.checks import check_rows, check_scale
from badge.outputs.sparse import SparseRows
from badge.outputs.store import FLUSH_SECONDS, Writer

#: why outputs hold no probabilities where embeddings were all that was asked for
NO_PROBABILITIES = "the pass was made for embeddings only"
#: what columns of scores and of embeddings are called
CLASSES, COLUMNS = "classes", "embedding columns"
#: Rows are looked through when they have gathered to about this many bytes, or to this number.
CHECK_BYTES, CHECK_ROWS = 8 * 2**20, 4096


class Arrays:
    """Outputs gathered in memory, in arrays of their final size. Batches come in order; `done` counts the rows so far."""

    def __init__(self, rows: int) -> None:
        self.rows, self.done, self.checked, self.limit = rows, 0, 0, CHECK_ROWS
        self.p: Tensor | None = None
        self.waiting: list[Tensor] = []  # scores that are not in p yet
        self.h: Tensor | None = None
        self.place: Tensor | None = None  # of the next embeddings, if the network puts them there itself
        self.sparse: list[SparseRows] = []
        self.missing, self.multilabel, self.vouched = "", False, False
        self.link: Callable[[Tensor], Tensor] = unchanged

    def write(self, said: Said) -> None:
        scores, h, self.multilabel, self.link, self.vouched, fresh = said
        if h is self.place:
            pass
        elif isinstance(h, str):
            self.h, self.sparse, self.missing = None, [], self.missing or h
        elif isinstance(h, SparseRows):
            self.sparse += [h] if not self.missing else []
        elif self.h is not None or not self.missing:
            self.h = self._room(self.h, as_single(h), COLUMNS)
        if scores is None:
            self.missing = self.missing or NO_PROBABILITIES
        elif fresh and self.p is not None and scores.device == self.p.device and scores.shape[1] == self.p.shape[1]:
            self.waiting.append(scores)  # one copy of several batches takes less time
        else:
            self._gather()
            self.p = self._room(self.p, scores, CLASSES)
        self.done += len(h) if scores is None else scores.shape[0]  # len() of a tensor takes longer
        if self.done - self.checked >= self.limit:
            self._check()

    def _room(self, array: Tensor | None, rows: Tensor, name: str) -> Tensor:
        """`rows` in their place of the array, which is made for the first of them."""
        if array is None:
            # numpy asks the system for large pages: filling fresh memory of torch's took three times as long
            kind = np.float64 if rows.dtype == torch.float64 else np.float32
            array = torch.from_numpy(np.empty((self.rows, rows.shape[1]), dtype=kind))
            self.limit = min(self.limit, max(1, CHECK_BYTES // (4 * rows.shape[1])))
        n, columns = rows.shape
        stop = self.done + n
        if stop > self.rows or columns != array.shape[1]:
            raise unequal(f"{self.done} to {stop - 1} of {self.rows}", columns, name, array.shape[1])
        if rows.dtype == torch.float64 != array.dtype:  # the first that float32 would not do for
            array = array.double()
        array[self.done : stop] = rows
        return array

    def room(self, rows: int) -> Tensor | None:
        """Where the embeddings of the next rows go, if a network can put them there itself."""
        self.place = None if self.h is None else self.h[self.done : self.done + rows]
        return self.place

    def _gather(self) -> None:
        """The scores that wait, put in their place in front of the next rows."""
        if self.waiting:
            assert self.p is not None
            z = torch.cat(self.waiting)
            self.p[self.done - z.shape[0] : self.done] = z
            self.waiting.clear()

    def _check(self) -> None:
        self._gather()
        part = slice(self.checked, self.done)
        p, h = (None if x is None else x[part] for x in (self.p, self.h))
        vouched = self.vouched and p is not None and isfinite(p.sum().item())  # NaN and inf survive a sum
        if p is not None:
            p.copy_(self.link(p))  # until now it held the scores
        if not vouched:
            _check_rows(p, h, self.multilabel, self.checked)
        self.checked = self.done

    def close(self) -> None:
        pass

    def outputs(self) -> Outputs:
        if self.done != self.rows:
            raise InputError(f"the pool gave {self.done} of {self.rows} examples: a collate_fn may not drop any")
        self._check()
        h = SparseRows.stacked(self.sparse) if self.sparse else self.h
        check_scale(h)
        return Outputs.trusted(self.p, h, self.missing, multilabel=self.multilabel)


class Store:
    """Outputs written to a directory, a chunk at a time; each chunk is checked first. The methods are those of `Arrays`."""

    def __init__(self, writer: Writer, half: bool) -> None:
        self.writer, self.half = writer, half
        self.waiting: list[tuple[Tensor, Tensor]] = []
        self.clock = time.monotonic()

    @property
    def done(self) -> int:
        return self.writer.done + sum(len(p) for p, _ in self.waiting)

    def room(self, rows: int) -> None:
        return None

    def write(self, said: Said) -> None:
        p = None if said.scores is None else said.link(said.scores.cpu())
        h, self.writer.multilabel = said.embeddings, said.multilabel
        if isinstance(h, SparseRows) and p is not None:
            for part in chunks(h, CHECK_BYTES):  # files hold dense rows
                self.write(Said(p[part], h[part], said.multilabel))
            return
        if p is None:
            self.writer.missing = NO_PROBABILITIES
            p = torch.empty(len(h), 0)
        elif isinstance(h, str) or self.writer.missing:
            if not self.writer.missing:
                self.waiting = [(p, torch.empty(len(p), 0)) for p, _ in self.waiting]
                self.writer.leave_out_embeddings(str(h))
            h = torch.empty(len(p), 0)
        assert isinstance(h, Tensor)
        earlier = [x.shape[1] for x in (self.waiting[-1] if self.waiting else self.writer.arrays or ())]
        for rows, before, name in zip((p, h), earlier, (CLASSES, COLUMNS), strict=False):
            if rows.shape[1] != before:
                where = f"{self.done} to {self.done + len(rows) - 1} of {self.writer.rows}"
                raise unequal(where, rows.shape[1], name, before)
        self.waiting.append((p.cpu().float(), (h.half() if self.half and h.shape[1] else as_single(h)).cpu()))
        gathered = sum(p.nbytes + h.nbytes for p, h in self.waiting)
        if gathered >= CHECK_BYTES or time.monotonic() - self.clock > FLUSH_SECONDS:
            self._flush()

    def _flush(self) -> None:
        if self.waiting:
            p, h = (torch.cat(parts) for parts in zip(*self.waiting, strict=True))
            self.waiting = []
            _check_rows(p, h, self.writer.multilabel, self.writer.done)
            kept = self.writer.arrays
            if h.dtype == torch.float64 and kept is not None and kept[1].dtype == np.float32:
                raise ModelError(
                    f"the embeddings of rows {self.writer.done} to {self.writer.done + len(h) - 1} need float64, and those "
                    "before them were kept as float32: scale the columns (a StandardScaler before the classifier)"
                )
            self.writer.write(p.numpy(), h.numpy())
        self.clock = time.monotonic()

    def close(self) -> None:
        try:
            self._flush()
        finally:
            self.writer.flush()
            self.writer.close()

    def outputs(self) -> Outputs:
        outputs = Outputs.load(self.writer.path)
        check_scale(outputs.embeddings if outputs.has_embeddings else None)
        return outputs


def unequal(rows: str, columns: int, name: str, before: int) -> ModelError:
    return ModelError(f"rows {rows} have {columns} {name}, earlier ones {before}")


def _check_rows(p: Tensor | None, h: Tensor | None, multilabel: bool, start: int) -> None:
    """Valid rows, or an error that says which of the pool are not; arrays without columns stand for none."""
    p, h = (None if x is None or not x.shape[1] else x for x in (p, h))
    try:
        check_rows(p, h, multilabel, start, "look at these rows of the pool, and at the model's weights")
    except InputError as error:
        raise ModelError(f"what the model says cannot be used: {error}") from error
