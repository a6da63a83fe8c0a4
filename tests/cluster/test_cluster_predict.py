"""`badge.cluster.predict`: the outputs of one machine, row for row and name for name, whoever dies on the way."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import badge
import badge.cluster
from badge.cluster import pieces, predicting
from badge.errors import InputError, ModelError, WriteError
from badge.outputs import far, parts
from object_store import s3_server

N = 300
X = torch.randn(N, 5, generator=torch.Generator().manual_seed(0))


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3))


class Items(Dataset[Any]):
    def __len__(self) -> int:
        return N

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        return X[i], 1


class Locked(Items):
    def __init__(self) -> None:
        self.lock = threading.Lock()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicting, "PART_ROWS", 64)


def same(out: badge.Outputs, expected: badge.Outputs) -> None:
    assert torch.equal(out.probabilities[:], expected.probabilities)
    assert torch.equal(out.embeddings[:], expected.embeddings)


def dataset(rows: int = N, blocks: int = 7, **columns: Any) -> Any:
    import ray.data

    x = X.numpy()
    made = ray.data.range(rows, override_num_blocks=blocks)
    return made.map_batches(lambda b: {"x": x[b["id"]], "name": np.char.add("é", b["id"].astype(str)), "y": b["id"]})


def test_any_pool(nodes: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X.numpy())
    pools: dict[str, Any] = {
        "tensor": X,
        "array": X.numpy(),
        "memmap": np.load(tmp_path / "x.npy", mmap_mode="r"),
        "list": list(X),
        "dataset": Items(),
        "loader": DataLoader(TensorDataset(X), batch_size=8),
        "columns": {"input": X, "photo": [f"p{i}" for i in range(N)]},
    }
    net = network()
    expected = badge.predict(net, X, batch_size=8)
    for kind, pool in pools.items():
        out, id = tmp_path / kind, "photo" if kind == "columns" else None
        got = badge.cluster.predict(net, pool, out, id=id, batch_size=8)
        same(got, expected)
        assert len(list(out.glob("part-*"))) == 5
        if id is None:
            assert got.ids is None
        else:
            assert got.ids is not None and got.ids[[0, 299]].tolist() == ["p0", "p299"]
        made = times(out)
        badge.cluster.predict(net, pool, out, id=id, batch_size=8)
        assert made == times(out)
    changed = X.clone()
    changed[101] += 1
    with pytest.raises(InputError, match="holds the outputs of another pool"):
        badge.cluster.predict(net, changed, tmp_path / "tensor", batch_size=8)


class Scaled(nn.Module):
    """Its weights do not say all of it."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.scale, self.one, self.two = scale, nn.Linear(5, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.two(self.scale * self.one(x))
        return out


def test_a_process_that_is_used_again_has_the_model_and_options_of_the_call(nodes: Any, tmp_path: Path) -> None:
    for number, (net, options) in enumerate(
        [(Scaled(1.0), {}), (Scaled(2.0), {}), (Scaled(2.0), {"autocast": torch.bfloat16})]
    ):
        got = badge.cluster.predict(net, X, tmp_path / str(number), batch_size=8, workers=1, **options)
        same(got, badge.predict(net, X, batch_size=8, **options))


