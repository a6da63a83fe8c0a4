"""A Ray cluster to work on: a running one, or one on this machine for as long as it is needed; and its cores and GPUs."""

from __future__ import annotations

import importlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from badge.cluster.waiting import answers_at
from badge.core.importing import needs
from badge.core.numbers import positive, whole
from badge.errors import BadgeError, ClusterError, InputError, in_short

#: Objects of a local instance: messages of selections, blocks of data sets. Ray spills what is more to disk.
STORE_BYTES = 512 * 2**20
#: Seconds that connecting to a cluster may take.
CONNECT_SECONDS = 60.0
LOOPBACK = "127.0.0.1"


def require_ray() -> Any:
    """The `ray` module, without usage statistics."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with needs("badge.cluster", "Ray", "ray"):
        import ray
    return ray


@contextmanager
def connected(address: str | None = None) -> Iterator[Any]:
    """Ray with a connection: the one that this process has, else one to `address` or $RAY_ADDRESS, else a new instance.

    A new instance listens on 127.0.0.1, has no dashboard, and is shut down afterwards.
    """
    ray = require_ray()
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address == "local":
            options |= {"include_dashboard": False, "object_store_memory": STORE_BYTES, "_node_ip_address": LOOPBACK}
            with _on_loopback():
                ray.init(address=address, **options)
        else:
            _check_answers(address)
            _in_time(lambda: ray.init(address=address, **options))
    except (ConnectionError, RuntimeError, ValueError, TimeoutError, ray.exceptions.RayError) as error:
        token = "one that asks for a token needs RAY_AUTH_MODE=token and the token here too"
        way_out = f"start one with `ray start --head`; {token}"
        raise ClusterError(f"no Ray cluster at {address!r} ({in_short(error)}): {way_out}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _on_loopback() -> Iterator[None]:
    """A local instance listens on 127.0.0.1 alone. Ray reads the setting when it is imported, which may be long ago."""
    constants: Any = importlib.import_module("ray._private.ray_constants")
    if not hasattr(constants, "ENABLE_RAY_CLUSTER"):
        raise RuntimeError("this version of Ray cannot be kept on 127.0.0.1; name a cluster by RAY_ADDRESS")
    before, name = constants.ENABLE_RAY_CLUSTER, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
    in_environment = os.environ.get(name)
    constants.ENABLE_RAY_CLUSTER, os.environ[name] = False, "0"
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before
        del os.environ[name]
        os.environ |= {} if in_environment is None else {name: in_environment}


def _check_answers(address: str) -> None:
    """Ask the port of a cluster first: Ray tries an address where nobody listens for minutes."""
    services = importlib.import_module("ray._private.services")
    found = services.canonicalize_bootstrap_address(address) if "://" not in address else None
    if address == "auto" and found is None:
        raise ConnectionError("none was started on this machine")
    if found is not None and not answers_at(*found.rsplit(":", 1)):
        raise ConnectionError(f"nobody listens at {found}")


def _in_time(connect: Callable[[], Any]) -> None:
    """Give up after CONNECT_SECONDS. The thread that waits may stay behind: nothing can interrupt Ray."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            connect()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(CONNECT_SECONDS)
    if thread.is_alive():
        raise TimeoutError(f"no answer for {CONNECT_SECONDS:.0f} s")
    if failed:
        raise failed[0]


def pickled(value: Any, what: str, kind: type[BadgeError] = InputError) -> bytes:
    """`value` for another process, functions of no module included."""
    ray = require_ray()
    with pickling(what, kind):
        content: bytes = ray.cloudpickle.dumps(value)
    return content


@contextmanager
def pickling(what: str, kind: type[BadgeError] = InputError) -> Iterator[None]:
    """What cannot travel to another process is refused."""
    try:
        yield
    except Exception as error:
        reason = in_short(error.__cause__ or error)  # Ray puts a long report before the cause
        raise kind(f"{what} cannot be pickled, so workers cannot have copies of it: {reason}") from error


def cpus(ray: Any) -> int:
    """Cores of the cluster, at least 1."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def gpus(ray: Any) -> int:
    return int(ray.cluster_resources().get("GPU", 0))


@dataclass(frozen=True)
class Resources:
    """Cores, GPUs and bytes of memory of each worker or shard; None if badge is to choose."""

    num_cpus: float | None = None
    num_gpus: float | None = None
    memory: int | None = None

    @classmethod
    def of(cls, num_cpus: Any, num_gpus: Any, memory: Any) -> Resources:
        memory = None if memory is None else whole(memory, "memory")
        return cls(_share(num_cpus, "num_cpus"), _share(num_gpus, "num_gpus"), memory)

    @property
    def threads(self) -> int:
        """Threads of a process that has these cores."""
        return max(1, int(self.num_cpus or 1))

    def of_workers(self, ray: Any) -> dict[str, float]:
        """Options of a task with a copy of the model: a core, and a GPU where the cluster has some."""
        gpu = float(gpus(ray) > 0) if self.num_gpus is None else self.num_gpus
        given = {"num_cpus": 1.0 if self.num_cpus is None else self.num_cpus, "num_gpus": gpu, "memory": self.memory}
        return {name: value for name, value in given.items() if value}

    def workers(self, ray: Any) -> int:
        """How many of them the cluster has room for, at least 1."""
        wanted = self.of_workers(ray)
        gpu = wanted.get("num_gpus")
        return max(1, int(gpus(ray) / gpu if gpu else cpus(ray) / wanted.get("num_cpus", 1.0)))

    def bundle(self, ray: Any, shards: int) -> dict[str, float]:
        """What is reserved for each of `shards`: a core, or a part of one where shards outnumber the cores."""
        core = int(1e4 / -(-shards // cpus(ray))) / 1e4 if self.num_cpus is None else self.num_cpus
        wanted = {"CPU": core, "GPU": self.num_gpus, "memory": self.memory}
        return {name: value for name, value in wanted.items() if value}


def _share(value: Any, name: str) -> float | None:
    return value if value is None else 0.0 if value == 0 and not isinstance(value, bool) else positive(value, name)
