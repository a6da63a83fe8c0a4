"""A network on several devices: each has a copy of it, and batches go to them in turn."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from badge.errors import ModelError
from badge.models.network import Network, Said


class Replicas:
    """Copies of a network on the devices of a list; the first device has the network itself.

    Every device is asked before the first answer is read: devices work while the host waits for one of them.
    """

    def __init__(self, network: Network, devices: Sequence[torch.device]) -> None:
        self.network, self.devices = network, devices

    def __enter__(self) -> Replicas:
        first, options = self.network, self.network.options
        with ExitStack() as stack:
            networks = [Network(first.model, replace(options, device=self.devices[0]))]
            for device in self.devices[1:]:
                networks.append(Network(_copied(first.model), replace(options, device=device)))
            self.runs = [stack.enter_context(network) for network in networks]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self.runs.clear()
        self._stack.close()

    def answers(self, batches: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Said]]:
        """(rows, what the network said) of each batch, in order."""
        left = iter(batches)
        while some := list(islice(left, len(self.runs))):
            said = [run(rows, batch) for run, (rows, batch) in zip(self.runs, some, strict=False)]
            yield from zip((rows for rows, _ in some), said, strict=True)


def _copied(model: torch.nn.Module) -> torch.nn.Module:
    try:
        return copy.deepcopy(model)
    except (RuntimeError, TypeError, ValueError, AttributeError, NotImplementedError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"a list of devices needs copies of the model, and it cannot be copied: {reason}") from error
