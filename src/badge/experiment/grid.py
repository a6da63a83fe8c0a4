"""grid.toml → cells. Keys at the top are the defaults of every `[[block]]`; the grid is the union of the blocks.

    initial = 100
    seeds = 5                       # 0 … 4; or a list
    strategy = ["badge", "rand"]
    [[block]]
    pairs = ["letter/mlp", "svhn/resnet18"]      # or data = [...] and model = [...], every one with every other
    batch_size = [100, 1000]

Any other setting of `Cell` (labels, threads, width, lr, max_epochs, raw) is one value per block, `first` one or a list.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

from badge.core.names import path_of
from badge.core.numbers import whole
from badge.errors import InputError, UnknownNameError
from badge.experiment.cell import Cell

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # comes with the extra `study`

#: repeats that a number of seeds may ask for
MOST_SEEDS = 10_000
#: keys of a block with one value or a list
AXES = ("pairs", "data", "model", "batch_size", "first", "strategy", "seeds")
#: keys that are handed to every cell of a block as they are
PLAIN = tuple(field.name for field in fields(Cell) if field.name not in (*AXES, "seed"))


def read_grid(path: str | Path) -> list[Cell]:
    """The cells of a grid file.

    Args:
        path: a TOML file.

    Raises:
        InputError: a key or a value is wrong.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "grid.toml"
    ...     _ = path.write_text('strategy = ["badge", "rand"]\\ndata = "digits"\\nmodel = "mlp"\\nbatch_size = 50\\nseeds=1')
    ...     [cell.strategy for cell in read_grid(path)]
    ['badge', 'rand']
    """
    path = path_of(path, "a grid file")
    if path.exists() and not path.is_file():
        raise InputError(f"the grid file {path} cannot be read: it is not a file")
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
    """The cells of a grid, without repeats: by seed, and within a seed in the order of the file, strategies innermost.

    So whenever a grid is stopped, the cells that it has finished can be compared in pairs.

    Args:
        settings: the keys of a grid file.

    Raises:
        InputError: a key or a value is wrong.

    >>> grid = {"seeds": 2, "batch_size": 100, "data": "digits", "model": "mlp", "strategy": ["badge", "rand"]}
    >>> [(cell.seed, cell.strategy) for cell in cells_of(grid)]
    [(0, 'badge'), (0, 'rand'), (1, 'badge'), (1, 'rand')]
    """
    blocks = settings.get("block", [{}])
    defaults = {key: value for key, value in settings.items() if key != "block"}
    if not isinstance(blocks, list) or not all(isinstance(block, Mapping) for block in blocks):
        raise InputError("blocks are written [[block]], with two brackets")
    return _ordered([cell for block in blocks for cell in _block({**defaults, **block})])


def _ordered(found: Sequence[Cell]) -> list[Cell]:
    """Cells without repeats, by seed; two that would write the same journal must be the same."""
    cells = sorted(dict.fromkeys(found), key=lambda cell: cell.seed)
    names: dict[str, Cell] = {}
    for cell in cells:
        if names.setdefault(cell.name, cell) != cell:
            raise InputError(f"{cell.name} is there twice with different settings: {names[cell.name]} and {cell}")
    return cells


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
    pairs = [tuple(str(pair).rsplit("/", 1)) for pair in _list(block, "pairs")]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"a pair is written data/model, not {block['pairs']!r}")
    return [(pair[0], pair[1]) for pair in pairs]


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
