"""Waiting for a Ray cluster. Every wait looks whether the cluster is there, says what it waits for, and ends."""

import queue
import socket
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from badge.errors import BadgeError, ClusterError, in_short

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
