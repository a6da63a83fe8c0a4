"""Files of tests live in memory where there is room: many tests wait for a disk to confirm what they wrote."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

MEMORY, ROOM_BYTES = Path("/dev/shm"), 4 * 2**30


def pytest_configure(config: pytest.Config) -> None:
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
