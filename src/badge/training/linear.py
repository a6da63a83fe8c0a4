"""A linear head on rows of numbers: logistic regression, multinomial or one for each label, by full-batch L-BFGS."""

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as _of_labels
from torch.nn.functional import cross_entropy

from badge.core.arrays import as_array, as_tensor
from badge.errors import InputError
from badge.training.trainer import Fit

#: Penalty on the offsets next to that on the weights: so small that it only keeps them finite.
OFFSET_SHARE = 1e-4
MOST_ITERATIONS = 300


class LinearHead(nn.Linear):
    """A linear layer with one output per class that it was shown, ascending: `classes_`, as scikit-learn names them."""

    def __init__(self, weight: Tensor, bias: Tensor, classes: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        super().__init__(weight.shape[1], weight.shape[0])
        with torch.no_grad():
            self.weight.copy_(weight)
            self.bias.copy_(bias)
        self.classes_ = classes


def fit_linear(examples: Any, labels: Any, l2: float = 1.0) -> tuple[LinearHead, int, float]:
    """(head, iterations, training accuracy) at the minimum of Σ cross-entropy + l2/2 ‖W‖².

    Labels [n, L] of 0 and 1 are multi-label: the cross-entropy is then the sum of the labels' binary ones.

    W acts on examples that are centred and divided by one number, their root mean square, so that `l2` means the same
    for every encoder; both are folded into the head that is returned. The minimum is unique, so nothing is random.

    >>> head, _, accuracy = fit_linear([[0.0], [1.0], [9.0], [10.0]], [0, 0, 2, 2])
    >>> head.classes_.tolist(), accuracy, head(torch.tensor([[2.0]])).argmax().item()
    ([0, 2], 1.0, 0)
    """
    x, y = as_tensor(examples, "embeddings").cpu().float(), as_array(labels, "labels")
    y = y.astype(np.int64) if y.dtype.kind == "b" else y
    if x.ndim != 2 or len(x) == 0 or y.shape[:1] != (len(x),) or y.ndim > 2 or y.dtype.kind not in "iu":
        raise InputError(f"rows [n, D] and whole numbers [n] are needed, not {tuple(x.shape)} and {y.dtype} {y.shape}")
    if y.ndim == 2 and (y.shape[1] == 0 or y.min() < 0 or y.max() > 1):
        raise InputError(f"rows of labels hold 0 and 1, one column for each label, not {y[0].tolist()!r:.60}")
    if not bool(x.isfinite().all()):
        raise InputError("the embeddings hold NaN or inf: the encoder fails on some examples")
    if y.ndim == 2:
        seen, target = np.arange(y.shape[1]), y
    else:
        seen = np.unique(y).astype(np.int64)
        if len(seen) == 1:  # one output would mean the sigmoid of a binary problem: the class gets a neighbour
            seen = np.unique([seen[0], 1 if seen[0] == 0 else 0])
        target = np.searchsorted(seen, y).astype(np.int64)
    mean = x.mean(dim=0)
    x = x - mean
    scale = float(x.square().mean().sqrt()) or 1.0
    x /= scale
    weight, bias, iterations = _minimise(x, torch.from_numpy(target), len(seen), l2)
    scores = x @ weight.T + bias
    accuracy = float(((scores.argmax(dim=1) if y.ndim == 1 else scores > 0).numpy() == target).mean())
    weight = weight / scale
    return LinearHead(weight, bias - weight @ mean, seen), iterations, accuracy


class Linear:
    """A trainer of `LinearHead` on rows of numbers, for embeddings that are there already."""

    def __init__(self, l2: float = 1.0) -> None:
        self.l2 = l2
        self.last: Fit | None = None  #: the record of the last fit; its epochs are iterations

    def fit(self, examples: Any, labels: Any, rng: np.random.Generator | None = None) -> LinearHead:
        """The head of labelled rows; `rng` is not needed, the minimum is unique."""
        started = time.perf_counter()
        head, iterations, accuracy = fit_linear(examples, labels, self.l2)
        self.last = Fit(iterations, 0, accuracy, "converged", time.perf_counter() - started)
        return head.eval()


def _minimise(x: Tensor, y: Tensor, classes: int, l2: float) -> tuple[Tensor, Tensor, int]:
    weight = torch.zeros(classes, x.shape[1], requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    options: dict[str, Any] = {"history_size": 20, "line_search_fn": "strong_wolfe", "max_eval": 2 * MOST_ITERATIONS}
    options |= {"max_iter": MOST_ITERATIONS, "tolerance_grad": 1e-4, "tolerance_change": 1e-7}
    optimizer = torch.optim.LBFGS([weight, bias], **options)

    def loss() -> Tensor:
        optimizer.zero_grad()
        penalty = weight.square().sum() + OFFSET_SHARE * bias.square().sum()
        scores = x @ weight.T + bias
        entropy, target = (cross_entropy, y) if y.ndim == 1 else (_of_labels, y.float())
        total = entropy(scores, target, reduction="sum") + l2 / 2 * penalty
        total.backward()  # type: ignore[no-untyped-call]
        return total

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    return weight.detach(), bias.detach(), int(optimizer.state[weight]["n_iter"])
