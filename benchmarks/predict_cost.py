"""What `badge.predict` costs over the bare loop that any user would write: the ratio, measured in one run.

The network is the ResNet-18 for 32 × 32 images. The bare loop runs it in eval mode without gradients and keeps its
logits. Both run in turn on the same batches, so that a slow moment of the machine hits both alike.

    python -m benchmarks.predict_cost --images 512 --batch-size 64 --width 16
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from badge.models import predict
from badge.training.networks import resnet18

__all__ = ["bare_loop", "main", "measure"]


def bare_loop(model: nn.Module, images: Tensor, batch_size: int) -> Tensor:
    """The logits of every image: the least that a pass can do."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(images[a : a + batch_size]) for a in range(0, len(images), batch_size)])


def measure(
    images: int = 512, batch_size: int = 64, width: int = 16, repeats: int = 5, threads: int = 1
) -> dict[str, Any]:
    """Seconds of both, and the median over pairs of runs of the ratio predict / bare.

    >>> measure(images=8, batch_size=4, width=2, repeats=1)["ratio"] > 0
    True
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        generator = torch.Generator().manual_seed(0)
        model = resnet18(10, width=width).eval()
        pool = torch.randn(images, 3, 32, 32, generator=generator)
        ways: dict[str, Callable[[], Any]] = {
            "bare": lambda: bare_loop(model, pool, batch_size),
            "predict": lambda: predict(model, pool, batch_size=batch_size),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        cpu: dict[str, list[float]] = {name: [] for name in ways}
        for repeat in range(repeats + 1):
            for name in sorted(ways, reverse=bool(repeat % 2)):  # each goes first in half of the pairs
                start, cpu_start = time.perf_counter(), time.process_time()
                ways[name]()
                if repeat:  # the first pair warms up
                    seconds[name].append(time.perf_counter() - start)
                    cpu[name].append(time.process_time() - cpu_start)
    finally:
        torch.set_num_threads(before)
    ratios, cpu_ratios = ([b / a for a, b in zip(t["bare"], t["predict"], strict=True)] for t in (seconds, cpu))
    return {
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "cpu_ratio": statistics.median(cpu_ratios),  # of processor time: steady also where the machine is shared
        "bare_seconds": statistics.median(seconds["bare"]),
        "predict_seconds": statistics.median(seconds["predict"]),
        "images": images,
        "batch_size": batch_size,
        "width": width,
        "threads": threads,
        "torch": torch.__version__,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the measurement as JSON."""
    parser = argparse.ArgumentParser(
        description="Cost of badge.predict over a bare eval-mode loop that keeps its logits."
    )
    for name, default in (("images", 512), ("batch-size", 64), ("width", 16), ("repeats", 5), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(measure(**vars(parser.parse_args(arguments))), indent=1))


if __name__ == "__main__":
    main()
