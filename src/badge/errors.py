"""Every error that badge raises on purpose.

    BadgeError
    ├── InputError (also ValueError)      an argument is invalid: k < 1, NaN, rows that do not sum to 1
    │   ├── UnknownNameError              the name of a strategy, data set or network is unknown
    │   └── NoCandidatesError             in `badge select`: every example of the pool is excluded
    ├── RankError (also ValueError)       k is above the rank of a k-DPP's kernel
    ├── ModelError (also ValueError)      the output layer of a model cannot be found, or the model cannot run
    ├── DataError                         a data set is missing or damaged, or cannot be downloaded
    ├── ClusterError                      a Ray cluster cannot be reached, or has no node left
    ├── JournalError                      a journal is locked or damaged, or belongs to another run
    ├── ServerError                       a server that badge talks to cannot be reached, or refuses a request
    ├── WriteError (also OSError)         a file, a folder or standard output cannot be written
    └── MissingExtraError (ImportError)   an optional package is missing; the message names the extra to install

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
    """The base class of every error that badge raises on purpose.

    Its message is one line of limited length.

    Args:
        args: the message.
        in_python: advice for programs, which the command line leaves out.

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
        """The message without the advice for programs."""
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
    """An argument is invalid."""


class UnknownNameError(InputError):
    """A name is unknown. The message suggests the nearest known name.

    Args:
        kind: what the name stands for, e.g. "strategy".
        name: the unknown name.
        known: the known names.
        own: how users name their own.
        aliases: {other name that people type: known name}.

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
    """In `badge select`: every example of the pool is excluded, so none is left to pick."""


class RankError(BadgeError, ValueError):
    """k is above the rank of a k-DPP's kernel."""


class ModelError(BadgeError, ValueError):
    """The output layer of a model cannot be found, or the model cannot run on the pool."""


class DataError(BadgeError):
    """A data set is missing or damaged, or cannot be downloaded."""


class ClusterError(BadgeError):
    """A Ray cluster cannot be reached, or has no node left."""


class JournalError(BadgeError):
    """A journal is locked or damaged, cannot be written, or belongs to another run."""


class ServerError(BadgeError):
    """A server that badge talks to (Label Studio) cannot be reached, or refuses a request.

    Args:
        message: one line.
        passing: whether a later attempt may succeed.
    """

    def __init__(self, message: str, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class WriteError(BadgeError, OSError):
    """A file, a folder or standard output cannot be written. No half-written file keeps the final name."""


class MissingExtraError(BadgeError, ImportError):
    """An optional package is not installed.

    Args:
        what: the feature that needs the package.
        package: the missing package.
        extra: the extra of badge-learn that installs it.
    """

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs {package}: pip install 'badge-learn[{extra}]'")
