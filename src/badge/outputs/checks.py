"""What can be the outputs of a model: shapes, numbers, distributions, scale. Checked once, when outputs are made."""

import math

import torch
from torch import Tensor

from badge.core.arrays import check_finite, chunks
from badge.core.names import name_rows
from badge.core.rows import RowSource
from badge.errors import InputError


def check_matrix(x: Tensor, name: str) -> None:
    if x.ndim != 2 or 0 in x.shape:
        raise InputError(f"{name} must be a matrix with at least one row and column, not of shape {tuple(x.shape)}")


def check_shapes(p: Tensor | None, h: Tensor | None) -> None:
    for x, name in ((p, "probabilities"), (h, "embeddings")):
        if x is not None:
            check_matrix(x, name)
    if p is None and h is None:
        raise InputError("neither probabilities nor embeddings were given: pass one of them, or both")
    if p is None or h is None:
        return
    if len(p) != len(h):
        raise InputError(f"probabilities have {len(p)} rows and embeddings {len(h)}: one row each per example")
    if p.device != h.device:
        raise InputError(f"probabilities are on {p.device} and embeddings on {h.device}: move them to one device")


def are_probabilities(z: Tensor) -> bool:
    """Whether scores are probabilities already. One row cannot tell."""
    if len(z) < 2 or not bool(((z[:1] >= 0) & (z[:1] <= 1)).all()):
        return False
    tolerance = _tolerance(torch.float32, z.shape[1])
    return bool((z >= 0).all() and (z <= 1 + tolerance).all() and ((z.sum(dim=1) - 1).abs() <= tolerance).all())


def _tolerance(dtype: torch.dtype, classes: int) -> float:
    """How far a row of probabilities may sum from 1: rounding over `classes` terms, and printed decimals."""
    return 1e-4 + torch.finfo(dtype).eps * (4 + math.sqrt(classes) / 2)


def check_rows(
    p: Tensor | None, h: Tensor | None, multilabel: bool, start: int = 0, advice: str = "drop or repair these rows"
) -> None:
    """Refuse numbers that cannot be outputs, naming the rows; `start` is the number of the first."""
    if p is not None:
        _check_distribution(p, multilabel, start, advice)
    if h is not None:
        check_finite(h, "embeddings", start, advice)


def check_scale(h: RowSource | None, name: str = "embeddings") -> None:
    """Refuse numbers that are all so small that their squares lose digits: distances could not be told apart."""
    if h is None or h.dtype.itemsize < 4:  # in float16 no number but 0 is below 6e-8, which is squared in float32
        return
    limits = torch.finfo(h.dtype)
    least, largest = math.sqrt(limits.tiny / limits.eps), 0.0
    for part in (slice(0, 64), *chunks(h)):  # the first rows nearly always suffice
        largest = max(largest, float(h[part].abs().max()))
        if largest >= least:
            return
    if largest > 0:
        size = f"the {name} are at most {largest:.3g} in size"
        raise InputError(f"{size}, and their squares underflow: multiply them by {1 / least:.0e}")


def _plainly_fine(rows: Tensor, tolerance: float, multilabel: bool) -> bool:
    """A quick check that passes rows which are clearly within bounds. The others get the exact check."""
    low, high = torch.aminmax(rows)
    if not (float(low) >= -tolerance and float(high) <= 1 + tolerance):  # NaN is neither
        return False
    if rows.shape[1] == 1 or multilabel:
        return True
    ones = torch.ones(rows.shape[1], dtype=torch.float32, device=rows.device)
    sums = rows.float() @ ones if rows.dtype.itemsize < 4 else rows.sum(dim=1)
    return float(sums.sub_(1).abs_().max()) < tolerance / 2


def _check_distribution(p: Tensor, multilabel: bool, start: int, advice: str) -> None:
    tolerance = _tolerance(p.dtype, p.shape[1])
    for part in chunks(p):
        rows, first = p[part], part.start + start
        if _plainly_fine(rows, tolerance, multilabel):
            continue
        check_finite(rows, "probabilities", first, advice)
        outside = ((rows < -tolerance) | (rows > 1 + tolerance)).any(dim=1).nonzero()[:, 0]
        if len(outside):
            i = int(outside[0])
            spans = f"row {i + first} spans {float(rows[i].min()):.4g} to {float(rows[i].max()):.4g}"
            said = f"probabilities outside [0, 1] in {name_rows(outside + first)}: {spans}"
            raise InputError(f"{said}; these look like logits (--logits)", in_python="use Outputs.from_logits")
        if p.shape[1] == 1 or multilabel:
            continue
        sums = rows.sum(dim=1, dtype=torch.float64)
        off = ((sums - 1).abs() > tolerance).nonzero()[:, 0]
        if len(off):
            i = int(off[0])
            which = f"{name_rows(off + first)}: row {i + first} sums to {float(sums[i]):.6g}"
            unless = "normalise them, unless they are raw scores (--logits) or independent labels (--multilabel)"
            way_out = "use Outputs.from_logits for raw scores, or multilabel=True for independent labels"
            wrong = f"probabilities do not sum to 1 (within {tolerance:.2g}) in {which}: {unless}"
            raise InputError(wrong, in_python=way_out)
