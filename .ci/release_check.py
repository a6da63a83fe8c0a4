"""A wheel in clean environments: without extras, and with each extra alone. `make release-check` builds it and calls this.

    python .ci/release_check.py dist/badge_learn-*.whl

Without an extra, what needs it must say so in one line that names it. The environments of the extras see the packages of
the first one, so that torch is installed once.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMANDS = """
import typer.main
from badge.cli import app
for name, command in typer.main.get_command(app).commands.items():
    print(*[f"{name} {inner}" for inner in getattr(command, "commands", {})] or [name], sep="\\n")
"""
FILES = """
import numpy as np
rng = np.random.default_rng(0)
np.save("p.npy", rng.dirichlet(np.ones(3), 40))
np.save("z.npy", rng.normal(size=(40, 4)))
open("texts.csv", "w").write("text,label\\n" + "".join(f"text {i},{i % 2}\\n" for i in range(40)))
open("x.xlsx", "wb").write(b"PK")
open("z.parquet", "wb").write(b"PAR1")
open("grid.toml", "w").write(
    "seeds = 1\\nstrategy = ['badge', 'rand']\\n"
    "[[block]]\\npairs = ['digits/mlp']\\ninitial = 20\\nbatch_size = [20]\\nlabels = 40\\n"
)
import badge, torch
trainer = badge.Trainer(build=lambda: torch.nn.Linear(4, 3), lr=0.01)
with badge.ActiveLearner(np.load("z.npy"), trainer, classes=3, journal="labels.jsonl") as learner:
    learner.tell(learner.ask(2), [0, 1])
"""
SELECT = "select --probabilities p.npy -k 3 --embeddings"
#: what needs no extra, and works with each
ALWAYS = [
    "--version",
    "strategies",
    f"{SELECT} z.npy --format csv",
    *(f"journal {name} labels.jsonl" for name in ("show", "check", "repair", "export")),
]
#: the page: start it, open the address that it prints, end it
PAGE = """
import re, subprocess, sys, urllib.request
command = [sys.executable, "-u", "-m", "badge", "label", "texts.csv", "--classes", "a,b", "--port", "0"]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as page:
    address = next(found[0] for line in page.stdout if (found := re.search(r"http://\\S+", line)))
    assert b"<title>" in urllib.request.urlopen(address).read()
    page.terminate()
"""
RUN = "run --data digits --labels 60 --initial 50 --batch-size 10 --max-epochs 5 --workers 1 --strategy badge,rand --seeds 2"
#: command or program -> the extra that its last line names where that is missing
NEEDS = {
    RUN: "study",
    f"{SELECT} z.parquet": "parquet",
    f"{SELECT} x.xlsx": "xlsx",
    "label texts.csv --classes a,b --port 0": "label",
    "run --data texts.csv --encoder hf:nowhere --workers 1": "hf",
    "-c import badge, numpy as n; badge.cluster.select_from(badge.Outputs(n.load('p.npy'), n.load('z.npy')), 3)": "ray",
    "-c import badge; badge.Outputs.load('s3://bucket/pool')": "s3",
    "-c import badge; badge.Outputs.load('gs://bucket/pool')": "gs",
}
#: extra -> programs and commands that work with it alone
WORKS = {
    "study": [
        *(RUN, "report runs --out report", "export runs -o all.csv", "demo --out demo --workers 1"),
        *("grid grid.toml --dry-run", "grid grid.toml --out cells --workers 1"),
    ],
    "parquet": [
        "-c import pyarrow as pa, numpy as np, pyarrow.parquet as q; "
        "q.write_table(pa.table({'e': list(np.load('z.npy'))}), 'z.parquet')",
        f"{SELECT} z.parquet",
    ],
    "xlsx": [
        "-c import openpyxl, numpy as np; b = openpyxl.Workbook(); b.active.append(list('abcd')); "
        "[b.active.append(r) for r in np.load('z.npy').tolist()]; b.save('x.xlsx')",
        f"{SELECT} x.xlsx",
    ],
    "hf": ["-c import transformers, datasets, badge; badge.training.Frozen"],
    "label": [f"-c {PAGE}"],
    "ray": ["-c import ray, badge; badge.cluster.select_from"],
    "s3": ["-c import s3fs, badge; badge.Outputs.load"],
    "gs": ["-c import gcsfs, badge; badge.Outputs.load"],
}


class Environment:
    """A virtual environment, and a folder to run programs in."""

    def __init__(self, folder: Path, below: Environment | None = None) -> None:
        venv.create(folder, with_pip=True)
        self.python, self.work = folder / "bin" / "python", folder / "work"
        self.work.mkdir()
        self.packages = next((folder / "lib").glob("python3*")) / "site-packages"
        if below is not None:
            (self.packages / "below.pth").write_text(f"{below.packages}\n")

    def install(self, *what: str) -> None:
        command = [self.python, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), *what]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)

    def run(self, words: str) -> subprocess.CompletedProcess[str]:
        """A command of badge, or `-c program`."""
        program = ["-c", words.removeprefix("-c ")] if words.startswith("-c ") else ["-m", "badge", *words.split()]
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [self.python, *program], cwd=self.work, env=env, capture_output=True, text=True, timeout=600, check=False
        )

    def works(self, words: str) -> None:
        done = self.run(words)
        if done.returncode:
            raise SystemExit(f"failed: {words[:200]}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def main(wheel: Path) -> None:
    readme = re.search(r"## Ten lines\n\n```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert readme is not None
    with tempfile.TemporaryDirectory(prefix="badge-release-") as folder:
        base = Environment(Path(folder) / "base")
        base.install(str(wheel))
        commands = base.run(f"-c {COMMANDS}").stdout.split("\n")[:-1]
        always = [f"-c {FILES}", f"-c {readme[1]}", *ALWAYS, *(f"{name} --help" for name in commands)]
        for words in always:
            base.works(words)
        for words, extra in NEEDS.items():
            done = base.run(words)
            one_line = words.startswith("-c ") or (done.returncode == 2 and "Traceback" not in done.stderr)
            if not one_line or f"badge-learn[{extra}]" not in done.stderr.strip().split("\n")[-1]:
                raise SystemExit(f"without [{extra}]: {words}: exit code {done.returncode}\n{done.stderr[-1500:]}")
        print("without extras: works, and says which extra is missing")
        for extra, programs in WORKS.items():
            with_extra = Environment(Path(folder) / extra, base)
            with_extra.install(f"{wheel}[{extra}]")
            for words in (*always, *programs):
                with_extra.works(words)
            print(f"[{extra}] alone: works")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
