"""Outputs in parts: the same rows and picks as in one piece; complete or absent; refused by name where they do not fit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from typer.testing import CliRunner

import badge
from badge.cli import app
from badge.core.catalog import ONE_PASS
from badge.errors import InputError
from badge.outputs import parts, store
from badge.outputs.parts import place_of

SIZES = (7, 1, 30, 12)
N = sum(SIZES)
IDENTITY = {"model": "Linear:1", "pool": "50:1", "set of options": ""}


def arrays(n: int = N, c: int = 3, d: int = 5) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    out = badge.Outputs.from_logits(rng.normal(size=(n, c)), rng.normal(size=(n, d)))
    return out.probabilities.float().numpy(), out.embeddings.float().numpy()


def make(path: Path, names: bool = True, kind: type = str) -> badge.Outputs:
    """A directory of four parts, written in another order than theirs; the outputs in one piece."""
    p, h = arrays()
    ids = np.array([f"é{i}" for i in range(N)]) if kind is str else np.arange(N) * 10
    stored = np.char.encode(ids, "utf-8") if kind is str else ids
    assert not parts.begin(path, IDENTITY)
    ends = np.cumsum(SIZES).tolist()
    made = {}
    for number in (2, 0, 3, 1):
        at = slice(ends[number] - SIZES[number], ends[number])
        made[number] = parts.write(
            place_of(path), f"{at.start:03d}", p[at], h[at], stored[at] if names else None, IDENTITY
        )
    parts.finish(path, [made[i] for i in range(len(SIZES))])
    return badge.Outputs(p, h)


def test_rows_and_names_are_those_of_one_piece(tmp_path: Path) -> None:
    whole = make(tmp_path)
    out = badge.Outputs.load(tmp_path)
    assert len(out) == N and out.directory == tmp_path and repr(out) == repr(whole)
    some = torch.tensor([49, 0, 7, 8, 6, 7, 37, 38])
    for name in ("probabilities", "embeddings"):
        mine, theirs = getattr(out, name), getattr(whole, name)
        for at in (slice(None), slice(3, 9), slice(7, 8), slice(40, 50), slice(5, 5), slice(0, 50, 9), some):
            assert torch.equal(mine[at], theirs[at]), at
        assert torch.equal(mine.index_select(0, some), theirs.index_select(0, some))
    assert out.ids is not None
    assert out.ids[some.numpy()].tolist() == [f"é{i}" for i in some.tolist()]
    assert out[some].ids.tolist() == [f"é{i}" for i in some.tolist()]  # type: ignore[union-attr]
    assert out[2:9].directory is None
    assert isinstance(np.load(tmp_path / "part-000" / "embeddings.npy", mmap_mode="r"), np.memmap)


@pytest.mark.parametrize("strategy", ONE_PASS)
def test_the_same_picks_as_in_one_piece(strategy: str, tmp_path: Path) -> None:
    whole = make(tmp_path, names=False)
    out = badge.Outputs.load(tmp_path)
    for exclude in (None, [0, 7, 8, 49]):
        labeled = whole[[1, 2]] if exclude is None else None
        options: dict[str, Any] = {"k": 6, "strategy": strategy, "seed": 3, "exclude": exclude, "labeled": labeled}
        assert badge.select_from(out, **options).tolist() == badge.select_from(whole, **options).tolist()
    why, same = (badge.explain(o, [3, 40]) for o in (out, whole))
    assert why.rows() == same.rows()


@pytest.mark.parametrize("kind", [int, str])
def test_the_command_prints_the_names(kind: type, tmp_path: Path) -> None:
    whole = make(tmp_path, kind=kind)
    (tmp_path / "done.txt").write_text("é3\n" if kind is str else "30\n", encoding="utf-8")
    command = ["select", "--outputs", str(tmp_path), "-k", "4", "--exclude", str(tmp_path / "done.txt")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    picks = badge.select_from(whole, 4, exclude=[3]).tolist()
    assert done.output.split() == [f"é{i}" if kind is str else str(10 * i) for i in picks]


def test_begun_and_continued(tmp_path: Path) -> None:
    p, h = arrays()
    path = tmp_path / "a" / "b"
    assert not parts.begin(path, IDENTITY)
    with pytest.raises(InputError, match="is not finished"):
        badge.Outputs.load(path)
    first = parts.write(path, "0", p[:20], h[:20], None, IDENTITY)
    (path / ".part-2-dead").mkdir()  # what a killed worker leaves
    parts.write(path, "9", p[:3], h[:3], None, IDENTITY)  # of another layout
    assert not parts.begin(path, IDENTITY)
    assert (
        parts.existing(place_of(path), "0", IDENTITY) == first and parts.existing(place_of(path), "2", IDENTITY) is None
    )
    assert parts.write(path, "0", p[:20], h[:20], None, IDENTITY) == first  # two workers made the same part
    parts.finish(path, [first, parts.write(place_of(path), "2", p[20:], h[20:], None, IDENTITY)])
    assert parts.begin(path, IDENTITY)
    assert sorted(f.name for f in path.iterdir()) == ["part-0", "part-2", "parts.json"]
    shutil.rmtree(path / "part-2")
    assert not parts.begin(path, IDENTITY)
    (path / "parts.json").unlink()
    assert not parts.begin(path, IDENTITY)


def edit(file: Path, **changes: Any) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(content | changes), encoding="utf-8")


def test_parts_that_do_not_fit_are_refused_by_name(tmp_path: Path) -> None:
    make(tmp_path / "good")

    def broken(name: str) -> Path:
        shutil.copytree(tmp_path / "good", tmp_path / name)
        return tmp_path / name

    p, h = arrays()
    cases: list[tuple[Path, str]] = []
    path = broken("missing")
    shutil.rmtree(path / "part-008")
    cases.append((path, r"part-008 is missing: run the same"))
    path = broken("torn")
    (path / "part-008" / "progress").write_text("5 0 0 0 0\n")
    cases.append((path, r"part-008 holds 5 of 30 rows"))
    path = broken("copied")
    shutil.copytree(path / "part-008", path / "part-x")
    index = json.loads((path / "parts.json").read_text())["parts"]
    edit(path / "parts.json", parts=[*index, ["part-x", 30]])
    cases.append((path, r"part-x holds the same rows as .*part-008"))
    path = broken("rows")
    edit(path / "parts.json", parts=[[name, rows + (name == "part-038")] for name, rows in index])
    cases.append((path, r"part-038 has 12 rows, not 13"))
    path = broken("model")
    meta = json.loads((path / "part-007" / store.META).read_text())
    edit(path / "part-007" / store.META, identity=meta["identity"] | {"model": "Linear:2"})
    cases.append((path, r"part-007 holds the outputs of another model than .*part-000"))
    path = broken("width")
    shutil.rmtree(path / "part-007")
    parts.write(path, "007", p[7:8], h[7:8, :4], None, IDENTITY)
    cases.append((path, r"part-007 has embeddings of 4 columns of float32, .*part-000 of 5 columns"))
    path = broken("names")
    (path / "part-038" / "ids.npy").unlink()
    cases.append((path, r"part-038 has no ids.npy"))
    path = broken("fewer")
    np.save(path / "part-038" / "ids.npy", np.arange(3))
    cases.append((path, r"part-038.ids.npy is int64 \(3,\)"))
    path = broken("damaged")
    (path / "parts.json").write_text("{")
    cases.append((path, r"parts.json cannot be read or is damaged"))
    path = broken("format")
    edit(path / "parts.json", format=9)
    cases.append((path, r"has format 9"))
    path = broken("none")
    edit(path / "parts.json", parts=[])
    cases.append((path, "has no parts"))
    for path, message in cases:
        with pytest.raises(InputError, match=message) as caught:
            badge.Outputs.load(path)
        assert "\n" not in str(caught.value)


def test_a_directory_for_something_else_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "a")
    with pytest.raises(InputError, match="holds the outputs of another model"):
        parts.begin(tmp_path / "a", IDENTITY | {"model": "other"})
    with pytest.raises(InputError, match="part-000 holds the outputs of another model"):
        parts.existing(place_of(tmp_path / "a"), "000", IDENTITY | {"model": "other"})
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "photo.jpg").touch()
    with pytest.raises(InputError, match=r"is not empty and holds no outputs in parts \(photo.jpg"):
        parts.begin(tmp_path / "b", IDENTITY)
