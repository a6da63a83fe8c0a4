"""The public names, and what loading them costs."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import badge


def test_all_is_sorted_and_resolves() -> None:
    assert badge.__all__ == sorted(badge.__all__)
    assert list(badge._HOME) == sorted(badge._HOME)
    assert set(badge._HOME) == set(badge.__all__)
    for name in badge.__all__:
        assert getattr(badge, name) is not None
    assert set(badge.__all__) <= set(dir(badge))


@pytest.mark.parametrize(
    "module", ["samplers", "strategies", "errors", "features", "outputs", "strategies.select", "strategies.explain"]
)
def test_modules_list_what_they_offer(module: str) -> None:
    found = __import__(f"badge.{module}", fromlist=["__all__"])
    assert found.__all__ == sorted(found.__all__)
    for name in found.__all__:
        assert hasattr(found, name)


def test_unknown_attribute() -> None:
    with pytest.raises(AttributeError, match="'badge' has no attribute 'nope'"):
        _ = badge.nope


def test_registries_agree() -> None:
    """The names that statistics use without torch are those of the registry."""
    from badge.core.catalog import PAPER_STRATEGIES, STRATEGIES

    assert tuple(badge.strategies.NAMES) == STRATEGIES
    assert tuple(badge.strategies.PAPER) == PAPER_STRATEGIES


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
    start = time.perf_counter()
    out = run(code)
    assert out.splitlines()[-1] == "[]"
    assert "select" in out and "report" in out
    assert time.perf_counter() - start < 10  # torch alone takes longer on a busy machine


def test_samplers_are_functions_and_modules_do_not_shadow_public_functions() -> None:
    assert all(callable(getattr(badge.samplers, name)) for name in badge.samplers.__all__)
    assert all(callable(getattr(badge, name)) for name in ("select", "select_from", "predict", "explain"))
