"""The pages of the reference: Python names by mkdocstrings, commands from typer, the journal's format from its types."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin

import typer.main

from badge.cli import app
from badge.experiment import Cell
from badge.journal import events
from badge.journal.schema import KINDS

__all__ = ["COMMANDS", "FORMAT", "PYTHON", "Page", "commands_page", "format_page", "python_page"]


class Page(NamedTuple):
    title: str
    words: str
    names: tuple[str, ...]


COMMANDS, FORMAT = "reference/commands.md", "reference/journal-format.md"
#: methods that a class has for its own package
INNER = {
    "trusted",
    "rows_of",
    "unread",
    "map",
    "only",
    "with_probabilities",
    "reach",
    "with_notes",
    "keep",
    "derived",
    "rank_bound",
    "upper",
}

PYTHON: dict[str, Page] = {
    "reference/select.md": Page(
        "Select",
        "Pick from a model, or from its outputs. Start with `badge.select`. It runs `badge.predict`, then "
        "`badge.select_from`.",
        (
            *(
                "badge.select",
                "badge.predict",
                "badge.select_from",
                "badge.Outputs",
                "badge.explain",
                "badge.Explanation",
            ),
            *("badge.gradient_embedding", "badge.Factored", "badge.Dense"),
        ),
    ),
    "reference/learner.md": Page(
        "Learner and training",
        "Ask for labels, tell them, and train in between. [The loop](../loop.md) explains how.",
        (
            *("badge.ActiveLearner", "badge.Trainer", "badge.training.Frozen"),
            *(f"badge.training.networks.{name}" for name in ("mlp", "resnet18", "vgg11", "resolve", "learning_rate")),
            *("badge.training.networks.NETWORKS", "badge.training.networks.Build"),
        ),
    ),
    "reference/strategies.md": Page(
        "Strategies and samplers",
        "A strategy picks from the outputs of a model; a sampler picks from vectors. "
        "[Every strategy](../strategies.md) shows the picks of each.",
        (
            *(f"badge.strategies.{name}" for name in ("get", "declare", "declaration", "Strategy", "Stateful", "ALBL")),
            *(
                f"badge.samplers.{name}"
                for name in ("kmeanspp", "kcenter", "kdpp", "coverage", "Gauss", "Ball", "topk")
            ),
            *("badge.strategies.NAMES", "badge.strategies.PAPER"),
        ),
    ),
    "reference/testing.md": Page(
        "Test your own",
        "Check your own samplers and strategies with the tests that ours pass. No test runner is needed.",
        tuple(f"badge.testing.{name}" for name in ("check_strategy", "check_sampler", "kmeanspp_law", "kdpp_law")),
    ),
    "reference/data.md": Page(
        "Data and experiments",
        "The paper's data sets and protocol. [Run experiments](../experiments.md) from the command line, or from Python:",
        (
            *(f"badge.data.{name}" for name in ("load", "load_file", "resolve", "Dataset", "NAMES", "cache_folder")),
            *(f"badge.experiment.{name}" for name in ("Cell", "run_cell", "run_cells", "read_grid")),
            *(f"badge.experiment.{name}" for name in ("cells_of", "finished", "journal_path", "Executor", "Serial")),
            *(f"badge.experiment.{name}" for name in ("Processes", "Outcome", "Display")),
        ),
    ),
    "reference/stats.md": Page(
        "Statistics and report",
        "The paper's evaluation of finished runs. It does not need torch. [Statistics](../statistics.md) explains it.",
        (
            *(f"badge.stats.{name}" for name in ("load", "Results", "write", "example")),
            *(f"badge.stats.{name}" for name in ("learning_curve", "mean_curve", "saved_labels", "labels_to_reach")),
            *(f"badge.stats.{name}" for name in ("penalty_matrix", "group_by", "beats", "t_score", "critical_value")),
            *(f"badge.stats.{name}" for name in ("normalized_errors", "error_cdf", "label_budgets", "budget_values")),
            *(f"badge.stats.{name}" for name in ("batch_diversity", "round_times", "budget_notes")),
            *(f"badge.stats.{name}" for name in ("capped_notes", "coverage_notes", "Budgets", "Cdf", "Curve")),
            *(f"badge.stats.{name}" for name in ("Diversity", "LabelsSaved", "Matrix", "Mean", "NormalizedErrors")),
            *(f"badge.stats.{name}" for name in ("Note", "Penalty", "Run", "Saving", "Setting", "Timing")),
            *("badge.stats.REQUIRED", "badge.stats.OPTIONAL"),
            *(f"badge.report.{name}" for name in ("build", "evaluate", "learning_curves", "Report", "Statistics")),
        ),
    ),
    "reference/cluster.md": Page(
        "Cluster",
        "The same picks on a Ray cluster (extra `ray`). [A Ray cluster](../cluster.md) explains how.",
        ("badge.cluster.predict", "badge.cluster.select", "badge.cluster.select_from"),
    ),
    "reference/journal.md": Page(
        "Journal",
        "Read, check and repair the file that a learner writes. [Its format](journal-format.md) has every event and field.",
        (
            *(f"badge.journal.{name}" for name in ("read", "repair", "Repair", "erase", "Journal", "InMemory")),
            *(f"badge.journal.{name}" for name in ("records_of", "Event", "FORMAT")),
        ),
    ),
    "reference/errors.md": Page(
        "Errors",
        "Every error that badge raises on purpose is a `BadgeError`. Its message is one line: what is wrong, the values, "
        "and what to do.",
        (
            *(f"badge.errors.{name}" for name in ("BadgeError", "InputError", "UnknownNameError", "NoCandidatesError")),
            *(
                f"badge.errors.{name}"
                for name in ("RankError", "ModelError", "DataError", "ClusterError", "JournalError")
            ),
            *(f"badge.errors.{name}" for name in ("ServerError", "WriteError", "MissingExtraError")),
        ),
    ),
}


def python_page(page: Page) -> str:
    return f"# {page.title}\n\n{page.words}\n\n" + "\n".join(map(_python_name, page.names))


def _python_name(path: str) -> str:
    """A name under its public path, also where a module beside it has the same name."""
    hidden = ", ".join(f'"!^{name}$"' for name in sorted(INNER))
    options = f'    options:\n      filters: ["!^_(?!_call__$)", {hidden}]\n'
    home = defined_at(path)
    if home == path:
        return f"::: {path}\n{options}"
    name = path.rpartition(".")[2]
    return f'<a id="{path}"></a>\n\n::: {home}\n{options}      heading: {path}\n      toc_label: {name}\n'


def defined_at(path: str) -> str:
    """`badge.samplers.kcenter.kcenter` for `badge.samplers.kcenter`: a function in a module of its name."""
    module, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(module), name)
    if path not in sys.modules or inspect.ismodule(found):
        return path
    return f"{found.__module__}.{found.__qualname__}"


# -- commands ----------------------------------------------------------------------------------------------------------


def commands_page() -> str:
    """Every command with its help, arguments and options."""
    root = typer.main.get_command(app)
    words = "The help of every command, as `badge COMMAND --help` prints it.\n"
    return "# Commands\n\n" + words + "\n" + "\n".join(_command("badge", root))


def _command(path: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", {})
    if path != "badge":
        yield f"## `{path}`\n\n{_help(command.help)}\n"
    if not inner:
        rows = [_parameter(one) for one in command.params if one.name != "help" and not getattr(one, "hidden", False)]
        if rows:
            yield "| argument or option | what it is | default |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"
    for name, one in inner.items():
        yield from _command(f"{path} {name}", one)


def _help(text: str | None) -> str:
    """Help for a page: examples are code, and typer's marks for paragraphs go."""
    plain = inspect.cleandoc(text or "").replace("\b", "")
    lines = re.sub(r"\[/?bold\]", "**", plain).splitlines()
    found: list[str] = []
    for line in lines:
        if match := re.match(r"(?:Examples?: *)?(badge .*)", line.strip()):
            inside = bool(found) and found[-1] == "```"
            found[-1:] = [match[1], "```"] if inside else [*found[-1:], "", "```sh", match[1], "```"]
        else:
            found.append("" if line.strip() in ("Example:", "Examples:") else line.strip())
    return "\n".join(found)


