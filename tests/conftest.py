"""Where tests put their files, and how they are shared among the processes of pytest-xdist."""

from __future__ import annotations

import atexit
import gc
import os
import re
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

MEMORY, ROOM_BYTES = Path("/dev/shm"), 4 * 2**30
#: What these files share takes seconds to start: a cluster, the built site, the process of tests/support/forks.py.
#: One process of pytest-xdist runs all files of a group.
TOGETHER = {
    "cluster": r"cluster/test_cluster_(cells|predict|select|waiting)",
    "site": r"site/",
    "forks": r"labelling/test_(images_seen|page|page_kill|page_trust|right_class|session|team)\.py|features/"
    r"|learner/test_(attacks|kill|web_service)|experiment/test_(failures|same_bits)"
    r"|models/test_predict_pools|outputs/test_outputs_(lock|store)|strategies/test_select",
}
#: Long rooms begin first, so that all processes end at about the same time.
FIRST = ("cluster", "labelling", "site", "samplers", "learner", "core", "benchmarks", "testing")


def pytest_configure(config: pytest.Config) -> None:
    """Many tests wait for a disk to confirm what they wrote: their files live in memory where there is room."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    atexit.register(gc.freeze)  # at its end a process would look through all that it imported, for two seconds


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
    """One process runs all tests of a file, or of a group of files: what they share is made once."""
    from xdist.scheduler import LoadFileScheduling

    class ByFileOrGroup(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return next((group for group, files in TOGETHER.items() if re.search(files, file)), file)

    config.option.loadscopereorder = False
    return ByFileOrGroup(config, log)
