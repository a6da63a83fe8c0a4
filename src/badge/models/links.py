"""From what a model returned to probabilities: it may be logits, a softmax or a sigmoid of them, of classes or of labels."""

import torch
from torch import Tensor

from badge.errors import ModelError
from badge.models.heads import Call


def are_labels(said: bool | None, link: str, columns: int) -> bool:
    """Whether probabilities are one for each label: as was said, or because the model ends in a sigmoid."""
    if said and columns > 1 and link in ("log-probabilities", "probabilities"):
        raise ModelError(
            "the model returns a softmax over classes: it gives one label per example, not multilabel=True"
        )
    if said is False and link == "label probabilities":
        raise ModelError(
            "the model returns a sigmoid of each score: it gives a probability to each label, multilabel=True"
        )
    return bool(said) or link == "label probabilities"


def own_link(output: Tensor, labels: bool | None) -> str:
    """What a model's output is, told from its values alone, where no layer's output explains it."""
    z = output.double()
    bounded = bool(((z >= 0) & (z <= 1)).all())
    if labels and z.shape[1] > 1:
        return "own probabilities" if bounded else "logits"
    if z.shape[1] == 1:
        if bounded:
            raise ModelError("one output column within [0, 1] may be a logit or a probability: return the logit")
        return "logits"
    if bounded and bool(((z.sum(dim=1) - 1).abs() < 5e-3).all()):
        return "own probabilities"
    return "logits"  # log-probabilities too: their softmax is what they are the logarithm of


def probabilities(output: Tensor, link: str, call: Call | None, labels: bool) -> Tensor:
    """Probabilities in float32 from what the model returned; of softmaxed ones from the layer before the softmax."""
    if link == "own probabilities":
        p = output.float().clamp(min=0)
        return p if labels else p / p.sum(dim=1, keepdim=True)
    if link != "logits" and call is not None:
        output = call.output.reshape(output.shape)
    z = output.float()
    return torch.sigmoid(z) if labels or z.shape[1] == 1 else torch.softmax(z, dim=1)
