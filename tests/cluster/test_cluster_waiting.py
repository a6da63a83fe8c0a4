"""Waits for a cluster: they are said and they end; room for shards; shards that are killed under load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import badge
import badge.cluster
from badge.cluster import shards, waiting
from badge.cluster.session import Resources
from badge.cluster.shards import RayShards, room
from badge.errors import ClusterError


class Deserted:
    """Ray, of which no node is left that could compute; or not even that of this process."""

    def __init__(self, home: str) -> None:
        self.home = home

    def wait(self, refs: Any, **options: Any) -> Any:
        return [], refs

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(gcs_address="127.0.0.1:1", get_node_id=lambda: self.home)

    def nodes(self) -> list[dict[str, Any]]:
        place = {"NodeManagerAddress": "127.0.0.1", "NodeManagerPort": 1}
        return [
            {"NodeID": "a", "Alive": False, "Resources": {"CPU": 8.0}, **place},
            {"NodeID": "b", "Alive": True, "Resources": {}, **place},
        ]


@pytest.mark.parametrize(("home", "message"), [("a", "the node of this process is gone"), ("b", "no node of the Ray")])
def test_all_nodes_gone_is_one_line(home: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", -1.0)
    monkeypatch.setattr(waiting, "answers_at", lambda host, port: True)
    with pytest.raises(ClusterError, match=message) as caught:
        waiting.get(Deserted(home), ["something"], "answers")
    assert "\n" not in str(caught.value)


def test_nothing_is_fetched_from_a_node_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would end this process without a word."""

    class Gone(Deserted):
        def wait(self, refs: Any, **options: Any) -> Any:
            return refs, []

        def get(self, refs: Any, timeout: float) -> Any:
            raise AssertionError("fetched")

    monkeypatch.setattr(waiting, "_homes", {})
    monkeypatch.setattr(waiting, "answers_at", lambda host, port: False)
    with pytest.raises(ClusterError, match="the node of this process is gone"):
        waiting.get(Gone("a"), ["something"], "answers")


def test_a_wait_says_what_it_waits_for_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Deserted):
        def nodes(self) -> list[dict[str, Any]]:
            return [{**node, "Alive": True} for node in super().nodes()]

    monkeypatch.setattr(waiting, "answers_at", lambda host, port: True)
    monkeypatch.setattr(waiting, "SAY_SECONDS", -1.0)
    said = pytest.warns(UserWarning, match=r"waiting for 1 of 1 shards of the Ray cluster, 0 s so far")
    with said, pytest.raises(ClusterError, match=r"waited 0 s for 1 of 1 shards of the Ray cluster: a rerun"):
        waiting.ready(Slow("a"), ["something"], "shards", limit=0.005)


@pytest.mark.parametrize(
    ("given", "shards", "bundle"),
    [
        ((None, None, None), 3, {"CPU": 1.0}),
        ((None, None, None), 7, {"CPU": 0.3333}),
        ((2, 0.5, 10**9), 3, {"CPU": 2.0, "GPU": 0.5, "memory": 10**9}),
        ((0, None, None), 3, {}),
    ],
)
def test_what_is_reserved_for_a_shard(given: Any, shards: int, bundle: dict[str, float]) -> None:
    three = SimpleNamespace(cluster_resources=lambda: {"CPU": 3.0})
    assert Resources.of(*given).bundle(three, shards) == bundle


def test_copies_of_the_model_by_what_each_needs() -> None:
    ray = SimpleNamespace(cluster_resources=lambda: {"CPU": 8.0, "GPU": 2.0})
    assert (Resources().workers(ray), Resources().of_workers(ray)) == (2, {"num_cpus": 1.0, "num_gpus": 1.0})
    assert Resources.of(None, 0.5, None).workers(ray) == 4
    big = Resources.of(4, 0, 10**9)
    assert (big.workers(ray), big.of_workers(ray), big.threads) == (2, {"num_cpus": 4.0, "memory": 10**9}, 4)


def where(actors: list[Any]) -> list[str]:
    import ray

    def node(host: Any) -> str:
        return str(ray.get_runtime_context().get_node_id())

    return list(ray.get([actor.__ray_call__.remote(node) for actor in actors]))


def test_one_shard_on_each_node_and_no_room_is_one_line(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    rng = np.random.default_rng(0)
    pool = badge.predict(torch_layer(), rng.normal(size=(13_000, 4)).astype("float32"), out=tmp_path)
    seen: list[list[str]] = []
    ask = RayShards.ask

    def looking(self: RayShards, *given: Any) -> Any:
        seen.append([*where(self.actors)])
        assert ray.available_resources().get("CPU", 0) == 0  # reserved for the shards, as long as they work
        return ask(self, *given)

    monkeypatch.setattr(RayShards, "ask", looking)
    expected = badge.select_from(pool, 20).tolist()
    for _ in range(2):  # the second uses the processes of the first
        assert badge.cluster.select_from(pool, 20, shards=3).tolist() == expected
    assert {len(set(homes)) for homes in seen} == {3}, seen
    monkeypatch.setattr(shards, "ROOM_SECONDS", 0.0)
    with pytest.raises(
        ClusterError, match=r"room for 3 shards with 2 CPU each \(3 CPU free\) .*ask for less by shards="
    ):
        badge.cluster.select_from(pool, 20, shards=3, num_cpus=2)
    with room(ray, 3, Resources()) as homes:
        assert len(set(homes)) == 3


def torch_layer() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Linear(4, 3)


@pytest.fixture
def load() -> Iterator[None]:
    """Another process wants a core."""
    hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    hog.kill()
    hog.wait()


def test_shards_killed_under_load(nodes: Any, load: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same picks. One that dies after each answer is given up, since each time costs the start of a process."""
    rng = np.random.default_rng(0)
    pool = badge.predict(torch_layer(), rng.normal(size=(13_000, 4)).astype("float32"), out=tmp_path)
    kills: list[int] = []
    most = 1
    ask = RayShards.ask

    def killing(self: RayShards, message: Any, arguments: Any) -> Any:
        if len(kills) < most and kills[-1:] != [self.rounds - 1]:
            kills.append(self.rounds)
            actor = self.actors[0]
            if len(kills) % 2:  # while it works
                threading.Timer(0.02, self.ray.kill, [actor]).start()
            else:
                with suppress(self.ray.exceptions.RayActorError):  # it may be dead already
                    os.kill(self.ray.get(actor.__ray_call__.remote(lambda host: os.getpid())), signal.SIGKILL)
        return ask(self, message, arguments)

    monkeypatch.setattr(RayShards, "ask", killing)
    monkeypatch.setattr(shards, "DEATHS", 2)
    assert badge.cluster.select_from(pool, 300, shards=2).tolist() == badge.select_from(pool, 300).tolist()
    assert len(kills) == 1
    kills.clear()
    most = 99
    with pytest.raises(ClusterError, match="shard 0 died 2 times"):
        badge.cluster.select_from(pool, 300, shards=2)
