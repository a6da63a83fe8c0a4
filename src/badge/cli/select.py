"""`badge select`: what to label next, from files."""

from __future__ import annotations

import csv
import json
import math
import sys
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

from typer import Option

from badge.cli.strategies import Delimiter, Encoding, Header, Strategy
from badge.core import catalog
from badge.core.spreadsheet import safe
from badge.core.writing import replacing, standard_output
from badge.errors import InputError, NoCandidatesError

if TYPE_CHECKING:
    from badge.cli.pool import Pool
    from badge.cli.request import Files
    from badge.strategies.explain import Explanation


NO_EMBEDDINGS = ", ".join(catalog.names(lambda row: "embeddings" not in row.reads and not row.passes))
ENDINGS = "npy, npz, csv, tsv, jsonl (also .gz, .xz), xlsx, parquet"
ON_GRADIENTS = ", ".join(catalog.names(lambda row: row.bias))


class Format(str, Enum):
    lines = "lines"
    csv = "csv"
    json = "json"


def _file(help: str, *names: str, metavar: str = "FILE") -> Any:
    return Option(*names, metavar=metavar, help=help, show_default=False)


def _columns(help: str) -> Any:
    return _file(help, metavar="NAMES")


def select(
    k: Annotated[int, Option("-k", "--k", help="Number of examples to pick.", show_default=False)],
    probabilities: Annotated[Path | None, _file(f"Class probabilities, N rows: {ENDINGS}.")] = None,
    logits: Annotated[Path | None, _file("In place of probabilities: raw scores.")] = None,
    embeddings: Annotated[Path | None, _file(f"Penultimate embeddings, N rows; {NO_EMBEDDINGS} do without.")] = None,
    outputs: Annotated[Path | None, _file("In place of these: what badge.predict wrote.", metavar="DIR")] = None,
    strategy: Strategy = "badge",
    seed: Annotated[int, Option(help="The same seed gives the same picks.")] = 0,
    multilabel: Annotated[bool, Option("--multilabel", help="A column is one label; rows need not sum to 1.")] = False,
    bias: Annotated[bool, Option("--bias", help=f"For {ON_GRADIENTS}: count the output bias too.")] = False,
    ids: Annotated[Path | None, _file("Names to print in place of positions: one a line, or a csv column.")] = None,
    exclude: Annotated[list[Path] | None, _file("Examples with labels: positions, or identifiers; repeatable.")] = None,
    strict: Annotated[bool, Option("--strict", help="Refuse an excluded identifier that is not in the pool.")] = False,
    labeled_probabilities: Annotated[Path | None, _file("Probabilities of labelled examples (else --exclude).")] = None,
    labeled_logits: Annotated[Path | None, _file("In place of these: raw scores.")] = None,
    labeled_embeddings: Annotated[Path | None, _file("Embeddings of the labelled examples.")] = None,
    id_column: Annotated[str | None, _file("The column of identifiers in a csv or parquet.", metavar="NAME")] = None,
    probability_columns: Annotated[list[str] | None, _columns("The columns to use: 'p*', or '0,1,2'.")] = None,
    embedding_columns: Annotated[list[str] | None, _columns("The same for embeddings: 'e*', or '*' for all.")] = None,
    header: Header = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    form: Annotated[Format, Option("--format", help="lines: a position a line. csv, json: also why.")] = Format.lines,
    output: Annotated[Path | None, _file("Write here, not to standard output.", "--output", "-o")] = None,
) -> None:
    """Pick the examples to label next, from probabilities and embeddings on disk.

    Prints positions (rows counted from 0) in pick order. Standard error says how text files were understood, and what
    was left out or changed. Exit codes: 2 bad input, 3 no candidates left.
    The arrays may be larger than memory: npy files and --outputs are memory-mapped.

    [bold]Examples[/bold]

    A hundred picks by BADGE:
        badge select --probabilities p.npy --embeddings z.npy -k 100

    By your own names for the examples, with a table of why each was picked:
        badge select --outputs pool/ -k 100 --ids names.txt --format csv

    The first batch, before any label, from embeddings of a pretrained model:
        badge select --embeddings z.npy -k 100 --strategy typiclust

    Another strategy; the excluded rows are the labelled ones:
        badge select --outputs pool/ -k 100 --strategy coreset --exclude done.txt

    One csv file with everything; the columns are named:
        badge select --logits all.csv --probability-columns 'c*' --embeddings all.csv --embedding-columns 'e*'
        --id-column file --exclude labels.csv -k 100
    """
    from badge.cli.request import Files, check_request

    said = _words(probability_columns), _words(embedding_columns), id_column, (header, delimiter, encoding)
    files = Files(probabilities, logits, embeddings, *said, multilabel=multilabel)
    of_labeled = Files(labeled_probabilities, labeled_logits, labeled_embeddings, *said, "labeled-", multilabel)
    check_request(k, seed, strategy, bias, files, of_labeled, outputs, exclude or [], ids)
    for file in (probabilities, logits, embeddings, ids, *(exclude or []), *of_labeled[:3]):
        if output is not None and file is not None and output.is_file() and output.samefile(file):
            raise InputError(f"--output {output} is one of the files that are read: name another")
    if form is not Format.lines and files and (embeddings is None or files.scores is None):
        missing = "embeddings" if embeddings is None else "probabilities"
        needs = f"it needs --{missing} too, or use --format lines"
        raise InputError(f"--format {form.value} says why each was picked, by its gradient: {needs}")
    import badge
    from badge.cli.identifiers import check_ids, excluded, read_ids
    from badge.cli.pool import read_pool

    pool = _pool(files, outputs, named=ids is not None)
    notes, understood = pool.notes, pool.understood
    if ids is not None and id_column is not None and pool.ids is not None:
        raise InputError("--ids and --id-column both name the examples: give one of them")
    names = pool.ids if ids is None else read_ids(ids, len(pool.outputs), id_column)
    if names is not None:
        check_ids(names, f"--ids {ids}" if ids else "the column of identifiers", form is Format.lines)
    done = excluded(exclude or [], names, len(pool.outputs), id_column, strict)
    if len(done.positions) == len(pool.outputs):
        raise NoCandidatesError(f"no candidates left: all {len(pool.outputs)} examples of the pool are excluded")
    labeled = None
    if of_labeled:
        read = read_pool(of_labeled._replace(id_column=None))
        labeled, notes, understood = read.outputs, notes + read.notes, understood + read.understood
    taken = done.positions if exclude else None
    picks = badge.select_from(pool.outputs, k, strategy, seed, labeled, taken, bias)
    for line in [*understood, *(f"note: {note}" for note in [*notes, *done.notes])]:
        print(line, file=sys.stderr)
    if form is Format.lines:
        with _target(output) as stream:
            stream.writelines(f"{i if names is None else names[i]}\n" for i in picks.tolist())
        return
    head = {"strategy": strategy, "seed": seed, "k": k, "pool": len(pool.outputs)}
    _write_reasons(badge.explain(pool.outputs, picks), names, head if form is Format.json else None, output)


