"""Data sets: look-up, splits, preparation, one's own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import badge
from badge.data import Dataset, prepare, sources
from badge.errors import DataError, InputError, UnknownNameError

SHARED = Path(os.environ.get("BADGE_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`$BADGE_DATA`, empty, beside an empty cache."""
    (tmp_path / "given").mkdir()
    monkeypatch.setenv("BADGE_DATA", str(tmp_path / "given"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "given"


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, folder: Path, progress: bool) -> Any:
        raise DataError("no network")

    monkeypatch.setattr(sources, "fetch", refuse)


def letters(n: int = 200, classes: int = 5, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "X": rng.integers(16, size=(n, 4)).astype(np.uint8),
        "y": np.sort(rng.integers(classes, size=n)).astype(np.uint8),
    }


# -- look-up ---------------------------------------------------------------------------------------------------------


def test_badge_data_comes_before_the_cache(folder: Path) -> None:
    cache = badge.data.cache_folder()
    cache.mkdir(parents=True)
    np.savez(cache / "letter.npz", **letters(100))
    assert badge.data.load("letter").rows == 100
    np.savez(folder / "letter.npz", **letters(200))
    assert badge.data.load("letter").rows == 200


def test_missing_and_offline_says_where_it_looked_and_what_to_do(
    folder: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError) as caught:
        badge.data.load("letter")
    message = str(caught.value)
    for part in (
        str(folder / "letter.npz"),
        str(badge.data.cache_folder() / "letter.npz"),
        "no network",
        "set BADGE_DATA",
    ):
        assert part in message
    monkeypatch.delenv("BADGE_DATA")
    with pytest.raises(DataError, match="BADGE_DATA is not set"):
        badge.data.load("letter")


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/badge"),
        ("linux", {}, "/home/me/.cache/badge"),
        ("darwin", {}, "/home/me/Library/Caches/badge"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/badge"),
        ("win32", {}, "/home/me/AppData/Local/badge"),
    ],
)
def test_cache_folder(platform: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert badge.data.cache_folder() == Path(expected)


def test_damaged_and_wrong_files_are_named(folder: Path) -> None:
    path = folder / "letter.npz"
    path.write_bytes(b"not a zip file")
    with pytest.raises(DataError, match=r"letter.npz is damaged .* remove it"):
        badge.data.load("letter")
    np.savez(path, **letters())
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"letter.npz is damaged"):
        badge.data.load("letter")
    np.savez(path, X=np.zeros((3, 2)), z=np.zeros(3))
    with pytest.raises(DataError, match=r"holds X, z; needed are X_train"):
        badge.data.load("letter")
    np.savez(path, X=np.zeros((3, 2)), y=np.zeros(4, int))
    with pytest.raises(DataError, match=r"X has shape \(3, 2\) and y \(4,\)"):
        badge.data.load("letter")
    np.savez(path, X=np.array([[object()]], dtype=object), y=np.zeros(1, int))  # a pickle: never loaded
    with pytest.raises(DataError, match="damaged"):
        badge.data.load("letter")
    np.savez(path, X=np.full((30, 2), np.nan), y=np.arange(30) % 3)
    with pytest.raises(DataError, match="NaN or inf"):
        badge.data.load("letter", standardise=False)
    x, y = np.zeros((9, 4, 4), np.float32), np.zeros(9, np.uint8)
    np.savez(folder / "mnist.npz", X_train=x, y_train=y, X_test=x, y_test=y)
    with pytest.raises(DataError, match=r"mnist: images must be bytes .* not float32 of shape \(9, 4, 4\)"):
        badge.data.load("mnist")


def test_unknown_names_and_seeds() -> None:
    with pytest.raises(UnknownNameError, match="unknown data set 'iris'; known: digits, mnist"):
        badge.data.load("iris")
    with pytest.raises(InputError, match="seed must be"):
        badge.data.load("digits", seed=-1)


# -- split and preparation -------------------------------------------------------------------------------------------


