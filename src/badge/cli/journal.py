"""`badge journal`: look at the journal of a loop, check it, repair it, take labels out of it and into it."""

import re
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from badge.cli.options import Once
from badge.core.writing import replacing, standard_output
from badge.errors import InputError, JournalError

HELP = "Show, check and repair a journal; export, import and erase labels."
app = typer.Typer(name="journal", help=HELP, no_args_is_help=True, rich_markup_mode="rich")

_File = Annotated[Path, Argument(help="The journal (.jsonl).")]


@app.command("show", cls=Once)
def show(file: _File, last: Annotated[int, Option(min=0, help="Print the last events: how many.")] = 5) -> None:
    """Show what a journal holds: its pool, strategy, seed, labels by class and by person, and last events.

    Example: badge journal show labels.jsonl --last 20
    """
    from badge.journal import read
    from badge.journal.schema import typed
    from badge.learner.history import history
    from badge.learner.opening import in_words, recorded_ledger

    events = read(file)
    kinds = Counter(event["event"] for event in events)
    typer.echo(f"{file}: {len(events):,} events ({', '.join(f'{n:,} {kind}' for kind, n in kinds.items())})")
    if kinds["learner"]:
        records = [typed(event) for event in events]
        ledger = recorded_ledger(records, file)
        assert ledger.header is not None and ledger.pool is not None
        own = "called by position" if ledger.pool.sample is None else "with their own ids"
        settings = f"strategy: {in_words(ledger.strategy)}; seed: {ledger.header.seed}"
        typer.echo(f"pool: {ledger.pool.length:,} examples, {own}; {settings}")
        counts = Counter(str(ledger.classes.decode(code)) for code in ledger.labels.values())
        most = ", ".join(f"{n:,} {label}" for label, n in counts.most_common(20))
        typer.echo(f"labels: {len(ledger.labels):,} ({most})")
        typer.echo(f"pending: {len(ledger.pending):,}; skipped: {len(ledger.skipped):,}; asks: {len(ledger.asks):,}")
        if people := Counter(row.by for row in history(records) if row.by):
            typer.echo(f"given by: {', '.join(f'{person} {n:,}' for person, n in people.most_common())}")
    for number, event in list(enumerate(events, start=1))[len(events) - last :]:
        fields = ", ".join(f"{key}={str(value)[:60]}" for key, value in event.items() if key not in ("event", "stop"))
        typer.echo(f"{number:>6} {event['event']}: {fields}")


@app.command("check", cls=Once)
def check(file: _File) -> None:
    """Check a journal: no line is missing, changed or moved, and no event contradicts an earlier one.

    If something is wrong, the exit code is 1.

    Example: badge journal check labels.jsonl
    """
    from badge.journal import records_of
    from badge.journal.events import Header, Lost
    from badge.learner.opening import recorded_ledger

    try:
        with warnings.catch_warnings(record=True) as torn:
            warnings.simplefilter("always")
            records = records_of(file)
        ledger = recorded_ledger(records, file) if any(isinstance(r, Header) for r in records) else None
    except JournalError as error:
        typer.echo(error.plain, err=True)
        raise typer.Exit(1) from None
    for warning in torn:
        typer.echo(str(warning.message), err=True)
    lost = sum(isinstance(record, Lost) for record in records)
    held = f", {len(ledger.labels):,} labels" if ledger is not None else ""
    typer.echo(f"{file}: sound, {len(records):,} events{held}{f', {lost} lost in a repair' if lost else ''}")


@app.command("repair", cls=Once)
def repair(file: _File) -> None:
    """Repair a damaged journal: keep every sound line. The damaged file is kept beside it.

    Example: badge journal repair labels.jsonl
    """
    from badge.journal import repair as repair_journal

    typer.echo(f"{file}: {repair_journal(file)}")


@app.command("erase", cls=Once)
def erase(
    file: _File,
    ids: Annotated[list[str], Option("--id", help='An id to erase; repeatable. "7" in quotes: a text.')],
) -> None:
    """Erase examples from a journal: their ids, labels and predictions. Copies of the journal are not changed.

    Example: badge journal erase labels.jsonl --id img/0007.jpg --id img/0012.jpg
    """
    from badge.journal import erase as erase_from
    from badge.journal import records_of
    from badge.learner.opening import mentioned

    known = mentioned(records_of(file))
    meant = []
    for text in ids:
        quoted = len(text) > 1 and text[0] == text[-1] == '"'
        number = int(text) if re.fullmatch("-?[0-9]{1,18}", text) else None
        found = [id for id in (number, text, text[1:-1] if quoted else None) if id is not None and id in known]
        if not found:
            raise InputError(f"{file} holds nothing about {text!r}: give an id as `badge journal export` shows it")
        meant.append(found[0])
    events = erase_from(file, meant)
    kept = sorted(other.name for other in file.parent.glob(f"{file.name}.damaged*"))
    copies = f"; the copies {', '.join(kept)} were not changed" if kept else ""
    what = f"{len(meant):,} examples erased from {events:,} events"
    typer.echo(f"{file}: {what}; the journal was rewritten{copies}")


@app.command("export", cls=Once)
def export(
    file: _File,
    out: Annotated[Path | None, Option("--out", "-o", help="The CSV file to write. (default: standard output)")] = None,
    everything: Annotated[bool, Option("--all", help="Every label ever given, not only the current ones.")] = False,
) -> None:
    """Write the labels as CSV: id, label, by (the person), at (the time). It needs neither the pool nor the model.

    Example: badge journal export labels.jsonl -o labels.csv
    """
    from badge.journal import records_of
    from badge.journal.events import Header
    from badge.learner.history import history
    from badge.learner.opening import recorded_ledger
    from badge.learner.transfer import labels_in, write_labels

    records = records_of(file)
    ledger = recorded_ledger(records, file) if any(isinstance(record, Header) for record in records) else None
    if everything:
        rows = [{"id": row.id, "label": row.label, "by": row.by, "at": row.at} for row in history(records)]
    else:
        rows = labels_in(records, ledger)
    with standard_output() if out is None else replacing(out) as stream:
        write_labels(rows, stream, ledger)
    if out is not None:
        typer.echo(f"{out}: {len(rows):,} labels")


@app.command("import", cls=Once)
def import_labels(
    file: _File,
    labels: Annotated[Path, Argument(help="A CSV file with the columns id, label and, optionally, by; or see --from.")],
    format: Annotated[str | None, Option("--from", help="Export of argilla, doccano, label-studio or prodigy.")] = None,
    id: Annotated[str, Option(help="With --from: the field with the ids of the pool.")] = "id",
) -> None:
    """Add the labels of a file to a journal: all of them, or none if one is invalid. No other program may have it open.

    Examples:
        badge journal import labels.jsonl from_the_lab.csv
        badge journal import labels.jsonl project-7.json --from label-studio
    """
    from badge.journal import Journal
    from badge.journal.events import Tell, now
    from badge.labelling.foreign import tells_from
    from badge.learner.opening import recorded_ledger
    from badge.learner.transfer import imported

    if not file.exists():
        raise JournalError(f"there is no journal {file}: name the file that `badge label` or your loop writes")
    with Journal(file) as journal:
        ledger, told = recorded_ledger(journal.records, file), []
        found = imported(labels, ledger) if format is None else tells_from(labels, format, ledger, id)
        for record, codes in found:
            ledger.apply(record, codes)
            told.append(replace(record, at=now()))
        if told:
            journal.append(*told)
    taken = sum(len(record.ids) for record in told if isinstance(record, Tell))
    typer.echo(f"{file}: {taken:,} labels taken")
