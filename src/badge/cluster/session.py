"""A Ray cluster to work on: the one that is there, or one of this machine for as long as it is needed."""

from __future__ import annotations

import importlib
import logging
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from badge.core.log import log
from badge.errors import BadgeError, ClusterError, InputError, MissingExtraError

__all__ = ["connected", "cpus", "get", "gpus", "pickled", "ready", "require_ray", "stored", "watched"]

#: Objects of a local instance: messages of selections, blocks of data sets. Ray spills what is more to disk.
STORE_BYTES = 512 * 2**20
#: Seconds between looks at whether the cluster is still there, and how long it may be without a node.
LOOK_SECONDS, PATIENCE_SECONDS = 2.0, 20.0
#: Seconds after which the log says what is waited for, again and again.
SAY_SECONDS = 60.0
#: Seconds that connecting to a cluster may take.
CONNECT_SECONDS = 60.0
LOOPBACK = "127.0.0.1"

Item = TypeVar("Item")


def require_ray() -> Any:
    """The `ray` module, without usage statistics."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("badge.cluster", "Ray", "ray") from None
    return ray


@contextmanager
def connected(address: str | None = None) -> Iterator[Any]:
    """Ray, connected: to what this process is connected to already, to `address` (default: $RAY_ADDRESS), else to an
    instance of this machine, on 127.0.0.1 and without a dashboard, which is shut down afterwards."""
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
        reason = " ".join(str(error).split())[:200]
        raise ClusterError(
            f"no Ray cluster at {address!r} ({reason}): start one with `ray start --head`; one that asks for a token needs "
            "RAY_AUTH_MODE=token and the token here too"
        ) from error
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
    if found is not None and not _answers(*found.rsplit(":", 1)):
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
    with _pickling(what, kind):
        content: bytes = ray.cloudpickle.dumps(value)
    return content


def stored(ray: Any, value: Any, what: str) -> Any:
    """A reference to `value`, which is put where all workers find it."""
    with _pickling(what, InputError):
        return ray.put(value)


@contextmanager
def _pickling(what: str, kind: type[BadgeError]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error.__cause__ or error).split())[:200]  # Ray puts a long report before the cause
        raise kind(f"{what} cannot be pickled, so workers cannot have copies of it: {reason}") from error


def cpus(ray: Any) -> int:
    """Cores of the cluster, at least 1."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def gpus(ray: Any) -> int:
    return int(ray.cluster_resources().get("GPU", 0))


def get(ray: Any, refs: Sequence[Any]) -> list[Any]:
    """The values of `refs`, in order. Raises what badge raised on a worker, or that no node is left."""
    _wait(ray, refs, len(refs))
    with errors_from_afar(ray):
        values: list[Any] = ray.get(list(refs))
        return values


def ready(ray: Any, refs: Sequence[Any]) -> list[Any]:
    """Those of `refs` that are there, at least one."""
    return _wait(ray, refs, 1)


def _wait(ray: Any, refs: Sequence[Any], count: int) -> list[Any]:
    watch, started = _Watch(ray), time.monotonic()
    said = started
    while True:
        done, _ = ray.wait(list(refs), num_returns=count, timeout=LOOK_SECONDS, fetch_local=False)
        if len(done) >= count:
            watch.look_at_home()
            return list(done)
        watch.look()
        if time.monotonic() - said > SAY_SECONDS:
            said = time.monotonic()
            log.warning(
                "waiting for %d of %d answers of the cluster for %.0f s", count - len(done), count, said - started
            )


def watched(ray: Any, items: Iterable[Item]) -> Iterator[Item]:
    """`items`, gone through in a thread, so that the end of the cluster ends the waiting for the next."""
    arrived: queue.Queue[tuple[bool, Any]] = queue.Queue(maxsize=64)

    def pump() -> None:
        try:
            for item in items:
                arrived.put((True, item))
            arrived.put((False, None))
        except BaseException as error:
            arrived.put((False, error))

    threading.Thread(target=pump, daemon=True).start()
    watch = _Watch(ray)
    while True:
        try:
            more, item = arrived.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            watch.look()
            continue
        if not more:
            with errors_from_afar(ray):
                if item is not None:
                    raise item
            return
        yield item


@contextmanager
def errors_from_afar(ray: Any) -> Iterator[None]:
    """Raise here what badge raised on a worker; what Ray could not repair becomes a ClusterError."""
    try:
        yield
    except ray.exceptions.RayError as error:
        cause: BaseException | None = error
        while cause is not None and (isinstance(cause, ray.exceptions.RayError) or not isinstance(cause, BadgeError)):
            cause = getattr(cause, "cause", None) or cause.__cause__
        if cause is not None:
            raise cause from None
        if isinstance(error, ray.exceptions.RayTaskError):
            raise  # an error of the model's or the data set's own code: with its traceback
        raise ClusterError(f"Ray gave up: {' '.join(str(error).split())[:300]}; a rerun continues") from error


class _Watch:
    """Looks whether a node that can compute is left; waits PATIENCE_SECONDS for one."""

    def __init__(self, ray: Any) -> None:
        self.ray, self.alone_since = ray, float("inf")
        self.home = ray.get_runtime_context().get_node_id()

    def look_at_home(self) -> None:
        """Before a value is fetched: Ray ends this process silently when it cannot reach the store of its node."""
        if self.home not in _homes:
            node = next(node for node in self.ray.nodes() if node["NodeID"] == self.home)
            _homes[self.home] = node["NodeManagerAddress"], node["NodeManagerPort"]
        if not _answers(*_homes[self.home]):
            raise ClusterError(GONE)

    def look(self) -> None:
        """Ask the sockets first: Ray notices a death late, and ends this process when the node of this process dies."""
        head = self.ray.get_runtime_context().gcs_address
        nodes = {node["NodeID"]: node for node in self.ray.nodes()} if _answers(*head.rsplit(":", 1)) else {}
        if self.home not in nodes or not _up(nodes[self.home]):
            raise ClusterError(GONE)
        if any(node["Resources"].get("CPU") and _up(node) for node in nodes.values()):
            self.alone_since = float("inf")
            return
        self.alone_since = min(self.alone_since, time.monotonic())
        if time.monotonic() - self.alone_since > PATIENCE_SECONDS:
            raise ClusterError(f"no node of the Ray cluster is left that could compute: {AGAIN}")


AGAIN = "start it again and run the same call, which continues"
GONE = f"the node of this process is gone from the Ray cluster: {AGAIN}"

#: where the raylet of a driver's node listens
_homes: dict[str, tuple[str, int]] = {}


def _up(node: dict[str, Any]) -> bool:
    return bool(node["Alive"]) and _answers(node["NodeManagerAddress"], node["NodeManagerPort"])


def _answers(host: str, port: int | str) -> bool:
    with suppress(OSError), socket.create_connection((host, int(port)), timeout=5):
        return True
    return False