def _write_reasons(why: Explanation, names: list[str] | None, head: dict[str, Any] | None, output: Path | None) -> None:
    """Write why each example was picked: as JSON below `head`, or as csv."""
    rows = _rows(why.rows(), names)
    with _target(output) as stream:
        if head is None:
            writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
        else:
            head |= {"mean_norm": _number(why.mean_norm), "log_det": _number(why.log_det)}
            json.dump({**head, "picks": rows}, stream, indent=1, allow_nan=False)
            stream.write("\n")


def _pool(files: Files, outputs: Path | None, named: bool) -> Pool:
    from badge.cli.pool import Pool, read_pool
    from badge.outputs import Outputs

    if outputs is None:
        return read_pool(files, named)
    loaded = Outputs.load(outputs)
    if files.multilabel and not loaded.multilabel:
        raise InputError(f"--multilabel: {outputs} holds one label per example: predict it again for several")
    return Pool(loaded, None if loaded.ids is None else [str(i) for i in loaded.ids[:]], [], [])


def _words(given: list[str] | None) -> tuple[str, ...]:
    return tuple(word.strip() for words in given or [] for word in words.split(",") if word.strip())


def _rows(explained: list[dict[str, Any]], names: list[str] | None) -> list[dict[str, Any]]:
    rows = []
    for rank, why in enumerate(explained):
        own = {} if names is None else {"id": names[why["position"]]}
        rows.append({"rank": rank, **own, **{key: _number(value) for key, value in why.items()}})
    return rows


def _cell(value: Any) -> Any:
    """A value in a csv file: several labels with spaces between them."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return safe(value) if isinstance(value, str) else value


def _number(value: Any) -> Any:
    """JSON knows no infinity: the first pick has no earlier one, a dependent batch no log-determinant."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _target(output: Path | None) -> AbstractContextManager[IO[Any]]:
    return standard_output() if output is None else replacing(output)
