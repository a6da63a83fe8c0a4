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
    """Pick from outputs on disk, on a Ray cluster. The picks equal those of `badge.select_from`.

    Args:
        outputs: the outputs that `badge.cluster.predict` or `badge.predict(..., out=)` wrote, or their directory or URL.
            All nodes must be able to read it.
        k: the number of examples to pick.
        strategy: a name of `badge.strategies.NAMES`, "package.module:function", or a callable (outputs, k, rng,
            labeled=None) -> positions.
        seed: the same seed gives the same picks; None draws a new seed.
        labeled: the outputs of the labelled examples, for strategies that use them.
        exclude: positions that have labels already, or a mask of them. They are never picked. Without `labeled`, they are
            the labelled examples.
        bias: include the gradient of the output layer's bias (strategies on gradient embeddings).
        shards: the number of actors that share the pool. The picks do not depend on it. None: one per core, fewer for a
            small pool.
        num_cpus: cores, and threads, of each shard. None: 1, or less if there are more shards than cores. 0: reserve none.
        num_gpus: GPUs to reserve for each shard; None: none.
        memory: bytes to reserve for each shard; None: none.
        address: the address of the cluster. None: $RAY_ADDRESS, else a local instance, which is shut down afterwards.

    Returns:
        k distinct positions in the pool, int64, in pick order.

    Raises:
        InputError: an argument is invalid, or the strategy does not declare `blocks`.
        ClusterError: the cluster cannot be reached, or has no node left.

    k-means++, furthest-first and top-k run on the shards, also in your own strategies. Everything else is read in blocks to
    this process (for kdpp: all rows). A strategy that does not declare `blocks` raises InputError.

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
    """Pick the k rows to label next: `badge.cluster.predict` and `badge.cluster.select_from` in one call.

    Args:
        model: a PyTorch or Hugging Face classifier, or a fitted scikit-learn estimator. Each worker has a copy.
        dataset: a `ray.data.Dataset`, or any pool of `badge.predict`. All columns of a `ray.data.Dataset` except `id` and
            labels are inputs.
        k: the number of rows to pick.
        out: a directory that all nodes can read and write, or the URL of a folder in an object store (`s3://bucket/pool`).
            An interrupted call resumes: finished parts are kept.
        strategy: a name of `badge.strategies.NAMES`, "package.module:function", or a callable (outputs, k, rng,
            labeled=None) -> positions.
        seed: the same seed gives the same picks; None draws a new seed.
        labeled: the labelled examples, as `Outputs`, or as a pool that the model runs over on this machine.
        exclude: positions that have labels already, or a mask of them. They are never picked. Without `labeled`, they are
            the labelled examples.
        bias: include the gradient of the output layer's bias (strategies on gradient embeddings).
        shards: the number of actors that share the pool. The picks do not depend on it. None: one per core, fewer for a
            small pool.
        num_cpus: cores, and threads, of each copy of the model and of each shard; None: 1.
        num_gpus: GPUs of each copy and of each shard; None: 1 for each copy if the cluster has GPUs, none for a shard.
        memory: bytes to reserve for each copy and for each shard; None: none.
        address: the address of the cluster. None: $RAY_ADDRESS, else a local instance, which is shut down afterwards.
        id: the column with the ids of the rows, distinct whole numbers or texts. A `ray.data.Dataset` needs one.
        workers: most copies of the model; None: as many as the cluster has room for.
        {options}

    Returns:
        k distinct positions in the pool, int64, in pick order.

    Raises:
        InputError: an argument is invalid, or the strategy does not declare `blocks`.
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
