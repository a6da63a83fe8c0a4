"""From journals to the table: finished runs of a grid are added, those that are in it already stay as they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from badge import journal, stats
from badge.experiment import Cell, read_grid
from badge.stats import Results, Run, Setting
from results import ABOUT, TABLE

__all__ = ["collect_runs"]


def collect_runs(runs: Path, grids: Sequence[Path], table: Path = TABLE, about: Path = ABOUT) -> str:
    """Write the table and what is known about it; a line on what came in."""
    cells = {_key(cell): cell for grid in grids for cell in read_grid(grid)}
    new = stats.load(runs)
    before = stats.load(table) if table.exists() else None
    known = {_key(run) for run in before.runs} if before else set()
    added = [run for run in new.runs if _key(run) not in known and _ended(new, run, cells.get(_key(run)))]
    parts = ([_columns(before, before.runs)] if before else []) + ([_columns(new, added)] if added else [])
    if not parts:
        return f"no run of {', '.join(map(str, grids))} has ended in {runs}"
    merged = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    stats.write(Results.of(merged), table)
    said = json.loads(about.read_text(encoding="utf-8")) if about.exists() else {}
    said["grids"] = [grid.as_posix() for grid in grids]
    said["planned"] = _planned(list(cells.values()))
    found, picks = _commits(runs)
    said["picks"] = sorted({*said.get("picks", []), *picks})
    said["commits"] = sorted({*said.get("commits", []), *(commit for commits in found.values() for commit in commits)})
    by_setting = said.setdefault("by_setting", {})
    for setting, commits in found.items():
        by_setting[setting] = sorted({*by_setting.get(setting, ()), *commits})
    about.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return f"{len(added)} runs added, {len(known) + len(added)} of {len(cells)} cells are in {table.name}"


def _key(run: Run | Cell) -> tuple[Setting, str, int]:
    setting = run.setting if isinstance(run, Run) else Setting(run.data, run.shown_model, run.batch_size)
    return setting, run.strategy, run.seed


def _ended(results: Results, run: Run, cell: Cell | None) -> bool:
    return cell is not None and int(results.labels[run.rows.stop - 1]) == cell.labels


def _columns(results: Results, runs: Sequence[Run]) -> dict[str, Any]:
    rows = np.concatenate([np.arange(run.rows.start, run.rows.stop) for run in runs])
    required = {name: getattr(results, name)[rows] for name in stats.REQUIRED}
    return required | {name: results.column(name)[rows] for name in stats.OPTIONAL}


def _planned(cells: list[Cell]) -> list[dict[str, Any]]:
    """One entry per setting: where its curves end, and the seeds of each strategy."""
    found: dict[Setting, dict[str, Any]] = {}
    for cell in cells:
        setting = Setting(cell.data, cell.shown_model, cell.batch_size)
        entry = found.setdefault(
            setting, {**setting._asdict(), "labels": cell.labels, "width": cell.width, "seeds": {}}
        )
        entry["seeds"][cell.strategy] = entry["seeds"].get(cell.strategy, 0) + 1
    return list(found.values())


def _commits(runs: Path) -> tuple[dict[str, set[str]], set[str]]:
    """The revisions that the journals of each setting were written by, and all versions of their picks."""
    found: dict[str, set[str]] = {}
    picks: set[str] = set()
    for path in sorted(runs.rglob("*.jsonl")):
        setting = ""
        for event in journal.read(path):
            if event["event"] == "start":
                setting = str(Setting(*(event["cell"][name] for name in Setting._fields)))
            if event["event"] in ("start", "resume"):
                picks.add((event.get("versions") or {}).get("picks", "before 1"))
            if event["event"] in ("start", "resume") and event.get("git"):
                found.setdefault(setting, set()).add(str(event["git"])[:12])
    return found, picks
