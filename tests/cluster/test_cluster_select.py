"""`badge.cluster.select_from`: the picks of one machine, bit for bit, over any shards, whoever dies on the way."""

from __future__ import annotations

import doctest
import os
import pickle
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import badge
import badge.cluster
from badge.cluster.place import Placed, RayPlace, Resources
from badge.cluster.shards import Host, RayShards, cuts, packed, sent, spares
from badge.core.catalog import ONE_PASS
from badge.core.rows import Remaining, narrowed
from badge.errors import BadgeError, InputError
from badge.features import gradient_embedding
from badge.outputs import parts
from badge.samplers.envelope import SEGMENT
from badge.samplers.shard import Shard
from badge.samplers.topk import Scores, topk_by

N, ROWS = 18_000, 5_000
DONE = np.arange(0, 9_000, 7)


def on_disk(path: Path, n: int) -> badge.Outputs:
    rng = np.random.default_rng(0)
    out = badge.Outputs.from_logits(3 * rng.normal(size=(n, 4)), rng.normal(size=(n, 8)) * rng.random((n, 1)) ** 2)
    p, h = out.probabilities.numpy().astype(np.float16), out.embeddings.numpy().astype(np.float16)
    identity = {"model": "made"}
    parts.begin(path, identity)
    made = [
        parts.write(path, f"{a:06d}", p[a : a + ROWS], h[a : a + ROWS], np.arange(a, min(a + ROWS, n)) * 3, identity)
        for a in range(0, n, ROWS)
    ]
    parts.finish(path, made)
    return badge.Outputs.load(path)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> badge.Outputs:
    return on_disk(tmp_path_factory.mktemp("pool") / "parts", N)


@pytest.fixture(scope="module")
def three_segments(tmp_path_factory: pytest.TempPathFactory) -> badge.Outputs:
    """The smallest pool that is cut into three: the work of some strategies grows with the square of the rows."""
    return on_disk(tmp_path_factory.mktemp("small") / "parts", 2 * SEGMENT + 300)


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
    monkeypatch.setattr("badge.cluster.place.RayShards", Killing)
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


class Beside:
    """Shards as they are on a cluster, in this process: what is sent and kept there is the same."""

    def __init__(self, ray: Any, rows: Any, build: Any, edges: Any, homes: Any, threads: int) -> None:
        ranges = list(pairwise(edges))
        self.sizes = [b - a for a, b in ranges]
        self.hosts = [Host(sent(rows, build, a, b)) for a, b in ranges]

    device = torch.device("cpu")

    def ask(self, message: Any, arguments: Mapping[int, tuple[Any, ...]]) -> Mapping[int, Any]:
        return {i: pickle.loads(self.hosts[i].ask(packed((message, mine)))) for i, mine in arguments.items()}

    def close(self) -> None:
        pass


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("badge.cluster.place.RayShards", Beside)
    monkeypatch.setattr("badge.cluster.place.room", lambda ray, shards, each: nullcontext([""] * shards))
    monkeypatch.setattr("badge.cluster.selecting.connected", nullcontext)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@badge.strategies.declare(blocks=True)
def own(outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: Any = None) -> np.ndarray:
    return badge.samplers.kcenter(badge.Dense(outputs.probabilities[:500]), k, rng)


@pytest.mark.parametrize("strategy", [*ONE_PASS, own])
def test_every_strategy_has_the_picks_of_one_machine(
    strategy: Any, three_segments: badge.Outputs, beside: None
) -> None:
    pool, few = three_segments, np.arange(0, 8_400, 280)
    for options in ({"exclude": few}, {"labeled": pool[few]}):
        request: dict[str, Any] = {"k": 9, "seed": 4, "strategy": strategy, **options}
        expected = badge.select_from(pool, **request).tolist()
        for shards in (1, 3):
            assert badge.cluster.select_from(pool, shards=shards, **request).tolist() == expected


def test_what_is_wrong_with_a_shard_is_said_as_on_one_machine(tmp_path: Path, beside: None) -> None:
    p, h = np.full((5_000, 2), 0.5, dtype=np.float32), np.ones((5_000, 3), dtype=np.float32)
    h[4_500] = 1e30
    parts.begin(tmp_path, {})
    parts.finish(tmp_path, [parts.write(tmp_path, "0", p, h, None, {})])
    with pytest.raises(InputError, match="squared norms overflow float32"):
        badge.cluster.select_from(tmp_path, 5, shards=2)
    lock = threading.Lock()

    @badge.strategies.declare(reads={"probabilities"}, blocks=True)
    def held(outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: Any = None) -> np.ndarray:
        return topk_by(lambda rows: (rows[:, 0], lock)[0], outputs.probabilities, k, rng)

    with pytest.raises(InputError, match="what the strategy does on the shards cannot be pickled") as caught:
        badge.cluster.select_from(tmp_path, 5, held, shards=1)
    assert "\n" not in str(caught.value)