def test_outputs_in_an_object_store(nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows and picks of one machine; nodes fetch what they read, and a rerun makes what is missing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    net = network()
    expected = badge.predict(net, X, batch_size=8)
    with s3_server(nodes.s3_port) as bucket:
        out = f"{bucket}/pool"
        columns = {"input": X, "photo": [f"p{i}" for i in range(N)]}
        got = badge.cluster.predict(net, columns, out, id="photo", batch_size=8)
        picks = badge.cluster.select_from(out, 9, seed=2)
        assert not list(tmp_path.rglob("*.npy"))  # nothing was read here
        same(got, expected)
        assert picks.tolist() == badge.select_from(expected, 9, seed=2).tolist()
        assert got.ids is not None and got.ids[[299]].tolist() == ["p299"]
        far.Far(out).remove("part-000000000064-000000000128")
        shutil.rmtree(tmp_path / "badge")
        same(badge.cluster.predict(net, columns, out, id="photo", batch_size=8), expected)


def test_a_piece_travels_without_the_rest() -> None:
    for pool in (X, {"x": X, "y": X.bfloat16()}, list(X), [(X[i], X[i]) for i in range(N)], X.numpy()):
        few = pieces.piece(pool, 10, 12)
        content = pickle.dumps(pieces.light(few))
        assert len(content) < 1500
        assert repr(pickle.loads(content)) == repr(few)


def times(out: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in out.rglob("*.npy")}


def test_errors_before_work_starts(nodes: Any, tmp_path: Path) -> None:
    net, out = network(), tmp_path / "out"
    with pytest.raises(InputError, match="has no column 'nope' to name its rows by; it has"):
        badge.cluster.predict(net, dataset(), out, id="nope")
    with pytest.raises(InputError, match="name its rows by id="):
        badge.cluster.predict(net, dataset(), out)
    twice = dataset().map_batches(lambda b: {"x": b["x"], "name": b["y"] // 2 * 2})
    with pytest.raises(InputError, match=r"names \d+ more than once"):
        badge.cluster.predict(net, twice, out, id="name")
    halves = dataset().map_batches(lambda b: {"x": b["x"], "name": b["y"] / 2})
    with pytest.raises(InputError, match="whole numbers or texts are needed, not float64"):
        badge.cluster.predict(net, halves, out, id="name")
    locked = network()
    locked.lock = threading.Lock()  # type: ignore[assignment]
    with pytest.raises(ModelError, match="the model cannot be pickled"):
        badge.cluster.predict(locked, X, out)
    with pytest.raises(InputError, match=r"the pool cannot be pickled, .*: cannot pickle '_thread.lock' object"):
        badge.cluster.predict(net, Locked(), out)
    with pytest.raises(InputError, match="workers must be a whole number ≥ 1, not 0"):
        badge.cluster.predict(net, X, out, workers=0)
    with pytest.raises(InputError, match="num_gpus must be a number above 0, not 'all'"):
        badge.cluster.predict(net, X, out, num_gpus="all")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="nonsense://a cannot be opened"):
        badge.cluster.predict(net, X, "nonsense://a")
    with pytest.raises(InputError, match="the pool is empty"):
        badge.cluster.predict(net, dataset().limit(0), out, id="name")
    with pytest.raises(InputError, match="names 'a' more than once"):
        badge.cluster.predict(net, {"input": X[:3], "n": ["a", "b", "a"]}, out, id="n")
    with pytest.raises(InputError, match="has no column 'm'"):
        badge.cluster.predict(net, {"input": X[:3]}, out, id="m")
    with pytest.raises(InputError, match="a pool of type Tensor has no columns"):
        badge.cluster.predict(net, X, out, id="m")
    with pytest.raises(InputError, match="the pool is empty"):
        badge.cluster.predict(net, X[:0], out)
    with pytest.raises(InputError, match="cannot be cut into parts"):
        badge.cluster.predict(net, [{"input_ids": X}], out)
    with pytest.raises(ModelError, match=r"a list of 2 models, .*: pass one model, or use badge.predict"):
        badge.cluster.predict([net, network()], X, out)
    assert not out.exists()


def test_a_directory_that_cannot_be_written_is_one_line(nodes: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "out"):
        with pytest.raises(WriteError, match=r"file.* cannot be written"):
            badge.cluster.predict(network(), X, out)


def test_a_part_that_only_its_writer_sees(nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a node wrote to its local disk under the same path."""

    def elsewhere(*given: Any) -> Iterator[parts.Part]:
        yield parts.Part("part-0", N)

    monkeypatch.setattr(predicting, "_from_pool", elsewhere)
    with pytest.raises(InputError, match="part-0 was written by a worker and is not here: all nodes must see"):
        badge.cluster.predict(network(), X, tmp_path)


class Flawed(nn.Module):
    """NaN where the input is 9."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        z: Tensor = self.fc(x)
        return torch.where(x[:, :1] == 9, torch.nan, z)


@pytest.mark.parametrize("kind", ["pool", "dataset"])
def test_an_error_of_a_worker_is_one_line(kind: str, nodes: Any, tmp_path: Path) -> None:
    x = X.clone()
    x[200, 0] = 9
    pool: Any = x
    if kind == "dataset":
        import ray.data

        array = x.numpy()
        pool = ray.data.range(N, override_num_blocks=3).map_batches(lambda b: {"x": array[b["id"]], "id": b["id"]})
    with pytest.raises(ModelError, match=r"cannot be used|no linear layer") as caught:
        badge.cluster.predict(Flawed(), pool, tmp_path, id="id" if kind == "dataset" else None, batch_size=8)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="is not finished"):
        badge.Outputs.load(tmp_path)


#: two rows of the pool are above it
TWO = float(X[:, 0].sort().values[-3])


class Dying(nn.Module):
    """Kills its process when it sees one of two rows for the first time."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fc, self.folder, self.home = nn.Linear(5, 3), folder, os.getpid()

    def forward(self, x: Tensor) -> Tensor:
        time.sleep(0.01)
        mark = self.folder / f"died-{float(x[:, 0].max()):.6f}"
        if os.getpid() != self.home and float(x[:, 0].max()) > TWO and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        out: Tensor = self.fc(x)
        return out


def test_workers_of_a_pool_that_are_killed(nodes: Any, tmp_path: Path) -> None:
    net, out = Dying(tmp_path), tmp_path / "out"
    got = badge.cluster.predict(net, X, out, batch_size=8)
    same(got, badge.predict(net, X, batch_size=8))
    assert len(list(tmp_path.glob("died-*"))) == 2
    assert not list(out.glob(".*"))


def test_a_ray_dataset_whose_workers_are_killed(nodes: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Order and names are kept, and a rerun does not compute again. Ray has nothing to say about restarts of actors."""
    net, out = Dying(tmp_path), tmp_path / "out"
    got = badge.cluster.predict(net, dataset(), out, id="name", batch_size=8, workers=2)
    assert "max_restarts" not in capfd.readouterr().err
    expected = badge.predict(net, X, batch_size=8)
    torch.testing.assert_close(got.probabilities[:], expected.probabilities)
    torch.testing.assert_close(got.embeddings[:], expected.embeddings)
    assert got.ids is not None and got.ids[:].tolist() == [f"é{i}" for i in range(N)]
    assert list(tmp_path.glob("died-*"))
    shutil.rmtree(next(out.glob("part-*")))
    made = times(out)
    got = badge.cluster.predict(net, dataset(), out, id="name", batch_size=8, workers=2)
    torch.testing.assert_close(got.probabilities[:], expected.probabilities)
    assert made.items() < times(out).items()
    with pytest.raises(InputError, match="holds the outputs of another pool"):
        badge.cluster.predict(net, dataset(200), out, id="name", batch_size=8)


def test_a_ray_dataset_on_a_node_with_a_gpu(nodes: Any, tmp_path: Path) -> None:
    """The GPU is one in name: actors do the work, in order."""
    added = nodes.add(num_gpus=1)
    try:
        got = badge.cluster.predict(network(), dataset(), tmp_path, id="name", batch_size=8)
    finally:
        nodes.cluster.remove_node(added)
    torch.testing.assert_close(got.embeddings[:], badge.predict(network(), X).embeddings)
    assert got.ids is not None and got.ids[:].tolist() == [f"é{i}" for i in range(N)]


class Doomed(nn.Module):
    """The first node but the driver's that it runs on writes down its name, and waits there for its end."""

    def __init__(self, folder: Path, home: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fc, self.mark, self.home, self.driver = nn.Linear(5, 3), folder / "doomed", home, os.getpid()

    def forward(self, x: Tensor) -> Tensor:
        import ray

        here = ray.get_runtime_context().get_node_id()
        if here != self.home:
            with contextlib.suppress(FileExistsError):  # one of the nodes is doomed, however many come at once
                with self.mark.open("x") as mark:
                    mark.write(here)
                time.sleep(600)
        while here == self.home and os.getpid() != self.driver and not self.mark.exists():
            time.sleep(0.05)  # work is left for the others
        out: Tensor = self.fc(x)
        return out


@pytest.mark.parametrize("kind", ["pool", "dataset"])
def test_a_whole_node_that_is_killed(kind: str, nodes: Any, tmp_path: Path) -> None:
    import ray

    net, out = Doomed(tmp_path, ray.get_runtime_context().get_node_id()), tmp_path / "out"

    def kill() -> None:
        end = time.monotonic() + 60
        while not (net.mark.exists() and net.mark.read_text()) and time.monotonic() < end:
            time.sleep(0.05)
        nodes.kill([node.node_id for node in nodes.others].index(net.mark.read_text()))

    killer = threading.Thread(target=kill)
    killer.start()
    pool, id = (X, None) if kind == "pool" else (dataset(), "name")
    got = badge.cluster.predict(net, pool, out, id=id, batch_size=8, workers=3)
    killer.join()
    expected = badge.predict(net, X, batch_size=8)
    torch.testing.assert_close(got.probabilities[:], expected.probabilities)
    torch.testing.assert_close(got.embeddings[:], expected.embeddings)
    assert len(nodes.others) == 1 and not list(out.glob(".*"))
    assert got.ids is None or got.ids[:].tolist() == [f"é{i}" for i in range(N)]