def _parameter(one: Any) -> str:
    name = ", ".join(f"`{text}`" for text in [*one.opts, *one.secondary_opts]) if one.param_type_name == "option" else (
        f"`{(one.metavar or one.name).upper()}`"
    )  # fmt: skip
    default = one.default if one.default not in (None, False, (), []) and not callable(one.default) else ""
    needed = "needed" if one.required else f"`{default}`" if default != "" else ""
    return f"| {name} | {_cell(getattr(one, 'help', None) or '')} | {needed} |"


def _cell(text: str) -> str:
    """One line for a table. Pipes and angle brackets need no escape inside code."""
    parts = " ".join(re.sub(r"\[/?[a-z ]+\]", "", text).split()).split("`")
    return "`".join(
        part if code % 2 else part.replace("|", "\\|").replace("<", "&lt;") for code, part in enumerate(parts)
    )


# -- the journal's format ----------------------------------------------------------------------------------------------

OPENING = """\
# The journal's format

The format of the file that a learner or an experiment writes, for programs in any language. A journal is a text file with
one JSON object per line. In this one, a learner with a pool of 20 examples asks for two labels and gets them:

```json
{lines}
```

Every line has these fields:

- `n`: the number of the line, from 1.
- `event`: the kind of the event.
- `at`: the time of writing, UTC.
- `sum`, at the end of the line: a checksum of everything before this field.

A field is left out if its value is the default, except in `start`, `round` and `end`. The file is UTF-8, and lines end in
`\\n`. The number of this format is **{format}**. It is in the field `format` of the first line.

The *id* of an example is its position in the pool, a number from 0, or your own id, a text or a whole number. A *class* is
a number or a text. With several labels per example, a label is a list of classes. Each kind of event has a section below.
"needed" marks a field without a default. This page is made from `src/badge/journal/events.py`.

"""


