"""`logging.getLogger("badge")`: what is worth knowing, and silence by default. Outputs travel between processes."""

from __future__ import annotations

import copy
import logging
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import badge
from badge.core.catalog import ONE_PASS

NET, X = torch.nn.Linear(4, 3), torch.randn(30, 4, generator=torch.Generator().manual_seed(0))


def test_passes_and_trainings_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="badge")
    badge.predict(NET, X, out=tmp_path / "out")
    badge.predict(NET, X, out=tmp_path / "out")
    badge.predict(NET, X, embeddings=False)
    badge.Trainer(lambda: torch.nn.Linear(4, 2), lr=0.1, max_epochs=2).fit(X, [0, 1] * 15, np.random.default_rng(0))
    said = caplog.text
    assert "Linear said Outputs(30 examples, 3 probability columns, 4 embedding columns)" in said
    assert "holds 30 of 30 rows" in said and "no embeddings: the pass was made with embeddings=False" in said
    assert "trained on 30 examples: Fit(epochs=2" in said


def test_nothing_is_said_unless_somebody_listens() -> None:
    """Nor is what compiles models loaded for one that is not compiled: that takes longer than all the rest."""
    code = """
import sys, badge, torch
badge.predict(torch.nn.Linear(4, 3), torch.zeros(5, 4))
badge.core.log.log.warning("x")
assert "torch._dynamo" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])
def test_outputs_explanations_and_strategies_can_be_copied(again: object, tmp_path: Path) -> None:
    assert callable(again)
    for out in (badge.predict(NET, X), badge.predict(NET, X, out=tmp_path / "out")):
        same = again(out)
        assert torch.equal(same.probabilities, out.probabilities) and torch.equal(same.embeddings, out.embeddings)
        assert (len(same), same.directory, same.multilabel) == (len(out), out.directory, out.multilabel)
        assert (again(badge.explain(out, [1, 2])).norm == badge.explain(out, [1, 2]).norm).all()
        for name in ONE_PASS:
            strategy = again(badge.strategies.get(name))
            if name in ("badge", "marg", "rand"):
                assert (badge.select_from(out, 3, strategy=strategy) == badge.select_from(out, 3, strategy=name)).all()
