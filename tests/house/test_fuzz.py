"""All public doors with generated junk: a right answer, or an error of badge's own in one line under 600 characters.

`BADGE_FUZZ=10 pytest tests/house/test_fuzz.py` makes forty times as many calls.
"""

from __future__ import annotations

import copy
import functools
import inspect
import io
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from sklearn.naive_bayes import GaussianNB

import badge
from badge import report
from badge.cli import main
from badge.data import Dataset
from badge.errors import BadgeError
from badge.experiment import Cell, cells_of, finished, read_grid
from badge.journal.lines import encode
from badge.stats import Results
from badge.training import networks
from journal_lines import write_journal
from junk import Odd, damaged, junk

TIMES = float(os.environ.get("BADGE_FUZZ", "0.25"))
N = 12
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(3), size=N)
H = RNG.normal(size=(N, 4))
X = RNG.normal(size=(N, 5)).astype(np.float32)
Y = np.arange(N) % 3
OUT = badge.Outputs(P, H)

#: Arguments that are code of one's own: what it raises is its own, and its traceback is wanted.
OWN_CODE = ("strategy", "first", "predict", "processor", "tokenizer", "encoder", "build")

Rng = np.random.Generator
Arguments = dict[str, Any]


def net() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))


def distinct_positions(arguments: Arguments, answer: Any) -> bool:
    """k distinct positions below N, none of those excluded."""
    ids = np.asarray(answer)
    gone = np.asarray([] if arguments.get("exclude") is None else as_list(arguments["exclude"]))
    gone = gone if gone.size else np.empty(0, dtype=int)
    done = set(np.flatnonzero(gone).tolist() if gone.dtype == bool else gone.tolist())
    distinct = len(set(ids.tolist()) - done) == len(ids)
    return ids.shape == (int(arguments["k"]),) and distinct and 0 <= ids.min() <= ids.max() < N


def as_list(positions: Any) -> list[Any]:
    """One position may stand for itself."""
    return list(positions) if np.ndim(positions) or isinstance(positions, set) else [positions]


def valid_outputs(arguments: Arguments, answer: Any) -> bool:
    p = answer.probabilities if answer.has_probabilities else None
    return p is None or bool(torch.isfinite(p.float()).all() and (p >= -1e-3).all() and (p <= 1 + 1e-3).all())


class Door(NamedTuple):
    """A public call, arguments that it takes, what a right answer is, and how often it is called."""

    call: Callable[..., Any]
    arguments: Arguments
    right: Callable[[Arguments, Any], bool]
    calls: int


def door(
    call: Callable[..., Any], calls: int = 60, right: Any = lambda arguments, answer: True, /, **arguments: Any
) -> Door:
    return Door(call, arguments, right, calls)


def learner_session(ask: Any, tell_ids: Any, tell_labels: Any, **options: Any) -> None:
    with badge.ActiveLearner(X, GaussianNB(), **options) as learner:
        ids = learner.ask(ask)
        learner.tell(ids if tell_ids is ... else tell_ids, Y[ids] if tell_labels is ... else tell_labels)
        learner.ask(2)


def opened_learner(**options: Any) -> None:
    """What a learner is made of, one batch, and what is said of it."""
    with badge.ActiveLearner(**{"trainer": GaussianNB(), **options}) as learner:
        ids = learner.ask(4)
        learner.tell(ids, [learner.classes[i % len(learner.classes)] for i in range(4)])
        learner.ask(2)


def told_learner(method: str, /, **arguments: Any) -> None:
    """One call of a learner that has labels, pending ids and skipped ones."""
    with badge.ActiveLearner(X, GaussianNB(), classes=3, initial={0: 0, 1: 1, 2: 2}) as learner:
        learner.ask(3)
        learner.skip([int(learner.candidates[0])])
        getattr(learner, method)(**arguments)
        learner.ask(1)


def train(examples: Any, labels: Any, **options: Any) -> None:
    badge.Trainer(net, **{"lr": 0.01, "max_epochs": 2, **options}).fit(examples, labels, np.random.default_rng(0))


def results(**columns: Any) -> Results:
    return Results.of(columns)


RESULTS = badge.stats.example()
SETTING = RESULTS.settings[0]
DRAWN = {"k": 3, "rng": np.random.default_rng(0)}
RUN = {"data": "digits", "model": "mlp", "batch_size": 5, "labels": 200}

