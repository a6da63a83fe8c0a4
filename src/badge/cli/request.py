"""The files of a request for picks: checked before torch, which takes seconds to load."""

from pathlib import Path
from typing import NamedTuple

from badge.core import catalog
from badge.errors import InputError


class Files(NamedTuple):
    """The files of a pool and what was said about them; `kind` is "labeled-" if they are of labelled examples."""

    probabilities: Path | None
    logits: Path | None
    embeddings: Path | None
    probability_columns: list[str]
    embedding_columns: list[str]
    id_column: str | None
    layout: tuple[bool | None, str | None, str | None]  #: header, delimiter, encoding
    kind: str = ""
    multilabel: bool = False

    def __bool__(self) -> bool:
        return any(file is not None for file in self[:3])

    @property
    def scores(self) -> Path | None:
        return self.probabilities or self.logits

    def check(self, without_embeddings: bool, without_scores: bool) -> None:
        """Refuse files that are missing, as options or on disk."""
        if self.probabilities is not None and self.logits is not None:
            raise InputError(f"--{self.kind}logits stands in place of --{self.kind}probabilities: give one of them")
        missing = "probabilities" if self.scores is None and not without_scores else None
        if missing is None and self.embeddings is None and not without_embeddings:
            missing = "embeddings"
        if missing is not None:
            raise InputError(f"--{self.kind}{missing} is missing" + ("" if self.kind else " (or give --outputs DIR)"))
        for name, file in zip(self._fields, self[:3], strict=False):
            if file is not None and not file.exists():
                raise InputError(f"{name}: there is no file {file}")


def check_files(
    strategy: str, bias: bool, files: Files, of_labeled: Files, outputs: Path | None, exclude: bool
) -> None:
    """Refuse files that are missing, or one too many for the strategy."""
    listed = strategy in catalog.STRATEGIES
    spec = catalog.spec(strategy) if listed else catalog.Spec(strategy, picks="")  # your own may read everything
    if bias and listed:
        catalog.check_bias(strategy, spec.bias)
    no_embeddings, no_scores = "embeddings" not in spec.reads, bool(spec.reads) and "probabilities" not in spec.reads
    if outputs is None:
        files.check(no_embeddings, no_scores or (spec.cold and not exclude and not of_labeled))
    elif files:
        raise InputError("--outputs stands in place of --probabilities and --embeddings: give one or the other")
    elif not outputs.is_dir():
        raise InputError(f"--outputs: there is no directory {outputs}")
    if of_labeled:
        of_labeled.check(no_embeddings, no_scores)
    elif spec.labeled == "required" and not exclude:
        way_out = "give --exclude, or --labeled-probabilities and --labeled-embeddings"
        raise InputError(f"{strategy} is conditioned on the labelled examples: {way_out}")
