"""Downloads over HTTP from a local server that serves small files in the sources' real formats."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import socket
import struct
import tarfile
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import badge
from badge.data import sources
from badge.errors import DataError


class Server:
    """A web server of a dict of paths, which counts what it was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.short = 0  # bytes that are announced and not sent
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                content = outer.files.get(self.path)
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"") + outer.short))
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *arguments: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = Thread(target=partial(self.http.serve_forever, poll_interval=0.01), daemon=True)
        self.thread.start()

    def add(self, path: str, content: bytes, md5: bool = True) -> None:
        """Serve `content`, and let its MD5 be the published one."""
        self.files[path] = content
        if md5:
            sources.FILES[path.rsplit("/", 1)[-1]] = hashlib.md5(content).hexdigest()

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("BADGE_DATA", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sources, "FILES", dict(sources.FILES))
    served = Server()
    monkeypatch.setattr(sources, "BASES", {name: f"{served.url}/{name}" for name in sources.BASES})
    yield served
    served.close()


def idx(array: np.ndarray) -> bytes:
    head = struct.pack(f">BBBB{array.ndim}i", 0, 0, 8, array.ndim, *array.shape)
    return gzip.compress(head + array.astype(np.uint8).tobytes())


def images(n: int, *shape: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(256, size=(n, *shape), dtype=np.uint8), (np.arange(n) % 10).astype(np.uint8)


def serve_mnist(server: Server) -> tuple[np.ndarray, np.ndarray]:
    (x, y), (x_test, y_test) = images(30, 28, 28), images(20, 28, 28, seed=1)
    server.add("/mnist/train-images-idx3-ubyte.gz", idx(x))
    server.add("/mnist/train-labels-idx1-ubyte.gz", idx(y))
    server.add("/mnist/t10k-images-idx3-ubyte.gz", idx(x_test))
    server.add("/mnist/t10k-labels-idx1-ubyte.gz", idx(y_test))
    return x, y


def serve_openml(server: Server, data_id: int, text: str, md5: str | None = None, target: str = "class") -> None:
    about = {
        "url": f"{server.url}/data/v1/download/{data_id}/set.arff",
        "default_target_attribute": target,
        "md5_checksum": md5 or hashlib.md5(text.encode()).hexdigest(),
    }
    described = json.dumps({"data_set_description": about}).encode()
    server.add(f"/openml/api/v1/json/data/{data_id}", described, md5=False)
    server.add(f"/data/v1/download/{data_id}/set.arff", text.encode(), md5=False)


LETTER = (
    "@relation letter\n@attribute 'x-box' integer\n@attribute onpix integer\n@attribute class {A,B,C}\n@data\n"
    + "".join(f"{i % 16},{i * 7 % 16},{'ABC'[i % 3]}\n" for i in range(60))
)


def leftovers() -> list[str]:
    return sorted(path.name for path in badge.data.cache_folder().iterdir())


def test_mnist(server: Server) -> None:
    x, y = serve_mnist(server)
    data = badge.data.load("mnist", standardise=False)
    np.testing.assert_array_equal(data.X_train[:, 0], x)
    np.testing.assert_array_equal(data.y_train, y)
    assert data.class_names == tuple("0123456789") and data.text == "50 of 70,000"
    assert leftovers() == ["mnist.npz"]
    asked = len(server.asked)
    again = badge.data.load("mnist", standardise=False)  # from the cache
    assert len(server.asked) == asked == 4 and np.array_equal(again.X_train, data.X_train)


def test_svhn(server: Server) -> None:
    savemat = pytest.importorskip("scipy.io").savemat
    for part, n in (("train", 30), ("test", 20)):
        x, y = images(n, 32, 32, 3)
        file = io.BytesIO()
        savemat(file, {"X": x.transpose(1, 2, 3, 0), "y": np.where(y == 0, 10, y)[:, None]})
        server.add(f"/svhn/{part}_32x32.mat", file.getvalue())
    data = badge.data.load("svhn", standardise=False)
    x, y = images(30, 32, 32, 3)
    np.testing.assert_array_equal(data.X_train, x.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(data.y_train, y)  # digit 0, which the source writes as 10, is label 0
    assert leftovers() == ["svhn.npz"]


def cifar(rows_of_last: int = 3073 * 4, meta: str = "airplane\nautomobile\nbird\ncat\n") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:

        def add(name: str, content: bytes) -> None:
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))

        add("batches.meta.txt", meta.encode())
        for i, name in enumerate([*[f"data_batch_{i}.bin" for i in range(1, 6)], "test_batch.bin"]):
            x, _ = images(4, 3, 32, 32, seed=i)
            rows = np.concatenate([np.arange(4, dtype=np.uint8)[:, None], x.reshape(4, -1)], axis=1).tobytes()
            add(name, rows[: rows_of_last if name == "test_batch.bin" else None])
    return file.getvalue()


