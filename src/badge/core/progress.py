"""One progress bar for everything that takes longer than two seconds; on standard error, never on standard output."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(description: str, total: float | None, enabled: bool = True) -> Iterator[Callable[[float], None]]:
    """A bar over `total` units of work; yields `advance(units)`. Not `enabled`: silent, at no cost.

    >>> with bar("reading", total=2, enabled=False) as advance:
    ...     advance(1)
    """
    if not enabled:
        yield lambda units: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(description, total=total)
        yield lambda units: progress.update(task, advance=units)
