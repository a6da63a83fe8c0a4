"""`badge run`, `grid` and `demo`, and what they show while they run."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from badge import journal, stats, strategies
from badge.cli import app
from badge.experiment import Cell, Display, Outcome, Serial
from select_command import runner
from small_cells import CELL

OPTIONS = ["--data", "own_parts:blobs", "--model", "own_parts:small", "--batch-size", "10", "--initial", "12"]


def test_badge_run(tmp_path: Path) -> None:
    arguments = ["run", *OPTIONS, "--labels", "22", "--strategy", "badge", "--strategy", "rand", "--seeds", "2"]
    arguments += ["--max-epochs", "30", "--workers", "1", "--out", str(tmp_path)]
    result = runner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert len(list(tmp_path.glob("*.jsonl"))) == 4
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["data", "model", "batch", "strategy", "seeds", "labels", "test", "accuracy"]
    assert lines[1].split()[:6] == ["own_parts:blobs", "own_parts:small", "10", "badge", "2", "22"]
    assert "[4/4]" in result.stderr
    again = runner().invoke(app, arguments)
    assert again.stdout == result.stdout and "[4/4]" not in again.stderr


def test_badge_grid_and_its_exit_code(tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(
        'data = ["own_parts:blobs", "nowhere:load"]\nmodel = "own_parts:small"\nstrategy = "rand"\n'
        "initial = 12\nbatch_size = 10\nlabels = 22\nmax_epochs = 30\n",
        encoding="utf-8",
    )
    out = str(tmp_path / "runs")
    dry = runner().invoke(app, ["grid", str(grid), "--out", out, "--dry-run"])
    assert dry.stdout.splitlines()[-1] == "2 of 2 cells left" and not Path(out).exists()
    result = runner().invoke(app, ["grid", str(grid), "--out", out, "--workers", "1"])
    assert result.exit_code == 1
    assert "failed: nowhere_load-own_parts_small-b10-rand-s0: the data set 'nowhere:load'" in result.stderr
    dry = runner().invoke(app, ["grid", str(grid), "--out", out, "--dry-run"])
    assert dry.stdout.splitlines()[-1] == "1 of 2 cells left"


def test_several_grids_and_what_is_known_of_them(tmp_path: Path) -> None:
    """Two files are one grid; `--skip` leaves out what a table of results holds to its end, and nothing else."""
    files = []
    for name, names in (("a", '["rand", "marg"]'), ("b", '["rand", "conf"]')):
        files.append(str(tmp_path / f"{name}.toml"))
        Path(files[-1]).write_text(
            'data = "own_parts:blobs"\nmodel = "own_parts:small"\ninitial = 12\nbatch_size = 10\nlabels = 22\n'
            f"max_epochs = 3\nstrategy = {names}\n",
            encoding="utf-8",
        )
    out, table = str(tmp_path / "runs"), str(tmp_path / "all.csv.gz")
    assert runner().invoke(app, ["grid", files[0], "--out", out, "--workers", "1"]).exit_code == 0
    journal_of_marg = tmp_path / "runs" / "own_parts_blobs-own_parts_small-b10-marg-s0.jsonl"
    lines = journal_of_marg.read_text(encoding="utf-8").splitlines()
    last = max(i for i, event in enumerate(journal.read(journal_of_marg)) if event["event"] == "round")
    journal_of_marg.write_text("\n".join(lines[:last]) + "\n", encoding="utf-8")  # stopped before its last round
    assert runner().invoke(app, ["export", out, "-o", table]).exit_code == 0
    elsewhere = ["grid", *files, "--out", str(tmp_path / "new"), "--skip", table]
    dry = runner().invoke(app, [*elsewhere, "--dry-run"])
    assert [line.rsplit("-", 2)[1] for line in dry.stdout.splitlines()[:-1]] == ["marg", "conf"]
    assert dry.stdout.splitlines()[-1] == "2 of 2 cells left" and "1 of 3 cells are in" in dry.stderr
    assert runner().invoke(app, [*elsewhere, "--workers", "1"]).exit_code == 0
    assert len(list((tmp_path / "new").glob("*.jsonl"))) == 2


def test_stopping_by_hand_is_no_disaster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Serial, "map", stop)
    result = runner().invoke(app, ["run", *OPTIONS, "--out", str(tmp_path), "--workers", "1"])
    assert result.exit_code == 130 and "Run the same command again" in result.stderr


def test_badge_demo_ends_in_a_picture_and_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from badge.cli import demonstration as demo

    assert {(c.data, c.model) for c in demo.CELLS} == {("digits", "mlp")}
    assert {c.strategy for c in demo.CELLS} == set(strategies.PAPER) and {c.seed for c in demo.CELLS} == {0, 1, 2}
    few = [c for c in demo.CELLS if c.strategy in ("marg", "rand") and c.seed < 2]
    monkeypatch.setattr(demo, "CELLS", [Cell(**{**c.__dict__, "labels": 150}) for c in few])
    result = runner().invoke(app, ["demo", "--out", str(tmp_path), "--workers", "1"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines.pop(0).startswith("what this run shows at 150 labels (2 seeds, paired t-tests at 0.05): above rand ")
    assert lines[0].startswith("labels needed to reach 0.") and lines[0].endswith("of rand at 150 labels")
    assert [line.split()[0] for line in lines[1:4]] == ["strategy", "marg", "rand"]
    assert lines[3].split()[1:3] == ["150", "100%"] and int(lines[2].split()[1]) < 150
    assert lines[4] == f"learning curves: {tmp_path / 'learning-curves.png'}"
    assert (tmp_path / "learning-curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_says_what_its_run_shows() -> None:
    from badge.cli.demonstration import headline

    assert headline(stats.example()) == (
        "what this run shows at 500 labels (3 seeds, paired t-tests at 0.05): above rand badge; below rand none; "
        "0 of 0 pairs of the others differ"
    )


def test_plain_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from badge.experiment import display as module

    monkeypatch.setattr(module, "EVERY", 0.0)
    text = io.StringIO()
    other = Cell(**{**CELL.__dict__, "strategy": "rand"})
    with Display([CELL, other], Console(file=text, width=200)) as display:
        assert display.left() == "time left unknown"
        display.round(CELL, 22, 44, 0.5)
        display.ended(Outcome(CELL))
        display.ended(Outcome(other, "no [room]"))
    name = "own_parts_blobs-own_parts_small-b10"
    lines = text.getvalue().splitlines()
    assert lines[0].startswith("0 of 2 cells, about 0 s left: ") and lines[0].endswith("22 of 44 labels: 0.5000")
    assert lines[1] == f"[1/2] {name}-badge-s0: 22 labels, test accuracy 0.5000"
    assert lines[2] == f"[2/2] {name}-rand-s0: failed: no [room]"


def test_a_live_table_on_a_terminal() -> None:
    text = io.StringIO()
    with Display(
        [CELL, CELL], Console(file=text, force_terminal=True, width=100, _environ={"TERM": "xterm"})
    ) as display:
        display.ended(Outcome(CELL), skipped=True)
        display.round(CELL, 22, 45, 0.625)
        display.live.refresh()
    shown = text.getvalue()
    assert "1 of 2 cells, 1 of them before" in shown and "0.6250" in shown and "22 / 45" in shown and "left" in shown


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("badge.experiment.display.EVERY", -1.0)
    text = io.StringIO()
    with Display([CELL], Console(file=text, force_terminal=True, width=100, _environ={"TERM": "dumb"})) as display:
        display.round(CELL, 22, 45, 0.625)
        assert "22 of 45 labels: 0.6250" in text.getvalue()
