"""Outputs in an object store: the rows and picks of a directory, fetched where they are read, once; or refused by name."""

from __future__ import annotations

import json
import pickle
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import torch

import badge
from badge.core.rows import Remaining
from badge.errors import BadgeError, InputError, MissingExtraError, WriteError
from badge.outputs import far, parts
from badge.outputs.parts import place_of
from object_store import s3_server
from pages import free_port

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of the S3 client's and server's connections
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
N, STEP = 50, 20
IDENTITY = {"model": "Linear:1", "pool": "50:1"}


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_server(free_port()) as url:
        yield url


@pytest.fixture(params=["memory", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new folder in a store, and a new cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = "memory://pools" if request.param == "memory" else request.getfixturevalue("bucket")
    return f"{home}/{uuid.uuid4().hex}"


def write(url: str, names: bool = True, only: int | None = None) -> tuple[badge.Outputs, list[parts.Part]]:
    rng = np.random.default_rng(0)
    out = badge.Outputs.from_logits(rng.normal(size=(N, 3)), rng.normal(size=(N, 5)))
    p, h, ids = out.probabilities.numpy(), out.embeddings.numpy(), np.array([f"é{i}".encode() for i in range(N)])
    assert not parts.begin(url, IDENTITY)
    made = []
    for a in range(0, N, STEP) if only is None else [only]:
        at = slice(a, a + STEP)
        made.append(parts.write(url, f"{a:03d}", p[at], h[at], ids[at] if names else None, IDENTITY))
    return out, made


def copies(tmp_path: Path) -> list[str]:
    return sorted(path.name[:8] for path in (tmp_path / "cache" / "badge" / "outputs").glob("*/part-*"))


def forget(tmp_path: Path) -> None:
    """As on another node, whose disk has no copies."""
    (tmp_path / "cache").rename(tmp_path / uuid.uuid4().hex)


def test_rows_names_and_picks_are_those_of_one_piece(url: str, tmp_path: Path) -> None:
    whole, made = write(url)
    parts.finish(url, made)
    assert parts.begin(url, IDENTITY)  # all is there: nothing is to do
    forget(tmp_path)
    out = badge.Outputs.load(url)
    assert out.directory == url and repr(out) == repr(whole) and copies(tmp_path) == []  # nothing was fetched
    last = pickle.loads(pickle.dumps(out.embeddings.narrowed(Remaining(45, 50))))  # type: ignore[attr-defined]
    assert torch.equal(last[:], whole.embeddings[45:]) and copies(tmp_path) == ["part-040"]
    for strategy in ("badge", "coreset", "marg"):
        options: dict[str, Any] = {"k": 6, "strategy": strategy, "seed": 3, "exclude": [0, 7]}
        options |= {"labeled": whole[[1, 2]]} if strategy == "coreset" else {}
        assert badge.select_from(out, **options).tolist() == badge.select_from(whole, **options).tolist()
    assert out.ids is not None and out.ids[[49, 0]].tolist() == ["é49", "é0"] and len(out.ids) == N
    assert copies(tmp_path) == ["part-000", "part-020", "part-040"]


def test_a_copy_is_fetched_once_and_checked(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, made = write(url)
    parts.finish(url, made)
    out = badge.Outputs.load(url)
    files, root = fsspec.core.url_to_fs(url)
    files.pipe_file(f"{root}/part-020/ids.npy", b"other")  # the copy of the machine that wrote it is right
    assert out.ids is not None and out.ids[[25]].tolist() == ["é25"]
    forget(tmp_path)
    with pytest.raises(InputError, match=r"part-020/ids.npy was changed since it was written"):
        badge.Outputs.load(url).embeddings[20:25]
    files.pipe_file(f"{root}/part-040/outputs.json", b"{}")
    with pytest.raises(InputError, match=r"part-040 was changed since parts.json was written"):
        badge.Outputs.load(url).embeddings[40:]
    files.rm(f"{root}/part-000", recursive=True)
    with pytest.raises(InputError, match=r"part-000 is missing: run the same badge.cluster.predict again"):
        badge.Outputs.load(url).embeddings[:3]
    assert not list((tmp_path / "cache" / "badge" / "outputs").glob(".part*"))
    assert not parts.begin(url, IDENTITY)  # the next prediction makes what is missing


def test_a_part_is_complete_or_absent(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies in the middle has written files, and not what says that they are all there."""

    class Died(Exception):
        pass

    def dies(self: far.Far, name: str, content: bytes) -> None:
        raise Died

    write(url, only=0)
    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr(far.Far, "write", dies)
        rng = np.random.default_rng(0)
        parts.write(url, "020", np.full((20, 3), 1 / 3), rng.normal(size=(20, 5)), None, IDENTITY)
    assert not list((tmp_path / "cache").rglob(".part*"))
    assert (
        parts.existing(place_of(url), "020", IDENTITY) is None
        and parts.existing(place_of(url), "000", IDENTITY) is not None
    )
    with pytest.raises(InputError, match="another model"):
        parts.existing(place_of(url), "000", {"model": "other"})
    with pytest.raises(InputError, match="is not finished"):
        badge.Outputs.load(url)
    with pytest.raises(InputError, match="part-020 is missing"):
        parts.finish(url, [parts.Part("part-000", 20), parts.Part("part-020", 20)])
    _, made = write_rest(url)
    parts.finish(url, made)
    assert len(badge.Outputs.load(url)) == N
    left = [name for name in far.Far(url).names() if name.startswith("part-")]
    assert left == ["part-000", "part-020", "part-040"]  # what another layout left is gone
    with pytest.raises(InputError, match="holds the outputs of another model"):
        parts.begin(url, {"model": "other"})


def write_rest(url: str) -> tuple[badge.Outputs, list[parts.Part]]:
    far.Far(url).write("part-999/outputs.json", b"{}")
    far.Far(url).remove("parts.json")
    return write(url)


def test_what_cannot_be_reached_is_one_line(tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cases: list[tuple[str, type[BadgeError], str]] = [
        ("memory://nothing/here", InputError, r"memory://nothing/here/parts.json cannot be read or is damaged"),
        ("s3://no-such-bucket/pool", InputError, r"s3://no-such-bucket/pool"),
        ("nonsense://a/b", InputError, r"nonsense://a/b cannot be opened: .*nonsense"),
    ]
    for place, kind, message in cases:
        with pytest.raises(kind, match=message) as caught:
            badge.Outputs.load(place)
        assert "\n" not in str(caught.value)
    with pytest.raises(WriteError, match="s3://no-such-bucket/pool cannot be written"):
        parts.begin("s3://no-such-bucket/pool", IDENTITY)
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(MissingExtraError, match=r"gs:// needs gcsfs: pip install 'badge-learn\[gs\]'"):
        badge.Outputs.load("gs://bucket/pool")
    far.Far("memory://full").write("other.txt", b"")
    with pytest.raises(InputError, match=r"memory://full is not empty and holds no outputs in parts \(other.txt"):
        parts.begin("memory://full", IDENTITY)
    with pytest.raises(InputError, match="out is given by its path, not by a URL"):
        badge.predict(torch.nn.Linear(2, 2), torch.zeros(3, 2), out="s3://bucket/pool")


def test_the_index_says_all_that_opening_needs(url: str) -> None:
    _, made = write(url, names=False)
    parts.finish(url, made)
    index = json.loads(far.Far(url).read(["parts.json"])["parts.json"])
    assert [entry[:2] for entry in index["parts"]] == [["part-000", 20], ["part-020", 20], ["part-040", 10]]
    assert badge.Outputs.load(url).ids is None
