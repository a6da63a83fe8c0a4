"""Sizes that make the samplers fast. No pick depends on them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Each size trades one kind of work for another. Every value gives the same picks, and tests pass other values."""

    #: Events compared with centres in one round of k-means++. Larger blocks compare more events with each other in vain;
    #: smaller ones make products too small to be fast.
    block: int = 1024
    #: Events in the first block. It is small, because the first centres rule out more than later ones.
    first_block: int = 64
    #: Rows that furthest-first picks among in one round. All their distances to each other must be cheap.
    top: int = 384

    #: Up to this number of pairs, rows are compared at once (`few`): the steps through bounds would take longer.
    at_once: int = 2**16
    #: Rows that are brought up to date together.
    tile: int = 1024
    #: Centres in one product, so that the distances stay in cache.
    part: int = 1024
    #: Newest centres, with which all rows are compared first: they rule out most rows.
    newest: int = 512
    #: Rows that lack fewer centres than this are compared together, whatever each of them has seen.
    young: int = 512
    #: Groups of fewer rows are not worth a product. Their rows go with the oldest group.
    few: int = 128
    #: Decided rows are dropped from a comparison once fewer than this share is undecided, since dropping copies the others.
    follow: float = 0.7
    #: Centres that outlines rule out are left out of a product where at most this share is left: that copies the others.
    outlined: float = 0.8
    #: Number of centres from which plain vectors are tested for a large common offset.
    origin_from: int = 16
    #: Number of centres from which a sketch is used, if it rules out most of them.
    sketch_from: int = 1024
    #: Given centres that furthest-first takes its first bounds from.
    anchors: int = 32
