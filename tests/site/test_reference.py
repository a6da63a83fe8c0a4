"""The reference is whole: every public name, parameter, command, option, event, field and address."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import GenericAlias
from typing import Any

import pytest

import badge

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "tools"))
import reference  # noqa: E402

MODULES = (
    "badge", "badge.cluster", "badge.data", "badge.errors", "badge.experiment", "badge.journal", "badge.report",
    "badge.samplers", "badge.stats", "badge.strategies", "badge.testing", "badge.training",
    "badge.training.networks",
)  # fmt: skip
SHOWN = [name for page in reference.PYTHON.values() for name in page.names]


def named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def public_names() -> set[str]:
    found = set()
    for module in MODULES:
        room = importlib.import_module(module)
        names = [name for name in room.__all__ if not inspect.ismodule(getattr(room, name))]
        found |= {f"{module}.{name}" for name in names}
    return found - {"badge.training.Trainer"}  # badge.Trainer


def test_every_public_name_has_its_place() -> None:
    rooms = {f"badge.{name}" for name in badge.__all__ if inspect.ismodule(getattr(badge, name))}
    assert rooms - {"badge.labelling", "badge.networks"} <= set(MODULES)
    assert sorted(SHOWN) == sorted(public_names())


def test_a_function_is_shown_and_not_the_module_of_its_name() -> None:
    """`badge.samplers.kmeanspp` is both."""
    homes = {path: reference.defined_at(path) for path in SHOWN}
    assert homes["badge.samplers.kmeanspp"] == "badge.samplers.kmeanspp.kmeanspp"
    assert homes["badge.select"] == "badge.select"
    for path, home in homes.items():
        assert home not in sys.modules, path
        assert f"::: {home}\n" in "".join(map(reference.python_page, reference.PYTHON.values()))


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions, constructors that people call, and public methods. Tuples and tables of results are made by badge."""
    for path in SHOWN:
        thing = named(path)
        if inspect.isfunction(thing):
            yield path, thing
        elif inspect.isclass(thing) and not isinstance(thing, GenericAlias) and not issubclass(thing, tuple):
            called = "__init__" in vars(thing) and not getattr(thing, "_is_protocol", False)
            if called and path not in ("badge.Explanation", "badge.stats.Results"):
                yield path, thing
            for name, value in vars(thing).items():
                method = value.__func__ if isinstance(value, classmethod | staticmethod) else value
                if inspect.isfunction(method) and not name.startswith("_") and name not in reference.INNER:
                    yield f"{path}.{name}", method


def undocumented(function: Callable[..., Any]) -> list[str]:
    """Parameters without a line of their own under `Args:`."""
    said = re.search(r"^Args:\n((?: {4}.*\n|\n)*)", (inspect.getdoc(function) or "") + "\n", re.MULTILINE)
    entries = set(re.findall(r"^ {4}(\w+): \S", said[1], re.MULTILINE)) if said else set()
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls", *entries)]


#: results and inner doors of the study, whose constructors nobody calls
MADE_BY_BADGE = {"badge.experiment.Outcome", "badge.journal.Repair"}
#: told where the class is described
SHORT = {"badge.strategies.ALBL.picked", "badge.strategies.ALBL.observe", "badge.strategies.ALBL.restore",
         "badge.journal.InMemory.append"}  # fmt: skip
CALLED = [(path, one) for path, one in callables() if path not in MADE_BY_BADGE | SHORT]


@pytest.mark.parametrize(("path", "function"), CALLED, ids=[path for path, _ in CALLED])
def test_every_parameter_is_documented_in_place(path: str, function: Callable[..., Any]) -> None:
    assert undocumented(function) == []


def test_a_missing_parameter_is_seen() -> None:
    def documented(a: int, b: int) -> None:
        """Something.

        Args:
            a: the first.
        """

    assert undocumented(documented) == ["b"]
    assert len(CALLED) > 90
    doc = inspect.getdoc(badge.select) or ""
    assert len(inspect.signature(badge.select).parameters) >= 18 and "as in `badge.predict`" not in doc


