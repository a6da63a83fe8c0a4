"""`predict(..., out=dir)`: on disk batch by batch, resumed after a kill, refused for another model or pool."""

from __future__ import annotations

import copy
import os
import shutil
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import badge
from badge.errors import InputError, ModelError, WriteError
from badge.models import sinks
from badge.models.digest import whole_digest
from badge.models.pools import open_pool
from badge.outputs import store as outputs_store
from forks import FORKS

N = 31
X = torch.randn(N, 5, generator=torch.Generator().manual_seed(0))


class Counting(nn.Module):
    """Counts the rows it sees; stops on the row number `stop_at` of its life."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.fc = nn.Linear(5, 6), nn.Linear(6, 3)
        self.rows, self.stop_at = 0, 10**9

    def forward(self, x: Tensor) -> Tensor:
        if self.rows + len(x) > self.stop_at:
            raise KeyboardInterrupt
        self.rows += len(x)
        return self.fc(torch.relu(self.body(x)))


def test_written_loaded_and_not_run_again(tmp_path: Path) -> None:
    net = Counting()
    expected = badge.predict(Counting(), X, batch_size=4)
    out = badge.predict(net, X, batch_size=4, out=tmp_path / "a" / "b")
    loaded = badge.Outputs.load(tmp_path / "a" / "b")
    for other in (out, loaded):
        assert torch.equal(other.probabilities, expected.probabilities)
        assert torch.equal(other.embeddings, expected.embeddings)
    assert isinstance(np.load(tmp_path / "a" / "b" / "probabilities.npy", mmap_mode="r"), np.memmap)
    assert net.rows == N
    badge.predict(net, X, out=str(tmp_path / "a" / "b"))
    assert net.rows == N


@pytest.mark.parametrize("kind", ["tensor", "loader", "dataset"])
def test_an_interrupted_pass_goes_on_where_it_stopped(kind: str, tmp_path: Path) -> None:
    pool: Any = {"tensor": X, "loader": DataLoader(TensorDataset(X), batch_size=4), "dataset": list(X)}[kind]
    net = Counting()
    net.stop_at = 13
    with pytest.raises(KeyboardInterrupt):
        badge.predict(net, pool, batch_size=4, out=tmp_path)
    with pytest.raises(InputError, match="holds 12 of 31 rows: run the same"):
        badge.Outputs.load(tmp_path)
    net.stop_at = 10**9
    if kind == "loader":
        pool = DataLoader(TensorDataset(X), batch_size=7)  # the middle of another batch
    out = badge.predict(net, pool, batch_size=9, out=tmp_path)
    assert net.rows == N
    torch.testing.assert_close(out.embeddings, badge.predict(Counting(), X).embeddings)


def slow_pass(folder: Path, batches: Connection) -> None:
    """Tells of each batch."""

    class Linear(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            time.sleep(0.01)
            batches.send("batch")
            return super().forward(x)

    torch.manual_seed(0)
    for module in (outputs_store, sinks):
        vars(module)["FLUSH_SECONDS"] = 0.05
    badge.predict(Linear(5, 3), torch.arange(2000.0).reshape(400, 5) / 1000, batch_size=2, out=folder)


@pytest.mark.parametrize("after", [1, 70])
def test_sigkill(after: int, tmp_path: Path) -> None:
    batches, theirs = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=slow_pass, args=(tmp_path / "o", theirs))
    process.start()
    theirs.close()
    for _ in range(after):
        assert batches.recv() == "batch"
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    rows = 0

    class Linear(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            nonlocal rows
            rows += len(x)
            return super().forward(x)

    torch.manual_seed(0)
    net, pool = Linear(5, 3), torch.arange(2000.0).reshape(400, 5) / 1000
    out = badge.predict(net, pool, batch_size=2, out=tmp_path / "o")
    assert rows > 300 if after == 1 else 0 < rows < 400 - after
    torch.testing.assert_close(out.probabilities, badge.predict(net, pool).probabilities)
    torch.testing.assert_close(out.embeddings, pool)


def test_another_model_pool_or_set_of_options_is_refused(tmp_path: Path) -> None:
    net = Counting()
    badge.predict(net, X, out=tmp_path)
    changed = X.clone()
    changed[-1, 0] += 1
    for pool in (changed, X[:-1]):
        with pytest.raises(InputError, match="outputs of another pool: name another directory"):
            badge.predict(net, pool, out=tmp_path)
    with pytest.raises(InputError, match="another set of options"):
        badge.predict(net, X, autocast=torch.bfloat16, out=tmp_path)
    with torch.no_grad():
        net.fc.bias[0] += 1e-6
    with pytest.raises(InputError, match="another model"):
        badge.predict(net, X, out=tmp_path)
    with pytest.raises(InputError, match="another model and another pool"):
        badge.predict(net, changed, out=tmp_path)


def test_a_directory_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("\\section{}")
    with pytest.raises(InputError, match=r"not empty and holds no outputs of badge \(thesis.tex"):
        badge.predict(Counting(), X, out=tmp_path)
    with pytest.raises(InputError, match="holds no outputs"):
        badge.Outputs.load(tmp_path)
    with pytest.raises(InputError, match="holds no outputs"):
        badge.Outputs.load(tmp_path / "missing")


@pytest.mark.parametrize(
    ("file", "content"),
    [("outputs.json", "{"), ("outputs.json", '{"format": 1}'), ("progress", "x"), ("embeddings.npy", "x")],
)
def test_a_damaged_directory(file: str, content: str, tmp_path: Path) -> None:
    badge.predict(Counting(), X, out=tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(InputError, match=file):
        badge.Outputs.load(tmp_path)


def test_bad_rows_are_refused_before_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are looked through a chunk at a time: what is wrong is known before another chunk is computed."""
    pool = X.clone()
    pool[20] = float("nan")
    message = r"cannot be used: probabilities hold NaN or inf in 1 row \(first: 20\): look at these rows of the pool"
    with pytest.raises(ModelError, match=message):
        badge.predict(Counting(), pool, batch_size=4, out=tmp_path / "one chunk")
    monkeypatch.setattr(sinks, "CHECK_BYTES", 1)
    model = Counting()
    for out in (None, tmp_path / "many"):
        model = Counting()
        with pytest.raises(ModelError, match=message):
            badge.predict(model, pool, batch_size=4, out=out)
        assert model.rows == 24
    with pytest.raises(InputError, match="20 of 31 rows"):
        badge.Outputs.load(tmp_path / "many")


