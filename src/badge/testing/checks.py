"""`check_sampler` and `check_strategy`: what every sampler and every strategy must hold to, on small pools."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from badge.features import Dense, Features, gradient_embedding
from badge.outputs import Outputs
from badge.outputs.part_rows import PartRows
from badge.strategies import Stateful, Strategy, declaration, get
from badge.strategies.choose import checked, choose, select_from
from badge.strategies.request import Request
from badge.testing.laws import as_sets, chi_square, tally


def made(n: int, c: int = 4, d: int = 6, seed: int = 0, dtype: Any = np.float32) -> Outputs:
    """Random outputs of n examples, c classes and embeddings of width d."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, c))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return Outputs(p.astype(dtype), rng.normal(size=(n, d)).astype(dtype))


#: name -> what makes the pool, and k
POOLS: dict[str, tuple[Callable[[], Outputs], int]] = {
    "ordinary": (lambda: made(50), 7),
    "float64": (lambda: made(50, dtype=np.float64), 7),
    "float16": (lambda: made(50, dtype=np.float16), 7),
    "one": (lambda: made(1), 1),
    "k = N": (lambda: made(15), 15),
    "k = N above the rank": (lambda: made(30), 30),
    "C = 2": (lambda: made(40, c=2), 5),
    "one column": (lambda: Outputs(made(40, c=2).probabilities[:, :1], made(40, c=2).embeddings), 5),
    "C = 1000": (lambda: made(60, c=1000, d=8), 20),
    "C = 1000, k = N": (lambda: made(60, c=1000, d=8), 60),
    "duplicates": (lambda: made(10)[np.repeat(np.arange(10), 6)], 12),
    "all the same": (lambda: made(1)[np.zeros(20, dtype=int)], 6),
    "zero gradients": (lambda: Outputs(np.tile([[1.0, 0.0, 0.0]], (12, 1)), np.ones((12, 3))), 5),
    "zero embeddings": (lambda: Outputs(np.full((12, 4), 0.25), np.zeros((12, 3))), 11),
    "zero embeddings, k = N": (lambda: Outputs(np.full((12, 4), 0.25), np.zeros((12, 3))), 12),
    "one gradient is not zero": (lambda: Outputs([[1.0, 0.0]] * 9 + [[0.5, 0.5]], np.ones((10, 3))), 4),
    "wide": (lambda: made(20, c=3, d=300), 20),
}

#: Five examples, few enough to enumerate every draw: one confident, two alike, gradient norms over a decade.
SMALL = Outputs(
    np.array([[0.4, 0.35, 0.25], [0.97, 0.02, 0.01], [0.1, 0.6, 0.3], [0.12, 0.6, 0.28], [0.3, 0.25, 0.45]]),
    np.array([[1.0, 2.0], [3.0, -1.0], [2.0, 0.5], [2.0, 0.4], [-0.3, 0.2]]),
)


def ways_to_hold(pool: Outputs, folder: Path) -> Iterator[tuple[str, Outputs]]:
    """The same rows memory-mapped, column by column, and in parts that are read block by block."""
    arrays = [x.numpy() for x in (pool.probabilities, pool.embeddings)]
    for i, array in enumerate(arrays):
        np.save(folder / f"{i}.npy", array)
    p, h = (np.load(folder / f"{i}.npy", mmap_mode="r") for i in range(2))
    yield "memory-mapped", Outputs(p, h)
    p, h = (np.asfortranarray(x) for x in arrays)
    yield "kept column by column", Outputs(p, h)
    blocks = [PartRows(torch.split(torch.from_numpy(x), 7)) for x in arrays]
    yield "read in blocks", Outputs.trusted(blocks[0], blocks[1])


#: A sampler fails where its counts are less likely than this under the law: a right one, once in a million seeds.
LEAST = 1e-6

Errors = type[Exception] | tuple[type[Exception], ...]


