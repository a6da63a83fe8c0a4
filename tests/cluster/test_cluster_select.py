"""`badge.cluster.select_from`: the picks of one machine, bit for bit, over any shards, whoever dies on the way."""

from __future__ import annotations

import doctest
import os
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import badge
import badge.cluster
from badge.cluster.shards import RayShards, cuts, spares
from badge.errors import InputError
from badge.features import gradient_embedding
from badge.samplers.shard import Shard
from badge.samplers.topk import Scores
from parted_pool import DONE, N, halves, on_disk


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> badge.Outputs:
    return on_disk(tmp_path_factory.mktemp("pool") / "parts", N)


class Killing(RayShards):
    """Kills the process of a shard before it is asked for the first time for each kind of message; counts the kinds."""

    seen: ClassVar[list[str]] = []
    nodes: ClassVar[list[Any]] = []  #: of which one is killed at the second message about survivors

    def ask(self, message: Any, arguments: Mapping[int, tuple[Any, ...]]) -> Mapping[int, Any]:
        if message.__name__ not in self.seen:
            self.seen.append(message.__name__)
            victim = self.actors[max(arguments)]
            with suppress(self.ray.exceptions.RayActorError):  # one of an earlier test died with its node
                os.kill(self.ray.get(victim.__ray_call__.remote(lambda host: os.getpid())), signal.SIGKILL)
        elif message is Shard.survivors and self.nodes:
            self.nodes.pop().kill(0)
        return super().ask(message, arguments)


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Killing]]:
    monkeypatch.setattr("badge.cluster.shards.RayShards", Killing)
    Killing.seen.clear()
    Killing.nodes.clear()
    yield Killing


def test_shards_and_a_node_that_die_change_no_pick(nodes: Any, pool: badge.Outputs, killing: type[Killing]) -> None:
    killing.nodes.append(nodes)
    options: dict[str, Any] = {"k": 60, "seed": 5, "exclude": DONE}
    picks = badge.cluster.select_from(pool, shards=3, **options)
    assert picks.tolist() == badge.select_from(pool, **options).tolist()
    assert killing.seen == ["rows", "segments", "survivors"] and not killing.nodes
    assert pool.ids is not None and pool.ids[picks].tolist() == (picks * 3).tolist()


def kept_actors(ray: Any) -> list[Any]:
    return [actor for actors in spares(ray).values() for actor in actors]


def test_processes_are_used_again_also_where_one_has_died_since(nodes: Any, pool: badge.Outputs) -> None:
    options: dict[str, Any] = {"k": 30, "seed": 5}
    expected = badge.select_from(pool, **options).tolist()
    assert badge.cluster.select_from(pool, shards=3, **options).tolist() == expected
    ray = pytest.importorskip("ray")

    def of_each(look: Any) -> list[Any]:
        found: list[Any] = []
        for actor in kept_actors(ray):
            with suppress(ray.exceptions.RayActorError):  # it died in a test before this one
                found.append(ray.get(actor.__ray_call__.remote(look)))
        return found

    def processes() -> list[int]:
        return of_each(lambda host: os.getpid())

    before = processes()
    assert len(before) >= 3  # one on each node
    assert not any(of_each(lambda host: host.shard is not None))
    assert badge.cluster.select_from(pool, shards=3, **options).tolist() == expected
    assert sorted(processes()) == sorted(before)
    os.kill(before[-1], signal.SIGKILL)
    assert badge.cluster.select_from(pool, shards=3, **options).tolist() == expected
    assert before[-1] not in processes()


def test_processes_at_work_are_not_waited_for(nodes: Any, pool: badge.Outputs) -> None:
    """A selection that ends in the middle of a round, by an error or an interrupt, leaves no process behind."""
    ray = pytest.importorskip("ray")
    kept = len(kept_actors(ray))
    home = ray.get_runtime_context().get_node_id()
    shards = RayShards(ray, gradient_embedding(pool), Shard, cuts(N, 2), [home, ""])
    actors = list(shards.actors)
    with pytest.raises(AttributeError):
        shards.ask(Scores.highest, {0: (3,), 1: (3,)})  # these are no scores
    shards.close()
    assert all(spare not in actors for spare in kept_actors(ray)) and len(kept_actors(ray)) <= kept
    for actor in actors:
        with pytest.raises(ray.exceptions.RayActorError):
            for _ in range(300):  # Ray's kill does not wait
                ray.get(actor.drop.remote())
                time.sleep(0.1)


@pytest.mark.parametrize(("strategy", "messages"), [("coreset", ["top"]), ("conf", ["highest", "above", "level"])])
def test_the_other_samplers(
    strategy: str, messages: list[str], nodes: Any, pool: badge.Outputs, killing: type[Killing]
) -> None:
    options: dict[str, Any] = {"k": 40, "seed": 5, "strategy": strategy, "exclude": DONE}
    assert pool.directory is not None
    picks = badge.cluster.select_from(pool.directory, shards=2, **options)
    assert picks.tolist() == badge.select_from(pool, **options).tolist()
    assert killing.seen == messages


