"""What makes the samplers fast, in one value. No pick depends on it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Tuning"]


@dataclass(frozen=True)
class Tuning:
    """Sizes that trade one kind of work for another. Every value gives the same picks; tests pass others than these."""

    #: Candidates compared with centres in one round of k-means++. More of them meet each other in vain; with fewer, the
    #: products are too small to be fast.
    block: int = 1024
    #: The first block: the first centres rule out more than later ones, so that it pays to have them soon.
    first_block: int = 64
    #: Rows that furthest-first picks among in one round: few enough that all their distances to each other are cheap.
    top: int = 384
    #: Rows of a tile, the unit in which the pool is brought up to date. The rows of a tile have similar norms.
    tile: int = 1024
    #: Centres in one product: the distances of a tile to so many stay in cache.
    part: int = 1024
    #: Centres that all rows are compared with first: the newest rule most rows out.
    newest: int = 512
    #: Rows that lack fewer centres than this are brought up to date together, whatever each of them has seen.
    young: int = 512
    #: Fewer rows than this of one age are not worth products of their own: they go with the oldest.
    few: int = 32
    #: Rows that need no more look are dropped from a comparison once fewer than this share is left: dropping copies.
    follow: float = 0.7
    #: Centres out of reach are left out of a comparison where at most this share is within it: leaving out copies.
    reachable: float = 0.8
    #: With so many centres it is looked whether plain vectors lie far from 0 compared with their distances.
    origin_from: int = 16
    #: From so many centres on a sketch of the features is used, if it turns out to rule out most centres.
    sketch_from: int = 1024
    #: How many of the given centres furthest-first looks at for its first bounds on the whole pool.
    anchors: int = 32
    #: Tiles are made once single rows have been compared with so many centres per row of the pool: sorting costs that.
    tiles_after: int = 16
    #: And not before the rows of some tile could have cost as much as the tile: those of one have so many times their share.
    crowded: int = 8
