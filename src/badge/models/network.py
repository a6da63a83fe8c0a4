"""Run a network on batches in eval mode and leave it as it was: modes, hooks, gradients, random state, device."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from badge.core.devices import usable_device
from badge.errors import BadgeError, InputError, ModelError
from badge.models import answers, heads, inputs, links, scripted

__all__ = ["Run", "Said", "eval_mode", "model_dtype", "random_state_kept", "running", "says_multilabel", "unwrap"]


#: why outputs hold no embeddings where predict was told to leave them out
NOT_ASKED = "the pass was made with embeddings=False"


class Said(NamedTuple):
    """What a model said about some rows."""

    probabilities: Tensor | None  # [n, C]; None where embeddings are all that was asked for
    embeddings: Tensor | str  # [n, D], or why there are none
    multilabel: bool = False  # the probabilities are one for each label, and do not sum to 1


#: (rows, batch) -> what the model said
Run = Callable[[int, Any], Said]


def unwrap(model: nn.Module) -> nn.Module:
    """The network inside `torch.compile`, `DataParallel` and `DistributedDataParallel`.

    Hooks do not fire inside compiled code, nor in a known order on replicas: the pass runs the plain network.
    """
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def says_multilabel(model: nn.Module) -> bool | None:
    """Whether a model's own configuration says that it gives a probability to each label; None where it says nothing."""
    kind = getattr(getattr(model, "config", None), "problem_type", None)
    if kind == "regression":
        raise ModelError("the model's config says problem_type='regression': a classifier is needed")
    return None if kind is None else kind == "multi_label_classification"


def model_dtype(model: nn.Module) -> torch.dtype | None:
    """The one floating dtype of the parameters; None where there is none or they differ."""
    found = {p.dtype for p in model.parameters() if p.is_floating_point()}
    return found.pop() if len(found) == 1 else None


