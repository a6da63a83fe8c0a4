"""`badge.cluster.select_from`: the same strategies, with samplers that talk to shards on a Ray cluster."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from badge.cluster.pieces import plan
from badge.cluster.predicting import predict
from badge.cluster.session import Resources, connected, require_ray
from badge.cluster.shards import Placed, RayPlace
from badge.core.numbers import whole
from badge.errors import InputError
from badge.models.one_pass import Pass
from badge.models.options import ClusterOptions, Options, takes_options
from badge.outputs import Outputs, parts
from badge.strategies.bald import check_one_answer
from badge.strategies.choose import check_one_model, choose
from badge.strategies.protocol import Picks, Strategy, title
from badge.strategies.request import Request

if TYPE_CHECKING:
    from typing_extensions import Unpack


def select_from(
    outputs: Outputs | str | os.PathLike[str],
    k: int,
    strategy: str | Strategy = "badge",
    seed: int | None = 0,
    labeled: Outputs | None = None,
    exclude: Any = None,
    bias: bool = False,
    shards: int | None = None,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    memory: int | None = None,
    address: str | None = None,
) -> NDArray[np.int64]:
    """The picks of `badge.select_from`, bit for bit, from a pool on disk that a Ray cluster reads.

    Args:
        outputs: what `badge.cluster.predict` or `badge.predict(..., out=)` wrote, or its directory or URL; all nodes see it.
        k: number of examples to pick.
        strategy: a name of `badge.strategies.NAMES`, "package.module:function", or an object.
        seed: the same seed gives the same picks; None draws one.
        labeled: the outputs of the labelled examples, for strategies that are conditioned on them.
        exclude: positions that have labels already, or a mask of them. They are never picked.
        bias: count the gradient of the output layer's bias too (strategies on gradient embeddings).
        shards: actors that the pool is spread over, which no pick depends on; None: one per core, fewer for a small pool.
        num_cpus: cores (and threads) of each shard; None: 1, less where shards outnumber the cores; 0: none reserved.
        num_gpus: GPUs that are reserved for each shard; None: none.
        memory: bytes that are reserved for each shard; None: none.
        address: address of the cluster; None: $RAY_ADDRESS, else a local instance, shut down afterwards.

    Returns:
        k distinct positions, int64.

    Raises:
        InputError: an argument cannot mean anything, or the strategy does not read blocks.
        ClusterError: the cluster cannot be reached, or has no node left.

    k-means++, furthest-first and top-k work where the rows are, also in your own strategies. Everything else a strategy reads
    block by block from here (kdpp all of its rows). One that does not declare that it reads blocks is refused.

    >>> import badge, tempfile, torch
    >>> out = badge.predict(torch.nn.Linear(4, 3), torch.randn(100, 4), out=tempfile.mkdtemp())
    >>> ids = select_from(out, k=5)  # doctest: +SKIP
    >>> ids.shape  # doctest: +SKIP
    (5,)
    """
    require_ray()
    opened = _by_reference(outputs)
    request = _checked(Request.of(strategy, k, len(opened), seed, labeled, exclude, bias), shards)
    return _chosen(request, opened, shards, Resources.of(num_cpus, num_gpus, memory), address)


def _checked(request: Request, shards: int | None) -> Request:
    if request.declared.reads and not request.declared.blocks:
        way_out = "declare that it reads blocks (badge.strategies.declare(blocks=True)), or use badge.select_from"
        raise InputError(f"{title(request.strategy)} reads the whole pool as tensors: {way_out}")
    check_one_answer(request.strategy)  # parts on disk hold what one pass of one model says
    if shards is not None:
        whole(shards, "shards")
    return request


def _chosen(request: Request, opened: Outputs, shards: int | None, each: Resources, address: str | None) -> Picks:
    """The picks from outputs on disk, by shards on a cluster."""
    check_one_model(opened, request.labeled)
    with connected(address) as ray, RayPlace(ray, shards, each) as place:
        picks = choose(request, opened.map(lambda rows: Placed(rows, place)))
    _by_reference(opened.directory or "")  # a part that was changed meanwhile is named
    return picks


def _by_reference(outputs: Any) -> Outputs:
    """Outputs on disk: their rows travel as names of files."""
    if not isinstance(outputs, Outputs | str | os.PathLike):
        raise InputError(f"outputs must be badge.Outputs on disk or their directory, not {type(outputs).__name__}")
    given = outputs.directory if isinstance(outputs, Outputs) else outputs
    if given is None:
        way_out = "write them by badge.cluster.predict or badge.predict(..., out=), or use badge.select_from"
        raise InputError(f"these outputs are in the memory of this process, which no other node sees: {way_out}")
    place = parts.place_of(given, "outputs")
    if isinstance(place, parts.Near) and not parts.is_parts(place):
        return parts.open_single(place)
    return parts.open_parts(place)


@takes_options(ClusterOptions)
def select(
    model: Any,
    dataset: Any,
    k: int,
    *,
    out: str | os.PathLike[str],
    strategy: str | Strategy = "badge",
    seed: int | None = 0,
    labeled: Any = None,
    exclude: Any = None,
    bias: bool = False,
    shards: int | None = None,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    memory: int | None = None,
    address: str | None = None,
    id: str | None = None,
    workers: int | None = None,
    **options: Unpack[ClusterOptions],
) -> NDArray[np.int64]:
    """`badge.cluster.predict` and `badge.cluster.select_from` in one: positions of the k rows to label next.

    Args:
        model: a PyTorch or Hugging Face classifier, or a fitted scikit-learn estimator. Each worker has a copy.
        dataset: a `ray.data.Dataset` (all columns but `id` and labels are inputs), or any pool of `badge.predict`.
        k: number of rows to pick.
        out: a directory that all nodes see, or the URL of a folder in an object store (`s3://bucket/pool`). A call that was
            interrupted continues: finished parts are not made again.
        strategy: a name of `badge.strategies.NAMES`, "package.module:function", or an object.
        seed: the same seed gives the same picks; None draws one.
        labeled: the `Outputs` of the labelled examples, or a pool of them, which is predicted on this machine.
        exclude: positions that have labels already, or a mask of them. They are never picked.
        bias: count the gradient of the output layer's bias too (strategies on gradient embeddings).
        shards: actors that the pool is spread over, which no pick depends on; None: one per core, fewer for a small pool.
        num_cpus: cores of each copy of the model and of each shard, which are its threads too; None: 1.
        num_gpus: GPUs of each copy and of each shard; None: 1 for a copy where the cluster has some.
        memory: bytes of each copy and of each shard; None: none reserved.
        address: address of the cluster; None: $RAY_ADDRESS, else a local instance, shut down afterwards.
        id: the column that names the rows (whole numbers or texts, all different); a `ray.data.Dataset` needs one.
        workers: most copies of the model; None: what the cluster has room for.
        {options}

    Returns:
        k distinct positions, int64.

    Raises:
        InputError: an argument cannot mean anything, or the strategy does not read blocks.
        ClusterError: the cluster cannot be reached, or has no node left.

    >>> import tempfile, torch
    >>> net, pool = torch.nn.Linear(4, 3), torch.randn(100, 4)
    >>> ids = select(net, pool, k=5, out=tempfile.mkdtemp())  # doctest: +SKIP
    >>> ids.shape  # doctest: +SKIP
    (5,)
    """
    require_ray()
    here, each = Options.of("select", ClusterOptions, options), Resources.of(num_cpus, num_gpus, memory)
    with connected(address) as ray:
        known = plan(ray, dataset, id)
        request = _checked(Request.of(strategy, k, known.rows, seed, labeled, exclude, bias), shards)  # before the pass
        outputs = predict(model, known, out, id=id, workers=workers, **asdict(each), **options)
        if labeled is not None and not isinstance(labeled, Outputs):
            request = replace(request, labeled=Pass.of(model, labeled, here).outputs())
        return _chosen(request, _by_reference(outputs), shards, each, None)