def test_split_is_a_partition_by_seed() -> None:
    y = np.sort(np.random.default_rng(0).integers(5, size=1000))
    train, test = prepare.split(y, 0, 0.1, 50_000)
    assert (len(train), len(test)) == (900, 100)
    assert sorted([*train, *test]) == list(range(1000))
    again = prepare.split(y, 0, 0.1, 50_000)
    assert np.array_equal(train, again[0]) and np.array_equal(test, again[1])
    assert not np.array_equal(test, prepare.split(y, 1, 0.1, 50_000)[1])


def test_rows_that_come_sorted_are_shuffled() -> None:
    y = np.repeat(np.arange(4), 250)
    train, test = prepare.split(y, 0, 0.1, 50_000)
    for part in (train, test, train[:100], train[-100:]):
        assert (np.bincount(y[part], minlength=4) > len(part) / 10).all()


@pytest.mark.parametrize("seed", range(20))
def test_every_class_is_in_training_however_rare_and_however_small_the_cap(seed: int) -> None:
    y = np.array([0] * 500 + [1] * 497 + [2, 2, 3])
    train, test = prepare.split(y, seed, 0.1, 50)
    assert len(train) == 50 and len(test) == 100
    assert set(y[train]) == {0, 1, 2, 3}
    assert not set(train) & set(test)


def test_the_rows_placed_first_are_not_left_in_front() -> None:
    y = np.arange(1000) % 100
    fronts = [len(set(y[prepare.split(y, seed, 0.1, 50_000)[0][:100]])) for seed in range(10)]
    assert max(fronts) < 100  # 100 distinct classes in front would be the rows placed first


def test_training_rows_are_capped_and_rows_still_report_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("badge.data.MOST_TRAINING_ROWS", 50)
    np.savez(folder / "letter.npz", **letters(200))
    data = badge.data.load("letter")
    assert (len(data.y_train), len(data.y_test)) == (50, 20)
    assert (data.rows, data.total, data.complete, data.text) == (200, 20_000, False, "200 of 20,000")