def halves(outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: Any = None) -> np.ndarray:
    return np.arange(k)


def test_bad_requests_before_anything_starts(pool: badge.Outputs, tmp_path: Path) -> None:
    """No cluster is started for any of these."""
    select_from = badge.cluster.select_from
    memory = badge.Outputs(pool.probabilities[:9], pool.embeddings[:9])
    wide = badge.Outputs(pool.probabilities[:9], torch.zeros(9, 3))
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (pool, {"k": N + 1}, "asked for 18001 of 18000 candidates"),
        (pool, {"k": N, "exclude": [3]}, "asked for 18000 of 17999 candidates"),
        (pool, {"k": 5, "exclude": [N]}, "exclude holds 18000"),
        (pool, {"k": 5, "strategy": "nope"}, "unknown strategy 'nope'"),
        (pool, {"k": 5, "shards": 0}, "shards must be a whole number ≥ 1"),
        (pool, {"k": 5, "num_cpus": -1}, "num_cpus must be a number above 0, not -1"),
        (pool, {"k": 5, "memory": 0.5}, "memory must be a whole number ≥ 1"),
        (pool, {"k": 5, "strategy": halves}, "reads the whole pool as tensors"),
        (pool, {"k": 5, "strategy": "coreset"}, "conditioned on the labelled examples"),
        (pool, {"k": 5, "strategy": "coreset", "labeled": wide}, "labeled has 3 embedding columns and the pool 8"),
        (memory, {"k": 5}, "in the memory of this process"),
        ("memory://pool", {"k": 5}, r"memory://pool/parts.json cannot be read"),
        (3, {"k": 5}, "must be badge.Outputs on disk or their directory, not int"),
        (tmp_path, {"k": 5}, "holds no outputs"),
    ]
    for outputs, options, message in cases:
        with pytest.raises(BadgeError, match=message) as caught:
            select_from(outputs, **options)
        assert "\n" not in str(caught.value)


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
        ({"k": 2, "strategy": halves}, "reads the whole pool as tensors"),
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

    monkeypatch.setattr("badge.cluster.place.RayShards", Changing)
    with pytest.raises(InputError, match="part-005000 was changed"):
        badge.cluster.select_from(tmp_path / "copy", 5, strategy="conf", shards=1)


def test_what_remains_is_known_without_a_list() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 50):
        for count in {0, 1, n // 2, n - 1}:
            done = np.sort(rng.choice(n, size=count, replace=False))
            left = np.setdiff1d(np.arange(n), done)
            found = Remaining(0, n, done)
            assert len(found) == len(left)
            assert found.positions(np.arange(len(left))).tolist() == left.tolist()


def test_ranges_travel_by_reference(pool: badge.Outputs) -> None:
    """A shard's features are pickled as the names of files, and opened again they are the rows of that range."""
    left = Remaining(0, N, DONE)
    seen = pool.map(lambda rows: Placed(narrowed(rows, left), RayPlace(None, 1, Resources())))
    whole, positions = gradient_embedding(pool), left.positions(np.arange(len(left)))
    for start, stop in ((0, 4096), (4096, 12_288), (12_288, len(left))):
        content = pickle.dumps(gradient_embedding(seen).narrowed(Remaining(start, stop)))
        assert len(content) < 3000 + 8 * len(DONE) * 2  # names of files, and what is left out
        again = pickle.loads(content)
        expected = whole.rows(torch.from_numpy(positions[start:stop]))
        for mine, theirs in zip(again.rows(slice(None)).factors, expected.factors, strict=True):
            assert torch.equal(mine, theirs)


@pytest.mark.parametrize("shards", [1, 2, 3, 9])
def test_cuts_are_at_whole_segments(shards: int) -> None:
    edges = cuts(N, shards)
    assert edges[0] == 0 and edges[-1] == N and len(edges) == min(shards, 5) + 1
    assert all(edge % 4096 == 0 for edge in edges[:-1]) and edges == sorted(set(edges))
