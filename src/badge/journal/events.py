"""The events of a journal: every kind, every field, as types. This is the one schema; FORMAT is its number.

A loop (`badge.ActiveLearner`) writes

    learner   first and once: pool, classes, strategy, seed, labels that exist before the loop
    ask       a batch                          tell      labels of it, or of other ids (`unasked`)
    relabel   a corrected label                skip, unskip, release
    class     a new class                      use       a change of strategy
    pool      the pool has grown               test      a test sample, never trained on
    picks     a newer badge: the same seed gives other picks from here on
    withdraw  examples left the pool           return    they came back            erased  `badge journal erase`
    decide    labels that one person set, in place of the votes of others
    remark    a comment on an example, or a flag

A run of an experiment writes `start` first, a `round` for each model, `resume`, `failed` and `end`. A repair writes `lost` in
place of a line that it could not save.
"""

from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**defaults):
        return lambda kind: kind


#: the number of this format
FORMAT = 2

#: an event as JSON holds it, without the number and the checksum of its line
Event = dict[str, Any]
#: an example: its position, or an id from the caller
Id = int | str
#: the name of a class
Label = int | str
#: a strategy: its name, or its class and parameters
Described = str | dict[str, Any]


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class JsonObject:
    """A JSON object with known fields; a subclass is such a dataclass too. A field that holds its default is not written."""

    #: True for measurements: fields that hold their default are written too, unknown fields are ignored when read
    open: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    def plain(self) -> dict[str, Any]:
        found = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "at" and (self.open or value != field.default):
                found[field.name] = value.plain() if isinstance(value, JsonObject) else value
        return found


class PoolId(JsonObject):
    """What identifies a pool."""

    length: int
    sample: list[Id] | None = None  #: ids of the examples in the digest; None: the ids are positions
    digest: str | None  #: digest of the pool; None: examples differ each time they are read
    columns: dict[str, str] | None = None  #: the columns of a table: name -> type of its values


class Initial(JsonObject):
    """Labels that existed before the loop."""

    ids: list[Id]
    labels: list[Any]


class Stop(JsonObject):
    """How the predictions of two models in a row differ on the stop set."""

    ids: list[Id]  #: examples with a new prediction
    codes: list[Any]  #: their predicted classes
    revision: int  #: number of the last event that changed a label of the model
    labels: int  #: number of labels that the model was trained on
    examples: int  #: number of examples in the stop set
    changed: int | None  #: number of examples with a changed prediction; None: there was no earlier model
    kappa: float | None


class Memory(JsonObject):
    """A change in the memory of a strategy: all of it, fields with new values, or new entries of tables."""

    all: dict[str, Any] | None = None
    set: dict[str, Any] | None = None
    add: dict[str, Any] | None = None


class Record(JsonObject):
    """One event."""

    kind: ClassVar[str]

    at: str | None = None  #: the time, UTC

    def event(self) -> Event:
        return {"event": self.kind, **self.plain(), **({} if self.at is None else {"at": self.at})}


class Header(Record):
    kind = "learner"
    format: int
    pool: PoolId
    classes: int | list[Label]
    strategy: Described
    seed: int
    initial: Initial
    multilabel: bool = False
    first: Described | None = None  #: the strategy that picks before there is a model; None: a uniform draw
    picks: int | None = None  #: version of the picks (`badge --version`); None: written before picks had one


class Ask(Record):
    kind = "ask"
    round: int
    ids: list[Id]
    people: int = 1  #: number of people who label each id
    k: int | None = None  #: number of ids asked for, if some got a label or were skipped meanwhile
    labels: int | None = None  #: number of the last event that the batch depends on, if others were added meanwhile
    uniform: str | None = None  #: why no model picked the batch although there are labels
    predicted: list[Any] | None = None  #: the class that the model predicts, for each id
    test: list[Any] | None = None  #: the class that the model predicts, for each example of the test sample
    stop: Stop | None = None
    memory: Memory | None = None
    select_seconds: float | None = None