COLD = ("maxherding", "typiclust", "auto")
WARM = (*COLD, "uherding", "probcover", "bait-binary", "bait", "wkmeans", "badge-origin", "power-marg")


@pytest.mark.parametrize("known", ["nothing", "exclude", "labeled"])
def test_strategies_past_the_paper(known: str, nodes: Any, tmp_path: Path) -> None:
    """Those that work over shards, those that look at the whole pool in one process, and cold starts without a label."""
    few = on_disk(tmp_path / "parts", 1_500, 600)
    given = {"exclude": DONE[:50], "labeled": few[:20]}
    rest: dict[str, Any] = {known: given[known]} if known in given else {}
    for strategy in WARM if rest else COLD:
        options: dict[str, Any] = {"k": 8, "seed": 5, "strategy": strategy, **rest}
        picks = badge.cluster.select_from(few, shards=2, **options)
        assert picks.tolist() == badge.select_from(few[:], **options).tolist(), strategy


@pytest.mark.parametrize("strategy", ["bald", "power-bald"])
def test_bald_is_refused_as_on_one_machine(strategy: str, nodes: Any, pool: badge.Outputs, tmp_path: Path) -> None:
    """Outputs on disk hold one answer about each example: what several passes say is kept in memory."""
    said = []
    for select_from in (badge.select_from, badge.cluster.select_from):
        with pytest.raises(
            InputError, match=r"^bald compares several answers .* hold one: use entropy.*passes=20"
        ) as raised:
            select_from(pool, k=5, strategy=strategy)
        said.append(str(raised.value))
    with pytest.raises(InputError) as raised:
        badge.cluster.select(torch.nn.Linear(2, 2), torch.zeros(9, 2), k=5, strategy=strategy, out=tmp_path / "out")
    assert said[0] == said[1] == str(raised.value) and not (tmp_path / "out").exists()  # before the pass


def test_a_strategy_with_options(nodes: Any, tmp_path: Path) -> None:
    """A partial reads what its strategy reads: one that declares nothing would be refused."""
    few = on_disk(tmp_path / "parts", 1_500, 600)
    cases: dict[str, dict[str, Any]] = {"uherding": {}, "bait-binary": {"strength": 0.5}, "power-marg": {"beta": 2.0}}
    for name, given in cases.items():
        strategy = partial(badge.strategies.get(name), **given)
        options: dict[str, Any] = {"k": 8, "seed": 5, "strategy": strategy, "exclude": DONE[:50]}
        picks = badge.cluster.select_from(few, shards=2, **options)
        assert picks.tolist() == badge.select_from(few[:], **options).tolist(), name


@pytest.mark.parametrize("function", [badge.cluster.predict, badge.cluster.select, badge.cluster.select_from])
def test_the_examples_of_the_docstrings(function: Any, nodes: Any) -> None:
    text = (function.__doc__ or "").replace("# doctest: +SKIP", "")
    example = doctest.DocTestParser().get_doctest(text, {function.__name__: function}, function.__name__, None, None)
    assert len(example.examples) == 4
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_bad_requests_before_the_pass(nodes: Any, tmp_path: Path) -> None:
    """`select` knows the pool's length before it predicts."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"k": 10}, "asked for 10 of 9 candidates"),
        ({"k": 9, "exclude": [1]}, "asked for 9 of 8 candidates"),
        ({"k": 2, "exclude": [9]}, "exclude holds 9"),
        ({"k": 2, "strategy": halves}, "^halves reads the whole pool as tensors"),
        ({"k": 2, "shards": 0}, "shards must be a whole number"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            badge.cluster.select(torch.nn.Linear(2, 2), torch.zeros(9, 2), out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("when", ["shards open it", "above"])
def test_a_part_that_is_changed_while_selecting_is_named(
    when: str, nodes: Any, pool: badge.Outputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pool.directory is not None
    shutil.copytree(pool.directory, tmp_path / "copy")

    class Changing(RayShards):
        def __init__(self, *given: Any) -> None:
            self.change("shards open it")
            super().__init__(*given)

        def ask(self, message: Any, arguments: Mapping[int, tuple[Any, ...]]) -> Mapping[int, Any]:
            self.change(message.__name__)
            return super().ask(message, arguments)

        def change(self, now: str) -> None:
            if now == when:
                array = np.load(file := tmp_path / "copy" / "part-005000" / "probabilities.npy")
                array[7] = array[7, ::-1]
                np.save(file, array)

    monkeypatch.setattr("badge.cluster.shards.RayShards", Changing)
    with pytest.raises(InputError, match="part-005000 was changed"):
        badge.cluster.select_from(tmp_path / "copy", 5, strategy="conf", shards=1)
