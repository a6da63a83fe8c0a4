"""What is wrong with a call of `badge select` is said at once: before torch is loaded, before files are read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import badge
from badge.cli import app
from badge.core import catalog
from badge.errors import BadgeError

CALL = """
import sys
sys.argv = ["badge", *sys.argv[1:]]
import badge.cli
try:
    badge.cli.main()
except SystemExit as end:
    print(end.code, sorted({"torch", "numpy", "scipy", "pandas"} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arrays")
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=40)
    np.save(path / "p.npy", p)
    np.save(path / "h.npy", rng.normal(size=(40, 4)))
    return path


WRONG = [
    (["-k", "5"], "--probabilities is missing (or give --outputs DIR)"),
    (["-k", "5", "--probabilities", "p.npy"], "--embeddings is missing"),
    (["-k", "5", "--probabilities", "p.npy", "--embeddings", "x.npy"], "embeddings: there is no file x.npy"),
    (["-k", "0", "--probabilities", "p.npy", "--embeddings", "h.npy"], "k must be a whole number ≥ 1, not 0"),
    (["-k", "5", "--outputs", "nowhere"], "--outputs: there is no directory nowhere"),
    (["-k", "5", "--strategy", "bagde"], "unknown strategy 'bagde': did you mean badge? Known: badge"),
    (["-k", "5", "--strategy", "conf", "--bias", "--probabilities", "p.npy"], "bias is for strategies on gradients"),
    (["-k", "5", "--probabilities", "p.npy", "--embeddings", "h.npy", "--seed", "-1"], "seed must be a whole number ≥ 0"),
    (
        ["-k", "5", "--probabilities", "p.npy", "--embeddings", "h.npy", "--strategy", "coreset"],
        "coreset is conditioned on the labelled examples: give --exclude",
    ),
    (["-k", "5", "--probabilities", "p.npy", "--embeddings", "h.npy", "--ids", "no.txt"], "--ids: there is no file no.txt"),
    (["-k", "5", "--probabilities", "p.npy", "--embeddings", "h.npy", "--exclude", "no.txt"], "--exclude: there is no file"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_the_message(options: list[str], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, ["select", *options])
    assert isinstance(done.exception, BadgeError) and message in str(done.exception)


@pytest.mark.parametrize("number", [0, 2, 5])
def test_it_comes_before_torch_is_loaded(number: int, folder: Path) -> None:
    options, message = WRONG[number]
    done = subprocess.run(
        [sys.executable, "-c", CALL, "select", *options],
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
        env=None,
    )
    assert done.stdout.strip() == "2 []" and message in done.stderr


def test_badge_label_says_at_once_what_is_wrong_with_its_file(folder: Path) -> None:
    (folder / "one.csv").write_text("text\nonly\n")
    for file, message in (("reviews.csv", "there is no reviews.csv"), ("one.csv", "one.csv holds 1 item")):
        call = [sys.executable, "-c", CALL, "label", file, "--classes", "a,b"]
        done = subprocess.run(call, capture_output=True, text=True, cwd=folder, check=True)
        assert done.stdout.strip() == "2 ['numpy']" and message in done.stderr


def test_badge_label_refuses_a_strategy_that_its_one_pass_cannot_serve(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "three.csv").write_text("text\nfine\ndull\nodd\n")
    done = CliRunner().invoke(app, ["label", "three.csv", "--classes", "a,b", "--strategy", "bald", "--port", "0"])
    assert "bald compares several passes of a model, and the page makes one: use auto" in str(done.exception)
    assert not list(folder.glob("three*.jsonl"))


def test_badge_label_studio_refuses_it_before_it_calls_the_server() -> None:
    call = ["label-studio", "--url", "http://127.0.0.1:9", "--project", "1", "--strategy", "power-bald"]
    done = CliRunner().invoke(app, call)
    assert "power-bald compares several passes of a model, and badge label-studio makes one" in str(done.exception)


def test_badge_label_without_its_extra_says_so_before_anything_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "two.csv").write_text("text\nfine\ndull\n")
    monkeypatch.setitem(sys.modules, "starlette", None)
    done = CliRunner().invoke(app, ["label", "two.csv", "--classes", "a,b", "--port", "0"])
    assert "pip install 'badge-learn[label]'" in str(done.exception) and "token" not in done.output
    assert not list(folder.glob("*.jsonl"))


def test_bias(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    out = badge.Outputs(np.load("p.npy"), np.load("h.npy"))
    for flag in (False, True):
        call = ["select", "-k", "9", "--probabilities", "p.npy", "--embeddings", "h.npy", *["--bias"] * flag]
        done = CliRunner().invoke(app, call)
        assert [int(line) for line in done.stdout.split()] == badge.select_from(out, 9, bias=flag).tolist()
    assert (badge.select_from(out, 9) != badge.select_from(out, 9, bias=True)).any()


@pytest.mark.parametrize("strategy", catalog.names(lambda row: row.cold))
def test_a_first_batch_needs_embeddings_alone(strategy: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, ["select", "--embeddings", "h.npy", "-k", "3", "--strategy", strategy])
    pool = badge.Outputs(embeddings=np.load("h.npy"))
    assert done.stdout.split() == [str(i) for i in badge.select_from(pool, 3, strategy)], done.exception


def test_coreset_needs_embeddings_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    files = ["--embeddings", "h.npy", "--labeled-embeddings", "h.npy"]
    done = CliRunner().invoke(app, ["select", *files, "-k", "3", "--strategy", "coreset"])
    pool = badge.Outputs(embeddings=np.load("h.npy"))
    assert done.stdout.split() == [str(i) for i in badge.select_from(pool, 3, "coreset", labeled=pool)], done.exception
