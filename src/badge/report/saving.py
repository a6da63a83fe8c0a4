"""Figures as files and as parts of the page: SVG with short numbers, text as text, and ids that no other figure has."""

from __future__ import annotations

import html
import io
import multiprocessing
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from badge.core.writing import folder_for, replacing
from badge.errors import InputError
from badge.report.drawings import INK, RC, Drawing
from badge.report.figures import draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 160
#: Formats that figures can be written in besides SVG.
FORMATS = ("png", "pdf")
FONTS = "'DejaVu Sans', Verdana, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
_PRINT_INK = "#1a1a1a"


def svg_text(figure: Figure) -> str:
    """The figure as SVG without background, its ink still marked, curves to tenths of a point."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context(RC):
        figure.savefig(buffer, format="svg", facecolor="none", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = _in_tags(text, lambda tag: re.sub(r"(-?\d+\.\d\d)\d+", r"\1", tag))
    tenths = partial(re.sub, r"\d+\.\d\d", lambda number: f"{float(number[0]):.1f}")
    text = re.sub(r' d="[^"]{400,}"', lambda path: tenths(path[0]), text)  # curves, not markers
    text = re.sub(r"\s*\n\s*", "\n", text).replace("\nL ", "L").replace("\nz", "z")
    return text.replace("'DejaVu Sans'", FONTS)


def _in_tags(svg: str, change: Callable[[str], str]) -> str:
    """Change the tags and not the words between them: a strategy may be called v0.123456."""
    return re.sub(r"<[^>]*>", lambda tag: change(tag[0]), svg)


def inline(svg: str, name: str, label: str) -> str:
    """The SVG to be put into a page: takes the page's text colour, and shares no id with another figure."""
    used = set(re.findall(r"""(?:url\(#|href="#)([^)"]+)""", svg))

    def own(tag: str) -> str:
        tag = re.sub(r' id="([^"]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", tag)
        return re.sub(r"""(url\(#|href="#)""", rf"\g<1>{name}-", tag).replace(INK, "currentColor")

    return _in_tags(svg, own).replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)


def save(figure: Figure, path: Path, svg: str | None = None) -> None:
    """Write a figure: SVG, PNG, or what else matplotlib knows by the ending of `path`."""
    folder_for(path.parent)
    if path.suffix == ".svg":
        dark = _in_tags(svg or svg_text(figure), lambda tag: tag.replace(INK, _PRINT_INK))  # on white
        body = re.sub(r"(<svg[^>]*>)", r'\1\n<rect width="100%" height="100%" fill="#ffffff"/>', dark, count=1)
        with replacing(path) as file:
            file.write('<?xml version="1.0" encoding="utf-8"?>\n' + body)
        return
    import matplotlib

    known = figure.canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise InputError(f"{path}: a figure is written as one of {', '.join(sorted(known))}")
    with matplotlib.rc_context(RC), replacing(path, binary=True) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=DPI, facecolor="white")


def _draw_and_save(drawing: Drawing, folder: Path, formats: Sequence[str]) -> str:
    figure = draw(drawing)
    svg = svg_text(figure)
    save(figure, folder / f"{drawing.name}.svg", svg)
    for ending in formats:
        save(figure, folder / f"{drawing.name}.{ending}")
    return inline(svg, drawing.name, drawing.title)


@contextmanager
def drawing_pool(workers: int) -> Iterator[Executor | None]:
    """Processes that draw. They import matplotlib at once. None for fewer than two."""
    if workers < 2:
        yield None
        return
    # spawned, not forked: a fork of a process with threads (the progress bar has one) may hang
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for _ in range(workers):
            pool.submit(_import)
        yield pool


def _import() -> None:
    import gc

    import matplotlib.backends.backend_svg
    import matplotlib.figure  # noqa: F401

    gc.freeze()  # imports are not garbage: do not look through them again and again


def save_all(
    drawings: Sequence[Drawing], folder: Path, formats: Sequence[str], pool: Executor | None
) -> Iterator[tuple[str, str]]:
    """Draw every drawing into `folder` as SVG and in `formats`; (name, SVG for the page) of each when it is done."""
    folder_for(folder)
    job = partial(_draw_and_save, folder=folder, formats=formats)
    done = map(job, drawings) if pool is None else pool.map(job, drawings)
    return zip((drawing.name for drawing in drawings), done, strict=True)
