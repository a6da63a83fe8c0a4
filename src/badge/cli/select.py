"""`badge select`: what to label next, from files."""

import csv
import json
import math
import sys
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from badge.cli.options import Delimiter, Encoding, Header, Strategy, names_of
from badge.cli.request import Files, check_files
from badge.core import catalog
from badge.core.numbers import whole
from badge.core.spreadsheet import safe
from badge.core.writing import replacing, standard_output
from badge.errors import InputError, NoCandidatesError

ENDINGS = "npy, npz, csv, tsv, jsonl (also .gz, .xz), xlsx, parquet"
WITHOUT = catalog.without("embeddings")
ON_GRADIENTS = ", ".join(catalog.names(lambda row: row.bias))


class Format(str, Enum):
    lines = "lines"
    csv = "csv"
    json = "json"


def _file(help: str, *names: str, metavar: str = "FILE") -> Any:
    return Option(*names, metavar=metavar, help=help, show_default=False)


_columns = partial(_file, metavar="NAMES")


def select(
    k: Annotated[int, Option("-k", "--k", help="Number of examples to pick.", show_default=False)],
    probabilities: Annotated[Path | None, _file(f"Class probabilities, one row per example: {ENDINGS}.")] = None,
    logits: Annotated[Path | None, _file("Raw scores, in place of probabilities.")] = None,
    embeddings: Annotated[Path | None, _file(f"Penultimate embeddings. {WITHOUT} need none.")] = None,
    outputs: Annotated[Path | None, _file("Folder that badge.predict wrote, in place of these.", metavar="DIR")] = None,
    strategy: Strategy = "badge",
    seed: Annotated[int, Option(help="The same seed gives the same picks.")] = 0,
    multilabel: Annotated[bool, Option("--multilabel", help="A column is one label; rows need not sum to 1.")] = False,
    bias: Annotated[bool, Option("--bias", help=f"For {ON_GRADIENTS}: include the output bias.")] = False,
    ids: Annotated[Path | None, _file("Ids to print in place of positions: one per line, or a csv column.")] = None,
    exclude: Annotated[list[Path] | None, _file("Examples with labels: positions, or ids; repeatable.")] = None,
    strict: Annotated[bool, Option("--strict", help="Refuse an excluded id that is not in the pool.")] = False,
    labeled_probabilities: Annotated[Path | None, _file("Probabilities of labelled examples (else --exclude).")] = None,
    labeled_logits: Annotated[Path | None, _file("Raw scores, in place of these.")] = None,
    labeled_embeddings: Annotated[Path | None, _file("Embeddings of the labelled examples.")] = None,
    id_column: Annotated[str | None, _file("Column of ids in a csv or parquet file.", metavar="NAME")] = None,
    probability_columns: Annotated[list[str] | None, _columns("Columns of probabilities: 'p*', or '0,1,2'.")] = None,
    embedding_columns: Annotated[list[str] | None, _columns("Columns of embeddings: 'e*', or '*' for all.")] = None,
    header: Header = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    form: Annotated[
        Format, Option("--format", help="lines: positions or ids. csv, json: also the reason for each pick.")
    ] = Format.lines,
    output: Annotated[Path | None, _file("File to write. (default: standard output)", "--output", "-o")] = None,
) -> None:
    """Pick the examples to label next, from probabilities and embeddings on disk.

    Prints positions (rows, counted from 0) in pick order. Notes on standard error tell you how text files
    were read, and what was left out or changed. Exit codes: 2 for bad input, 3 if no candidates are left.
    The arrays may be larger than memory: npy files and --outputs are memory-mapped.

    [bold]Examples[/bold]

    A hundred picks by BADGE:
        badge select --probabilities p.npy --embeddings z.npy -k 100

    With your own ids, as a table with the reason for each pick:
        badge select --outputs pool/ -k 100 --ids names.txt --format csv

    The first batch, without any labels, from the embeddings of a pretrained model:
        badge select --embeddings z.npy -k 100 --strategy typiclust

    Another strategy. The excluded rows are the labelled examples:
        badge select --outputs pool/ -k 100 --strategy coreset --exclude done.txt

    One csv file with everything, by the names of its columns:
        badge select --logits all.csv --probability-columns 'c*' --embeddings all.csv --embedding-columns 'e*'
        --id-column file --exclude labels.csv -k 100
    """
    said = names_of(probability_columns), names_of(embedding_columns), id_column, (header, delimiter, encoding)
    files = Files(probabilities, logits, embeddings, *said, multilabel=multilabel)
    of_labeled = Files(labeled_probabilities, labeled_logits, labeled_embeddings, *said, "labeled-", multilabel)
    excluding = exclude or []
    catalog.check_name(strategy)
    whole(k, "k")
    whole(seed, "seed", least=0)
    check_files(strategy, bias, files, of_labeled, outputs, bool(exclude))
    for option, file in (("--ids", ids), *(("--exclude", file) for file in excluding)):
        if file is not None and not file.exists():
            raise InputError(f"{option}: there is no file {file}")
    for file in (probabilities, logits, embeddings, ids, *excluding, *of_labeled[:3]):
        if output is not None and file is not None and output.is_file() and output.samefile(file):
            raise InputError(f"--output {output} is one of the files that are read: name another")
    if form is not Format.lines and files and (embeddings is None or files.scores is None):
        missing = "embeddings" if embeddings is None else "probabilities"
        needs = f"it needs --{missing} too, or use --format lines"
        raise InputError(f"--format {form.value} says why each was picked, by its gradient: {needs}")
    import badge
    from badge.cli.identifiers import check_ids, excluded, read_ids
    from badge.cli.pool import Pool, read_pool
    from badge.strategies.explain import no_objective

    if outputs is None:
        pool = read_pool(files, named=ids is not None)
    else:
        loaded = badge.Outputs.load(outputs)
        if multilabel and not loaded.multilabel:
            raise InputError(f"--multilabel: {outputs} holds one label per example: predict it again for several")
        pool = Pool(loaded, None if loaded.ids is None else [str(i) for i in loaded.ids[:]], [], [])
    notes, understood, size = pool.notes, pool.understood, len(pool.outputs)
    if ids is not None and id_column is not None and pool.ids is not None:
        raise InputError("--ids and --id-column both name the examples: give one of them")
    names = pool.ids if ids is None else read_ids(ids, size, id_column)
    if names is not None:
        check_ids(names, f"--ids {ids}" if ids else "the column of identifiers", form is Format.lines)
    done, gone = excluded(excluding, names, size, id_column, strict)
    if len(done) == size:
        raise NoCandidatesError(f"no candidates left: all {size} examples of the pool are excluded")
    labeled = None
    if of_labeled:
        read = read_pool(of_labeled._replace(id_column=None))
        labeled, notes, understood = read.outputs, notes + read.notes, understood + read.understood
    picks = badge.select_from(pool.outputs, k, strategy, seed, labeled, done if exclude else None, bias)
    objective: tuple[Any, ...] = ()
    if form is not Format.lines:
        no_gain = no_objective(strategy, labelled=labeled is not None or len(done) > 0)
        objective = () if no_gain else (strategy, labeled, done if exclude else None, seed)
        gone = [*gone, f"{no_gain}: there is no gain"] if no_gain else gone
    for line in [*understood, *(f"note: {note}" for note in [*notes, *gone])]:
        print(line, file=sys.stderr)
    why = None if form is Format.lines else badge.explain(pool.outputs, picks, *objective)
    with standard_output() if output is None else replacing(output) as stream:
        if why is None:
            stream.writelines(f"{i if names is None else names[i]}\n" for i in picks.tolist())
            return
        rows = [
            {"rank": rank, **({} if names is None else {"id": names[row["position"]]}), **_finite(row)}
            for rank, row in enumerate(why.rows())
        ]
        if form is Format.csv:
            writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
        else:
            batch = _finite({"mean_norm": why.mean_norm, "log_det": why.log_det})
            head = {"strategy": strategy, "seed": seed, "k": k, "pool": size, **batch}
            json.dump({**head, "picks": rows}, stream, indent=1, allow_nan=False)
            stream.write("\n")


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no infinity: the first pick has no earlier one, a dependent batch no log-determinant."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}


def _cell(value: Any) -> Any:
    """A value in a csv file: several labels with spaces between them."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return safe(value) if isinstance(value, str) else value
