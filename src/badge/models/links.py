"""From what a model returned to probabilities: it may be logits, a softmax or a sigmoid of them, of classes or of labels."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from badge.errors import ModelError
from badge.models.heads import Call

#: Columns from which on torch's softmax of rows on the CPU is vectorised; narrower ones take seven times as long.
VECTOR = 16


def are_labels(said: bool | None, link: str, columns: int) -> bool:
    """Whether probabilities are one for each label: as was said, or because the model ends in a sigmoid."""
    if said and columns > 1 and link in ("log-probabilities", "probabilities"):
        raise ModelError("the model returns a softmax over classes: one label per example, not multilabel=True")
    if said is False and link == "label probabilities":
        raise ModelError("the model returns a sigmoid of each score: a probability of each label, multilabel=True")
    return bool(said) or link == "label probabilities"


def own_link(output: Tensor, labels: bool | None) -> str:
    """What a model's output is, told from its values alone, where no layer's output explains it."""
    z = output.double()
    bounded = bool(((z >= 0) & (z <= 1)).all())
    if bounded and z.shape[1] == 1:
        raise ModelError("one output column within [0, 1] may be a logit or a probability: return the logit")
    # log-probabilities count as logits: their softmax is what they are the logarithm of
    own = bounded and (labels or bool(((z.sum(dim=1) - 1).abs() < 5e-3).all()))
    return "own probabilities" if own else "logits"


def behind_layer(link: str) -> bool:
    """Whether the probabilities are computed from the output of the layer, which the model changed before it returned it."""
    return link not in ("logits", "own probabilities")


def scores(output: Tensor, link: str, call: Call | None) -> Tensor:
    """What the probabilities follow from, in float32: the output, or, where it is softmaxed, the layer before the softmax."""
    if behind_layer(link) and call is not None:
        output = call.output.reshape(output.shape)
    return output.float()


def to_probabilities(link: str, labels: bool, columns: int) -> Callable[[Tensor], Tensor]:
    """The function from scores to probabilities. What it makes of a row depends on the row alone."""
    if link == "own probabilities":
        return partial(torch.clamp, min=0) if labels else _normalised
    return torch.sigmoid if labels or columns == 1 else softmax


def _normalised(p: Tensor) -> Tensor:
    p = p.clamp(min=0)
    return p / p.sum(dim=1, keepdim=True)


def softmax(z: Tensor) -> Tensor:
    """The softmax of each row. Narrow rows get columns of -inf, whose exponentials are 0.

    >>> softmax(torch.tensor([[0.0, 0.0], [-1e4, 1e4]])).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    columns = z.shape[1]
    if columns >= VECTOR:
        return torch.softmax(z, dim=1)
    return torch.softmax(torch.constant_pad_nd(z, (0, VECTOR - columns), -torch.inf), dim=1)[:, :columns]
