"""Run by test_threads.py: many threads predict with one model, some through a second model that shares its layers.

`python predict_from_threads.py --threads 64 --times 1000`. Meanwhile another thread runs one of the models itself. Every
answer must be that of one thread, and the modes of all modules must be what they were. Prints the counts. Not a test module.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter

import torch
from torch import Tensor, nn

import badge


class Wrapper(nn.Module):
    """Another model around the same layers: what it shares is shared with every pass."""

    def __init__(self, body: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.body, self.head = body, head

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))  # type: ignore[no-any-return]


def main(threads: int, times: int) -> Counter[str]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5))
    models = [
        nn.Sequential(body, nn.Linear(16, 3)),
        Wrapper(body, nn.Linear(16, 4)),
        Wrapper(nn.ReLU(), nn.Linear(6, 2)),
    ]
    models[0].train()
    models[1].head.eval()
    pools = [torch.randn(n, 6) for n in (1, 5, 40)]
    modes = [[m.training for m in model.modules()] for model in models]
    right = {(i, j): badge.predict(m, x, batch_size=16) for i, m in enumerate(models) for j, x in enumerate(pools)}
    found: Counter[str] = Counter()
    over = threading.Event()

    def predicts(number: int) -> None:
        for turn in range(times):
            i, j = (number + turn) % len(models), (number * 7 + turn) % len(pools)
            try:
                out = badge.predict(models[i], pools[j], batch_size=16)
            except Exception as error:
                found[f"raised {type(error).__name__}: {str(error)[:80]}"] += 1
                continue
            same = right[i, j]
            wrong = not torch.equal(out.probabilities, same.probabilities)
            found["wrong probabilities"] += wrong
            found["wrong embeddings"] += not torch.equal(out.embeddings, same.embeddings)
            found["answers"] += 1

    def runs() -> None:
        try:
            with torch.no_grad():
                while not over.is_set():
                    models[2](pools[2])
        except Exception as error:
            found[f"the model itself raised {type(error).__name__}"] += 1

    other = threading.Thread(target=runs)
    other.start()
    workers = [threading.Thread(target=predicts, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    over.set()
    other.join()
    found["modes changed"] = sum(
        a != b.training for was, m in zip(modes, models, strict=True) for a, b in zip(was, m.modules(), strict=True)
    )
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--times", type=int, default=1000)
    given = parser.parse_args()
    counts = main(given.threads, given.times)
    print({name: count for name, count in counts.items() if count})
    sys.exit(any(count for name, count in counts.items() if name != "answers"))