def test_cifar10(server: Server) -> None:
    server.add("/cifar10/cifar-10-binary.tar.gz", cifar())
    data = badge.data.load("cifar10", standardise=False)
    np.testing.assert_array_equal(data.X_train, np.concatenate([images(4, 3, 32, 32, seed=i)[0] for i in range(5)]))
    np.testing.assert_array_equal(data.X_test, images(4, 3, 32, 32, seed=5)[0])
    assert data.y_train.tolist() == [0, 1, 2, 3] * 5
    assert data.class_names == ("airplane", "automobile", "bird", "cat") and data.text == "24 of 60,000"


def test_openml(server: Server) -> None:
    serve_openml(server, 6, LETTER)
    data = badge.data.load("letter", standardise=False)
    assert (len(data.y_train), len(data.y_test), data.classes) == (54, 6, 3)
    assert data.class_names == ("A", "B", "C") and data.text == "60 of 20,000"
    rows = {(*x, y) for x, y in zip(data.X_train.tolist(), data.y_train.tolist(), strict=True) for x in [tuple(x)]}
    assert rows <= {(i % 16, i * 7 % 16, i % 3) for i in range(60)}
    with np.load(badge.data.cache_folder() / "letter.npz") as stored:
        assert stored["feature_names"].tolist() == ["x-box", "onpix"]


def test_openml_categories(server: Server) -> None:
    """Suits of pokerhand are numbers that are declared as categories; kropt's columns are letters."""
    head = "@relation r\n@attribute s1 {4,3,2,1}\n@attribute r1 numeric\n@attribute class {a,b}\n@data\n"
    serve_openml(server, 155, head + "".join(f"{1 + i % 4},{i % 13},{'ab'[i % 2]}\n" for i in range(40)))
    data = badge.data.load("pokerhand", standardise=False)
    assert set(data.X_train[:, 0]) == {1, 2, 3, 4}
    head = "@relation r\n@attribute col {a,b,c}\n@attribute row {1,2}\n@attribute game {draw,zero}\n@data\n"
    rows = "".join(f"{'abc'[i % 3]},{1 + i % 2},{'draw' if i % 5 else 'zero'}\n" for i in range(60))
    serve_openml(server, 184, head + rows, target="game")
    data = badge.data.load("kropt", standardise=False)
    assert data.shape == (5,) and set(np.unique(data.X_train)) == {0, 1} and data.class_names == ("draw", "zero")


def test_checksum_mismatch_is_refused_and_nothing_is_kept(server: Server) -> None:
    serve_mnist(server)
    sources.FILES["t10k-labels-idx1-ubyte.gz"] = "0" * 32
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte.gz.*does not match"):
        badge.data.load("mnist")
    assert leftovers() == []
    serve_openml(server, 6, LETTER, md5="f" * 32)
    with pytest.raises(DataError, match=r"set.arff.*does not match"):
        badge.data.load("letter")
    assert leftovers() == []


