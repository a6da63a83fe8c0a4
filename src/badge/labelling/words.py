"""Why an item was picked, in words that do not give away what the model takes it for."""

import math

from badge.strategies.explain import Explanation

TYPICAL = "A typical item: many others are like it. There is no model yet that could choose."
RANDOM = "Drawn at random: there is no model yet that could choose."
WHILE_PICKING = "Drawn at random, so that you need not wait: the next batch is being chosen."
TEST = "Part of the test sample: drawn at random, never trained on, it shows how good the model really is."
UNKNOWN = "Picked by the model."
BETWEEN = "Between two batches"
#: probability of the best guess above which a model counts as sure
SURE = 0.95


def reasons(why: Explanation, pool: int) -> list[str]:
    """One text per pick: how unsure the model is, how new the item is in its batch, how many it stands for.

    >>> import badge
    >>> out = badge.Outputs([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> print(reasons(badge.explain(out, [0, 2]), 3)[0])
    The model is torn: its best guess gets 50 %. It is the first pick of its batch. 2 of 3 items are nearest to it.
    """
    spread = sorted(distance for distance in why.nearest.tolist() if math.isfinite(distance))
    middle = spread[len(spread) // 2] if spread else 0.0
    texts = []
    for confidence, distance, covered in zip(why.confidence, why.nearest, why.coverage, strict=True):
        parts = [_unsure(float(confidence)), _new(float(distance), middle)]
        if covered > 1 and confidence <= SURE:  # items that it is sure of lie together, near any pick there
            parts.append(f"{int(covered):,} of {pool:,} items are nearest to it.")
        texts.append(" ".join(parts))
    return texts


def _unsure(confidence: float) -> str:
    share = f"its best guess gets {confidence:.0%}".replace("%", " %")
    if confidence <= 0.5:
        return f"The model is torn: {share}."
    if confidence <= 0.8:
        return f"The model is unsure: {share}."
    if confidence <= SURE:
        return f"The model leans one way: {share}."
    return f"The model seems sure ({share}), and a surprise here would teach it much."


def _new(distance: float, middle: float) -> str:
    if not math.isfinite(distance):
        return "It is the first pick of its batch."
    if distance == 0:
        return "It teaches the same as an earlier pick: little else was left."
    return "It is unlike the earlier picks of its batch." if distance >= middle else "It is close to an earlier pick."