def _example() -> str:
    """The first lines of a journal, as a learner writes them."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    import badge

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.jsonl"
        pool = np.arange(40.0).reshape(20, 2)
        with badge.ActiveLearner(pool, LogisticRegression(), classes=["no", "yes"], seed=0, journal=path) as learner:
            learner.tell(learner.ask(2), ["no", "yes"], by="ann")
        return path.read_text(encoding="utf-8").rstrip()


def format_page() -> str:
    kinds = "\n".join(_kind(f"`{name}`", kind) for name, kind in KINDS.items())
    parts = [events.PoolId, events.Initial, events.Stop, events.Memory, events.RunSettings, events.Data]
    objects = "\n".join(_kind(f"`{part.__name__}`", part, "###") for part in parts)
    return OPENING.format(format=events.FORMAT, lines=_example()) + kinds + "\n## Objects in fields\n\n" + objects


def _kind(title: str, kind: type, level: str = "##") -> str:
    said = comments(kind)
    doc = (
        inspect.getdoc(kind)
        if "__doc__" in vars(kind) and not (kind.__doc__ or "").startswith(f"{kind.__name__}(")
        else ""
    )
    rows = [
        _field(field, said.get(field.name) or _known(kind, field.name)) for field in fields(kind) if field.name != "at"
    ]
    table = (
        "| field | what it is | type | default |\n| --- | --- | --- | --- |\n" + "\n".join(rows) + "\n" if rows else ""
    )
    return f"{level} {title}\n\n{doc or MEANING.get(kind.__name__, '')}\n\n{table}"


def _known(kind: type, field: str) -> str:
    if kind is events.RunSettings:  # `Cell` says what each setting is
        (said,) = re.findall(rf"^    {field}: (.*(?:\n {{8}}.*)*)\.$", inspect.getdoc(Cell) or "", re.MULTILINE)
        return " ".join(said.split())
    return FIELDS.get(f"{kind.__name__}.{field}") or FIELDS.get(field, "")


def _field(field: Field[Any], said: str) -> str:
    default = "needed" if field.default is MISSING else f"`{json.dumps(field.default)}`"
    words = re.sub(r"\bNone\b", "null", _cell(said))
    return f"| `{field.name}` | {words} | {_type(field.type)} | {default} |"


def _type(hint: Any) -> str:
    """A type as JSON has it; an object leads to its table."""
    if inspect.isclass(hint) and issubclass(hint, events.JsonObject):
        return f"[`{hint.__name__}`](#{hint.__name__.lower()})"
    if get_origin(hint) is UnionType:
        return " or ".join(dict.fromkeys(_type(part) for part in get_args(hint)))
    if get_origin(hint) is list:
        return "list of " + re.sub(r"(number|text)\b", r"\1s", _type(get_args(hint)[0]))
    if get_origin(hint) is dict:
        return "object"
    return {int: "number", float: "number", str: "text", bool: "true, false", NoneType: "null", Any: "any"}[hint]


def comments(kind: type) -> dict[str, str]:
    """The `#:` comments behind the fields of a class."""
    source = inspect.getsource(kind)
    lines, found = source.splitlines(), {}
    for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            line = lines[node.end_lineno - 1]  # type: ignore[operator]
            if match := re.search(r"#:? (.*)$", line):
                found[node.target.id] = match[1]
    return found


#: what the events mean whose types say nothing
MEANING = {
    "Header": "The first event, once: pool, classes, strategy, seed, labels that exist before the loop.",
    "Ask": "A batch was asked for.",
    "Tell": "Labels of ids that were asked for, or of others (`unasked`).",
    "Relabel": "A corrected label.",
    "Skip": "Ids that nobody can label.",
    "Unskip": "Skipped ids go back to the pool.",
    "Release": "Pending ids go back to the pool.",
    "Decide": "Labels that one person set, in place of the votes of others.",
    "Remark": "A comment on an example, or a flag.",
    "SetAside": "A test sample, never trained on.",
    "AddClass": "A new class.",
    "Use": "A change of the strategy.",
    "NewPool": "The pool has grown.",
    "Withdraw": "Examples left the pool.",
    "Return": "Withdrawn examples came back.",
    "Lost": "A repair writes this in place of a line that it could not save.",
    "Initial": "Labels that existed before the loop.",
    "Start": "The first event of an experiment, once.",
    "Round": "A round of an experiment: one model, its accuracy and the batch that it picked.",
    "Resume": "An experiment resumes.",
    "Failed": "An experiment ended with an error.",
    "End": "An experiment is finished.",
}

#: fields that have no comment behind them: what a name means everywhere, or in one object
FIELDS = {
    "format": "the number of the format",
    "pool": "the examples",
    "classes": "the number of classes, or their names",
    "strategy": "its name, or its class and parameters",
    "seed": "the seed of every random number",
    "cell": "the settings of the run",
    "initial": "labels that existed before the loop",
    "multilabel": "whether an example may have several labels",
    "round": "number of the batch or of the model, from 0",
    "ids": "the examples",
    "id": "the example",
    "labels": "their labels, in the same order",
    "label": "the new label",
    "by": "the person",
    "unasked": "whether labels of ids that were not asked for are allowed",
    "request": "id of the page's request; a request that arrives twice counts once",
    "reason": "the reason, in words",
    "stop": "how far the predictions still change",
    "memory": "the memory of the strategy",
    "select_seconds": "duration of the selection",
    "Remark.text": "the comment",
    "AddClass.name": "the name of the class",
    "examples": "the number of examples erased",
    "version": "the new version of the picks",
    "error": "the message of the error, in one line",
    "data": "the data set",
    "versions": "the versions of Python and of packages",
    "git": "the git revision of the current directory",
    "Round.labels": "the number of labels of the model",
    "End.labels": "the number of labels at the end",
    "test_accuracy": "accuracy on the test set",
    "macro_f1": "mean F1 score of the classes, on the test set",
    "train_accuracy": "accuracy on the training set, at the end of training",
    "epochs": "number of epochs of the training",
    "restarts": "how often training restarted from new weights",
    "train_seconds": "duration of the training",
    "predict_seconds": "duration of the predictions",
    "mean_norm": "mean length of the gradient embeddings of the batch",
    "log_det": "log-determinant of the Gram matrix of these embeddings: the diversity of the batch",
    "picked": "the batch that this model picked",
    "seconds": "duration of the whole round",
    "length": "number of examples",
    "kappa": "Cohen's κ of the two models' predictions",
    "all": "the whole memory",
    "set": "fields with new values",
    "add": "new entries of tables",
    "Data.name": "the name of the data set",
    "rows": "number of rows that were available",
    "total": "number of rows of the complete set",
    "complete": "whether all rows were available",
    "Data.text": "whether its examples are texts",
    "Data.digest": "digest of the rows",
}