def test_published_checksums_are_in_force(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    published = dict(sources.FILES)
    serve_mnist(server)
    monkeypatch.setattr(sources, "FILES", published)
    with pytest.raises(DataError, match=r"f68b3c2dcbeaaa9fbdd348bbdeb94873"):
        badge.data.load("mnist")


def test_damaged_files_are_refused(server: Server) -> None:
    serve_mnist(server)
    whole = server.files["/mnist/train-images-idx3-ubyte.gz"]
    server.add("/mnist/train-images-idx3-ubyte.gz", whole[:-30])  # cut short
    with pytest.raises(DataError, match="files are damaged"):
        badge.data.load("mnist")
    server.add("/mnist/train-images-idx3-ubyte.gz", gzip.compress(gzip.decompress(whole)[:-30]))  # pixels missing
    with pytest.raises(DataError, match="files are damaged"):
        badge.data.load("mnist")
    server.add("/mnist/train-images-idx3-ubyte.gz", gzip.compress(b"<html>moved</html>"))
    with pytest.raises(DataError, match="idx file"):
        badge.data.load("mnist")
    server.add("/cifar10/cifar-10-binary.tar.gz", cifar(rows_of_last=5000))
    with pytest.raises(DataError, match="files are damaged"):
        badge.data.load("cifar10")
    server.add("/svhn/train_32x32.mat", b"no mat file")
    with pytest.raises(DataError, match="files are damaged"):
        badge.data.load("svhn")
    serve_openml(server, 6, LETTER + "1,2\n")
    with pytest.raises(DataError, match="a row of 2 values"):
        badge.data.load("letter")
    serve_openml(server, 6, LETTER, target="onpix")
    with pytest.raises(DataError, match="'onpix' is not a column of categories"):
        badge.data.load("letter")
    assert leftovers() == []


def test_server_without_the_file_and_no_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"letter is not at .*letter.npz \(BADGE_DATA is not set\).*404"):
        badge.data.load("letter")
    monkeypatch.setattr(sources, "BASES", dict.fromkeys(sources.BASES, "http://127.0.0.1:9"))
    with pytest.raises(DataError, match=r"the download failed: http://127.0.0.1:9/api.*set BADGE_DATA"):
        badge.data.load("letter")


def test_a_silent_server_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(sources, "TIMEOUT", 0.2)
        monkeypatch.setattr(
            sources, "BASES", dict.fromkeys(sources.BASES, f"http://127.0.0.1:{silent.getsockname()[1]}")
        )
        with pytest.raises(DataError, match=r"letter is not at .*timed out"):
            badge.data.load("letter")
    assert leftovers() == []


def test_a_reply_that_breaks_off_is_refused(server: Server) -> None:
    """The server says that more is to come than it sends."""
    serve_openml(server, 6, LETTER)
    server.short = 10
    with pytest.raises(DataError, match=r"the reply broke off after \d+ of \d+ bytes"):
        badge.data.load("letter")
    assert leftovers() == []


def test_a_failed_write_leaves_no_half_file(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_openml(server, 6, LETTER)

    def torn(path: Path, **arrays: Any) -> None:
        Path(path).write_bytes(b"half")
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(np, "savez_compressed", torn)
        with pytest.raises(DataError, match="No space left"):
            badge.data.load("letter")
    assert leftovers() == []
    assert badge.data.load("letter").rows == 60


def test_progress_goes_to_standard_error(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    serve_openml(server, 6, LETTER)
    badge.data.load("letter")
    shown = capsys.readouterr()
    assert "set.arff (MB)" in shown.err and not shown.out
    (badge.data.cache_folder() / "letter.npz").unlink()
    badge.data.load("letter", progress=False)
    assert capsys.readouterr().err == ""


def test_the_cached_file_can_be_handed_on(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the download stores is what BADGE_DATA expects on a machine without a network."""
    serve_openml(server, 6, LETTER)
    first = badge.data.load("letter")
    (tmp_path / "stick").mkdir()
    (badge.data.cache_folder() / "letter.npz").replace(tmp_path / "stick" / "letter.npz")
    monkeypatch.setenv("BADGE_DATA", str(tmp_path / "stick"))
    asked = len(server.asked)
    np.testing.assert_array_equal(badge.data.load("letter").X_train, first.X_train)
    assert len(server.asked) == asked
