"""Tutorials: each script of examples/ is run, cell by cell, and becomes a page and a notebook with what it printed and drew.

Outputs are kept in .cache/tutorials under a digest of the script and of the package: a build runs only what has changed.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jupytext
import nbformat

__all__ = ["EXAMPLES", "Tutorial", "index_page", "tutorial"]

ROOT = Path(__file__).parents[2]
EXAMPLES = ("images", "texts", "tables", "arrays", "llm", "imbalanced", "cold_start", "team")
KEPT = ROOT / ".cache" / "tutorials"
DOTS = 110


class Tutorial(NamedTuple):
    title: str
    page: str
    notebook: str
    pictures: dict[str, bytes]


def tutorial(name: str) -> Tutorial:
    """The page, the notebook and the pictures of a script. An error in the script is an error of the build."""
    script = ROOT / "examples" / f"{name}.py"
    notebook = jupytext.read(script)
    results = _kept(script)
    lines, pictures, title = [], {}, name
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            title = cell.source.splitlines()[0].removeprefix("# ") if number == 0 else title
            lines.append(cell.source)
            continue
        printed, drawn = results[number]
        cell.outputs = [*_printed(printed), *map(_drawn, drawn)]
        lines.append(f"```{{ .python .cell }}\n{cell.source}\n```")
        lines += [f"```{{ .text .printed }}\n{printed.rstrip()}\n```"] if printed.strip() else []
        for image in drawn:
            file = f"{name}-{len(pictures) + 1}.png"
            pictures[file] = base64.b64decode(image)
            lines.append(f"![{title}: the picture that this cell draws]({file})")
    files = f"[the notebook]({name}.ipynb){{: download }} or [the script](../../examples/{name}.py)"
    lines.insert(1, f"*Download {files}. It runs in a few seconds on one core, without a GPU and without the network.*")
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return Tutorial(title, "\n\n".join(lines) + "\n", nbformat.writes(notebook), pictures)


def index_page() -> str:
    words = "One per kind of data: a short program that ends with a picture, as a page, a notebook and a script."
    return f"# Tutorials\n\n{words}\n\n" + "\n\n".join(map(_entry, EXAMPLES)) + "\n"


def _entry(name: str) -> str:
    found = tutorial(name)
    picture = f'[![{found.title}: the picture at its end]({list(found.pictures)[-1]}){{ width="420" }}]({name}.md)'
    return f"## [{found.title}]({name}.md)\n\n{picture}"


def _printed(text: str) -> list[Any]:
    return [nbformat.v4.new_output("stream", name="stdout", text=text)] if text else []


def _drawn(image: str) -> Any:
    return nbformat.v4.new_output("display_data", data={"image/png": image})


@cache
def _package() -> bytes:
    files = sorted((ROOT / "src").rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


@cache
def _kept(script: Path) -> list[tuple[str, list[str]]]:
    digest = hashlib.sha256(script.read_bytes() + _package()).hexdigest()[:20]
    kept = KEPT / f"{script.stem}-{digest}.json"
    if not kept.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(run(jupytext.read(script), script.name)), encoding="utf-8")
    return [(printed, drawn) for printed, drawn in json.loads(kept.read_text(encoding="utf-8"))]


def run(notebook: Any, name: str) -> list[tuple[str, list[str]]]:
    """What each cell printed, and its pictures as base64; the script runs in an empty folder."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    space: dict[str, Any] = {"__name__": "__main__"}
    found, before = [], Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*non-interactive.*")
        os.chdir(folder)
        try:
            for cell in notebook.cells:
                printed = io.StringIO()
                if cell.cell_type == "code":
                    with contextlib.redirect_stdout(printed):
                        exec(compile(cell.source, name, "exec"), space)
                found.append((printed.getvalue(), [_png(plt.figure(number)) for number in plt.get_fignums()]))
                plt.close("all")
        finally:
            os.chdir(before)
    return found


def _png(figure: Any) -> str:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DOTS, bbox_inches="tight", metadata={"Software": None})
    return base64.b64encode(out.getvalue()).decode()


if __name__ == "__main__":
    import sys
    import time

    for one in sys.argv[1:] or EXAMPLES:
        start = time.process_time()
        outputs = run(jupytext.read(ROOT / "examples" / f"{one}.py"), one)
        print(one, f"{time.process_time() - start:.1f} s", "".join(printed for printed, _ in outputs), sep="\n")
