"""The events of a run of an experiment: `start` first, a `round` for each model, `resume`, `failed`, `end`."""

from typing import Any

from badge.journal.events import FORMAT, JsonObject, Record


def shown_model(model: str, first: str | None) -> str:
    """The model as tables name it: with the strategy of the first batch, because only runs of one start compare.

    >>> shown_model("linear", "typiclust")
    'linear+typiclust'
    """
    return model if first is None else f"{model}+{first}"


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
    cell: dict[str, Any]  #: the fields of `badge.experiment.Cell`
    format: int = FORMAT
    data: Data | None = None
    code: dict[str, str] | None = None  #: digests of the caller's own data, model and strategy
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
    select_seconds: float | None = None  #: this and the next three: None in the last round, which picks nothing
    mean_norm: float | None = None
    log_det: float | None = None
    picked: list[int] | None = None
    seconds: float | None = None


class Resume(Record):
    kind = "resume"
    more: bool = False  #: whether the run goes on to more labels than before
    labels: int | None = None  #: the number of labels then; None: all
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
