"""The machine that the figures are from, and what was measured on it."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["describe"]

PEERS = ("scikit-learn", "scikit-activeml", "bmdal-reg", "dppy")


def describe() -> dict[str, Any]:
    """CPU, cores, memory, versions and BLAS, and the commit of the code where it is known.

    >>> sorted(describe())[:4]
    ['blas', 'caches', 'commit', 'cores']
    """
    import numpy as np
    import torch

    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "caches": _caches(),
        "memory_bytes": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "blas": f"{blas.group(1) if blas else 'unknown'}, {torch.backends.cpu.get_cpu_capability()}",
        "peers": {name: _version(name) for name in PEERS},
        "commit": _commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _cpu() -> str:
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found.group(1).strip() if found else platform.processor() or platform.machine()


def _caches() -> str:
    sizes = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((index / f).read_text(encoding="ascii").strip() for f in ("level", "type", "size"))
        if kind != "Instruction":
            sizes.append(f"L{level} {size}")
    return ", ".join(sizes)


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the clone that badge runs from, marked where files in it were changed; None where it is installed."""
    folder = Path(__file__).parent
    try:
        command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--exclude=*"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.strip() or None