def test_embeddings_are_float16_only_for_a_float16_model(tmp_path: Path) -> None:
    half = badge.predict(Counting().half(), X, out=tmp_path / "half")
    assert (half.probabilities.dtype, half.embeddings.dtype) == (torch.float32, torch.float16)
    cast = badge.predict(Counting(), X, autocast=torch.bfloat16, out=tmp_path / "cast")
    assert (cast.probabilities.dtype, cast.embeddings.dtype) == (torch.float32, torch.float32)


def test_a_dataset_that_augments_at_random_can_be_resumed(tmp_path: Path) -> None:
    class Jitter(Dataset[Tensor]):
        def __len__(self) -> int:
            return N

        def __getitem__(self, i: int) -> Tensor:
            return X[i] + torch.randn(5)

    net = Counting()
    net.stop_at = 13
    with pytest.raises(KeyboardInterrupt):
        badge.predict(net, Jitter(), batch_size=4, out=tmp_path)
    torch.rand(7)
    net.stop_at = 10**9
    badge.predict(net, Jitter(), batch_size=4, out=tmp_path)
    assert net.rows == N


def test_estimators_too(tmp_path: Path) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    x, y = X.numpy(), (X[:, 0] > 0).numpy()
    model = linear_model.LogisticRegression().fit(x, y)
    out = badge.predict(model, x, out=tmp_path)
    np.testing.assert_allclose(out.probabilities, model.predict_proba(x), atol=1e-6)
    badge.predict(linear_model.LogisticRegression().fit(x, y), x, out=tmp_path)  # the same fit is the same model
    with pytest.raises(InputError, match="another model"):
        badge.predict(linear_model.LogisticRegression(C=0.5).fit(x, y), x, out=tmp_path)


def test_a_full_disk_is_an_error_and_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(WriteError, match=r"cannot reserve [0-9,]+ bytes .*No space left"):
        badge.predict(Counting(), X, out=tmp_path)


def resident() -> int:
    """Bytes of this process in memory, its mapped files included."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_opening_reads_nothing_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of 4 GB (of holes: the disk is not filled) opens without growing the process."""
    monkeypatch.delattr(os, "posix_fallocate")
    rows = 10**7
    writer = outputs_store.Writer(tmp_path, rows, {})
    writer.write(np.full((1, 2), 0.5, np.float32), np.ones((1, 100), np.float32))
    writer.done = rows
    writer.flush()
    before = resident()
    out = badge.Outputs.load(tmp_path)
    assert out.embeddings.shape == (rows, 100)
    assert resident() - before < 20 * 2**20


