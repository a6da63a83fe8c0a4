"""Run a network on batches of a pool: probabilities and the input of its output layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from badge.errors import BadgeError, ModelError, in_short
from badge.models import answers, heads, inputs, links, scripted
from badge.models.borrowed import borrowed
from badge.models.options import Options
from badge.outputs.sparse import SparseRows

#: why outputs hold no embeddings where predict was told to leave them out
NOT_ASKED = "the pass was made with embeddings=False"


def unchanged(p: Tensor) -> Tensor:
    return p


class Said(NamedTuple):
    """What a model said about some rows. Probabilities of many rows at once take less time than batch by batch."""

    scores: Tensor | None  # [n, C]; None where embeddings are all that was asked for
    embeddings: Tensor | SparseRows | str  # [n, D], or why there are none
    multilabel: bool = False  # the probabilities are one for each label, and do not sum to 1
    link: Callable[[Tensor], Tensor] = unchanged  # makes probabilities of scores, each row for itself
    vouched: bool = False  # where all scores are finite the probabilities are valid and the embeddings finite
    fresh: bool = False  # nobody writes to the scores later: they need not be copied at once

    @property
    def probabilities(self) -> Tensor | None:
        return None if self.scores is None else self.link(self.scores)


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


def model_dtype(model: nn.Module) -> torch.dtype | None:
    """The one floating dtype of the parameters; None where there is none or they differ."""
    found = {p.dtype for p in model.parameters() if p.is_floating_point()}
    return found.pop() if len(found) == 1 else None


class Network:
    """A network that is called with batches while it is `running()`; afterwards the network is as it was before.

    The first batch tells where the logits are in what the network returns, and which layer gives them; from then on only
    that layer is watched. Without embeddings an output layer need not be found.

    >>> with Network(nn.Linear(3, 2)).running() as run:
    ...     said = run(4, torch.zeros(4, 3))
    >>> said.probabilities.shape, said.embeddings.shape
    (torch.Size([4, 2]), torch.Size([4, 3]))
    """

    def __init__(self, model: nn.Module, options: Options | None = None) -> None:
        self.options = options or Options()
        self.model = unwrap(model)
        self.takes = inputs.positional(self.model)
        self.embeddings = True if self.options.embeddings is None else self.options.embeddings
        self.labels = self.options.multilabel
        if self.labels is None:  # the model's own configuration may say it
            kind = getattr(getattr(self.model, "config", None), "problem_type", None)
            if kind == "regression":
                raise ModelError("the model's config says problem_type='regression': a classifier is needed")
            self.labels = None if kind is None else kind == "multi_label_classification"
        self.dtype = None if self.options.autocast else model_dtype(self.model)
        self.takes_pixels = getattr(self.model, "main_input_name", None) == "pixel_values"  # a model of Hugging Face
        self.wanted = None if self.options.head is None else heads.named_head(self.model, self.options.head)
        self.headless = False
        self.answer: answers.Answer | None = None
        self.head: heads.Head | None = None
        #: the rest of `Said` for batches in which the model returns the output of its linear head itself
        self.settled: tuple[bool, Callable[[Tensor], Tensor], bool, bool] | None = None
        #: where the embeddings of the next rows go, if there is a place for them already
        self.room: Callable[[int], Tensor | None] = lambda rows: None

    @contextmanager
    def running(self) -> Iterator[Network]:
        device = self.options.device
        assert device is None or isinstance(device, str | torch.device)  # Replicas gives each network one of a list
        with borrowed(self.model, device) as self.device, torch.no_grad(), ExitStack() as self._watching:
            if isinstance(self.model, torch.jit.ScriptModule):
                self._watch(scripted.ScriptRecorder(self.model))
            else:
                named = dict([self.wanted] if self.wanted else [])
                self._watch(heads.Recorder({**heads.linear_layers(self.model), **named}, searching=True))
            yield self

    def _watch(self, recorder: heads.Recorder) -> None:
        """Record the calls of these layers, and of no others."""
        self._watching.close()
        self.recorder = recorder
        self._watching.enter_context(recorder.attached())

    def __call__(self, rows: int, batch: Any) -> Said:
        self.recorder.clear(self.room(rows))
        output, mask = self._forward(batch)
        if self.settled is not None and len(self.recorder.calls) == 1:
            call = self.recorder.calls[0]
            if call.output is output and output.dtype == torch.float32 and output.ndim == 2 and output.shape[0] == rows:
                return Said(output, call.input, *self.settled)
        if self.embeddings != "only":
            return self._classified(rows, output, mask)
        if not self.headless:
            try:
                return self._classified(rows, output, mask)._replace(scores=None)
            except ModelError:
                logits = "logits" in output if isinstance(output, Mapping) else hasattr(output, "logits")
                self.headless = self.head is None and self.wanted is None and not logits
                if not self.headless:
                    raise
                self._watching.close()
        return Said(None, answers.rows_of(output, mask))

    def _forward(self, batch: Any) -> tuple[Any, Tensor | None]:
        args, kwargs = inputs.bind(self.model, batch, self.takes)
        args = tuple([inputs.place(value, self.device, self.dtype) for value in args])
        kwargs = inputs.place(kwargs, self.device, self.dtype) if kwargs else kwargs
        pixels = kwargs.get("pixel_values", args[0] if args else None) if self.takes_pixels else None
        # Models of Hugging Face turn whole pixels into floats, and would run on 0 to 255 where they know −1 to 1.
        if isinstance(pixels, Tensor) and not pixels.is_floating_point():
            raise inputs.unscaled(pixels.dtype, self.dtype)
        autocast, mixed = self.options.autocast, heads.NOTHING
        if autocast is not None:
            dtype = autocast if isinstance(autocast, torch.dtype) else None
            mixed = torch.autocast(self.device.type, dtype=dtype)
        try:
            with mixed, self.recorder.watching():
                output = self.model(*args, **kwargs)
        except (RuntimeError, ValueError, TypeError, IndexError, KeyError) as error:
            if isinstance(error, BadgeError) or out_of_memory(error):
                raise
            raise _cannot_run(error, [*args, *kwargs.values()], self.dtype) from error
        named = args[0] if self.takes is None and isinstance(args[0], Mapping) else kwargs
        return output, named.get("attention_mask")

    def _classified(self, rows: int, output: Any, mask: Tensor | None) -> Said:
        calls, parts = [*self.recorder.calls, *self.recorder.tokens], answers.parts_of(output)
        if self.answer is None:
            self.answer = answers.decide(parts, rows, calls, None if self.wanted is None else self.wanted[0])
        logits = _rows_of_logits(parts[self.answer.logits], rows)
        returned = None if self.answer.embedding is None else parts[self.answer.embedding]
        if self.head is None:
            self.head = self._found_head(calls, logits, returned)
            self.labels = links.are_labels(self.labels, self.head.link, logits.shape[1])
            self.link = links.to_probabilities(self.head.link, self.labels, logits.shape[1])
            # what a linear layer makes of NaN or inf is not finite; a head that was asked for may stand further back
            self.vouched = self.wanted is None and type(self.head.module) is nn.Linear
            self.watched = self.head.index >= 0 and (bool(self.embeddings) or links.behind_layer(self.head.link))
            self._watch(self.recorder.narrowed(self.head.name) if self.watched else heads.Recorder({}, searching=False))
            if self.vouched and self.embeddings is True and (self.head.index, self.head.link) == (0, "logits"):
                self.settled = bool(self.labels), self.link, True, True
        call, h = None, NOT_ASKED if returned is None or not self.embeddings else returned
        if self.watched:
            own = [c for c in calls if c.number == self.head.index and c.name == self.head.name]
            if not own:
                raise ModelError(f"the head {self.head.name!r} did not run on a batch of {rows} rows")
            call = own[0]
            h = heads.embedding_of(call, logits, mask) if self.embeddings else NOT_ASKED
        return Said(links.scores(logits, self.head.link, call), h, bool(self.labels), self.link, self.vouched)

    def _found_head(self, calls: list[heads.Call], logits: Tensor, returned: Tensor | None) -> heads.Head:
        """The head, from the first batch. Index -1 stands for an embedding that the model itself returns, or for none."""
        try:
            if self.wanted is not None:
                return self._wanted_head(*self.wanted, calls, logits)
            found = heads.find_head(self.recorder.modules, calls, logits)
            if found is None and returned is None:
                raise heads.no_head(self.recorder.modules, calls, logits)
        except ModelError:
            if self.embeddings:
                raise
            found = None
        return found or heads.Head("", nn.Identity(), -1, links.own_link(logits, self.labels))

    def _wanted_head(self, name: str, module: nn.Module, calls: list[heads.Call], logits: Tensor) -> heads.Head:
        """The head that the caller named."""
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
        return heads.Head(name, module, own[last].number, kinds[last] or links.own_link(logits, self.labels))


def out_of_memory(error: BaseException) -> bool:
    """Whether a device has no memory left: CUDA has its own class of errors, other devices say so."""
    own = isinstance(error, torch.cuda.OutOfMemoryError)
    return own or (isinstance(error, RuntimeError) and "out of memory" in str(error))


def _cannot_run(error: Exception, given: list[Any], dtype: torch.dtype | None) -> BadgeError:
    """The error for a forward pass that failed: pixels of whole numbers, or what the model itself says."""
    tensors = [x for x in given if isinstance(x, Tensor)]
    known = (torch.int32, torch.int64, torch.bool)  # of tokens and masks
    pixels = {x.dtype for x in tensors if not (x.is_floating_point() or x.is_complex() or x.dtype in known)}
    if pixels:
        return inputs.unscaled(pixels.pop(), dtype)
    shapes = ", ".join(f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}" for x in tensors[:4]) or "no tensor"
    reason = in_short(error, 300)
    whole = any(not (x.is_floating_point() or x.is_complex()) for x in tensors)
    hint = "; whole numbers are tokens here: give others as float32" * (whole and "dtype" in reason)
    return ModelError(f"the model cannot run on a batch of the pool ({shapes}): {type(error).__name__}: {reason}{hint}")


def _rows_of_logits(logits: Tensor, rows: int) -> Tensor:
    if logits.ndim == 1 and logits.shape[0] == rows:
        logits = logits[:, None]
    if logits.ndim != 2 or logits.shape[0] != rows or not logits.is_floating_point():
        raise ModelError(
            f"the model gave {logits.dtype} logits of shape {tuple(logits.shape)} for {rows} examples: "
            f"[{rows}, classes] is needed (or [{rows}] for one sigmoid logit)"
        )
    return logits
