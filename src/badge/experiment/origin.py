"""Can the journal of a cell be skipped or taken up? It must be of this cell: same settings, same code, same data.

A run that is taken up after an edit of `load`, of `build` or of a data file would draw one curve of two experiments. Digests
of code and data show it. Versions and the revision are written down too.
"""

import ast
import hashlib
import importlib
import inspect
import json
import platform
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

import badge
from badge.core.importing import imported
from badge.core.rng import PICKS_VERSION
from badge.data import Dataset
from badge.errors import JournalError
from badge.experiment.grid import Cell, Held, journal_path
from badge.journal import Journal
from badge.journal.events import Ask, End, Record, Resume, Start
from badge.journal.lines import first_and_last
from badge.strategies.protocol import unwrapped

#: the parts of a cell that may be the user's own, as package.module:function
PARTS = ("data", "model", "strategy")
ANOTHER = "use another --out folder"
WAY_OUT = f"put the old one back, or {ANOTHER}"


def finished(cell: Cell, folder: Path) -> bool:
    """Whether a run is finished: its journal ends with an `end` event.

    Only the first and the last line are read, because a grid may have a thousand journals of a megabyte each.

    Args:
        cell: the settings of the run.
        folder: the folder of the journals.

    Returns:
        True if the run is finished.

    Raises:
        JournalError: the journal belongs to other settings.

    >>> from badge.experiment import Cell
    >>> finished(Cell("digits", "mlp", "rand", batch_size=50), Path("no such folder"))
    False
    """
    path = journal_path(cell, folder)
    ends = first_and_last(path)
    if ends is None:  # new, torn or damaged: opening it for appending says so
        return False
    start = check_start(ends[0], cell, path)
    return isinstance(ends[1], End) and not goes_on(cell, start, ends[1], path)


def check_start(start: Record, cell: Cell, path: Path) -> Start:
    """Refuse a journal of other settings or of other code, naming the first that differs; `labels` may have grown."""
    if not isinstance(start, Start):
        raise JournalError(f"{path} is not the journal of a run: {ANOTHER}")
    for field, value in vars(cell).items():
        if field != "labels" and (before := getattr(start.cell, field)) != value:
            raise JournalError(f"{path} was made with {field} = {before!r}, now {value!r}: {ANOTHER}")
    recorded = start.code or {}  # older journals do not say
    for part, digest in code_digests(cell).items() if recorded else ():
        if recorded.get(part, digest) != digest:
            name = getattr(cell, part)
            raise JournalError(f"{path} was made by another version of the code of {name} ({part}): {WAY_OUT}")
    return start


def check_data(start: Record, dataset: Dataset, path: Path) -> None:
    """Refuse a journal that was made on other data under the same name."""
    recorded = start.data.digest if isinstance(start, Start) and start.data else None
    if recorded is not None and recorded != data_digest(dataset):
        raise JournalError(f"{path} was made on other data of the name {dataset.name}: {WAY_OUT}")


def goes_on(cell: Cell, start: Start, last: End | Resume | None, path: Path) -> bool:
    """Whether a run has to reach more labels than it was asked for before; fewer are refused."""
    before = start.cell.labels if last is None else last.labels
    if cell.labels == before or (isinstance(last, End) and last.reason == "pool exhausted"):
        return False
    if before is None or (cell.labels is not None and cell.labels < before):
        raise JournalError(f"{path} was made with labels = {before!r}, now {cell.labels!r}: {ANOTHER}")
    return True


def check_whole_batches(journal: Journal, cell: Cell) -> None:
    """Refuse to go on to more labels where a run that had aimed at them from the start would have picked otherwise."""
    asked = [len(record.ids) for record in journal.records if isinstance(record, Ask)]
    if cell.strategy == "albl":
        why = "albl sets its rates by the number of batches"
    elif len(asked) > 1 and asked[-1] < cell.batch_size:
        why = f"its last batch was cut to {asked[-1]} of {cell.batch_size}"
    else:
        return
    raise JournalError(f"{journal.path} cannot go on to {cell.labels or 'all'} labels ({why}): {ANOTHER}")


def source_digest(name: Held) -> str:
    """A digest of the source of a function or of the class of an object; of its name where there is no source."""
    base, *_ = unwrapped(name.object)
    kind = base if hasattr(base, "__qualname__") else type(base)
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        source = str(name)
    return hashlib.blake2b(source.encode(), digest_size=16).hexdigest()


def code_digests(cell: Cell) -> dict[str, str]:
    """A digest of the code of each part of a cell that is the user's own."""
    names = {part: getattr(cell, part) for part in PARTS if ":" in getattr(cell, part)}
    return {part: source_digest(name) if isinstance(name, Held) else code_digest(name) for part, name in names.items()}


@lru_cache(maxsize=1)
def data_digest(dataset: Dataset) -> str:
    """A digest of all examples and labels, in order, of the number of classes and of the learning rate."""
    digest = hashlib.blake2b(f"{dataset.classes} {dataset.lr!r}".encode(), digest_size=16)
    for array in (dataset.X_train, dataset.y_train, dataset.X_test, dataset.y_test):
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


@lru_cache(maxsize=64)  # of the code as it was when this process loaded it
def code_digest(path: str) -> str:
    """A digest of the module of "package.module:function" and of those that it imports, without comments and docstrings."""
    imported("part", path)
    name = path.partition(":")[0]
    file = getattr(importlib.import_module(name), "__file__", None)
    if file is None:  # built into the interpreter
        return f"module {name}"
    root = Path(file).resolve().parents[name.count(".") + (Path(file).stem == "__init__")]
    sources: dict[str, str] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        found = _file(root, current, name.partition(".")[0])
        if current in sources or found is None:
            continue
        tree = ast.parse(found.read_bytes())
        sources[current] = ast.unparse(_without_docstrings(tree))
        waiting += _imports(tree, package=current if found.stem == "__init__" else current.rpartition(".")[0])
    return hashlib.blake2b(json.dumps(sorted(sources.items())).encode(), digest_size=16).hexdigest()


def _file(root: Path, module: str, top: str) -> Path | None:
    """The source file of a module below `root`; None for installed packages, which have versions."""
    first = module.partition(".")[0]
    if first == "badge" or (first != top and "site-packages" in root.parts):
        return None
    place = root.joinpath(*module.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def versions() -> dict[str, str]:
    return {
        "badge": badge.__version__,
        "picks": str(PICKS_VERSION),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


@lru_cache(maxsize=8)
def git_revision(folder: Path) -> str | None:
    """The revision of the folder's repository, with "+" where files differ from it; None outside of one."""
    try:
        command = ["git", "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"]
        described = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10, cwd=folder)
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip() or None