#: The methods of a learner, each with arguments that it takes.
METHODS: dict[str, Arguments] = {
    "ask": {"k": 1, "people": 1, "progress": False, "of": None},
    "tell": {"ids": [5], "labels": [1], "by": None, "unasked": True},
    "relabel": {"id": 0, "label": 1, "by": None},
    "skip": {"ids": [5], "reason": None},
    **{key: {"ids": []} for key in ["unskip", "release"]},
    "add_class": {"name": None},
    "use": {"strategy": "rand"},
    "import_csv": {"path": "no.csv", "id": "id", "label": "label", "by": None},
    "score": {"examples": X[:2], "labels": [0, 1]},
    **{key: {"ids": [3, 4]} for key in ["explain", "positions"]},
    "item": {"id": 3},
}

DOORS: dict[str, Door] = {
    "Outputs": door(badge.Outputs, 150, valid_outputs, probabilities=P, embeddings=H),
    "from_logits": door(badge.Outputs.from_logits, 100, valid_outputs, logits=np.log(P), embeddings=H),
    "select_from": door(
        badge.select_from, 150, distinct_positions,
        outputs=OUT, k=3, strategy="badge", seed=0, labeled=OUT, exclude=[0, 1], bias=False,
    ),
    "explain": door(badge.explain, 100, outputs=OUT, ids=[0, 1]),
    "gradient_embedding": door(badge.gradient_embedding, outputs=OUT, bias=False),
    "Dense": door(badge.Dense, 100, matrix=H),
    "Factored": door(badge.Factored, 100, a=P, h=H),
    **{
        name: door(getattr(badge.samplers, name), 60, distinct_positions, features=badge.Dense(H), **DRAWN)
        for name in ("kmeanspp", "kcenter", "kdpp")
    },
    "coverage": door(
        badge.samplers.coverage, 60, distinct_positions,
        features=badge.Dense(H), kernel=badge.samplers.Gauss(1.0), weights=np.ones(len(H)), given=badge.Dense(H[:2]), **DRAWN,
    ),
    "topk": door(badge.samplers.topk, 60, distinct_positions, scores=H[:, 0], **DRAWN),
    "predict": door(
        badge.predict, 60, valid_outputs, model=net(), pool=X, batch_size=4, device=None, head=None, autocast=None
    ),
    "predict, further": door(
        badge.predict, 60, valid_outputs, model=net(), pool=X, tokenizer=None, processor=None, max_length=None,
        multilabel=None, embeddings=None, progress=False, out=None,
    ),
    "select, cold": door(
        badge.select, 60, distinct_positions,
        model=net()[:2], pool=X, k=3, strategy="typiclust", labeled=None, exclude=None,
    ),
    "select": door(
        badge.select, 100, distinct_positions, model=net(), pool=X, k=3, strategy="conf", seed=0, exclude=None
    ),
    "Trainer": door(badge.Trainer, build=net, lr=0.1, batch_size=4, target=0.9, max_epochs=3, device="cpu"),
    "Trainer.fit": door(train, 80, examples=X, labels=Y),
    "ActiveLearner": door(
        learner_session, 50,
        classes=3, strategy="conf", seed=0, ask=4, tell_ids=..., tell_labels=..., initial={0: 0, 1: 1, 2: 2},
    ),
    "a learner's beginning": door(
        opened_learner, 80, pool=X, classes=3, ids=[f"id{i}" for i in range(N)], first="kmeanspp", embeddings=H,
        journal=None, multilabel=False, predict=badge.predict,
    ),
    **{f"learner.{name}": door(functools.partial(told_learner, name), 30, **given) for name, given in METHODS.items()},
    "Frozen": door(
        lambda **given: badge.training.Frozen(**given).prepare(X), 30,
        encoder=net(), tokenizer=None, l2=1.0, keep="kept", name=None, batch_size=64,
    ),
    "Journal": door(lambda **given: badge.journal.Journal(**given).close(), path="j.jsonl", sync=True),
    "stats.write": door(badge.stats.write, 30, results=RESULTS, path="x.csv"),
    "evaluate": door(report.evaluate, 30, results=RESULTS, strategies=["badge", "rand"]),
    **{
        f"stats.{call.__name__}": door(call, 20, results=RESULTS, strategies=["badge", "rand"])
        for call in (badge.stats.penalty_matrix, badge.stats.normalized_errors, badge.stats.saved_labels)
    },
    **{
        f"stats.{call.__name__}": door(call, 20, results=RESULTS, setting=SETTING, strategy="rand")
        for call in (badge.stats.learning_curve, badge.stats.batch_diversity, badge.stats.round_times)
    },
    "stats.label_budgets": door(badge.stats.label_budgets, 20, results=RESULTS, setting=SETTING),
    "read_grid": door(read_grid, 20, path="no.toml"),
    "Dataset": door(Dataset, 100, X_train=X, y_train=Y, X_test=X, y_test=Y, classes=3, name="own", lr=0.1),
    "data.load": door(badge.data.load, 20, name="digits", seed=0, standardise=True),
    "strategies.get": door(badge.strategies.get, strategy="badge"),
    "networks.resolve": door(networks.resolve, name="mlp", width=4),
    "Cell": door(Cell, strategy="rand", seed=0, lr=0.1, **RUN),
    "cells_of": door(lambda **settings: cells_of(settings), 100, strategy=["rand"], seeds=1, block=[{}], **RUN),
    "Results.of": door(
        results, 100, data=["a", "a"], model=["m", "m"], strategy=["rand", "rand"], batch_size=[5, 5], seed=[0, 0],
        labels=[5, 10], test_accuracy=[0.5, 0.6], log_det=[1.0, None],
    ),
    "stats.load": door(badge.stats.load, source="no/such"),
    "Outputs.load": door(badge.Outputs.load, directory="no/such"),
    "journal.read": door(badge.journal.read, path="no/such"),
}  # fmt: skip