def test_arrays_that_were_changed_are_noticed_and_copies_are_not_refused(tmp_path: Path) -> None:
    """Every bit counts: numbers that are still valid, but not the model's, are no better."""
    badge.predict(Counting(), X, out=tmp_path / "a")
    expected = badge.select_from(badge.Outputs.load(tmp_path / "a"), 5).tolist()
    shutil.copytree(tmp_path / "a", tmp_path / "copy", copy_function=shutil.copyfile)
    assert badge.select_from(badge.Outputs.load(tmp_path / "copy"), 5).tolist() == expected
    rng = np.random.default_rng(0)
    for trial in range(60):
        folder = tmp_path / f"c{trial}"
        shutil.copytree(tmp_path / "a", folder)
        file = folder / ("probabilities.npy" if trial % 2 else "embeddings.npy")
        content = bytearray(file.read_bytes())
        content[int(rng.integers(0, len(content)))] ^= 1 << int(rng.integers(8))
        file.write_bytes(content[: rng.integers(len(content))] if trial % 5 == 0 else content)
        try:
            picks = badge.select_from(badge.Outputs.load(folder), 5).tolist()
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) < 600
        else:
            assert picks == expected  # a space in the header


def test_rows_that_were_changed_before_a_pass_goes_on_are_noticed(tmp_path: Path) -> None:
    net = Counting()
    net.stop_at = 13
    with pytest.raises(KeyboardInterrupt):
        badge.predict(net, X, batch_size=4, out=tmp_path)
    np.load(tmp_path / "embeddings.npy", mmap_mode="r+")[3, 0] += 1
    net.stop_at = 10**9
    with pytest.raises(InputError, match="was changed since it was written: delete the directory"):
        badge.predict(net, X, batch_size=4, out=tmp_path)


@pytest.mark.parametrize("meta", ["[]", '"x"', "null", "[" * 100_000, '{"format": 1, "rows": "9"}', "\xff"])
def test_a_description_that_is_none(meta: str, tmp_path: Path) -> None:
    badge.predict(Counting(), X, out=tmp_path)
    (tmp_path / "outputs.json").write_text(meta, encoding="latin-1")
    for call in (badge.Outputs.load, lambda path: badge.predict(Counting(), X, out=path)):
        with pytest.raises(InputError, match=r"outputs.json is damaged: delete the directory"):
            call(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    badge.predict(Counting(), X, out=tmp_path)
    for name in ("embeddings.npy", "progress", "outputs.json"):
        (tmp_path / name).unlink()
        os.mkfifo(tmp_path / name)
        with pytest.raises(InputError):
            badge.Outputs.load(tmp_path)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"file/out cannot be written: Not a directory"):
        badge.predict(Counting(), X, out=tmp_path / "file" / "out")


def changed_pools() -> list[Any]:
    """Pools of 1,000 examples as they are at hand, and each with one number or letter changed."""
    x = np.arange(5000, dtype=np.float32).reshape(1000, 5)
    y = x.copy()
    y[7, 2] += 1
    pairs: list[Any] = [(x, y), (torch.from_numpy(x), torch.from_numpy(y)), (list(x), list(y))]
    pairs += [(TensorDataset(torch.from_numpy(x)), TensorDataset(torch.from_numpy(y))), ({"x": x}, {"x": y})]
    pairs += [(pd.DataFrame(x), pd.DataFrame(y)), (sparse.csr_matrix(x), sparse.csr_matrix(y))]
    pairs += [(pd.Series(["a"] * 1000), pd.Series([*["a"] * 7, "b", *["a"] * 992]))]
    pairs += [(["a"] * 1000, [*["a"] * 7, "b", *["a"] * 992]), ({"a": ["x"] * 1000}, {"a": [*["x"] * 999, "y"]})]
    pairs += [([{"input_ids": torch.from_numpy(part)} for part in np.split(z.astype(int), 4)] for z in (x, y))]
    return [tuple(pair) for pair in pairs]


@pytest.mark.parametrize(("pool", "other"), changed_pools(), ids=lambda pool: type(pool).__name__)
def test_a_pool_is_known_by_all_that_it_holds(pool: Any, other: Any) -> None:
    one, same, another = (whole_digest(p, open_pool(p)) for p in (pool, copy.deepcopy(pool), other))
    assert one == same != another


def test_one_row_changed_is_another_pool(tmp_path: Path) -> None:
    """A row that was corrected: its outputs are not those on disk."""
    x = torch.randn(1000, 5, generator=torch.Generator().manual_seed(0))
    badge.predict(Counting(), x, out=tmp_path / "o")
    x[7, 2] += 1
    with pytest.raises(InputError, match="holds the outputs of another pool"):
        badge.predict(Counting(), x, out=tmp_path / "o")


def test_an_estimator_that_cannot_be_told_from_another(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    model = make_pipeline(FunctionTransformer(lambda x: x * 2), LogisticRegression()).fit(X.numpy(), np.arange(N) % 2)
    assert len(badge.predict(model, X)) == N
    with pytest.raises(ModelError, match=r"Pipeline cannot be pickled .* no lambda, or leave out out="):
        badge.predict(model, X, out=tmp_path / "o")
