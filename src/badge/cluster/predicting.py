"""`badge.cluster.predict`: one model per worker, parts on disk, row i of the outputs is row i of the data."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from torch import nn

from badge.cluster import pieces
from badge.cluster.names import stored_names
from badge.cluster.pieces import Plan
from badge.cluster.session import Resources, connected, pickled, pickling
from badge.cluster.waiting import fetched, ready, watched
from badge.core.numbers import whole
from badge.core.progress import bar
from badge.errors import BadgeError, InputError, ModelError
from badge.models import digest
from badge.models.digest import sample_of, value_digest
from badge.models.network import model_dtype, unwrap
from badge.models.one_pass import Pass
from badge.models.options import ClusterOptions, Options, takes_options
from badge.outputs import Outputs, parts
from badge.outputs.parts import Part, Place

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Most rows of a part, and most bytes of its input and output together: a worker holds both.
PART_ROWS, PART_BYTES = 2**17, 2**28
#: How often a part is tried again after its worker died.
RETRIES = 5


@takes_options(ClusterOptions)
def predict(
    model: Any,
    dataset: Any,
    out: str | os.PathLike[str],
    *,
    id: str | None = None,
    workers: int | None = None,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    memory: int | None = None,
    address: str | None = None,
    **options: Unpack[ClusterOptions],
) -> Outputs:
    """Run a model over a pool on a Ray cluster, and write the probabilities and embeddings to `out`, in parts.

    Args:
        model: a PyTorch or Hugging Face classifier, or a fitted scikit-learn estimator. Each worker has a copy.
        dataset: a `ray.data.Dataset`, or any pool of `badge.predict`. All columns of a `ray.data.Dataset` except `id` and
            labels are inputs.
        out: a directory that all nodes can read and write, or the URL of a folder in an object store (`s3://bucket/pool`).
            An interrupted call resumes: finished parts are kept.
        id: the column with the ids of the rows, distinct whole numbers or texts. A `ray.data.Dataset` needs one.
        workers: most copies of the model; None: as many as the cluster has room for.
        num_cpus: cores, and threads, of each copy of the model; None: 1.
        num_gpus: GPUs of each copy; None: 1 if the cluster has GPUs.
        memory: bytes to reserve for each copy; None: none.
        address: the address of the cluster. None: $RAY_ADDRESS, else a local instance, which is shut down afterwards.
        {options}

    Returns:
        `Outputs`, memory-mapped.

    Raises:
        ClusterError: the cluster cannot be reached, or has no node left.
        ModelError: the model cannot run on the rows.

    Row i of the outputs is row i of the data, and `ids[i]` is its id.

    >>> import tempfile, torch
    >>> pool = {"input": torch.randn(100, 4), "photo": [f"{i}.jpg" for i in range(100)]}
    >>> out = predict(torch.nn.Linear(4, 3), pool, tempfile.mkdtemp(), id="photo")  # doctest: +SKIP
    >>> len(out), str(out.ids[7])  # doctest: +SKIP
    (100, '7.jpg')
    """
    how = Options.of("predict", ClusterOptions, options)
    if isinstance(model, list | tuple):
        said = f"a list of {len(model)} models, and parts on disk hold what one says"
        raise ModelError(f"{said}: pass one model, or use badge.predict, which keeps the answers of all in memory")
    how = how.named(unwrap(model)) if isinstance(model, nn.Module) else how  # a pickled module is another one
    place, copied = parts.place_of(out, "out"), pickled(model, "the model", ModelError)
    each = Resources.of(num_cpus, num_gpus, memory)
    half = isinstance(model, nn.Module) and model_dtype(unwrap(model)) == torch.float16
    job = Job(place, id, copied, pickled(how, "the tokenizer or processor", ModelError), half, each.threads)
    workers = None if workers is None else whole(workers, "workers")
    with connected(address) as ray:
        plan = dataset if isinstance(dataset, Plan) else pieces.plan(ray, dataset, id)
        tried = Pass.of(model, plan.first, replace(how, progress=False)).outputs()  # what cannot work fails here
        carried, rows = _carried(ray, plan), _part_rows(plan, tried, how.batch_size)
        settings = f"batch_size={how.batch_size} {how.identity()}".strip()  # parts are whole batches
        job.identity |= {"model": digest.model_digest(model), "pool": plan.digest, "set of options": settings}
        if not parts.begin(job.directory, job.identity):
            given = ray, plan, job, rows, workers or each.workers(ray), each.of_workers(ray)
            with bar("predicting", plan.rows, enabled=how.progress) as advance:
                made = []
                for part in _from_pool(*given, carried) if plan.dataset is None else _from_dataset(*given):
                    advance(part.rows)
                    made.append(part)
            _check_made(job.directory, plan, made)
            parts.finish(job.directory, sorted(made, key=lambda part: part.name) if plan.dataset is None else made)
    return Outputs.load(out)


@dataclass
class Job:
    """What a worker needs to know."""

    directory: Place
    id: str | None
    model: bytes
    options: bytes
    half: bool
    threads: int = 1

    def __post_init__(self) -> None:
        self.identity: dict[str, str] = {}
        self.copy = hashlib.blake2b(self.model + self.options).digest()  # which model, with which options


#: the model and the options that a process keeps between two parts, by `Job.copy`
_here: dict[bytes, tuple[Any, Options]] = {}


def copy_here(job: Job) -> tuple[Any, Options]:
    """The copy of the model that this process has had since its first part, and the options of its pass."""
    if job.copy not in _here:
        _here.clear()
        torch.set_num_threads(job.threads)
        model, options = pickle.loads(job.model), pickle.loads(job.options)
        on_gpu = torch.cuda.is_available() and isinstance(model, nn.Module)
        _here[job.copy] = model, replace(options, device="cuda" if on_gpu else None, progress=False)
    return _here[job.copy]


def write_rows(job: Job, key: str, pool: Any, names: NDArray[Any] | None) -> Part:
    """The rows of `pool` as a part, unless that part is there."""
    found = parts.existing(job.directory, key, job.identity)
    if found is not None:
        return found
    model, options = copy_here(job)
    said = Pass.of(model, pool, options).outputs()
    arrays = said.probabilities.numpy(), (said.embeddings.half() if job.half else said.embeddings).numpy()
    return parts.write(job.directory, key, *arrays, names, job.identity, said.multilabel)


def _from_dataset(ray: Any, plan: Plan, job: Job, rows: int, workers: int, each: dict[str, float]) -> Iterator[Part]:
    """Parts of a `ray.data.Dataset`, in its order; Ray gives the work of a worker that dies to another.

    Tasks where no GPU is used, since Ray warns on the terminal of each actor that Ray Data may have to restart. Actors on
    GPUs, since Ray ends the process of a task there.
    """
    shared, tasks = ray.put(job), not each.get("num_gpus")
    if tasks:
        compute, more = ray.data.TaskPoolStrategy(size=workers), {"fn_args": (shared,), "max_retries": RETRIES}
    else:
        compute, more = ray.data.ActorPoolStrategy(min_size=1, max_size=workers), {"fn_constructor_args": (shared,)}
    how = {"batch_size": rows, "batch_format": "numpy", "compute": compute, **more, **each}
    with pieces.quiet_in_order(plan.dataset):
        made = plan.dataset.map_batches(write_batch if tasks else BatchWriter, **how)
        for row in watched(ray, made.iter_rows(), f"parts of {rows:,} rows"):
            answer = pickle.loads(row["answer"])
            if isinstance(answer, BadgeError):
                raise answer
            yield answer


def _from_pool(
    ray: Any, plan: Plan, job: Job, rows: int, workers: int, each: dict[str, float], carried: Any
) -> Iterator[Part]:
    """Parts of any other pool, as they are finished; Ray gives the work of a worker that dies to another."""
    remote = ray.remote(max_retries=RETRIES, scheduling_strategy="SPREAD", **each)(write_part)
    shared = ray.put(job), carried
    waiting = iter(range(0, plan.rows, rows))
    busy: list[Any] = []
    while True:
        for a in islice(waiting, 2 * workers - len(busy)):  # no more than these wait in the object store
            b = min(a + rows, plan.rows)
            pool = (a, b) if plan.carried is not None else pieces.light(pieces.piece(plan.pool, a, b))
            names = None if plan.names is None else plan.names[a:b]
            busy.append(remote.remote(*shared, f"{a:012d}-{b:012d}", pool, names))
        if not busy:
            return
        done = ready(ray, busy, f"parts of {rows:,} rows")
        busy = [ref for ref in busy if ref not in set(done)]
        yield from fetched(ray, done)


def write_part(job: Job, carried: Any, key: str, pool: Any, names: NDArray[Any] | None) -> Part:
    """One part of a pool: these rows, or that range of what is carried."""
    return write_rows(job, key, pool if carried is None else pieces.piece(carried, *pool), names)


def write_batch(batch: dict[str, NDArray[Any]], shared: Any) -> dict[str, list[bytes]]:
    """Write a batch of a `ray.data.Dataset` as one part. An error of badge is returned, not raised: Ray Data would wrap it in
    a long text."""
    import ray

    job: Job = ray.get(shared)
    assert job.id is not None
    try:
        names = stored_names(batch.pop(job.id), job.id)
        key = hashlib.blake2b(f"{names.dtype}{names.shape}".encode() + names.tobytes(), digest_size=16)
        some = sample_of(len(names))
        key.update(value_digest({column: values[some] for column, values in batch.items()}))
        answer: Part | BadgeError = write_rows(job, key.hexdigest(), pieces.inputs_of(batch), names)
    except BadgeError as error:
        answer = error
    return {"answer": [pickle.dumps(answer)]}


class BatchWriter:
    """`write_batch` as an actor."""

    def __init__(self, shared: Any) -> None:
        self.shared = shared

    def __call__(self, batch: dict[str, NDArray[Any]]) -> dict[str, list[bytes]]:
        return write_batch(batch, self.shared)


def _part_rows(plan: Plan, tried: Outputs, batch_size: int) -> int:
    """Rows of a part: whole batches, so that a row's batch is the same on one machine."""
    floats = tried.probabilities.shape[1] + tried.embeddings.shape[1]
    fit = PART_BYTES // max(1, 4 * floats + plan.row_bytes)
    return max(1, min(PART_ROWS, fit) // batch_size) * batch_size


def _carried(ray: Any, plan: Plan) -> Any:
    """A reference to the pool, if each worker gets the whole of it, else None. A pool that cannot be pickled is refused."""
    if plan.carried is not None:
        with pickling("the pool"):
            return ray.put(plan.carried)
    if plan.dataset is None:
        pickled(pieces.light(plan.first), "the pool")
    return None


def _check_made(directory: Place, plan: Plan, made: Sequence[Part]) -> None:
    if (found := sum(part.rows for part in made)) != plan.rows:
        raise InputError(f"the data set had {plan.rows:,} rows and gave {found:,}: it changed on the way")
    if unseen := [part.name for part in made if not directory.sees(part)]:
        missing = f"{directory}/{unseen[0]} was written by a worker and is not here"
        raise InputError(f"{missing}: all nodes must see the directory out=")
