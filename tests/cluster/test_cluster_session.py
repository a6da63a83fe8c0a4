"""The cluster that a call makes for itself: on 127.0.0.1 only, gone afterwards; and what is left when it is killed."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import badge.cluster
from badge import errors
from badge.cluster import session
from badge.errors import ClusterError, MissingExtraError

ray = pytest.importorskip("ray", reason="Ray is not installed")

LOCAL = """
import functools, os, sys, tempfile, threading, time
from pathlib import Path
import ray_workers
folder = tempfile.TemporaryDirectory()
forks = ray_workers.Forks(folder.name)  # a child of this process, as workers are
os.environ[ray_workers.AT] = forks.path
import psutil, torch
import ray  # before badge, as most programs begin
from ray._private.parameter import RayParams
quick = dict(setup_worker_path=ray_workers.__file__, include_log_monitor=False, no_monitor=True)
RayParams.__init__ = functools.partialmethod(RayParams.__init__, **quick)
import badge, badge.cluster
from badge.cluster import predicting, session, waiting
from badge.errors import BadgeError

waiting.PATIENCE_SECONDS = waiting.LOOK_SECONDS = 0.5
predicting.PART_ROWS = 450
out, killing = Path(sys.argv[1]), sys.argv[2] == "kill"

class Slow(torch.nn.Linear):
    def forward(self, x):
        time.sleep(0.2 if killing else 0.0)
        return super().forward(x)

def listening():
    ours = [psutil.Process(), *psutil.Process().children(recursive=True)]
    name = "net_connections" if hasattr(psutil.Process, "net_connections") else "connections"  # the older name
    return {c.laddr.ip for p in ours for c in getattr(p, name)() if c.status == psutil.CONN_LISTEN}

def kill():
    while not list(out.glob("part-*")):
        time.sleep(0.05)
    print("listening", *sorted(listening()))
    for process in psutil.Process().children(recursive=True):
        process.kill()

torch.manual_seed(0)
net, pool = Slow(5, 3), torch.randn(9000, 5)
if killing:
    threading.Thread(target=kill, daemon=True).start()
def as_here():
    return (badge.cluster.select_from(got, 20, shards=2) == badge.select_from(got, 20)).all()

try:
    with session.connected():  # two calls on one instance
        got = badge.cluster.predict(net, pool, out, batch_size=450, workers=1)
        print("same outputs", torch.equal(got.embeddings[:], pool), "same picks", as_here())
    print("same picks again", as_here(), "left open", ray.is_initialized())
except BadgeError as error:
    print(type(error).__name__, error)
"""


def run(out: Path, how: str, program: str = LOCAL) -> str:
    command = [sys.executable, "-c", program, str(out), how]
    env = {k: v for k, v in os.environ.items() if k not in ("RAY_ADDRESS", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")}
    env |= {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600, check=False)
    return done.stdout + done.stderr[-2000:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("local") / "out"


@pytest.fixture(scope="module")
def killed(folder: Path) -> str:
    """What a program prints whose local instance is killed while it predicts."""
    return run(folder, "kill")


@pytest.fixture(scope="module")
def continued(killed: str, folder: Path) -> str:
    """What it prints the second time. The parts of the first stay as they are."""
    with pytest.raises(badge.errors.InputError, match="is not finished"):
        badge.Outputs.load(folder)
    made = times(folder)
    said = run(folder, "go on")
    assert made and made.items() <= times(folder).items()
    return said


def times(folder: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in folder.glob("part-*/*.npy")}


def test_a_local_instance_and_its_end(killed: str) -> None:
    """It listens on 127.0.0.1 only. With its node gone the call ends in one line."""
    told = [line for line in killed.splitlines() if line.startswith("ClusterError ")]
    assert len(told) == 1 and "continues" in told[0], killed
    addresses = killed.split("listening ")[1].splitlines()[0].split()
    assert addresses and set(addresses) <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


def test_a_rerun_continues(continued: str) -> None:
    assert "same outputs True same picks True" in continued, continued


def test_a_second_selection_starts_its_own_instance(continued: str) -> None:
    """The processes of the first are gone with it."""
    assert "same picks again True left open False" in continued, continued


def test_an_address_where_nobody_listens_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started = time.monotonic()
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # the cluster of other tests may be there
    with pytest.raises(ClusterError, match="nobody listens at"), session.connected("127.0.0.1:9"):
        pass
    assert time.monotonic() - started < 15


STRANGER = """
import os, socket
listening = socket.create_server(("", 0))  # and never says a word
os.environ["RAY_ADDRESS"] = f"127.0.0.1:{listening.getsockname()[1]}"
import badge.cluster
from badge.cluster import session
session.CONNECT_SECONDS = 2.0
try:
    badge.cluster.predict(badge.networks.mlp(4, 2), badge.Dense([[0.0] * 4]).factors[0], "out")
except badge.errors.ClusterError as error:
    print("told", error)
"""


def test_a_stranger_at_the_address_is_told_in_time(tmp_path: Path) -> None:
    """As where a cluster is gone and its port is another program's, or where the token is missing."""
    told = run(tmp_path, "", STRANGER)
    assert "(no answer for 2 s): start one with `ray start --head`; one that asks for a token needs" in told, told


def test_a_stale_address_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    services = pytest.importorskip("ray._private.services")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    for found, message in (
        ("127.0.0.1:9", "nobody listens at 127.0.0.1:9"),
        (None, "none was started on this machine"),
    ):
        monkeypatch.setattr(services, "canonicalize_bootstrap_address", lambda address, found=found: found)
        with pytest.raises(ClusterError, match=rf"no Ray cluster at 'auto' \({message}\)"), session.connected():
            pass


def test_connecting_takes_a_minute_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "CONNECT_SECONDS", 0.1)
    with pytest.raises(TimeoutError, match="no answer for 0 s"):
        session._in_time(lambda: time.sleep(5))
    with pytest.raises(ConnectionError, match="refused"):
        session._in_time(lambda: (_ for _ in ()).throw(ConnectionError("refused")))


def test_ray_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    for call in (
        lambda: badge.cluster.predict(torch.nn.Linear(2, 2), torch.zeros(3, 2), tmp_path),
        lambda: badge.cluster.select_from(tmp_path, 3),
        lambda: badge.cluster.select(torch.nn.Linear(2, 2), torch.zeros(3, 2), 1, out=tmp_path),
    ):
        with pytest.raises(MissingExtraError, match=r"badge.cluster needs Ray: pip install 'badge-learn\[ray\]'"):
            call()


def test_errors_travel_between_processes() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.BadgeError)]
    assert len(kinds) == len(errors.__all__)
    special: dict[str, tuple[object, ...]] = {
        "UnknownNameError": ("strategy", "nope", ["badge"]),
        "MissingExtraError": ("this", "Ray", "ray"),
        "ServerError": ("gone", True),
    }
    for kind in kinds:
        error = kind(*special.get(kind.__name__, ("why",)))
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and str(again) == str(error) and vars(again) == vars(error)


def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nobody:
        exceptions = ray.exceptions

        def is_initialized(self) -> bool:
            return False

        def init(self, **options: object) -> None:
            raise ConnectionError("nobody\nanswers")

    monkeypatch.setattr(session, "require_ray", Nobody)
    monkeypatch.setattr(session, "_check_answers", lambda address: None)
    with pytest.raises(ClusterError, match=r"no Ray cluster at .far:1. \(nobody answers\)"), session.connected("far:1"):
        pass