def check_sampler(
    sampler: Callable[[Features, int, np.random.Generator], NDArray[np.int64]],
    law: Callable[[NDArray[np.float64], int], Mapping[Any, float]] | None = None,
    refuses: Errors = (),
    draws: int = 500,
) -> None:
    """Check a sampler against the rules for every sampler. A violation raises AssertionError.

    - It returns k distinct positions as int64, also for pools of one row, of duplicates or of zeros, and for k = N.
    - The same seed gives the same picks, independent of earlier draws. The pool is left unchanged.
    - The picks do not depend on how the pool is stored: in memory, memory-mapped or read in blocks.
    - An invalid k, invalid features or an invalid generator raise ValueError or TypeError.
    - With `law`, its draws of 2 from 5 rows follow the law.

    Args:
        sampler: the function `(features, k, rng)`.
        law: `law(x, k)` returns the probability of each outcome, {tuple of positions in the matrix `x`: probability}. If
            all tuples are ascending, the order of the picks does not count.
        refuses: errors that the sampler may raise for a pool that it does not accept, as a k-DPP does above its rank.
        draws: the number of draws to compare with the law.

    Raises:
        AssertionError: a rule is violated. One line says which, and on which pool.

    >>> import badge
    >>> from badge.testing import check_sampler, kmeanspp_law
    >>> check_sampler(badge.samplers.kmeanspp, kmeanspp_law)
    >>> check_sampler(lambda features, k, rng: rng.integers(3, size=k))
    Traceback (most recent call last):
    AssertionError: <lambda> on the pool 'ordinary', 50 rows, k = 7: returned [...], not 7 distinct positions below 50 ...
    """
    subject = _Subject(_name(sampler), lambda pool, k, rng: sampler(gradient_embedding(pool), k, rng), refuses)
    subject.check()
    pool = made(40)
    dense = Dense(pool.embeddings)
    subject.positions(sampler(dense, 5, np.random.default_rng(0)), 5, 40, "on plain vectors")
    for k in _WRONG_K:
        subject.must_refuse(f"k = {k!r} of 40", sampler, dense, k, np.random.default_rng(0))
    subject.must_refuse("an array in place of features", sampler, np.ones((9, 2)), 2, np.random.default_rng(0))
    subject.must_refuse("a seed in place of a generator", sampler, dense, 2, 0)
    if law is not None:
        x = gradient_embedding(SMALL).as_matrix().double().numpy()
        subject.follows(law(x, 2), draws, lambda rng: sampler(gradient_embedding(SMALL), 2, rng))


