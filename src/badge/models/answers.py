"""Which part of what a model returned is the logits: by its name, by the head that was asked for, or by the layers.

A model may return several tensors: logits and an embedding, a projection and logits, one tensor per task. The logits are
told by the linear layer that gave them. Where two could be meant, the caller is asked for `head=`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from badge.errors import ModelError
from badge.models.heads import Call, detached, link, same

Key = int | str

#: what Hugging Face models without a head return
HEADLESS = frozenset({"last_hidden_state", "pooler_output", "hidden_states", "attentions"})


@dataclasses.dataclass(frozen=True)
class Answer:
    """Where the logits are in what the model returns, and where the embedding is, if it returns one."""

    logits: Key
    embedding: Key | None = None


def parts_of(output: Any) -> dict[Key, Tensor]:
    """The tensors that a model returned, by position or name."""
    found: dict[Key, Any]
    if isinstance(output, Tensor):
        return {0: detached(output)}
    if isinstance(output, Mapping):
        found = dict(output)
    elif isinstance(output, tuple | list):
        names = getattr(output, "_fields", range(len(output)))
        found = dict(zip(names, output, strict=True))
    elif dataclasses.is_dataclass(output):
        found = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
    else:
        found = {"logits": getattr(output, "logits", None)}
    tensors = {key: detached(value) for key, value in found.items() if isinstance(value, Tensor)}
    if not tensors:
        detail = f" with {list(found)}" if len(found) and not isinstance(output, str) and "logits" not in found else ""
        wanted = "a tensor of logits, (logits, embedding), or an object or dict with 'logits' is needed"
        raise ModelError(f"the model returned {type(output).__name__}{detail}: {wanted}")
    return tensors


def decide(parts: Mapping[Key, Tensor], rows: int, calls: list[Call], head: str | None) -> Answer:
    """The logits of `rows` examples among the parts, from the calls of the first batch; `head` is the one asked for."""
    if head is None and set(parts) <= HEADLESS:
        what = f"the model returned {', '.join(map(str, parts))} and no logits: it has no head. Load it with one"
        cold = "before the first label, typiclust and kmeanspp need none"
        raise ModelError(f"{what} (transformers.AutoModelFor…Classification); {cold}")
    if len(parts) == 1:
        return Answer(next(iter(parts)))
    fit = {k: p for k, p in parts.items() if p.ndim in (1, 2) and len(p) == rows and p.is_floating_point()}
    scores = {key: part[:, None] if part.ndim == 1 else part for key, part in fit.items()}  # one row per example
    if head is not None:
        return Answer(_of_head(scores, [call for call in calls if call.name == head], head))
    if "logits" in parts or not scores:
        return Answer("logits" if "logits" in parts else next(iter(parts)))
    links = _links(calls, scores)
    scores = {key: part for key, part in scores.items() if key in links or parts[key].ndim == 2} or scores
    if len(scores) == 1:
        return Answer(next(iter(scores)))
    for exact in (True, False):
        found = [key for key in scores if key in links and _explained(key, scores, links, calls, exact)]
        if found and len({links[key][0].name for key in found}) == 1:
            return Answer(min(found, key=lambda key: links[key][1] != "logits"))
    first, *others = scores
    # (logits, embedding) by its order, where no layer tells; a second one as wide may be the scores of another head
    if not links and len(others) == 1 and isinstance(first, int):
        return Answer(first, others[0] if scores[first].shape[1] != scores[others[0]].shape[1] else None)
    named = [f"{key!r}" + (f" (of the layer {links[key][0].name!r})" if key in links else "") for key in scores]
    unclear = f"the model returned {len(parts)} tensors, and which is the logits cannot be told: {', '.join(named)}"
    raise ModelError(f"{unclear}. Pass head= with the layer that gives them, or let the model return the logits alone")


def rows_of(output: Any, mask: Tensor | None = None) -> Tensor:
    """One row per example from what an encoder returned: the mean over tokens (those under the mask) or places.

    >>> rows_of({"last_hidden_state": torch.tensor([[[1.0], [3.0], [9.0]]])}, torch.tensor([[1, 1, 0]])).tolist()
    [[2.0]]
    """
    if isinstance(output, Mapping):
        found = [output[key] for key in ("last_hidden_state", "sentence_embedding", "pooler_output") if key in output]
        output = found[0] if found else next(iter(output.values()), None)
    elif isinstance(output, tuple | list) and output:
        output = output[0]
    if not isinstance(output, Tensor) or not output.is_floating_point() or output.ndim < 2:
        shape = f"{output.dtype} {tuple(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
        raise ModelError(f"an encoder must give numbers [n, D] (or [n, tokens, D], [n, D, H, W]), not {shape}")
    if output.ndim == 3:
        weights = torch.ones(output.shape[:2], device=output.device) if mask is None else mask
        weights = weights.to(output.dtype)[:, :, None]
        return (output * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
    return output if output.ndim == 2 else output.flatten(2).mean(dim=2)


def _links(calls: list[Call], scores: Mapping[Key, Tensor]) -> dict[Key, tuple[Call, str]]:
    """The call that each part is or follows from, and how; calls that give the logits themselves come first."""
    links = {}
    for key, part in scores.items():
        found = [(call, kind) for call in calls if (kind := link(call, part)) is not None]
        if found:
            links[key] = next((pair for pair in found if pair[1] == "logits"), found[-1])
    return links


def _explained(
    key: Key, scores: Mapping[Key, Tensor], links: Mapping[Key, tuple[Call, str]], calls: list[Call], exact: bool
) -> bool:
    """Whether all other parts are what comes before this one's layer, or the same scores in another form."""
    head, _ = links[key]
    others = [part for k, part in scores.items() if k != key and not (k in links and links[k][0] is head)]
    if exact:
        return all(same(head.input, part) for part in others)
    width = head.input.shape[-1]
    return all(part.shape[1] == width or any(same(call.input, part) for call in calls) for part in others)


def _of_head(scores: Mapping[Key, Tensor], calls: list[Call], head: str) -> Key:
    """The part that the named head gave, or the one as wide as its output."""
    links = _links(calls, scores)
    if links:
        return min(links, key=lambda key: links[key][1] != "logits")
    wide = [key for key, part in scores.items() if any(call.output.shape[-1] == part.shape[1] for call in calls)]
    if len(wide) == 1:
        return wide[0]
    none = f"head={head!r} gives none of the {len(scores)} outputs of the model that may be logits ({list(scores)})"
    raise ModelError(f"{none}: let the model return the logits of that head alone")
