"""The paper's training: Adam on the cross-entropy, from scratch, until the training accuracy exceeds 99 %.

`Shallow` is the paper's MLP with its gradient written out: a minibatch of 64 rows through 1,024 hidden units is a few small
products, and autograd takes longer than they do. For n examples X with labels y, hidden a = max(0, X·A + b) and scores
s = a·Bᵀ, the mean cross-entropy has the gradients

    ∂s = (softmax(s) - onehot(y)) / n        ∂B = ∂sᵀ·a        ∂a = (∂s·B) ⊙ [a > 0]        ∂A = Xᵀ·∂a        ∂b = Σ ∂a
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from badge.core.log import log
from badge.core.numbers import positive, whole
from badge.core.threads import usable_device
from badge.errors import BadgeError, InputError, ModelError
from badge.models.inputs import bind, positional
from badge.training.examples import Inputs, each, in_dtype_of, on_device, parts_of, take_pixels

#: mark on a module that a Trainer has taken, to refuse it a second time
_USED = "_badge_trainer_has_this"


@dataclass(frozen=True)
class Fit:
    """What one `Trainer.fit` took.

    `epochs` includes abandoned attempts. `train_accuracy` is from the returned model's last epoch, counted while it was
    training. `stopped` is "accuracy" where the target was exceeded and "cap" where `max_epochs` ran out. The head of a
    `Frozen` encoder has iterations as epochs, and "converged".
    """

    epochs: int
    restarts: int
    train_accuracy: float
    stopped: Literal["accuracy", "cap", "converged"]
    seconds: float


class Trainer:
    """Trains a new network from scratch on every call of `fit`. Nothing is kept from one call to the next.

    Training ends after the epoch in which the running training accuracy exceeds `target`. If the accuracy does not improve
    for `patience` epochs, training restarts from new weights. After `max_epochs` epochs in total, `fit` returns the most
    accurate attempt.

    Args:
        build: a function that makes the untrained network, which returns raw scores [n, classes].
        lr: learning rate of Adam.
        batch_size: examples per step.
        target: the training accuracy above which training ends.
        max_epochs: most epochs, over all attempts.
        patience: epochs without a better training accuracy before training restarts.
        device: the device to train on. None: CUDA if there is a GPU, else the CPU.

    Raises:
        InputError: an argument is invalid.
        ModelError: in `fit`, training diverged (lower `lr`), or `build` did not make a new network.

    >>> import badge, numpy as np
    >>> from badge.training.networks import mlp
    >>> trainer = badge.Trainer(lambda: mlp(2, 2), lr=1e-2)
    >>> x = np.array([[0.0, 1.0], [1.0, 0.0]], dtype=np.float32)
    >>> model = trainer.fit(x, [0, 1], np.random.default_rng(0))
    >>> trainer.last.stopped, model(torch.from_numpy(x)).argmax(1).tolist()
    ('accuracy', [0, 1])
    """

    def __init__(
        self,
        build: Callable[[], nn.Module],
        lr: float,
        batch_size: int = 64,
        *,
        target: float = 0.99,
        max_epochs: int = 2000,
        patience: int = 100,
        device: torch.device | str | None = None,
    ) -> None:
        if isinstance(build, nn.Module) or not callable(build):
            raise InputError(f"build must be a function that makes a new network, not {type(build).__name__}")
        if isinstance(target, bool) or not isinstance(target, int | float) or not 0 <= target < 1:
            raise InputError(f"target must be in [0, 1), not {target!r}: training stops when the accuracy exceeds it")
        self.build = build
        self.lr = positive(lr, "lr")
        self.batch_size = whole(batch_size, "batch_size")
        self.target = target
        self.max_epochs = whole(max_epochs, "max_epochs")
        self.patience = whole(patience, "patience")
        self.device = usable_device(("cuda" if torch.cuda.is_available() else "cpu") if device is None else device)
        #: the record of the last fit
        self.last: Fit | None = None

    def fit(self, examples: Any, labels: Any, rng: np.random.Generator) -> nn.Module:
        """Train a new network on examples and labels.

        Labels [n, L] of 0 and 1 are multi-label. The loss is then the sum of the binary cross-entropies of the labels, and
        the accuracy is the share of all n·L labels that are right.

        A network with several inputs gets a tuple of tensors by position, or a dict by name. uint8 images are divided by
        255 if the network does not take uint8; the trained network does the same.

        The same state of `rng` gives the same network, on one machine with one number of threads. The random state of torch
        is left unchanged.

        Args:
            examples: [n, ...], or a tuple or dict of tensors.
            labels: [n] whole numbers from 0, or [n, L] of 0 and 1.
            rng: the generator for the initial weights and the order of the examples.

        Returns:
            The network, in eval mode. `last` records the epochs, restarts, accuracy and seconds.

        Raises:
            InputError: the examples do not match the labels or the network.
        """
        start = time.perf_counter()
        x, y = on_device(examples, labels, self.device)
        cuda = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=cuda), torch.enable_grad():
            seed = int(rng.integers(2**63))  # not by `torch.manual_seed`, which would touch every CUDA device
            torch.default_generator.manual_seed(seed)
            if cuda:
                with torch.cuda.device(self.device):
                    torch.cuda.manual_seed(seed)
            model, epochs, restarts, accuracy = self._attempts(x, y)
        if not all(bool(p.isfinite().all()) for p in model.parameters()):
            raise ModelError(f"training diverged to NaN or inf in {epochs} epochs: lower lr (now {self.lr:g})")
        stopped: Literal["accuracy", "cap"] = "accuracy" if accuracy > self.target else "cap"
        self.last = Fit(epochs, restarts, accuracy, stopped, time.perf_counter() - start)
        log.info("trained on %d examples: %s", len(y), self.last)
        return model.eval()

    def _attempts(self, x: Inputs, y: Tensor) -> tuple[nn.Module, int, int, float]:
        """(model, epochs in all, restarts, its accuracy) of the first attempt above target, or of the best one."""
        kept: tuple[nn.Module | None, float] = None, -1.0
        epochs, restarts = 0, 0
        while True:
            model = self._new_model()
            take_pixels(model, *_arguments(model, each(x, lambda part: part[:2])))
            inputs = in_dtype_of(model, x)
            shallow = Shallow.of(model, inputs, y, self.lr)
            weights = [p for p in model.parameters() if p.requires_grad]
            adam = torch.optim.Adam(weights, lr=self.lr, fused=self.device.type in ("cpu", "cuda"))
            epoch = shallow.epoch if shallow else partial(_epoch, model, adam)
            best, since_best, accuracy = -1.0, 0, 0.0
            while since_best < self.patience and epochs < self.max_epochs:
                accuracy = epoch(inputs, y, _batches(len(y), self.batch_size, y.device))
                epochs += 1
                if accuracy > self.target:
                    return model, epochs, restarts, accuracy
                best, since_best = (accuracy, 0) if accuracy > best else (best, since_best + 1)
            kept = (model, accuracy) if accuracy > kept[1] else kept
            if epochs == self.max_epochs:
                assert kept[0] is not None
                return kept[0], epochs, restarts, kept[1]
            restarts += 1

    def _new_model(self) -> nn.Module:
        model = self.build()
        if not isinstance(model, nn.Module):
            raise ModelError(f"build() must return a torch.nn.Module, not {type(model).__name__}")
        if hasattr(model, _USED):
            raise ModelError("build() returned the same module twice: it must make a new one, to train from scratch")
        setattr(model, _USED, True)
        return model.to(self.device).train()


def _epoch(model: nn.Module, optimizer: torch.optim.Optimizer, x: Inputs, y: Tensor, batches: list[Tensor]) -> float:
    """One pass over the batches; the accuracy counted on the way, each minibatch before its own step."""
    correct = torch.zeros((), dtype=torch.int64, device=y.device)
    classes = int(y.max()) + 1 if y.ndim == 1 else y.shape[1]
    for batch in batches:
        target = y.index_select(0, batch)
        scores = _scores(model, each(x, partial(torch.index_select, dim=0, index=batch)), classes, y.ndim > 1)
        if y.ndim == 1:
            loss = cross_entropy(scores, target)
        else:  # the mean over examples of the sum of the labels' losses
            loss = binary_cross_entropy_with_logits(scores, target.to(scores.dtype), reduction="sum") / len(target)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        said = scores.detach().argmax(1) if y.ndim == 1 else (scores.detach() > 0).long()
        correct += (said == target).sum()  # a tensor: reading it here would wait for the device
    return int(correct) / y.numel()


def _scores(model: nn.Module, x: Inputs, classes: int, labels: bool) -> Tensor:
    """What the network returns, checked; `labels`: multi-label."""
    try:
        args, named = _arguments(model, x)
        scores: Any = model(*args, **named)
    except BadgeError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        whole = any(not part.is_floating_point() for part in parts_of(x))
        hint = "; whole numbers are tokens here: give others as float32" * (whole and "dtype" in str(error))
        raise ModelError(f"the network cannot be run on the examples: {error}{hint}") from error
    if not isinstance(scores, Tensor) or scores.ndim != 2:
        shape = f"shape {tuple(scores.shape)}" if isinstance(scores, Tensor) else type(scores).__name__
        raise ModelError(f"the network must return raw scores [n, classes], not {shape}")
    if scores.shape[1] < classes:
        raise ModelError(f"the network has {scores.shape[1]} outputs, but labels go up to {classes - 1}")
    if labels and scores.shape[1] != classes:
        raise ModelError(f"the network has {scores.shape[1]} outputs for {classes} labels: one for each is needed")
    return scores


def _arguments(model: nn.Module, x: Inputs) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return ((x,), {}) if isinstance(x, Tensor) else bind(model, x, positional(model))


def _batches(n: int, batch_size: int, device: torch.device) -> list[Tensor]:
    """A random permutation in pieces of `batch_size`, drawn on the CPU, so that it is the same everywhere."""
    batches = list(torch.split(torch.randperm(n).to(device), batch_size))
    if len(batches) > 1 and len(batches[-1]) == 1:  # BatchNorm cannot be trained on one example
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


class Shallow:
    """A network of one hidden layer on the CPU, with its own Adam. `Shallow.of` decides which networks it can train."""

    def __init__(self, hidden: nn.Linear, output: nn.Linear, lr: float) -> None:
        self._layers = hidden, output
        # A lies as [inputs, hidden], so that Xᵀ·∂a is a product of wide rows
        first = hidden.weight.detach().t().clone(memory_format=torch.contiguous_format)
        weights = [first, hidden.bias.detach().clone(), output.weight.detach().clone()]
        self._weights = [nn.Parameter(w) for w in weights]
        self._gradients = [torch.zeros_like(w) for w in weights]
        for weight, gradient in zip(self._weights, self._gradients, strict=True):
            weight.grad = gradient
        self._adam = torch.optim.Adam(self._weights, lr=lr, fused=True)

    @staticmethod
    def of(model: nn.Module, x: object, y: Tensor, lr: float) -> Shallow | None:
        """`model` here if it is Flatten, Linear, ReLU, Linear without bias, in float32 and without hooks; else None."""
        if type(model) is not nn.Sequential or [type(m) for m in model] != [nn.Flatten, nn.Linear, nn.ReLU, nn.Linear]:
            return None
        _, hidden, _, output = model
        assert isinstance(hidden, nn.Linear) and isinstance(output, nn.Linear)
        weights = list(model.parameters())
        if not isinstance(x, Tensor) or y.ndim != 1 or len(weights) != 3 or output.bias is not None:
            return None
        fits = x[0].numel() == hidden.in_features and int(y.max()) < output.out_features
        fits = fits and all(t.dtype == torch.float32 and t.device.type == "cpu" for t in (x, *weights))
        watched = any(map(_watched, model.modules())) or any(w._backward_hooks or not w.requires_grad for w in weights)
        return Shallow(hidden, output, lr) if fits and not watched else None

    def epoch(self, x: object, y: Tensor, batches: list[Tensor]) -> float:
        """One pass over the batches; returns the accuracy, with each minibatch scored before the step on it."""
        assert isinstance(x, Tensor)
        x, correct = x.flatten(1), torch.zeros((), dtype=torch.int64)
        with torch.no_grad():
            for batch in batches:
                correct += self._step(x.index_select(0, batch), y.index_select(0, batch))
            hidden, output = self._layers
            hidden.weight.copy_(self._weights[0].t())
            hidden.bias.copy_(self._weights[1])
            output.weight.copy_(self._weights[2])
        return int(correct) / len(y)

    def _step(self, x: Tensor, y: Tensor) -> Tensor:
        """One step of Adam; returns the number of correct predictions before it."""
        (A, b, B), (dA, db, dB) = self._weights, self._gradients
        a = torch.addmm(b, x, A).relu_()
        s = a @ B.t()
        ds = s.softmax(1)
        ds.scatter_add_(1, y[:, None], ds.new_full((len(y), 1), -1)).div_(len(y))
        torch.mm(ds.t(), a, out=dB)
        da = (ds @ B).mul_(a > 0)
        torch.mm(x.t(), da, out=dA)
        torch.sum(da, 0, out=db)
        self._adam.step()
        return (s.argmax(1) == y).sum()


def _watched(module: nn.Module) -> bool:
    """Whether the module has hooks or a replaced `forward`, which the written-out pass would skip."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return any(hooks) or "forward" in vars(module)
