"""Our own runs of the paper's experiments: the table of them, and the page that is made from it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ABOUT", "ROOT", "TABLE", "TIMES"]

ROOT = Path(__file__).parents[1]
#: every finished run, one row per trained model; what was planned, and the revisions that made it
TABLE, ABOUT = ROOT / "results" / "runs.csv.gz", ROOT / "results" / "about.json"
#: runs whose seconds of selection were taken with nothing else on the machine: those of the others were not
TIMES = ROOT / "results" / "times.csv.gz"
