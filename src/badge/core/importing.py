"""A user's data sets, networks and strategies by name, "package.module:function"; and optional dependencies."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from badge.errors import InputError, MissingExtraError


@contextmanager
def needs(what: str, package: str, extra: str) -> Iterator[None]:
    """Around the import of an optional dependency: where it is missing, say what needs it and how to install it."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(what, package, extra) from None


def imported(kind: str, path: str) -> Any:
    """The function that "package.module:function" names; modules of the current directory are found too.

    >>> imported("network", "math:sqrt")(9.0)
    3.0
    """
    module_name, _, attribute = path.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), attribute]):
        raise InputError(f"the {kind} {path!r} is not of the form package.module:function")
    here = str(Path.cwd())
    if here not in sys.path:  # a console script, unlike `python -m`, does not look where the user is
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise  # the module was found; something that it imports was not
        where = "neither installed nor in the current directory"
        raise InputError(f"the {kind} {path!r}: no module {error.name!r}, {where}") from None
    try:
        found = getattr(module, attribute)
    except AttributeError:
        raise InputError(f"the {kind} {path!r}: module {module_name!r} has no {attribute!r}") from None
    if not callable(found):
        raise InputError(f"the {kind} {path!r} is {type(found).__name__}, not a function")
    return found
