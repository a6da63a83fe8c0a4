"""Our own runs of the paper's experiments: the table of them, and the page that is made from it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ABOUT", "ABOUT_FROZEN", "ABOUT_TIMES", "FROZEN", "ROOT", "TABLE", "TIMES", "VARIANTS"]

ROOT = Path(__file__).parents[1]
#: every finished run, one row per trained model; what was planned, and the revisions that made it
TABLE, ABOUT = ROOT / "results" / "runs.csv.gz", ROOT / "results" / "about.json"
#: the same for runs whose seconds of selection were taken with nothing else on the machine: those of the others were not
TIMES, ABOUT_TIMES = ROOT / "results" / "times.csv.gz", ROOT / "results" / "times.json"
#: the same for strategies on frozen encoders
FROZEN, ABOUT_FROZEN = ROOT / "results" / "frozen.csv.gz", ROOT / "results" / "frozen.json"
#: batches of several samplers on the same models
VARIANTS = ROOT / "results" / "variants.csv"
