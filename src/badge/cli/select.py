"""`badge select`: what to label next, from arrays on disk."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from badge.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np

    from badge.outputs import Outputs

__all__ = ["Format", "select"]


#: Strategies that look at probabilities only.
WITHOUT_EMBEDDINGS = ("conf", "marg", "entropy", "rand")


class Format(str, Enum):
    lines = "lines"
    csv = "csv"
    json = "json"


def select(
    k: Annotated[int, typer.Option("-k", "--k", help="How many examples to pick.", show_default=False)],
    probabilities: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Class probabilities, N rows: npy, npz, csv or parquet.", show_default=False),
    ] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Penultimate embeddings, N rows; conf, marg, entropy and rand do without.",
            show_default=False,
        ),
    ] = None,
    outputs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="In place of the two: what badge.predict(..., out=DIR) wrote.", show_default=False
        ),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(help="badge, coreset, conf, marg, entropy, albl, rand, kdpp or kcenter-grad."),
    ] = "badge",
    seed: Annotated[int, typer.Option(help="The same seed gives the same picks.")] = 0,
    ids: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Your own identifiers, one a line, N lines: printed in place of positions."),
    ] = None,
    exclude: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What has labels already, one a line: positions, or identifiers with --ids."),
    ] = None,
    labeled_probabilities: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of the labelled examples, for coreset and albl (else the --exclude rows)."),
    ] = None,
    labeled_embeddings: Annotated[Path | None, typer.Option(metavar="FILE", help="Of the labelled examples.")] = None,
    form: Annotated[
        Format,
        typer.Option("--format", help="lines: one position a line. csv and json: also why each was picked."),
    ] = Format.lines,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here, not to standard output.")
    ] = None,
) -> None:
    """Pick the examples to label next, from probabilities and embeddings on disk.

    Prints positions (rows counted from 0) in the order in which they were picked.
    The arrays may be larger than memory: npy files and --outputs are memory-mapped.

    [bold]Examples[/bold]

    A hundred picks by BADGE:
        badge select --probabilities p.npy --embeddings z.npy -k 100

    By your own names for the examples, with a table of why each was picked:
        badge select --outputs pool/ -k 100 --ids names.txt --format csv

    Another strategy; the excluded rows are the labelled ones:
        badge select --outputs pool/ -k 100 --strategy coreset --exclude done.txt
    """
    import badge

    badge.strategies.get(strategy)  # a wrong name is an error before anything is read
    if form is not Format.lines and probabilities is not None and embeddings is None:
        raise InputError(f"--format {form.value} says how far picks are from each other: it needs --embeddings too")
    pool = _pool(probabilities, embeddings, outputs, strategy)
    names = _lines(ids, "--ids") if ids is not None else None if pool.ids is None else [str(i) for i in pool.ids[:]]
    if names is not None and len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InputError(f"--ids {ids} names {twice!r} more than once: a pick could not be told from its namesake")
    if names is not None and len(names) != len(pool):
        raise InputError(f"--ids {ids} has {len(names)} lines; the pool has {len(pool)} rows")
    excluded = None if exclude is None else _positions(exclude, names, len(pool))
    labeled = None
    if labeled_probabilities is not None or labeled_embeddings is not None:
        labeled = _pair(labeled_probabilities, labeled_embeddings, "labeled-")
    picks = badge.select_from(pool, k, strategy=strategy, seed=seed, labeled=labeled, exclude=excluded)
    with _target(output) as stream:
        if form is Format.lines:
            stream.writelines(f"{i if names is None else names[i]}\n" for i in picks.tolist())
        else:
            why = badge.explain(pool, picks)
            rows = _rows(why.rows(), names)
            if form is Format.csv:
                writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            else:
                head = {"strategy": strategy, "seed": seed, "k": k, "pool": len(pool)}
                head |= {"mean_norm": _number(why.mean_norm), "log_det": _number(why.log_det)}
                json.dump({**head, "picks": rows}, stream, indent=1, allow_nan=False)
                stream.write("\n")


def _pool(probabilities: Path | None, embeddings: Path | None, outputs: Path | None, strategy: str) -> Outputs:
    import numpy as np

    from badge.outputs import Outputs

    if outputs is None and embeddings is None and probabilities is not None and strategy in WITHOUT_EMBEDDINGS:
        found = read_array(probabilities, "probabilities")
        return Outputs(found, np.zeros((len(found), 1), dtype=np.float32))
    if outputs is None:
        return _pair(probabilities, embeddings, "")
    if probabilities is not None or embeddings is not None:
        raise InputError("--outputs stands in place of --probabilities and --embeddings: give one or the other")
    return Outputs.load(outputs)


def _pair(probabilities: Path | None, embeddings: Path | None, kind: str) -> Outputs:
    from badge.outputs import Outputs

    if probabilities is None or embeddings is None:
        missing = f"--{kind}probabilities" if probabilities is None else f"--{kind}embeddings"
        raise InputError(f"{missing} is missing" + ("" if kind else " (or give --outputs DIR)"))
    return Outputs(read_array(probabilities, "probabilities"), read_array(embeddings, "embeddings"))


def read_array(file: Path, name: str) -> np.ndarray[Any, Any]:
    """The numbers in an npy (memory-mapped), npz, csv or parquet file."""
    import numpy as np

    if not file.is_file():
        raise InputError(f"{name}: there is no file {file}")
    try:
        if file.suffix == ".npy":
            array: np.ndarray[Any, Any] = np.load(file, mmap_mode="r", allow_pickle=False)
            return array
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                if name not in arrays and len(arrays.files) != 1:
                    raise InputError(f"{file} holds {arrays.files}: one array, or one named {name!r}, is needed")
                return np.asarray(arrays[name if name in arrays else arrays.files[0]])
        if file.suffix == ".csv":
            return _read_csv(file)
        if file.suffix in (".parquet", ".pq"):
            return _read_parquet(file)
    except (ValueError, OSError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: {file} cannot be read: {' '.join(str(error).split())}") from error
    raise InputError(f"{name}: {file} is none of .npy, .npz, .csv, .parquet")


def _read_csv(file: Path) -> np.ndarray[Any, Any]:
    import numpy as np

    with file.open(encoding="utf-8", newline="") as stream:
        first = stream.readline()
    if not first.strip():
        raise InputError(f"{file} is empty")
    try:
        [float(cell) for cell in first.split(",")]
        header = 0
    except ValueError:
        header = 1
    return np.loadtxt(file, delimiter=",", skiprows=header, ndmin=2, dtype=np.float64)


def _read_parquet(file: Path) -> np.ndarray[Any, Any]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("reading parquet", "pyarrow", "parquet") from None
    import numpy as np

    table = parquet.read_table(file)
    columns = []
    for name in table.column_names:
        values = table[name].to_numpy()
        if values.dtype == object:  # a column of lists: one embedding per row
            values = np.stack([np.asarray(row, dtype=np.float64) for row in values])
        columns.append(values[:, None] if values.ndim == 1 else values)
    return np.concatenate(columns, axis=1)


def _lines(file: Path, option: str) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{option} {file} cannot be read: {error}") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def _positions(file: Path, names: list[str] | None, rows: int) -> np.ndarray[Any, Any]:
    """The positions that a file of positions, or of identifiers, means."""
    import numpy as np

    given = _lines(file, "--exclude")
    if names is None:
        strange = [line for line in given if not line.isdecimal() or int(line) >= rows]
        if strange:
            hint = "" if strange[0].isdecimal() else "; for identifiers give --ids too"
            raise InputError(f"--exclude {file}: {strange[0]!r} is not a position from 0 to {rows - 1}{hint}")
        return np.unique(np.array([int(line) for line in given], dtype=np.int64))
    unknown = set(given) - set(names)
    if unknown:
        raise InputError(f"--exclude {file}: {len(unknown)} of {len(given)} are not in --ids (first: {min(unknown)!r})")
    wanted = set(given)
    return np.array([i for i, name in enumerate(names) if name in wanted], dtype=np.int64)


def _rows(explained: list[dict[str, Any]], names: list[str] | None) -> list[dict[str, Any]]:
    rows = []
    for rank, why in enumerate(explained):
        own = {} if names is None else {"id": names[why["position"]]}
        rows.append({"rank": rank, **own, **{key: _number(value) for key, value in why.items()}})
    return rows


def _number(value: float) -> float | None:
    """JSON knows no infinity: the first pick has no earlier one, a dependent batch no log-determinant."""
    return value if math.isfinite(value) else None


@contextmanager
def _target(output: Path | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        return
    try:
        stream = output.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(f"--output {output} cannot be written: {error.strerror}") from error
    with stream:
        yield stream
