"""Cells, the settings of one run each, and grids of them.

grid.toml → cells: keys at the top are the defaults of every `[[block]]`; the grid is the union of the blocks.

    initial = 100
    seeds = 5                       # 0 … 4; or a list
    strategy = ["badge", "rand"]
    [[block]]
    pairs = ["letter/mlp", "svhn/resnet18"]      # or data = [...] and model = [...], every one with every other
    batch_size = [100, 1000]

Any other setting of `Cell` (labels, threads, width, lr, max_epochs, raw) is one value per block, `first` one or a list.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from badge.core.names import path_of
from badge.core.numbers import positive, whole
from badge.data import Dataset
from badge.data.texts import is_own_file
from badge.errors import InputError, UnknownNameError
from badge.journal.events import shown_model
from badge.learner.opening import describe, parameters_in_words
from badge.strategies.protocol import unwrapped

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # comes with the extra `study`

#: repeats that a number of seeds may ask for
MOST_SEEDS = 10_000
#: characters; a digest stands for longer parameters in a strategy's name, since files are named after it
LONGEST_PARAMETERS = 60


class Held(str):
    """A name that carries the object it stands for: a `Dataset` or function that was passed in place of a name.

    >>> Held.of(len), held(Held.of(len)) is len, held("badge")
    ('builtins:len', True, 'badge')
    """

    object: Any

    @classmethod
    def of(cls, value: Any) -> Any:
        """The name of a data set, a function or an object with a class; anything else stays itself."""
        if isinstance(value, str) or not (isinstance(value, Dataset) or callable(value)):
            return value
        found = cls(value.name if isinstance(value, Dataset) else _name_of(value))
        found.object = value
        return found


def _name_of(strategy: Any) -> str:
    """The module and name of a function or of an object's class, and the parameters, since others make another strategy."""
    base, *_ = unwrapped(strategy)
    kind = base if hasattr(base, "__qualname__") else type(base)
    said = describe(strategy)
    parameters = "" if isinstance(said, str) else parameters_in_words(said)
    if len(parameters) > LONGEST_PARAMETERS:
        parameters = hashlib.blake2b(parameters.encode(), digest_size=8).hexdigest()
    return f"{kind.__module__}:{kind.__qualname__}" + (f"({parameters})" if parameters else "")


def held(name: str) -> Any:
    """The object of a name, or the name itself where it holds none."""
    return name.object if isinstance(name, Held) else name


