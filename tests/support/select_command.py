"""A small pool, and `badge select` run on it in this process."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import badge
from badge.cli import main

N = 60
RNG = np.random.default_rng(0)
P = torch.from_numpy(RNG.normal(size=(N, 4)) * 2).softmax(dim=1).numpy()
Z = RNG.normal(size=(N, 5))
OUT = badge.Outputs(P, Z)
UNDERSTOOD = re.compile(r"\S+: [\d,]+ rows, ")


def runner() -> CliRunner:
    """Keeps standard error apart, as click does by itself from 8.2 on."""
    return CliRunner(**({"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}))


class Command:
    """Runs `badge select`; gives exit code, standard output and error. p.npy and z.npy are its arrays unless told.

    The lines of standard error that say how files were read are kept apart, in `understood`.
    """

    understood: list[str]

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys
        np.save("p.npy", P)
        np.save("z.npy", Z)

    def __call__(self, *arguments: object, arrays: bool = True) -> tuple[int, str, str]:
        pairs = (("--probabilities", "p.npy"), ("--embeddings", "z.npy")) if arrays else ()
        given = [word for pair in pairs if pair[0] not in arguments for word in pair]
        self.monkeypatch.setattr(sys, "argv", ["badge", "select", *given, *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        text = self.capsys.readouterr()
        said = text.err.splitlines(keepends=True)
        self.understood = [line.strip() for line in said if UNDERSTOOD.match(line)]
        return int(end.value.code or 0), text.out, "".join(line for line in said if not UNDERSTOOD.match(line))


def lines(k: int, **options: Any) -> str:
    return "".join(f"{i}\n" for i in badge.select_from(OUT, k, **options))


def refused(result: tuple[int, str, str], message: str) -> None:
    code, out, err = result
    assert (code, out) == (2, ""), (code, out, err)
    assert err.startswith("error: ") and err.count("\n") == 1 and len(err) < 600 and message in err, err


def text(picks: Any, names: Any = range(N)) -> str:
    return "".join(f"{names[i]}\n" for i in picks)
