"""What every statistic checks at its door: results, a setting of them, strategies by name."""

from typing import Any

from badge.errors import InputError
from badge.stats.results import Results, Setting


def check_results(results: Any) -> None:
    if not isinstance(results, Results):
        raise InputError(f"results are a badge.stats.Results, as badge.stats.load gives, not {type(results).__name__}")


def check_setting(results: Any, setting: Any) -> None:
    check_results(results)
    if not isinstance(setting, tuple) or len(setting) != len(Setting._fields):
        raise InputError(f"a setting is a badge.stats.Setting(data, model, batch_size), not {setting!r:.60}")


def compared(results: Any, strategies: Any) -> tuple[str, ...]:
    """The strategies to compare: by default all in the results.

    >>> from badge.stats import example
    >>> compared(example(), None)
    ('badge', 'rand')
    """
    check_results(results)
    if strategies is None:
        return tuple(results.strategies)
    if not isinstance(strategies, list | tuple) or not all(isinstance(name, str) for name in strategies):
        raise InputError(f"strategies are a list of names, not {strategies!r:.60}")
    return tuple(strategies)
