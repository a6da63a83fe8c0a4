"""The measurement of labels saved on real texts, on a few of them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.labels_saved import _needed, curve, texts


def test_labels_needed_between_two_batches() -> None:
    counts, accuracies = np.array([100, 200, 300]), np.array([0.2, 0.4, 0.5])
    assert _needed(counts, accuracies, 0.3) == pytest.approx(150)
    assert _needed(counts, accuracies, 0.1) == 100 and np.isinf(_needed(counts, accuracies, 0.9))


@pytest.mark.skipif(
    not (Path(os.environ.get("BADGE_DATA", "")) / "banking77.jsonl.xz").is_file(),
    reason="banking77 is not in BADGE_DATA",
)
def test_a_short_run() -> None:
    from badge.labelling.models import Texts

    pool, y, training = texts()
    assert len(pool) == 13_083 and training.sum() == 10_003
    few = np.flatnonzero(y < 4)
    rows = Texts(4).prepare([pool[i] for i in few])
    found = curve(rows, y[few], training[few], "badge", seed=0, batch=20, labels=60)
    assert len(found) == 3 and found[-1] > 0.7
