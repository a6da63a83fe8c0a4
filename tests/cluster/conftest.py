"""One Ray cluster of three nodes on this machine for all tests of this folder; a test may kill nodes: they are made anew.

Each process of pytest-xdist that runs such tests has its own cluster: tests reach into no other than theirs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

import ray_workers
from badge.cluster.session import require_ray
from badge.errors import MissingExtraError
from object_store import environment, s3_settings
from pages import free_port

with contextlib.suppress(MissingExtraError):  # tests that need Ray are skipped without it
    require_ray()
#: Ray leaves sockets and files to the garbage collector
QUIET = ["ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::DeprecationWarning"]
QUIET.append("ignore:waiting for .* of the Ray cluster:UserWarning")  # on a busy machine
#: A node whose socket is closed is known to be dead after a second; one that is merely slow has ten seconds for each answer.
WATCHFUL = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 300, "health_check_failure_threshold": 3}
#: Processes of workers outlive the second that Ray gives them: each needs seconds to import torch.
WATCHFUL["idle_worker_killing_time_threshold_ms"] = 600_000
#: Ray makes them nice, so that they would stand still while other tests compute.
WATCHFUL["worker_niceness"] = 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The test that kills two nodes comes last: they need not be made anew."""
    items.sort(key=lambda item: item.path.name == "test_cluster_cells.py")
    for item in items:
        if "cluster" in item.path.parent.name:
            for line in QUIET:
                item.add_marker(pytest.mark.filterwarnings(line))


class Nodes:
    """The head and two more, one CPU each."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.s3_port, self.cache = free_port(), tempfile.mkdtemp()
        os.environ["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        self.forks = ray_workers.Forks(self.cache)
        self.each = {"num_cpus": 1, "object_store_memory": 78 * 2**20, "setup_worker_path": ray_workers.__file__}
        self.each["include_log_monitor"] = False
        head = {**self.each, "include_dashboard": False, "no_monitor": True, "_system_config": WATCHFUL}
        with self.settings():
            self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.others = [self.add() for _ in range(2)]

    def settings(self) -> contextlib.AbstractContextManager[None]:
        """The environment of the nodes: where a test may start an object store, and their cache."""
        own = {"XDG_CACHE_HOME": self.cache, ray_workers.AT: self.forks.path}
        return environment({**s3_settings(self.s3_port), **own})

    def add(self, **more: Any) -> Any:
        with self.settings():
            return self.cluster.add_node(**self.each, **more)

    def kill(self, number: int) -> None:
        """SIGKILL to all processes of a node."""
        self.cluster.remove_node(self.others.pop(number), allow_graceful=False)

    def mend(self) -> None:
        while len(self.others) < 2:
            self.others.append(self.add())
        self.cluster.wait_for_nodes()


@pytest.fixture(scope="session")
def started() -> Iterator[Nodes]:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    nodes = Nodes()
    ray.init(address=nodes.cluster.address, logging_level="ERROR", log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.cluster.shutdown()
    nodes.forks.close()
    shutil.rmtree(nodes.cache, ignore_errors=True)


@pytest.fixture
def nodes(started: Nodes) -> Nodes:
    started.mend()
    return started
