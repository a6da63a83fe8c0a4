"""The public names, and what loading them costs."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import badge
from badge.core import catalog

ROOT = Path(__file__).parents[2]


def test_all_is_sorted_and_resolves() -> None:
    assert badge.__all__ == sorted(badge.__all__)
    assert list(badge._HOME) == sorted(badge._HOME)
    assert set(badge._HOME) == set(badge.__all__)
    for name in badge.__all__:
        assert getattr(badge, name) is not None
    assert sorted(dir(badge)) == sorted([*badge.__all__, "__version__"])


@pytest.mark.parametrize("module", ["samplers", "strategies", "testing", "errors", "features", "outputs"])
def test_modules_list_what_they_offer(module: str) -> None:
    found = __import__(f"badge.{module}", fromlist=["__all__"])
    assert found.__all__ == sorted(found.__all__)
    for name in found.__all__:
        assert hasattr(found, name)


def test_unknown_attribute() -> None:
    with pytest.raises(AttributeError, match="'badge' has no attribute 'nope'"):
        _ = badge.nope


def test_every_name_of_the_catalogue_is_a_strategy_that_reads_what_it_says() -> None:
    """Each name picks from what the catalogue says is enough for it, and the README has a row for it."""
    rng = np.random.default_rng(0)
    whole = badge.Outputs.from_logits(rng.normal(size=(30, 3)), rng.normal(size=(30, 4)))
    for name in catalog.STRATEGIES:
        if "embeddings" not in catalog.spec(name).reads:
            pool = badge.Outputs(probabilities=whole.probabilities)
        else:
            pool = badge.Outputs(embeddings=whole.embeddings) if catalog.spec(name).cold else whole
        pool.expected_entropy = torch.zeros(30, 1) if catalog.spec(name).passes else None
        labeled = whole[:2] if catalog.spec(name).labeled == "required" else None
        assert len(set(badge.select_from(pool, 5, name, seed=0, labeled=labeled).tolist())) == 5
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme[readme.index("## Strategies") : readme.index("## Architecture")]
    assert [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")] == list(catalog.STRATEGIES)


def test_rooms_are_attributes_once_badge_is_imported() -> None:
    names = ("cluster", "labelling", "report", "samplers", "journal")
    assert run(f"import badge; print([getattr(badge, n).__name__ for n in {names}])") == str(
        [f"badge.{n}" for n in names]
    )


def test_the_version_stands_in_one_file() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in text and badge.__version__ not in text
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None and newest[1] == badge.__version__


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_does_not_load_torch() -> None:
    code = "import badge, sys; print('torch' in sys.modules); badge.stats, badge.errors; print('torch' in sys.modules)"
    assert run(code) == "False\nFalse"


def test_help_is_instant() -> None:
    """Neither torch nor anything else that takes long to import is loaded for help."""
    code = """
import sys
sys.argv = ["badge", "--help"]
import badge.cli
try:
    badge.cli.main()
except SystemExit as end:
    assert not end.code
heavy = {"torch", "matplotlib", "sklearn", "scipy", "transformers", "pandas"} & set(sys.modules)
print(sorted(heavy))
"""
    out = run(code)
    assert out.splitlines()[-1] == "[]"
    assert "select" in out and "report" in out


def test_samplers_are_functions_and_modules_do_not_shadow_public_functions() -> None:
    assert all(callable(getattr(badge.samplers, name)) for name in badge.samplers.__all__)
    assert all(callable(getattr(badge, name)) for name in ("select", "select_from", "predict", "explain"))


def test_an_error_has_a_text_for_people_and_one_for_programs() -> None:
    """Both are one bounded line, also after a trip to another process."""
    error = pickle.loads(pickle.dumps(badge.errors.JournalError("a\nb" * 500, in_python="pass ids=")))
    assert isinstance(error, badge.errors.JournalError)
    assert "\n" not in error.plain and len(error.plain) <= 580 and str(error) == f"{error.plain}; pass ids="
    assert str(badge.errors.UnknownNameError("strategy", "x", ["y"])) == "unknown strategy 'x'; known: y"
    assert str(badge.errors.WriteError("full")) == badge.errors.WriteError("full").plain == "full"
