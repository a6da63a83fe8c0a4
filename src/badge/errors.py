"""Every error that badge raises on purpose.

    BadgeError
    ├── InputError (also ValueError)      an argument that cannot mean anything: k < 1, NaN, rows that do not sum to 1
    │   ├── UnknownNameError              a strategy, data set or network that is not in its registry
    │   └── NoCandidatesError             everything in the pool has a label: nothing is left to pick
    ├── RankError (also ValueError)       a k-DPP asked for more points than the kernel has rank
    ├── ModelError (also ValueError)      the output layer of a model cannot be found, or a model cannot be run
    ├── DataError                         a data set that is missing, damaged or cannot be downloaded
    ├── ClusterError                      a Ray cluster that cannot be reached, or has no node left
    ├── JournalError                      a journal that is locked, damaged or belongs to another run
    ├── ServerError                       a server that badge talks to is gone, or refuses what it is asked
    ├── WriteError (also OSError)         a file, folder or standard output that cannot be written
    └── MissingExtraError (ImportError)   an optional dependency is absent; the message names the extra to install

Messages state the condition, the values, and the way out.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

__all__ = [
    "BadgeError", "ClusterError", "DataError", "InputError", "JournalError", "MissingExtraError", "ModelError",
    "NoCandidatesError", "RankError", "ServerError", "UnknownNameError", "WriteError",
]  # fmt: skip

#: The most characters of a message.
LONGEST = 580


def in_short(error: object, most: int = 200) -> str:
    """What an error of another library says, or a text, on one line of bounded length.

    >>> in_short(ValueError("two\\nlines"))
    'two lines'
    """
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= most else f"{text[: most - 1]}…"


class BadgeError(Exception):
    """The root: `except badge.errors.BadgeError` catches everything that badge raises on purpose.

    Its text is one line of bounded length.

    Args:
        args: the message.
        in_python: a way out for programs, which the command line leaves out.

    >>> import badge
    >>> try:
    ...     badge.strategies.get("bagde")
    ... except badge.errors.BadgeError as error:
    ...     print(error.plain.split(":")[0])
    unknown strategy 'bagde'
    """

    def __init__(self, *args: object, in_python: str = "") -> None:
        super().__init__(*args)
        self.in_python = in_python

    @property
    def plain(self) -> str:
        """The text for people who do not program."""
        text = super().__str__()
        return in_short(text, LONGEST) if text else ""

    def __str__(self) -> str:
        return f"{self.plain}; {self.in_python}" if self.in_python else self.plain

    def __reduce__(self) -> tuple[object, ...]:
        """Errors are pickled as message and attributes: constructors differ in what they ask for."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[BadgeError], args: tuple[object, ...], state: dict[str, object]) -> BadgeError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class InputError(BadgeError, ValueError):
    """An argument that cannot mean anything."""


class UnknownNameError(InputError):
    """A name that is not in its registry; the message says which known one is near.

    Args:
        kind: the kind of thing, e.g. "strategy".
        name: what was asked for.
        known: the names that there are.
        own: how a user names their own.
        aliases: other names that people type -> the known ones.

    >>> print(UnknownNameError("network", "MLP", ["mlp", "vgg11"]))
    unknown network 'MLP': did you mean mlp? Known: mlp, vgg11
    """

    def __init__(
        self, kind: str, name: str, known: Sequence[str], own: str = "", aliases: Mapping[str, str] | None = None
    ) -> None:
        plain, others = name.strip().lower().replace("_", "-"), aliases or {}
        near = get_close_matches(plain, [*known, *others], n=1, cutoff=0.7)
        hint = f": did you mean {others.get(near[0], near[0])}? Known" if near else "; known"
        shown = repr(name) if len(repr(name)) <= 80 else f"{repr(name)[:79]}…"
        super().__init__(f"unknown {kind} {shown}{hint}: {', '.join([*known, own] if own else known)}")


class NoCandidatesError(InputError):
    """Everything in the pool has a label: nothing is left to pick."""


class RankError(BadgeError, ValueError):
    """A k-DPP was asked for more points than its kernel has rank."""


class ModelError(BadgeError, ValueError):
    """A model whose output layer cannot be found, or that cannot be run on the pool."""


class DataError(BadgeError):
    """A data set that is missing, damaged or cannot be downloaded."""


class ClusterError(BadgeError):
    """A Ray cluster that cannot be reached, or has no node left."""


class JournalError(BadgeError):
    """A journal that is locked, damaged or belongs to another run."""


class ServerError(BadgeError):
    """A server that badge talks to cannot be reached, or refuses what it is asked.

    Args:
        message: one line.
        passing: it may be back later.
    """

    def __init__(self, message: str, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class WriteError(BadgeError, OSError):
    """A file, folder or standard output that cannot be written; nothing half-written stays under the final name."""


class MissingExtraError(BadgeError, ImportError):
    """An optional dependency is absent.

    Args:
        what: what needs the package.
        package: the absent package.
        extra: the extra of badge-learn that brings it.
    """

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs {package}: pip install 'badge-learn[{extra}]'")
