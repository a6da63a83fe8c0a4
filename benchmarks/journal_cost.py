"""What it takes to open a long journal: `python -m benchmarks.journal_cost`.

A journal of 400,000 events, labels told one by one in batches of 50, opened with the state beside it and without. The bar
is 2 s and 100 MB.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from badge.journal.events import Ask, Header, Initial, PoolId, Record, Tell
from badge.journal.last import Last, digest, write_last
from badge.journal.lines import encode
from badge.learner import ActiveLearner
from badge.training import Frozen

__all__ = ["main", "measure", "write_long"]

#: seconds that opening may take
LIMIT = 2.0
#: opens a journal, and prints the seconds of processor time and the bytes of memory that it took
OPEN = """
import sys, time
import numpy as np
import torch
from badge.learner import ActiveLearner
from badge.training import Frozen

def resident():
    return 1024 * int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1])

pool, trainer = np.zeros((int(sys.argv[2]), 1)), Frozen(torch.nn.Identity())
memory, started = resident(), time.process_time()
learner = ActiveLearner(pool, trainer, classes=2, journal=sys.argv[1], strategy="rand")
print(time.process_time() - started, resident() - memory)
"""


def write_long(path: Path, events: int, pool: int) -> None:
    """A journal of about that many events."""
    records: list[Record] = [
        Header(
            format=2, pool=PoolId(length=pool, digest=None), classes=2, strategy="rand", seed=0, picks=1,
            initial=Initial(ids=[], labels=[]),
        )
    ]  # fmt: skip
    for round, first in enumerate(range(0, events * 50 // 51 - 50, 50)):
        records.append(Ask(round=round, ids=list(range(first, first + 50))))
        records += [Tell(ids=[id], labels=[id % 2], by="ann") for id in range(first, first + 50)]
    lines = [encode(n, record.event()) for n, record in enumerate(records, start=1)]
    path.write_bytes(b"".join(lines))
    write_last(path, Last(digest(lines[0][:-1]), len(lines), digest(lines[-1][:-1])))


def measure(events: int = 400_000) -> dict[str, Any]:
    """Seconds and bytes of one opening with the state, and the seconds without; `ratio` is that of the limit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.jsonl"
        pool = np.zeros((events, 1))
        write_long(path, events, len(pool))
        without = _opened(path, events)
        with ActiveLearner(pool, Frozen(torch.nn.Identity()), classes=2, journal=path, strategy="rand"):
            pass
        seconds, memory = _opened(path, events)
    return {"ratio": seconds / LIMIT, "seconds": seconds, "bytes": memory, "seconds_without": without[0]}


def _opened(path: Path, events: int) -> tuple[float, float]:
    told = subprocess.run(
        [sys.executable, "-c", OPEN, str(path), str(events)], capture_output=True, check=True, text=True
    )
    seconds, memory = map(float, told.stdout.split())
    return seconds, memory


def main() -> None:
    """Print the figures; exit code 1 where opening takes more than 2 s."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.journal_cost", description=__doc__)
    parser.add_argument("--events", type=int, default=400_000)
    found = measure(parser.parse_args().events)
    print("{seconds:.2f} s, {bytes:,.0f} bytes; without the state {seconds_without:.2f} s".format(**found))
    raise SystemExit(found["ratio"] > 1)


if __name__ == "__main__":
    main()
