"""Several answers to one batch, by dropout or by the members of an ensemble, told as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

from badge.errors import ModelError
from badge.models.estimator import Estimator
from badge.models.network import Network, Run, Said, unchanged
from badge.outputs import Outputs
from badge.strategies.bald import mean_of


class Members:
    """Runs each batch several times and keeps the mean probabilities, and the mean entropy of the single answers.

    One network with `passes`: its dropout layers are on, and all else is in eval mode; the embeddings come from a pass
    without dropout. Several models: each answers once, and the embeddings are those of the first.
    """

    def __init__(self, runners: Sequence[Network | Estimator], passes: int | None = None) -> None:
        self.runners, self.passes = runners, passes
        self.entropies: list[Tensor] = []
        self.layers: list[nn.Module] = [m for m in _modules(runners[0]) if isinstance(m, nn.modules.dropout._DropoutNd)]
        if passes and not self.layers:
            raise ModelError(
                "several passes differ by dropout, and the model has no dropout layers",
                in_python="pass a list of models",
            )

    def __enter__(self) -> Members:
        with ExitStack() as stack:
            self.entropies = []
            self.runs = [cast(Run, stack.enter_context(runner)) for runner in self.runners]
            if self.passes:
                torch.manual_seed(0)  # the runner gives the random state back; the same passes give the same numbers
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

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
        with _on(self.layers):
            for _ in range(self.passes):
                yield _outputs(self.runs[0](rows, batch))


@contextmanager
def _on(layers: list[nn.Module]) -> Iterator[None]:
    try:
        for layer in layers:
            layer.training = True
        yield
    finally:
        for layer in layers:
            layer.training = False


def _modules(runner: Network | Estimator) -> Iterator[nn.Module]:
    return runner.model.modules() if isinstance(runner, Network) else iter(())


def _outputs(said: Said) -> Outputs:
    return Outputs.trusted(said.probabilities, None, multilabel=said.multilabel)