def test_what_comes_back_and_what_is_raised_is_said() -> None:
    """`Returns:` where a public function of a room gives something, `Raises:` where it raises, or what it calls does."""
    silent = [path for path, one in CALLED if inspect.isfunction(one) and path in SHOWN and not told(one, "Returns")]
    assert silent == []
    raising = [(path, one) for path, one in CALLED if raises(one)]
    assert len(raising) > 60
    assert [path for path, one in raising if not told(one, "Raises")] == []


RAISE = re.compile(r"^ +raise \w|\bneeds\(", re.MULTILINE)


def raises(one: Callable[..., Any]) -> bool:
    """By itself, or by a function of badge that it calls by its name."""
    waiting, seen = [one], []
    while waiting:
        seen.append(one := inspect.unwrap(waiting.pop()))
        source = inspect.getsource(one)
        if RAISE.search(source):
            return True
        called = [getattr(one, "__globals__", {}).get(name) for name in re.findall(r"\b(\w+)\(", source)]
        ours = [inspect.unwrap(each) for each in called if inspect.isfunction(each)]
        waiting += [each for each in ours if each.__module__.startswith("badge.") and each not in seen]
    return False


def test_what_a_helper_raises_is_seen() -> None:
    assert raises(badge.stats.round_times) and not raises(badge.stats.mean_curve)


def told(one: Callable[..., Any], what: str) -> bool:
    nothing = what == "Returns" and inspect.signature(one).return_annotation in (None, "None", inspect.Signature.empty)
    return nothing or f"\n{what}:\n" in (inspect.getdoc(one) or "")


def test_functions_have_examples() -> None:
    """tests/house/test_docstrings.py runs them, and tests/cluster those that need a cluster."""
    lacking = [path for path in SHOWN if inspect.isfunction(named(path)) and ">>>" not in (named(path).__doc__ or "")]
    assert lacking == []
    classes = [path for path in SHOWN if inspect.isclass(named(path)) and not isinstance(named(path), GenericAlias)]
    without = {path for path in classes if ">>>" not in (named(path).__doc__ or "")}
    assert {path for path in without if not given(named(path))} == WITHOUT_EXAMPLE


#: an executor is shown by `Serial`, and the others in what makes them: `run_cells` and `repair`
WITHOUT_EXAMPLE = {"badge.experiment.Executor", "badge.experiment.Display"} | MADE_BY_BADGE


def given(kind: type) -> bool:
    """What badge makes: a table of results, which its function shows, or an error below the root."""
    return issubclass(kind, tuple | badge.errors.BadgeError) and kind is not badge.errors.BadgeError


def test_every_command_and_option_is_listed() -> None:
    text = reference.commands_page()
    for name in ("select", "label", "label-studio", "run", "grid", "report", "export", "demo", "strategies"):
        assert f"## `badge {name}`" in text
    for name in ("show", "check", "repair", "erase", "export", "import"):
        assert f"## `badge journal {name}`" in text
    assert "`--probabilities`" in text and "`--embeddings`" in text and "[bold]" not in text


def test_every_event_and_field_of_the_journal_is_listed() -> None:
    from dataclasses import fields

    from badge.journal.schema import KINDS

    text = reference.format_page()
    for name, kind in KINDS.items():
        section = text[text.index(f"\n## `{name}`\n") :][:6000]
        assert section.splitlines()[3], f"{name} has no words"
        for field in fields(kind):
            assert field.name == "at" or re.search(rf"^\| `{field.name}` \| \S[^|]+\|", section, re.MULTILINE), (
                field.name
            )
    assert "<class" not in text and "typing." not in text
    assert '{"n":1, "event":"learner"' in text


def test_every_address_of_the_page_is_listed() -> None:
    source = (ROOT / "src" / "badge" / "labelling" / "server.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
    reads = {f"GET {path}" for path in re.findall(r'reads\("([^"]+)"', source)}
    calls = " ".join(re.findall(r"_writes\(call[^)]*\) for call in \(([^)]+)\)", source))
    writes = {f"POST /api/{name}" for name in re.findall(r"\w+\.(\w+)", calls)}
    pages = {f"GET {path}" for path in re.findall(r'^    "(/\w*)": \(', source, re.MULTILINE)}
    assert len(reads | writes | pages) > 20
    assert set(re.findall(r"`((?:GET|POST) [^`]+)`", page)) == reads | writes | pages
