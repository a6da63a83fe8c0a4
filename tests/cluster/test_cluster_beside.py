"""Selections over shards in this process: the picks of one machine; what is refused, cut and sent, without a cluster."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import badge
import badge.cluster
from badge.cluster.session import Resources
from badge.cluster.shards import Host, Placed, RayPlace, cuts, packed, sent
from badge.core.catalog import ONE_PASS
from badge.core.rows import Remaining, narrowed
from badge.errors import BadgeError, InputError
from badge.features import gradient_embedding
from badge.outputs import parts
from badge.outputs.parts import place_of
from badge.samplers.topk import topk_by
from parted_pool import DONE, N, halves, on_disk

pytest.importorskip("ray", reason="Ray is not installed")
#: Rows of a segment where shards are in this process: the work of some strategies grows with the square of the rows.
SEGMENT = 512


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> badge.Outputs:
    return on_disk(tmp_path_factory.mktemp("pool") / "parts", N)


@pytest.fixture(scope="module")
def three_segments(tmp_path_factory: pytest.TempPathFactory) -> badge.Outputs:
    """The smallest pool that is cut into three."""
    return on_disk(tmp_path_factory.mktemp("small") / "parts", 2 * SEGMENT + 300, rows=600)


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
    monkeypatch.setattr("badge.cluster.shards.RayShards", Beside)
    monkeypatch.setattr("badge.cluster.shards.room", lambda ray, shards, each: nullcontext([""] * shards))
    monkeypatch.setattr("badge.cluster.selecting.connected", nullcontext)
    for module in ("badge.samplers.envelope", "badge.cluster.shards"):
        monkeypatch.setattr(f"{module}.SEGMENT", SEGMENT)
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
    pool, few = three_segments, np.arange(0, 1_300, 44)
    assert len(cuts(len(pool) - len(few), 3)) == 4  # three shards
    for options in ({"exclude": few}, {"labeled": pool[few]}):
        request: dict[str, Any] = {"k": 9, "seed": 4, "strategy": strategy, **options}
        expected = badge.select_from(pool, **request).tolist()
        for shards in (1, 3):
            assert badge.cluster.select_from(pool, shards=shards, **request).tolist() == expected


def test_what_is_wrong_with_a_shard_is_said_as_on_one_machine(tmp_path: Path, beside: None) -> None:
    p, h = np.full((5_000, 2), 0.5, dtype=np.float32), np.ones((5_000, 3), dtype=np.float32)
    h[4_500] = 1e30
    parts.begin(tmp_path, {})
    parts.finish(tmp_path, [parts.write(place_of(tmp_path), "0", p, h, None, {})])
    with pytest.raises(InputError, match="squared norms overflow float32"):
        badge.cluster.select_from(tmp_path, 5, shards=2)
    lock = threading.Lock()

    @badge.strategies.declare(reads={"probabilities"}, blocks=True)
    def held(outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: Any = None) -> np.ndarray:
        return topk_by(lambda rows: (rows[:, 0], lock)[0], outputs.probabilities, k, rng)

    with pytest.raises(InputError, match="what the strategy does on the shards cannot be pickled") as caught:
        badge.cluster.select_from(tmp_path, 5, held, shards=1)
    assert "\n" not in str(caught.value)


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
        (pool, {"k": 5, "strategy": halves}, "^halves reads the whole pool as tensors"),
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