def check_strategy(
    strategy: str | Strategy,
    law: Callable[[Outputs, int], Mapping[Any, float]] | None = None,
    refuses: Errors = (),
    draws: int = 500,
) -> None:
    """Check a strategy against the rules for every strategy. A violation raises AssertionError.

    - Its picks and seeds follow the first two rules of `check_sampler`, and the pool is left unchanged.
    - It reads what it declares and nothing else. The picks do not depend on how the pool is stored.
    - An invalid k raises ValueError or TypeError.
    - A strategy with memory makes the same picks after `restore(state())`, with the state passed through JSON.
    - With `law`, its draws of 2 from 5 examples follow the law.

    Args:
        strategy: a name, or a callable `(outputs, k, rng, labeled=None)`.
        law: `law(outputs, k)` returns the probability of each outcome, {tuple of positions: probability}. If all tuples are
            ascending, the order of the picks does not count. The strategy gets no labelled examples, or the first of the
            five if it requires some.
        refuses: errors that the strategy may raise for a pool that it does not accept.
        draws: the number of draws to compare with the law.

    Raises:
        AssertionError: a rule is violated. One line says which, and on which pool.

    >>> from badge.testing import check_strategy
    >>> check_strategy("marg")
    >>> check_strategy(lambda outputs, k, rng, labeled=None: range(k))
    >>> check_strategy(lambda outputs, k, rng, labeled=None: rng.permutation(len(outputs))[: k - 1])
    Traceback (most recent call last):
    AssertionError: <lambda> on the pool 'ordinary', 50 rows, k = 7: raised InputError: the strategy returned int64 of ...
    """
    found = get(strategy)
    said = declaration(found)

    def pick(pool: Outputs, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """What `select_from` does, except that rows which a strategy reads in blocks are not loaded in a small pool."""
        seen = pool.only(said.reads) if said.reads else Outputs.unread(len(pool))
        seen = seen if said.blocks else seen.map(lambda rows: rows[:])
        labeled = None if said.labeled == "no" else pool[:1]
        return checked(deepcopy(found)(seen, k, rng, labeled=labeled), k, len(pool))

    subject = _Subject(strategy if isinstance(strategy, str) else _name(strategy), pick, refuses)
    subject.check()
    pool = made(40)
    door = select_from(pool, 5, deepcopy(found), labeled=pool[:1])
    subject.same(pick(pool, 5, np.random.default_rng(0)), door, "in a second call, by badge.select_from")
    if said.labeled == "if any":
        subject.positions(select_from(pool, 5, deepcopy(found)), 5, 40, "without labelled examples")
    for k in _WRONG_K:
        subject.must_refuse(f"k = {k!r} of 40", select_from, pool, k, found, 0, pool[:1])
    if isinstance(found, Stateful):  # a copy restored from `state()` picks as the strategy itself does
        one, other = deepcopy(found), deepcopy(found)
        ids = one(pool, 5, np.random.default_rng(0), labeled=pool[:1])
        one.picked(ids)
        one.observe(ids, np.arange(5) % 2 == 0)
        other.restore(json.loads(json.dumps(one.state())))
        picks, again = (s(pool, 5, np.random.default_rng(1), labeled=pool[:1]) for s in (one, other))
        subject.same(picks, again, "restored from its state")
    if law is not None:
        labeled = SMALL[:1] if said.labeled == "required" else None
        subject.follows(law(SMALL, 2), draws, lambda rng: choose(Request.of(found, 2, 5, rng, labeled), SMALL))


_WRONG_K: tuple[Any, ...] = (0, -3, 41, 2.5, True, "2", None)


@dataclass(frozen=True)
class _Subject:
    """What is tested: its name, how it picks, and the errors with which it may refuse a pool."""

    name: str
    pick: Callable[[Outputs, int, np.random.Generator], Any]
    refuses: Errors

    def check(self) -> None:
        """Positions, seeds and ways to hold a pool."""
        for title, (make, k) in POOLS.items():
            pool = make()
            where = f"on the pool {title!r}, {len(pool)} rows, k = {k}"
            before = [x.clone() for x in (pool.probabilities, pool.embeddings)]
            try:
                picks = self.pick(pool, k, np.random.default_rng(0))
                self.positions(picks, k, len(pool), where)
                for x, y in zip(before, (pool.probabilities, pool.embeddings), strict=True):
                    assert torch.equal(x, y), f"{self.name} {where}: changed the pool"
                self.pick(pool, 1, np.random.default_rng(1))
                self.same(picks, self.pick(pool, np.int64(k), np.random.default_rng(0)), f"{where}, with the same seed")
            except self.refuses as error:
                assert title != "ordinary", f"{self.name} {where}: refused with {error!r:.300}"
            except AssertionError:
                raise
            except Exception as error:
                raise AssertionError(f"{self.name} {where}: raised {type(error).__name__}: {error!s:.300}") from error
        pool = made(50)
        picks = self.pick(pool, 7, np.random.default_rng(0))
        with tempfile.TemporaryDirectory() as folder:
            for way, held in ways_to_hold(pool, Path(folder)):
                self.same(picks, self.pick(held, 7, np.random.default_rng(0)), f"on the same pool {way}")

    def positions(self, picks: Any, k: int, n: int, where: str) -> None:
        """k distinct positions below n, as int64."""
        right = isinstance(picks, np.ndarray) and picks.dtype == np.int64 and picks.shape == (k,)
        right = right and len(set(picks.tolist())) == k and picks.min() >= 0 and picks.max() < n
        shown = picks.tolist() if isinstance(picks, np.ndarray) else repr(picks)
        assert right, f"{self.name} {where}: returned {shown!s:.80}, not {k} distinct positions below {n} as int64"

    def same(self, picks: Any, again: Any, where: str) -> None:
        first, second = (np.asarray(x).tolist() for x in (picks, again))
        assert first == second, f"{self.name} {where}: {second!s:.80} in place of {first!s:.80}"

    def must_refuse(self, what: str, function: Callable[..., Any], *arguments: Any) -> None:
        try:
            found = function(*arguments)
        except (ValueError, TypeError):
            return
        except Exception as error:
            raise AssertionError(f"{self.name}: {what} raised {error!r:.200}, not a ValueError or TypeError") from error
        raise AssertionError(f"{self.name}: {what} was not refused: it returned {found!s:.80}")

    def follows(self, law: Mapping[Any, float], draws: int, draw: Callable[[np.random.Generator], Any]) -> None:
        """The counts of draws of 2 from `SMALL` against the law."""
        counts = tally(draw, draws, seed=0)
        p = chi_square(counts if any(list(picks) != sorted(picks) for picks in law) else as_sets(counts), law)
        assert p > LEAST, f"{self.name}: {draws} draws of 2 from 5 rows do not follow the law (chi-square p = {p:.1e})"


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", None) or f"{function!r:.80}")