def complaint(error: BaseException) -> str | None:
    """Why an error is not one that is allowed."""
    if not isinstance(error, BadgeError):
        return f"{type(error).__name__}: {error}"
    text = str(error)
    return None if text and "\n" not in text and len(text) < 600 else f"{len(text)} characters: {text[:200]!r}"


def quietly(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments, **named)


def shown(arguments: Arguments) -> str:
    return ", ".join(f"{name}={str(value)[:60]!r}:{type(value).__name__}" for name, value in arguments.items())


@pytest.mark.parametrize("name", DOORS)
def test_arguments(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    called, wrong = DOORS[name], []
    for trial in range(int(called.calls * TIMES)):
        rng = np.random.default_rng([sorted(DOORS).index(name), trial])
        arguments = copy.deepcopy(called.arguments)
        changed = rng.choice(list(arguments), size=min(int(rng.integers(1, 3)), len(arguments)), replace=False).tolist()
        arguments |= {key: junk(rng) for key in changed}
        given = {key: arguments[key] for key in changed}
        try:
            answer = quietly(called.call, **arguments)
        except Exception as error:
            own = any(callable(given.get(name)) or str(given.get(name)) == "math:sqrt" for name in OWN_CODE)
            own = own or str(error) == Odd.SAYS
            ours = not own or isinstance(error, BadgeError)
            if ours and (why := complaint(error)):
                wrong.append(f"trial {trial}: {shown(given)}\n    {why[:300]}")
        else:
            try:
                right = called.right(arguments, answer)
            except Exception as error:
                right, answer = False, f"{answer}: {error}"
            if not right:
                wrong.append(f"trial {trial}: {shown(given)}\n    answered {str(answer)[:200]}")
    assert not wrong, f"{len(wrong)} of {int(called.calls * TIMES)} calls:\n" + "\n".join(wrong[:12])


# -- files -------------------------------------------------------------------------------------------------------------


def csv_of(array: np.ndarray) -> bytes:
    text = io.StringIO()
    np.savetxt(text, array, delimiter=",")
    return text.getvalue().encode()


@functools.cache
def files() -> dict[str, bytes]:
    """What `badge select` and the readers are given, whole."""
    import pyarrow as pa
    from pyarrow import parquet

    table, archive, array = io.BytesIO(), io.BytesIO(), io.BytesIO()
    parquet.write_table(pa.table({f"e{i}": H[:, i] for i in range(4)}), table)
    np.savez_compressed(archive, embeddings=H)
    np.save(array, H)
    return {
        "z.csv": csv_of(H), "h.csv": b"a,b,c,d\n" + csv_of(H), "z.tsv": csv_of(H).replace(b",", b"\t"),
        "z.parquet": table.getvalue(), "z.npz": archive.getvalue(), "z.npy": array.getvalue(),
    }  # fmt: skip


def command(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["badge", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        return int(end.code or 0), out.getvalue(), err.getvalue()
    finally:
        sys.argv = before
    return 0, out.getvalue(), err.getvalue()


def picks_or_one_line(trial: int, *arguments: str) -> None:
    """`badge select` prints three picks, or an error of one line."""
    code, out, err = quietly(command, "select", "--probabilities", "p.npy", "-k", "3", *arguments)
    assert (code == 0 and len(set(out.split("\n"))) == 4) or (
        code in (2, 3) and not out and err.startswith("error: ") and err.count("\n") == 1 and len(err) < 600
    ), f"trial {trial}: {code} {out} {err[-500:]}"


@pytest.mark.parametrize("name", ["z.csv", "h.csv", "z.tsv", "z.parquet", "z.npz", "z.npy"])
def test_files_of_select(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("p.npy", P)
    for trial in range(int(12 * TIMES)):
        Path(name).write_bytes(damaged(files()[name], np.random.default_rng([1, trial])))
        picks_or_one_line(trial, "--embeddings", name)


@pytest.mark.parametrize("option", ["--ids", "--exclude"])
@pytest.mark.parametrize("ending", [".txt", ".csv"])
def test_files_of_identifiers(option: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("p.npy", P)
    whole = b"".join(b"%d\n" % i for i in range(N if option == "--ids" else 3))
    for trial in range(int(12 * TIMES)):
        Path(f"ids{ending}").write_bytes(damaged(whole, np.random.default_rng([2, trial])))
        picks_or_one_line(trial, "--strategy", "conf", option, f"ids{ending}")


def reads(call: Callable[[], Any], trial: int) -> None:
    try:
        quietly(call)
    except Exception as error:
        assert complaint(error) is None, f"trial {trial}: {complaint(error)}"


def test_files_of_results(tmp_path: Path) -> None:
    badge.stats.write(badge.stats.example(), tmp_path / "a.csv")
    badge.stats.write(badge.stats.example(), tmp_path / "a.parquet")
    cell = {"data": "a", "model": "m", "strategy": "rand", "batch_size": 5, "seed": 0, "labels": 9}
    rounds = [{"event": "round", "round": i, "labels": 5 + i, "test_accuracy": 0.5} for i in range(3)]
    write_journal(tmp_path / "a.jsonl", {"event": "start", "cell": cell}, *rounds)
    for file in ("a.csv", "a.parquet", "a.jsonl"):
        whole = (tmp_path / file).read_bytes()
        for trial in range(int(40 * TIMES)):
            (tmp_path / file).write_bytes(damaged(whole, np.random.default_rng([3, trial])))
            reads(lambda file=file: badge.stats.load(tmp_path / file), trial)


def test_files_of_outputs_grids_and_cells(tmp_path: Path) -> None:
    badge.predict(net(), X, out=tmp_path / "out")
    whole = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    grid = b'data = "digits"\nmodel = "mlp"\nbatch_size = [5]\nstrategy = "rand"\nlabels = 200\n[[block]]\nseeds = 2\n'
    cell = Cell("digits", "mlp", "rand", batch_size=5)
    for trial in range(int(40 * TIMES)):
        rng = np.random.default_rng([4, trial])
        for name, content in whole.items():
            (tmp_path / "out" / name).write_bytes(content)
        name = sorted(whole)[rng.integers(len(whole))]
        (tmp_path / "out" / name).write_bytes(damaged(whole[name], rng))
        reads(lambda: badge.select_from(badge.Outputs.load(tmp_path / "out"), 3), trial)
        (tmp_path / "grid.toml").write_bytes(damaged(grid, rng))
        reads(lambda: read_grid(tmp_path / "grid.toml"), trial)
        start = encode(1, {"event": "start", "cell": {"data": "digits"}})
        (tmp_path / f"{cell.name}.jsonl").write_bytes(damaged(start, rng))
        reads(lambda: finished(cell, tmp_path), trial)


def test_every_public_call_has_a_door() -> None:
    public = {name for name in badge.__all__ if callable(getattr(badge, name))}
    public -= {"Explanation"}  # what explain returns
    public |= set(badge.samplers.__all__) - {"Ball", "Gauss"} | {f"stats.{name}" for name in ("load", "write")}
    methods = inspect.getmembers(badge.ActiveLearner, inspect.isfunction)
    public |= {
        f"learner.{name}"
        for name, method in methods
        if not name.startswith("_") and len(inspect.signature(method).parameters) > 1
    }
    for name, call in inspect.getmembers(badge.stats, inspect.isfunction):
        if name in badge.stats.__all__ and {"setting", "strategies"} & set(inspect.signature(call).parameters):
            public.add(f"stats.{name}")
    assert public - set(DOORS) <= {"stats.coverage_notes"}, public - set(DOORS)


def test_this_test_can_fail() -> None:
    assert complaint(ValueError("x")) == "ValueError: x"
    assert len(str(BadgeError("two\nlines " + "x" * 600))) < 600 and "\n" not in str(BadgeError("two\nlines"))

    class Long(BadgeError):
        def __str__(self) -> str:
            return str(self.args[0])

    assert complaint(Long("two\nlines")) is not None and complaint(Long("x" * 600)) is not None
    assert complaint(BadgeError("fine")) is None
    assert not distinct_positions({"k": 2}, [1, 1]) and not distinct_positions({"k": 2, "exclude": [1]}, [1, 2])