class Tell(Record):
    kind = "tell"
    ids: list[Id]
    labels: list[Any]
    by: str | None = None
    unasked: bool = False
    source: str | None = None  #: the file that the labels were imported from
    people: int = 1  #: for imported votes: the number of people who label each id
    seconds: float | None = None  #: seconds that the person took
    request: str | None = None  #: id of the page's request; a request that arrives twice counts once


class Relabel(Record):
    kind = "relabel"
    id: Id
    label: int | str | list[Any]
    by: str | None = None
    request: str | None = None


class Skip(Record):
    kind = "skip"
    ids: list[Id]
    reason: str | None = None
    by: str | None = None
    labelled: bool = False  #: whether existing labels of these ids are removed
    request: str | None = None


class Unskip(Record):
    kind = "unskip"
    ids: list[Id]
    request: str | None = None


class Release(Record):
    kind = "release"
    ids: list[Id]


class Decide(Record):
    kind = "decide"
    ids: list[Id]
    labels: list[Any]
    by: str | None = None
    request: str | None = None


class Remark(Record):
    kind = "remark"
    id: Id
    by: str | None = None
    text: str | None = None
    flag: bool | None = None  #: whether the example is flagged; None: the flag does not change
    request: str | None = None


class SetAside(Record):
    kind = "test"
    ids: list[Id]
    people: int = 1  #: number of people who label each id


class AddClass(Record):
    kind = "class"
    name: Label


class Use(Record):
    kind = "use"
    strategy: Described


class NewPool(Record):
    kind = "pool"
    pool: PoolId


class Withdraw(Record):
    kind = "withdraw"
    ids: list[Id]  #: ids of examples that are no longer in the pool


class Return(Record):
    kind = "return"
    ids: list[Id]  #: ids of withdrawn examples that are in the pool again


class Erased(Record):
    """Replaces an event about an erased example. With `examples`, at the end: the number of examples erased."""

    kind = "erased"
    examples: int | None = None


class NewPicks(Record):
    """A new version of the picks: from here on, the same seed gives other picks."""

    kind = "picks"
    version: int


class Lost(Record):
    kind = "lost"
    reason: str
    aside: str  #: the copy of the damaged journal


# -- a run of an experiment ------------------------------------------------------------------------------------------


class RunSettings(JsonObject):
    """The settings of a run, as in `badge.experiment.Cell`."""

    open = True
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


class Data(JsonObject):
    """The data of a run."""

    open = True
    name: str | None = None
    rows: int | None = None
    total: int | None = None
    complete: bool | None = None
    text: str | None = None
    digest: str | None = None


class Start(Record):
    kind = "start"
    open = True
    cell: RunSettings
    format: int = FORMAT
    data: Data | None = None
    code: dict[str, str] | None = None  #: digests of the code of your own data, model and strategy
    versions: dict[str, str] | None = None
    git: str | None = None


class Round(Record):
    kind = "round"
    open = True
    round: int
    labels: int
    test_accuracy: float
    macro_f1: float | None = None
    rare_recall: float | None = None  #: mean recall of the rarest third of the classes
    train_accuracy: float | None = None
    epochs: int | float | None = None
    restarts: int | None = None
    train_seconds: float | None = None
    predict_seconds: float | None = None
    select_seconds: float | None = None  #: of the selection; null, like the next three, in the last round
    mean_norm: float | None = None
    log_det: float | None = None
    picked: list[int] | None = None
    seconds: float | None = None


class Resume(Record):
    kind = "resume"
    more: bool = False  #: whether the run has a larger number of labels than before
    labels: int | None = None  #: the new number of labels at the end; None: all
    versions: dict[str, str] | None = None
    git: str | None = None


class Failed(Record):
    kind = "failed"
    error: str


class End(Record):
    kind = "end"
    open = True
    reason: str | None = None
    labels: int | None = None


def shown_model(model: str, first: str | None) -> str:
    """The model as tables name it: with the strategy of the first batch, because only runs of one start compare.

    >>> shown_model("linear", "typiclust")
    'linear+typiclust'
    """
    return model if first is None else f"{model}+{first}"


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