@dataclass(frozen=True)
class Cell:
    """The settings of one run: everything that its picks and accuracies depend on, except the machine.

    Args:
        data: a name of `badge.data.NAMES`, a path, "package.module:load", or a `Dataset`.
        model: "mlp", "resnet18", "vgg11", "linear", or "package.module:function".
        strategy: a name, "package.module:function", a function, a `functools.partial` of one, or an object that stores the
            arguments of its constructor as attributes with the same names.
        batch_size: the number of labels per round.
        initial: the number of labels of the first round.
        labels: the number of labels at the end of the run; None: the whole pool, at most 50,000.
        seed: the seed of everything random.
        threads: the number of threads. The last bits of the results depend on it.
        width: the width of the network; None: its default.
        lr: the learning rate; None: that of the data set, by default the paper's.
        max_epochs: most epochs per training; None: the trainer's default.
        raw: do not standardise the features.
        text: the name of the column of texts, if `data` is a file.
        label: the name of the column of labels, if `data` is a file.
        encoder: "hf:…", a pretrained encoder that turns the texts into vectors.
        first: the strategy that picks the first round, from the vectors or features: "typiclust", "kmeanspp" or another
            cold start. None: draw uniformly.

    Raises:
        InputError: a setting is invalid, or does not go with the others.

    >>> Cell("letter", "mlp", "badge", batch_size=100).name
    'letter-mlp-b100-badge-s0'
    """

    data: str
    model: str
    strategy: str
    batch_size: int
    initial: int = 100
    labels: int | None = None
    seed: int = 0
    threads: int = 1
    width: int | None = None
    lr: float | None = None
    max_epochs: int | None = None
    raw: bool = False
    text: str | None = None
    label: str | None = None
    encoder: str | None = None
    first: str | None = None

    def __post_init__(self) -> None:
        objects = {"data": "; in a program also a Dataset", "strategy": "; in a program also a function"}
        for field in objects:
            object.__setattr__(self, field, Held.of(getattr(self, field)))
        for field in ("data", "strategy", "model", "text", "label", "encoder", "first"):
            name = getattr(self, field)
            if not isinstance(name, str) and (name is not None or field in ("data", "strategy", "model")):
                raise InputError(f"{field} must be a name, not {name!r:.80}{objects.get(field, '')}")
        if not is_own_file(self.data) and any((self.text, self.label, self.encoder)):
            raise InputError(f"text, label and encoder are for data in a file; {self.data} is none")
        for field in ("batch_size", "initial", "threads", "labels", "width", "max_epochs", "seed"):
            value = getattr(self, field)
            if value is not None or field not in ("labels", "width", "max_epochs"):
                object.__setattr__(self, field, whole(value, field, least=0 if field == "seed" else 1))
        if self.lr is not None:
            object.__setattr__(self, "lr", positive(self.lr, "lr"))
        if self.labels is not None and self.labels < self.initial:
            raise InputError(f"labels ({self.labels}) must be at least the initial ones ({self.initial})")

    @property
    def name(self) -> str:
        """The name of the journal. Characters that do not belong in a file name, such as `:`, become `_`."""
        first = () if self.first is None else (f"first_{self.first}",)
        parts = (self.data, self.model, f"b{self.batch_size}", self.strategy, *first, f"s{self.seed}")
        return "-".join(re.sub(r"[^\w.-]", "_", part) for part in parts)

    @property
    def shown_model(self) -> str:
        """The name of the model in tables."""
        return shown_model(self.model, self.first)


def journal_path(cell: Cell, folder: Path) -> Path:
    """The path of the journal of a cell.

    Args:
        cell: the settings of the run.
        folder: the folder of the journals.

    Returns:
        `<data>-<model>-b<batch>-<strategy>-s<seed>.jsonl` in the folder.

    >>> from badge.experiment import Cell
    >>> journal_path(Cell("digits", "mlp", "rand", batch_size=50), Path("runs")).name
    'digits-mlp-b50-rand-s0.jsonl'
    """
    return folder / f"{cell.name}.jsonl"


#: keys of a block with one value or a list
AXES = ("pairs", "data", "model", "batch_size", "first", "strategy", "seeds")
#: keys that are handed to every cell of a block as they are
PLAIN = tuple(field.name for field in fields(Cell) if field.name not in (*AXES, "seed"))


