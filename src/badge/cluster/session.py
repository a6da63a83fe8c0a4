"""A Ray cluster to work on: a running one, or one on this machine for as long as it is needed; and waiting for its answers.

Every wait looks whether the cluster is there, says what it waits for, and ends.
"""

import importlib
import logging
import os
import queue
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from badge.core.importing import needs
from badge.errors import BadgeError, ClusterError, InputError, in_short

#: Seconds between looks at whether the cluster is still there, and how long it may be without a node.
LOOK_SECONDS, PATIENCE_SECONDS = 2.0, 20.0
#: Seconds after which a warning says what is waited for, again and again.
SAY_SECONDS = 60.0
#: Seconds without an answer after which a wait for work ends; a part or a round of training may take hours.
WORK_SECONDS = 24 * 3600.0
#: Seconds that a value which is there may take to travel.
FETCH_SECONDS = 600.0

AGAIN = "start it again and run the same call, which continues"
GONE = f"the node of this process is gone from the Ray cluster: {AGAIN}"

Item = TypeVar("Item")

#: where the raylet of a driver's node listens
_homes: dict[str, tuple[str, int]] = {}


class Wait:
    """A wait of at most `limit` seconds, while a node that can compute is left or comes within PATIENCE_SECONDS."""

    def __init__(self, ray: Any, limit: float = WORK_SECONDS, way_out: str = "a rerun continues") -> None:
        self.ray, self.limit, self.way_out = ray, limit, way_out
        self.started = self.said = time.monotonic()
        self.alone_since = float("inf")
        self.home = ray.get_runtime_context().get_node_id()

    def look(self, what: str) -> None:
        """End the wait for `what` if nothing can come any more; warn from time to time that it goes on.

        Sockets are asked first: Ray notices a death late, and ends this process when the node of this process dies.
        """
        head, now = self.ray.get_runtime_context().gcs_address, time.monotonic()
        nodes = {node["NodeID"]: node for node in self.ray.nodes()} if answers_at(*head.rsplit(":", 1)) else {}
        if self.home not in nodes or not _up(nodes[self.home]):
            raise ClusterError(GONE)
        alone = not any(node["Resources"].get("CPU") and _up(node) for node in nodes.values())
        self.alone_since = min(self.alone_since, now) if alone else float("inf")
        if now - self.alone_since > PATIENCE_SECONDS:
            raise ClusterError(f"no node of the Ray cluster is left that could compute: {AGAIN}")
        waited = f"{now - self.started:.0f} s"
        if now - self.started > self.limit:
            raise ClusterError(f"waited {waited} for {what} of the Ray cluster: {self.way_out}")
        if now - self.said > SAY_SECONDS:
            self.said = now
            warnings.warn(f"waiting for {what} of the Ray cluster, {waited} so far", stacklevel=2)

    def look_at_home(self) -> None:
        """Before a value is fetched: Ray ends this process silently when it cannot reach the store of its node."""
        if self.home not in _homes:
            node = next(node for node in self.ray.nodes() if node["NodeID"] == self.home)
            _homes[self.home] = node["NodeManagerAddress"], node["NodeManagerPort"]
        if not answers_at(*_homes[self.home]):
            raise ClusterError(GONE)


def get(ray: Any, refs: list[Any], what: str) -> list[Any]:
    """The values of `refs`, in order. Raises what badge raised on a worker, or that no node is left."""
    ready(ray, refs, what, count=len(refs))
    return list(fetched(ray, refs))


def ready(ray: Any, refs: Sequence[Any], what: str, limit: float = WORK_SECONDS, count: int = 1) -> list[Any]:
    """The `refs` that are ready, at least `count`."""
    wait = Wait(ray, limit)
    while True:
        done, left = ray.wait(list(refs), num_returns=count, timeout=LOOK_SECONDS, fetch_local=False)
        if len(done) >= count:
            wait.look_at_home()
            return list(done)
        wait.look(f"{len(left)} of {len(refs)} {what}")


def fetched(ray: Any, refs: Any) -> Any:
    """The value or values of `refs`, which are there. ClusterError: its node died meanwhile."""
    with errors_from_afar(ray):
        return ray.get(refs, timeout=FETCH_SECONDS)


def watched(ray: Any, items: Iterable[Item], what: str) -> Iterator[Item]:
    """`items`, read by a thread, so that the end of the cluster ends the wait for the next one."""
    arrived: queue.Queue[tuple[bool, Any]] = queue.Queue(maxsize=64)

    def pump() -> None:
        try:
            for item in items:
                arrived.put((True, item))
            arrived.put((False, None))
        except BaseException as error:
            arrived.put((False, error))

    threading.Thread(target=pump, daemon=True).start()
    wait = Wait(ray)
    while True:
        try:
            more, item = arrived.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            wait.look(what)
            continue
        if more:
            yield item
            wait = Wait(ray)
        elif item is None:
            return
        else:
            with errors_from_afar(ray):
                raise item


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
        raise ClusterError(f"Ray gave up: {in_short(error, 300)}; a rerun continues") from error


def _up(node: dict[str, Any]) -> bool:
    return bool(node["Alive"]) and answers_at(node["NodeManagerAddress"], node["NodeManagerPort"])


def answers_at(host: str, port: int | str) -> bool:
    """Whether somebody listens there."""
    with suppress(OSError), socket.create_connection((host, int(port)), timeout=5):
        return True
    return False


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
