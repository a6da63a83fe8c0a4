"""Where tests put their files, and how they are shared among the processes of pytest-xdist."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

MEMORY, ROOM_BYTES = Path("/dev/shm"), 4 * 2**30
#: The tests of these rooms share a cluster, or the built site: one process runs all of them.
TOGETHER = ("cluster", "site")
#: These of them need none of it.
APART = ("test_cluster_session.py", "test_cluster_beside.py")
#: Long rooms begin first, so that all processes end at about the same time.
FIRST = (*TOGETHER, "labelling", "samplers", "learner", "core", "benchmarks", "testing")


def pytest_configure(config: pytest.Config) -> None:
    """Many tests wait for a disk to confirm what they wrote: their files live in memory where there is room."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported here stays until the end: the garbage collector need not look through it meanwhile."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()  # not gc.freeze(): behind it hypothesis 6.100 takes tests for flaky


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {room: place for place, room in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.parent.name, len(order)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One process runs all tests of a file: what they share is made once."""
    from xdist.scheduler import LoadFileScheduling

    class ByFileOrRoom(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            room, name = Path(file).parts[-2:]
            return room if room in TOGETHER and name not in APART else file

    config.option.loadscopereorder = False
    return ByFileOrRoom(config, log)