@contextmanager
def random_state_kept(device: torch.device | None = None) -> Iterator[None]:
    """Python's, numpy's and torch's global random state (CPU, CUDA, MPS) are afterwards what they were."""
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    started = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    use_cuda = torch.cuda.is_available() and (started or (device is not None and device.type == "cuda"))
    cuda = torch.cuda.get_rng_state_all() if use_cuda else None
    mps = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
        if mps is not None:
            torch.mps.set_rng_state(mps)


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Every submodule in eval mode, then each back in its own mode.

    The flags are set one by one: `train()` may be overridden to do more, and would lose modes that differ below it.
    """
    modes = [(module, module.training) for module in model.modules() if hasattr(module, "training")]  # a frozen one not
    try:
        for module, _ in modes:
            module.training = False
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def on_device(model: nn.Module, device: str | torch.device | None) -> Iterator[torch.device]:
    """The model on `device` (None: where it is), and afterwards where it was."""
    places = {tensor.device for tensor in [*model.parameters(), *model.buffers()]}
    home = next(iter(model.parameters()), next(iter(model.buffers()), torch.empty(0))).device
    wanted = home if device is None else usable_device(device)
    if wanted == home and (device is None or len(places) <= 1):
        yield home
        return
    if len(places) > 1:
        raise InputError(f"the model is spread over {sorted(map(str, places))}: leave out device={str(device)!r}")
    try:
        model.to(wanted)
        yield wanted
    finally:
        model.to(home)


def _autocast(device: torch.device, autocast: bool | torch.dtype | None) -> Any:
    if autocast is None or autocast is False:
        return nullcontext()
    if autocast is True:
        return torch.autocast(device.type)
    if isinstance(autocast, torch.dtype):
        return torch.autocast(device.type, dtype=autocast)
    raise InputError(f"autocast must be True, a torch dtype or None, not {autocast!r}")


def _uncompiled() -> Any:
    """Parts of the model that were compiled on their own run as written, so that hooks fire (torch 2.6 on)."""
    set_stance = getattr(torch.compiler, "set_stance", None)
    return nullcontext() if set_stance is None else set_stance("force_eager")


@contextmanager
def running(
    model: nn.Module,
    *,
    device: str | torch.device | None = None,
    head: str | nn.Module | None = None,
    autocast: bool | torch.dtype | None = None,
    multilabel: bool | None = None,
    embeddings: bool | Literal["only"] = True,
) -> Iterator[Run]:
    """A function that runs the model on one batch; outside the block the model is as it was before.

    Without `embeddings` an output layer need not be found.

    >>> with running(nn.Linear(3, 2)) as run:
    ...     p, h, _ = run(4, torch.zeros(4, 3))
    >>> p.shape, h.shape
    (torch.Size([4, 2]), torch.Size([4, 3]))
    """
    model = unwrap(model)
    with ExitStack() as stack:
        place = stack.enter_context(on_device(model, device))
        stack.enter_context(random_state_kept(place))
        stack.enter_context(eval_mode(model))
        stack.enter_context(_uncompiled())
        casting = _autocast(place, autocast)
        dtype, takes = None if autocast else model_dtype(model), inputs.positional(model)
        takes_pixels = getattr(model, "main_input_name", None) == "pixel_values"  # a model of Hugging Face
        wanted = None if head is None else heads.named_head(model, head)
        watch: heads.Recorder = (
            scripted.ScriptRecorder(model)
            if scripted.is_scripted(model)
            else heads.Recorder({**heads.linear_layers(model), **dict([wanted] if wanted else [])}, searching=True)
        )
        attached = ExitStack()
        stack.enter_context(attached)
        attached.enter_context(watch.attached())
        found: heads.Head | None = None
        answer: answers.Answer | None = None
        labels = says_multilabel(model) if multilabel is None else multilabel

        def forward(batch: Any) -> tuple[Any, Tensor | None]:
            args, kwargs = inputs.bind(model, batch, takes)
            args, kwargs = inputs.place((args, kwargs), place, dtype)
            if takes_pixels:
                inputs.check_pixels(args, kwargs, dtype)
            watch.clear()
            try:
                with torch.no_grad(), casting, watch.watching():
                    return model(*args, **kwargs), kwargs.get("attention_mask")
            except (RuntimeError, ValueError, TypeError, IndexError, KeyError) as error:
                if isinstance(error, BadgeError | torch.cuda.OutOfMemoryError):
                    raise
                raise _cannot_run(error, [*args, *kwargs.values()], dtype) from error

        headless = False

        def run(rows: int, batch: Any) -> Said:
            nonlocal headless
            output, mask = forward(batch)
            if embeddings != "only":
                return classified(rows, output, mask)
            if not headless:
                try:
                    return classified(rows, output, mask)._replace(probabilities=None)
                except ModelError:
                    headless = found is None and wanted is None and not _has_logits(output)
                    if not headless:
                        raise
                    attached.close()
            return Said(None, answers.rows_of(output, mask))

        def classified(rows: int, output: Any, mask: Tensor | None) -> Said:
            nonlocal found, answer, watch, labels
            calls, parts = watch.all(), answers.parts_of(output)
            if answer is None:
                answer = answers.decide(parts, rows, calls, None if wanted is None else wanted[0])
            logits = _rows_of_logits(parts[answer.logits], rows)
            returned = None if answer.embedding is None else parts[answer.embedding]
            if found is None:
                try:
                    found = _settle(watch.modules, calls, logits, wanted, returned, labels)
                except ModelError:
                    if embeddings:
                        raise
                    found = heads.Head("", nn.Identity(), -1, links.own_link(logits, labels))
                labels = links.are_labels(labels, found.link, logits.shape[1])
                attached.close()  # from here on only the head is watched
                watch = watch.narrowed(found.name) if found.index >= 0 else heads.Recorder({}, searching=False)
                attached.enter_context(watch.attached())
            if found.index < 0:
                h = returned if embeddings and returned is not None else NOT_ASKED
                return Said(links.probabilities(logits, found.link, None, bool(labels)), h, bool(labels))
            call = next((c for c in calls if c.name == found.name and c.index == found.index), None)
            if call is None:
                raise ModelError(f"the head {found.name!r} did not run on a batch of {rows} rows")
            h = heads.embedding_of(call, logits, mask) if embeddings else NOT_ASKED
            return Said(links.probabilities(logits, found.link, call, bool(labels)), h, bool(labels))

        yield run


def _cannot_run(error: Exception, given: list[Any], dtype: torch.dtype | None) -> BadgeError:
    """The error for a forward pass that failed: pixels of whole numbers, or what the model itself says."""
    tensors = [x for x in given if isinstance(x, Tensor)]
    known = (torch.int32, torch.int64, torch.bool)  # of tokens and masks
    pixels = {x.dtype for x in tensors if not (x.is_floating_point() or x.is_complex() or x.dtype in known)}
    if pixels:
        return inputs.unscaled(pixels.pop(), dtype)
    shapes = ", ".join(f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}" for x in tensors[:4]) or "no tensor"
    reason = " ".join(str(error).split())[:300]
    whole = any(not (x.is_floating_point() or x.is_complex()) for x in tensors)
    hint = "; whole numbers are tokens here: give others as float32" * (whole and "dtype" in reason)
    return ModelError(f"the model cannot run on a batch of the pool ({shapes}): {type(error).__name__}: {reason}{hint}")


def _has_logits(output: Any) -> bool:
    return "logits" in output if isinstance(output, Mapping) else hasattr(output, "logits")


def _rows_of_logits(logits: Tensor, rows: int) -> Tensor:
    if logits.ndim == 1 and logits.shape[0] == rows:
        logits = logits[:, None]
    if logits.ndim != 2 or logits.shape[0] != rows or not logits.is_floating_point():
        raise ModelError(
            f"the model gave {logits.dtype} logits of shape {tuple(logits.shape)} for {rows} examples: "
            f"[{rows}, classes] is needed (or [{rows}] for one sigmoid logit)"
        )
    return logits


def _settle(
    layers: Mapping[str, nn.Module],
    calls: list[heads.Call],
    logits: Tensor,
    wanted: tuple[str, nn.Module] | None,
    returned: Tensor | None,
    labels: bool | None,
) -> heads.Head:
    """The head, from the first batch. Index -1 stands for an embedding that the model itself returns."""
    found = heads.find_head(layers, calls, logits) if wanted is None else None
    if found is not None:
        return found
    if wanted is None:
        if returned is not None:
            return heads.Head("", nn.Identity(), -1, links.own_link(logits, labels))
        raise heads.no_head(layers, calls, logits)
    name, module = wanted
    own = [call for call in calls if call.name == name]
    if not own:
        raise ModelError(f"head={name!r} did not run on a tensor in the forward pass: its input cannot be taken")
    kinds = [heads.link(call, logits) for call in own]
    last = max((i for i, kind in enumerate(kinds) if kind is not None), default=len(own) - 1)
    giver = next((c.name for c in calls if kinds[last] is None and heads.link(c, logits) is not None), None)
    if giver is not None:
        raise ModelError(
            f"head={name!r} does not give what the model returned: that is the output of {giver!r}, whose input is "
            f"the embedding. Leave head= out, or let the model return the logits of {name!r}"
        )
    return heads.Head(name, module, own[last].index, kinds[last] or links.own_link(logits, labels))