def read_grid(path: str | Path) -> list[Cell]:
    """Read the cells of a grid file.

    Args:
        path: a TOML file.

    Returns:
        The cells, in the order in which they run.

    Raises:
        InputError: a key or a value is invalid.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "grid.toml"
    ...     _ = path.write_text('strategy = ["badge", "rand"]\\ndata = "digits"\\nmodel = "mlp"\\nbatch_size = 50\\nseeds=1')
    ...     [cell.strategy for cell in read_grid(path)]
    ['badge', 'rand']
    """
    path = path_of(path, "a grid file")
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no grid file {path}") from None
    except OSError as error:
        raise InputError(f"the grid file {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None
    try:
        return cells_of(settings)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_grids(paths: Sequence[str | Path]) -> list[Cell]:
    """The cells of several grid files, as if they were the blocks of one."""
    return _ordered([cell for path in paths for cell in read_grid(path)])


def cells_of(settings: Mapping[str, Any]) -> list[Cell]:
    """The cells of a grid, without repeats: by seed, then in the order of the file, with strategies innermost.

    This order keeps the finished cells of a stopped grid comparable, seed by seed.

    Args:
        settings: the keys and values of a grid file.

    Returns:
        The cells, in the order in which they run.

    Raises:
        InputError: a key or a value is invalid.

    >>> grid = {"seeds": 2, "batch_size": 100, "data": "digits", "model": "mlp", "strategy": ["badge", "rand"]}
    >>> [(cell.seed, cell.strategy) for cell in cells_of(grid)]
    [(0, 'badge'), (0, 'rand'), (1, 'badge'), (1, 'rand')]
    """
    blocks = settings.get("block", [{}])
    defaults = {key: value for key, value in settings.items() if key != "block"}
    if not isinstance(blocks, list) or not all(isinstance(block, Mapping) for block in blocks):
        raise InputError("blocks are written [[block]], with two brackets")
    return _ordered([cell for block in blocks for cell in _block({**defaults, **block})])


def check_apart(cells: Sequence[Cell]) -> None:
    """Refuse cells that would write one journal, unless they are the same; two lambdas, say, have one name and are not."""
    known: dict[str, Cell] = {}
    for cell in cells:
        first = known.setdefault(cell.name, cell)
        if first != cell:
            raise InputError(f"{cell.name} is there twice with different settings: {first} and {cell}")
        for one, other, what in ((first.strategy, cell.strategy, "strategies"), (first.data, cell.data, "data sets")):
            if not _same(held(one), held(other)):
                raise InputError(f"two {what} are named {one}: make each once, under another name")


def _same(one: Any, other: Any) -> bool:
    if one is other or (hasattr(one, "__qualname__") and one == other):  # a bound method is another object each time
        return True
    try:
        return pickle.dumps(one) == pickle.dumps(other)
    except Exception:  # a lambda, and what holds one; pickle refuses in many ways
        return False


def _ordered(found: Sequence[Cell]) -> list[Cell]:
    """Cells without repeats, by seed."""
    check_apart(found)
    return sorted(dict.fromkeys(found), key=lambda cell: cell.seed)


def _block(block: Mapping[str, Any]) -> list[Cell]:
    if unknown := sorted(set(block) - {*AXES, *PLAIN}):
        raise UnknownNameError("key", str(unknown[0]), [*AXES, *PLAIN])
    plain = {key: block[key] for key in PLAIN if key in block}
    first = [None if name == "rand" else name for name in _list(block, "first")] if "first" in block else [None]
    axes = (_pairs(block), _list(block, "batch_size"), _seeds(block), first, _list(block, "strategy"))
    return [
        Cell(data=data, model=model, strategy=strategy, batch_size=size, seed=seed, first=start, **plain)
        for (data, model), size, seed, start, strategy in product(*axes)
    ]


def _pairs(block: Mapping[str, Any]) -> list[tuple[str, str]]:
    if "pairs" not in block:
        return list(product(_list(block, "data"), _list(block, "model")))
    if "data" in block or "model" in block:
        raise InputError("give pairs, or data and model, not both")
    pairs = [str(pair).rpartition("/") for pair in _list(block, "pairs")]
    if not all(slash for _, slash, _ in pairs):
        raise InputError(f"a pair is written data/model, not {block['pairs']!r}")
    return [(data, model) for data, _, model in pairs]


def _seeds(block: Mapping[str, Any]) -> list[Any]:
    seeds = block.get("seeds", 1)
    if isinstance(seeds, list | tuple):
        return list(seeds)
    if whole(seeds, "seeds") > MOST_SEEDS:
        raise InputError(f"seeds is the number of repeats, or a list of seeds; {seeds} repeats are too many")
    return list(range(seeds))


def _list(block: Mapping[str, Any], key: str) -> list[Any]:
    if key not in block:
        raise InputError(f"the key {key!r} is missing")
    values = block[key] if isinstance(block[key], list) else [block[key]]
    if not values:
        raise InputError(f"{key} is an empty list")
    return values
