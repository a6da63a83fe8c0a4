"""Results of experiments as one columnar table: a row is one trained model, a run is one (setting, strategy, seed).

A *setting* is the paper's (D, B, A): data, batch size, model ("architecture").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge.core.catalog import STRATEGIES
from badge.core.importing import needs
from badge.errors import InputError, UnknownNameError
from badge.stats.columns import OPTIONAL, REQUIRED, RUN, Note, changes, cleaned


class Setting(NamedTuple):
    """A setting of the paper's protocol. Settings sort by data, model and batch size.

    >>> str(Setting("letter", "mlp", 1000))
    'letter · mlp · B = 1,000'
    """

    data: str
    model: str
    batch_size: int

    def __str__(self) -> str:
        return f"{self.data} · {self.model} · B = {self.batch_size:,}"


class Run(NamedTuple):
    """The rows of one run in a table of results, ordered by number of labels."""

    setting: Setting
    strategy: str
    seed: int
    rows: slice


@dataclass(frozen=True, eq=False)
class Results:
    """A table of results, sorted by run and number of labels. `badge.stats.load` and `Results.of` make it.

    >>> from badge.stats import example
    >>> example(), example().settings[0].data, example().labels[:3].tolist()
    (Results(6 runs of 2 strategies in 1 setting, 30 rows), 'letter', [100, 200, 300])
    """

    data: NDArray[np.str_]
    model: NDArray[np.str_]
    strategy: NDArray[np.str_]
    batch_size: NDArray[np.int64]
    seed: NDArray[np.int64]
    labels: NDArray[np.int64]
    test_accuracy: NDArray[np.float64]
    optional: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)  #: what a report calls data that are called otherwise here

    @classmethod
    def of(
        cls, columns: Mapping[str, Any], notes: Sequence[Note] = (), names: Mapping[str, str] | None = None
    ) -> Results:
        """Make a table of results from columns.

        Args:
            columns: {name: values}: all of `badge.stats.REQUIRED`, any of `badge.stats.OPTIONAL`. Other columns are
                ignored.
            notes: notes for readers of statistics on this table.
            names: {data: name in a report}, for data with another name in the report.

        Returns:
            The table, checked and sorted.

        Raises:
            InputError: a required column is missing, or a value is impossible.
        """
        typed, extra_notes = cleaned(columns)
        required, optional = ({name: typed[name] for name in known if name in typed} for known in (REQUIRED, OPTIONAL))
        return cls(**required, optional=optional, notes=(*notes, *extra_notes), names=names or {})

    def named(self) -> Results:
        """The table with the name of each data set (`Dataset.name`) in place of its path, as in a report.

        Returns:
            The table.
        """
        held = self.data.tolist()
        if not (names := {data: name for data, name in self.names.items() if name not in set(held)}):
            return self
        return Results.of(self.columns | {"data": [names.get(data, data) for data in held]}, self.notes)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        counts = {"run": self.runs, "strategy": self.strategies, "setting": self.settings, "row": self.labels}
        said = [f"{len(n):,} {noun}{'s' * (len(n) != 1)}".replace("ys", "ies") for noun, n in counts.items()]
        return f"Results({said[0]} of {said[1]} in {said[2]}, {said[3]})"

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Every run of the table, sorted."""
        columns = [getattr(self, name) for name in RUN]
        starts = np.flatnonzero(changes(columns))
        ends = [*starts[1:].tolist(), len(self)]
        keys = zip(*(column[starts].tolist() for column in columns), starts.tolist(), ends, strict=True)
        return tuple(
            Run(Setting(data, model, size), strategy, seed, slice(start, end))
            for data, model, size, strategy, seed, start, end in keys
        )

    @cached_property
    def by_strategy(self) -> Mapping[tuple[Setting, str], tuple[Run, ...]]:
        """The repeats of each (setting, strategy), sorted by seed."""
        found: dict[tuple[Setting, str], list[Run]] = defaultdict(list)
        for run in self.runs:
            found[run.setting, run.strategy].append(run)
        return {key: tuple(runs) for key, runs in found.items()}

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Every setting, sorted."""
        return tuple(sorted({run.setting for run in self.runs}))

    @cached_property
    def strategies(self) -> tuple[str, ...]:
        """Every strategy: registry names in display order, then the others by name."""
        found = {run.strategy for run in self.runs}
        return (*(name for name in STRATEGIES if name in found), *sorted(found - set(STRATEGIES)))

    @cached_property
    def completeness(self) -> Mapping[str, str]:
        """The part of each data set that was used, e.g. "20,000 of 50,000"; only for sets with results that state it."""
        rows, total = self.column("rows"), self.column("total_rows")
        said: dict[str, set[tuple[int, int]]] = defaultdict(set)
        for run in self.runs:
            used, whole = rows[run.rows.start], total[run.rows.start]
            if np.isfinite(used) and np.isfinite(whole):
                said[run.setting.data].add((int(used), int(whole)))
        return {data: " and ".join(f"{u:,} of {w:,}" for u, w in sorted(pairs)) for data, pairs in said.items()}

    def column(self, name: str) -> NDArray[np.float64]:
        """A column of numbers. It is all NaN if the results do not have it.

        Args:
            name: the name of a required or optional column.

        Returns:
            [rows], as float64.

        Raises:
            UnknownNameError: no column has this name.
        """
        if name == "test_accuracy":
            return self.test_accuracy
        if name not in OPTIONAL:
            raise UnknownNameError("column", name, ["test_accuracy", *OPTIONAL])
        return self.optional.get(name, np.full(len(self), np.nan))

    def paired(self, strategies: Sequence[str], least: int = 2) -> Results | None:
        """The part of the results that these strategies share.

        It has the settings in which all of them share at least `least` seeds, with only those seeds. In other settings, a
        strategy without results could not lose.

        Args:
            strategies: names of strategies.
            least: the smallest number of shared seeds.

        Returns:
            A table with fewer rows, or None if they share nothing.

        >>> from badge.stats import example
        >>> example().paired(["badge", "rand"])
        Results(6 runs of 2 strategies in 1 setting, 30 rows)
        >>> example().paired(["badge", "marg"]) is None
        True
        """
        keep = np.zeros(len(self), dtype=bool)
        for setting in self.settings:
            found = [{run.seed for run in self.by_strategy.get((setting, name), ())} for name in strategies]
            shared = set.intersection(*found) if found else set()
            for run in self.runs if len(shared) >= least else ():
                keep[run.rows] |= run.setting == setting and run.seed in shared
        kept = {name: column[keep] for name, column in self.columns.items()}
        return Results.of(kept, self.notes) if keep.any() else None

    @classmethod
    def joined(cls, tables: Sequence[Results]) -> Results:
        """Join several tables. A run that is in two of them must have the same results in both.

        Args:
            tables: any number of tables.

        Returns:
            The table.

        Raises:
            InputError: two tables hold different results for one run.
        """
        optional = [name for name in OPTIONAL if any(name in table.optional for table in tables)]
        columns = {name: np.concatenate([getattr(table, name) for table in tables]) for name in REQUIRED}
        columns |= {name: np.concatenate([table.column(name) for table in tables]) for name in optional}
        names = {data: name for table in tables for data, name in table.names.items()}
        return cls.of(columns, [note for table in tables for note in table.notes], names)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame.

        Returns:
            A DataFrame with all columns, and one row per trained model.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        with needs("to_pandas()", "pandas", "hf"):
            import pandas
        return pandas.DataFrame(self.columns)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """Every column of the table, by name."""
        return {name: getattr(self, name) for name in REQUIRED} | dict(self.optional)


def check_results(results: Any) -> None:
    if not isinstance(results, Results):
        raise InputError(f"results are a badge.stats.Results, as badge.stats.load gives, not {type(results).__name__}")


def check_setting(results: Any, setting: Any) -> None:
    check_results(results)
    if not isinstance(setting, tuple) or len(setting) != len(Setting._fields):
        raise InputError(f"a setting is a badge.stats.Setting(data, model, batch_size), not {setting!r:.60}")


def compared(results: Any, strategies: Any) -> tuple[str, ...]:
    """The strategies to compare: by default all in the results."""
    check_results(results)
    if strategies is None:
        return tuple(results.strategies)
    if not isinstance(strategies, list | tuple) or not all(isinstance(name, str) for name in strategies):
        raise InputError(f"strategies are a list of names, not {strategies!r:.60}")
    return tuple(strategies)
