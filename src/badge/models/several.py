"""A batch for several models: copies of a network on several devices, several passes with dropout, an ensemble."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from badge.errors import ModelError, in_short
from badge.models.borrowed import in_mode
from badge.models.estimator import Estimator
from badge.models.network import Network, Run, Said, unchanged
from badge.outputs import Outputs
from badge.strategies.bald import mean_of


class Replicas:
    """Copies of a network on the devices of a list; the first device has the network itself.

    Every device is asked before the first answer is read: devices work while the host waits for one of them.
    """

    def __init__(self, network: Network, devices: Sequence[torch.device]) -> None:
        self.network, self.devices = network, devices

    @contextmanager
    def running(self) -> Iterator[Replicas]:
        first, options = self.network.model, self.network.options
        try:
            models = [first, *(copy.deepcopy(first) for _ in self.devices[1:])]
        except (RuntimeError, TypeError, ValueError, AttributeError, NotImplementedError) as error:
            way = "a list of devices needs copies of the model, and it cannot be copied"
            raise ModelError(f"{way}: {in_short(error)}") from error
        with ExitStack() as stack:
            networks = [Network(m, replace(options, device=d)) for m, d in zip(models, self.devices, strict=True)]
            self.runs = [stack.enter_context(network.running()) for network in networks]
            stack.callback(self.runs.clear)
            yield self

    def answers(self, batches: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Said]]:
        """(rows, what the network said) of each batch, in order."""
        left = iter(batches)
        while some := list(islice(left, len(self.runs))):
            said = [run(rows, batch) for run, (rows, batch) in zip(self.runs, some, strict=False)]
            yield from zip((rows for rows, _ in some), said, strict=True)


class Members:
    """Runs each batch several times and keeps the mean probabilities, and the mean entropy of the single answers.

    One network with `passes`: its dropout layers are on, and all else is in eval mode; the embeddings come from a pass
    without dropout. Several models: each answers once, and the embeddings are those of the first.
    """

    def __init__(self, runners: Sequence[Network | Estimator], passes: int | None = None) -> None:
        self.runners, self.passes = runners, passes
        _check_same_classes([one.final for one in runners if isinstance(one, Estimator)])
        self.entropies: list[Tensor] = []
        modules = runners[0].model.modules() if isinstance(runners[0], Network) else ()
        self.layers: list[nn.Module] = [m for m in modules if isinstance(m, nn.modules.dropout._DropoutNd)]
        if passes and not self.layers:
            without = "several passes differ by dropout, and the model has no dropout layers"
            raise ModelError(without, in_python="pass a list of models")

    @contextmanager
    def running(self) -> Iterator[Members]:
        self.entropies = []
        with ExitStack() as stack:
            self.runs = [cast(Run, stack.enter_context(runner.running())) for runner in self.runners]
            if self.passes:
                torch.manual_seed(0)  # the runner gives the random state back; the same passes give the same numbers
            yield self

    def __call__(self, rows: int, batch: Any) -> Said:
        first = self.runs[0](rows, batch)
        together = mean_of(self._answers(first, rows, batch))
        assert together.expected_entropy is not None
        self.entropies.append(together.expected_entropy[:])
        return first._replace(scores=together.probabilities.float(), link=unchanged)

    def _answers(self, first: Said, rows: int, batch: Any) -> Iterator[Outputs]:
        if not self.passes:
            yield _outputs(first)
            yield from (_outputs(run(rows, batch)) for run in self.runs[1:])
            return
        with in_mode(self.layers, training=True):
            for _ in range(self.passes):
                yield _outputs(self.runs[0](rows, batch))


def _check_same_classes(finals: Sequence[Any]) -> None:
    """Columns are averaged: they must stand for the same classes, where estimators say which; of each output they have."""
    said = [one.classes_ for one in finals if getattr(one, "classes_", None) is not None]
    known = [[np.asarray(c).tolist() for c in x] if isinstance(x, list) else np.asarray(x).tolist() for x in said]
    for other in known[1:]:
        if other != known[0]:
            both = " and on ".join(in_short(classes, 60) for classes in (known[0], other))
            raise ModelError(f"the models of an ensemble were fitted on {both}: fit all of them on the same classes")


def _outputs(said: Said) -> Outputs:
    return Outputs.trusted(said.probabilities, None, multilabel=said.multilabel)