def test_standardised_with_training_statistics(folder: Path) -> None:
    stored = letters(400)
    stored["X"][:, 3] = 7  # a constant column
    np.savez(folder / "letter.npz", **stored)
    data, raw = badge.data.load("letter", seed=3), badge.data.load("letter", seed=3, standardise=False)
    assert data.X_train.dtype == raw.X_train.dtype == np.float32
    np.testing.assert_allclose(data.X_train[:, :3].mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(data.X_train[:, :3].std(0), 1, atol=1e-6)
    assert not data.X_train[:, 3].any() and not data.X_test[:, 3].any()
    mean, std = raw.X_train[:, :3].mean(0), raw.X_train[:, :3].std(0)
    np.testing.assert_allclose(data.X_test[:, :3], (raw.X_test[:, :3] - mean) / std, atol=1e-5)
    assert set(np.unique(raw.X_train)) <= set(range(16))
    assert np.array_equal(data.y_train, raw.y_train)


def test_a_constant_column_that_rounding_blurs_becomes_zero() -> None:
    train = np.full((1001, 1), 0.1, dtype=np.float32)
    assert abs(prepare.standardised(train, train)[0]).max() < 1e-6


def test_kropt_is_one_hot(folder: Path) -> None:
    codes = np.array([[a, b] for a in range(3) for b in range(8)] * 10, dtype=np.uint8)
    np.savez(folder / "kropt.npz", X=codes, y=np.arange(240, dtype=np.uint8) % 18)
    data = badge.data.load("kropt", standardise=False)
    assert data.shape == (11,) and set(np.unique(data.X_train)) == {0, 1}
    assert (data.X_train[:, :3].sum(1) == 1).all() and (data.X_train[:, 3:].sum(1) == 1).all()
    assert len(np.unique(np.concatenate([data.X_train, data.X_test]), axis=0)) == 24


@pytest.mark.parametrize("channels", [None, 3])
def test_images_are_normalised_per_channel_with_training_statistics(folder: Path, channels: int | None) -> None:
    rng = np.random.default_rng(0)
    size = (50, 5, 6) if channels is None else (50, 5, 6, channels)
    x = (rng.integers(256, size=size) // (1 if channels is None else np.array([1, 2, 4]))).astype(np.uint8)
    y = rng.integers(3, size=50).astype(np.uint8)
    np.savez(folder / "svhn.npz", X_train=x[:40], y_train=y[:40], X_test=x[40:], y_test=y[40:])
    data = badge.data.load("svhn")
    assert data.X_train.shape == (40, channels or 1, 5, 6) and data.image and data.lr == 1e-3
    np.testing.assert_allclose(data.X_train.mean((0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(data.X_train.std((0, 2, 3)), 1, atol=1e-5)
    plain = (x if channels else x[..., None]).transpose(0, 3, 1, 2).astype(np.float64)
    mean, std = (f(plain[:40], axis=(0, 2, 3), keepdims=True) for f in (np.mean, np.std))
    np.testing.assert_allclose(data.X_test, (plain[40:] - mean) / std, atol=1e-5)
    np.testing.assert_array_equal(badge.data.load("svhn", standardise=False).X_test, plain[40:])
    assert data.text == "50 of 99,289" and not data.complete


def test_images_of_one_colour_do_not_divide_by_zero() -> None:
    x = np.full((3, 2, 2), 9, np.uint8)
    assert not prepare.images(x, x, standardise=True)[0].any()


def test_digits_come_with_the_package() -> None:
    data = badge.data.load("digits", seed=1)
    assert data.shape == (1, 8, 8) and data.complete and data.text == "1,797 of 1,797"
    assert (len(data.y_train), len(data.y_test)) == (1437, 360)
    again, other = badge.data.load("digits", seed=1), badge.data.load("digits", seed=2)
    assert np.array_equal(data.X_test, again.X_test) and not np.array_equal(data.X_test, other.X_test)
    assert data.class_names == tuple("0123456789")


@pytest.mark.skipif(not SHARED.is_dir(), reason="no folder of data files: set BADGE_DATA")
@pytest.mark.parametrize(
    ("name", "sizes", "shape", "classes", "text"),
    [
        ("letter", (18_000, 2_000), (16,), 26, "20,000 of 20,000"),
        ("pokerhand", (50_000, 82_921), (10,), 10, "829,201 of 829,201"),
        ("kropt", (25_250, 2_806), (40,), 18, "28,056 of 28,056"),
    ],
)
def test_real_tables(
    name: str, sizes: tuple[int, int], shape: tuple[int, ...], classes: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (SHARED / f"{name}.npz").is_file():
        pytest.skip(f"no {name}.npz in the folder of data files")
    monkeypatch.setenv("BADGE_DATA", str(SHARED))
    data = badge.data.load(name)
    assert ((len(data.y_train), len(data.y_test)), data.shape, data.classes, data.text) == (sizes, shape, classes, text)
    assert len(np.unique(data.y_train)) == classes and data.complete and data.lr == 1e-4


# -- one's own -------------------------------------------------------------------------------------------------------


def test_own_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "owndata.py").write_text(
        "import numpy as np\nfrom badge.data import Dataset\n\n"
        "def load(seed):\n    x = np.full((4, 3), float(seed))\n"
        "    return Dataset(x, [0, 1, 0, 1], x, [0, 1, 1, 1], classes=2)\n"
        "def wrong(seed):\n    return 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    data = badge.data.resolve("owndata:load", seed=5)
    assert data.X_train[0, 0] == 5 and data.name == "own" and data.text == "8 of 8"
    with pytest.raises(DataError, match=r"owndata:wrong must return a badge.data.Dataset, not int"):
        badge.data.resolve("owndata:wrong", seed=5)
    with pytest.raises(InputError, match="no module 'nowhere'"):
        badge.data.resolve("nowhere:load", seed=5)
    assert badge.data.resolve("digits", seed=1).name == "digits"


def test_dataset_refuses_what_cannot_be_trained_on() -> None:
    x, y = np.zeros((4, 3)), np.array([0, 1, 0, 1])
    good = Dataset(x, y, x, y, classes=3, class_names=("a", "b", "c"), lr=0.5, total=100)
    assert (good.lr, good.complete, good.text, good.X_train.dtype) == (0.5, False, "8 of 100", np.dtype(np.float32))
    assert "own: 4 training" in repr(good)
    for arguments, message in [
        ((x, y[:3], x, y, 2), r"train examples of shape \(4, 3\), labels \(3,\)"),
        ((x[:, 0], y, x, y, 2), "train examples of shape"),
        ((x, y, x[:0], y[:0], 2), "test examples of shape"),
        ((x, y, x, y + 1, 2), "test labels must be whole numbers from 0 to 1, not int64 from 1 to 2"),
        ((x, y / 2, x, y, 2), "train labels must be whole numbers"),
        ((x, np.zeros(4, "f4,i4"), x, y, 2), r"train labels must be whole numbers from 0 to 1, not of type \[\('f0'"),
        ((x, y, x, y, 2**40), "1,099,511,627,776 classes; at most 10,000,000 are possible"),
        ((x, y, x[:, :2], y, 2), "different shapes"),
        ((x.astype(str), y, x, y, 2), "numbers are needed"),
        ((np.where(x == 0, np.inf, x), y, x, y, 2), "NaN or inf"),
        ((x, y, x, y, 2, "own", ("a",)), "1 class names for 2 classes"),
    ]:
        with pytest.raises(DataError, match=message):
            Dataset(*arguments)  # type: ignore[arg-type]


# -- ARFF ------------------------------------------------------------------------------------------------------------

ARFF = """% a comment
@RELATION 'a relation'
@attribute 'x box' INTEGER
@ATTRIBUTE y-bar real
@attribute piece{'king, white', "rook" ,'it'}

@DATA
% another comment
1, 2.5, 'king, white'
2,-1e3,it

3 ,0, "rook"
"""


def test_arff() -> None:
    table = sources.read_arff(ARFF.splitlines())
    assert table.columns["x box"].tolist() == [1, 2, 3]
    assert table.columns["y-bar"].tolist() == [2.5, -1000, 0]
    assert table.categories == {"piece": ["king, white", "rook", "it"]}
    assert table.columns["piece"].tolist() == [0, 2, 1]


def test_arff_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOCK", 2)
    assert sources.read_arff(ARFF.splitlines()).columns["piece"].tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ARFF.replace("@DATA", "%"), "without @data"),
        (ARFF.split("@DATA")[0] + "@DATA", "without rows"),
        (ARFF + "4,1\n", "a row of 2 values in an ARFF file with 3 attributes"),
        (ARFF + "4,1,pawn\n", "'pawn'"),
        (ARFF + "?,1,it\n", r"float: '\?'"),
        (ARFF.replace("y-bar real", "y-bar string"), "'y-bar' is of type 'string'"),
    ],
)
def test_arff_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises((DataError, ValueError, KeyError), match=message):  # `fetch` makes one line of each
        sources.read_arff(text.splitlines())


def test_a_file_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BADGE_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "mine.npz", X=rng.normal(5, 3, size=(50, 4)), y=np.arange(50) % 3)
    found = badge.data.load("mine", seed=1)
    assert (len(found.y_train), len(found.y_test), found.classes, found.complete) == (45, 5, 3, True)
    np.testing.assert_allclose(found.X_train.mean(0), 0, atol=1e-6)
    images = rng.integers(0, 256, size=(20, 5, 5), dtype=np.uint8)
    np.savez(tmp_path / "pictures.npz", X_train=images, y_train=[0, 1] * 10, X_test=images, y_test=[0, 1] * 10)
    assert badge.data.load("pictures").shape == (1, 5, 5)
    for name in ("theirs", "../mine", "a" * 300, "a\x00b", "\ud800"):
        with pytest.raises(UnknownNameError, match=r"<name>.npz in the folder (that BADGE_DATA names|of BADGE_DATA)"):
            badge.data.load(name)


def test_a_damaged_file_is_refused_or_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BADGE_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 4)), np.arange(50) % 3
    np.savez_compressed(tmp_path / "mine.npz", X=x, y=y)
    whole, expected = (tmp_path / "mine.npz").read_bytes(), badge.data.load("mine")
    for _ in range(80):
        content = bytearray(whole)
        for at in rng.integers(0, len(content), size=2):
            content[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "mine.npz").write_bytes(content)
        try:
            found = badge.data.load("mine")
        except DataError as error:
            assert "\n" not in str(error) and len(str(error)) < 600
        else:
            assert np.array_equal(found.X_train, expected.X_train)
