"""How often the host waits for a device in a selection, counted on a device without hardware (`stand_in`)."""

from __future__ import annotations

from dataclasses import dataclass
from unittest import mock

import torch

import badge
from badge.samplers.driver import Driver
from benchmarks import inputs
from benchmarks.bars import Bar, Lab
from benchmarks.inputs import Input
from benchmarks.stand_in import DEVICE, present

__all__ = ["Waits", "devices", "waits"]

#: strategy, k
CASES = (("badge", 100), ("badge", 1_000), ("badge", 10_000), ("kcenter-grad", 1_000), ("coreset", 100))
LABELED = 10


@dataclass(frozen=True)
class Waits:
    """Waits and rounds of a selection there, and whether its picks are those on the host."""

    waits: int
    rounds: int
    same: bool

    @property
    def per_round(self) -> float:
        return self.waits / self.rounds


def waits(outputs: badge.Outputs, strategy: str, k: int) -> Waits:
    """The waits of one selection, from outputs that are on the device to positions on the host."""
    rounds, tell = 0, Driver.tell

    def counting(self: Driver, message: object, arguments: object) -> object:
        nonlocal rounds
        rounds += getattr(message, "__name__", "") in ("survivors", "top")
        return tell(self, message, arguments)  # type: ignore[arg-type]

    def there(x: torch.Tensor) -> torch.Tensor:
        return x.to(DEVICE)

    labeled = outputs[:LABELED] if strategy == "coreset" else None
    here = badge.select_from(outputs, k, strategy, seed=1, labeled=labeled)
    with mock.patch.object(Driver, "tell", counting):
        with present():
            moved, given = outputs.map(there), None if labeled is None else labeled.map(there)
        with present() as traffic:
            found = badge.select_from(moved, k, strategy, seed=1, labeled=given)
    return Waits(traffic.total, rounds, found.tolist() == here.tolist())


def devices(lab: Lab, rows: int = 60_000) -> list[Bar]:
    """Waits in one round of each sampler that goes in rounds."""
    bars, outputs = [], inputs.load(Input("skewed", rows, 10, 256))
    for strategy, k in CASES:
        lab.tell(f"waits of {strategy}, k = {k:,}")
        found = waits(outputs, strategy, k)
        note = f"{found.waits} waits in {found.rounds} rounds; the picks are {'' if found.same else 'not '}those on the host"
        what = f"{strategy}, N = {rows:,}, (10, 256), k = {k:,}: waits for a device in a round"
        bars.append(Bar("devices", what, "≤", 15, 5, found.per_round, "waits", lab.threads, note))
    return bars
