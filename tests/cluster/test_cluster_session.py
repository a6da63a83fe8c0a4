"""The cluster that a call makes for itself: on 127.0.0.1 only, gone afterwards; and what is left when it is killed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import badge.cluster
from badge.cluster import session
from badge.errors import ClusterError, MissingExtraError


def test_ray_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    for call in (
        lambda: badge.cluster.predict(torch.nn.Linear(2, 2), torch.zeros(3, 2), tmp_path),
        lambda: badge.cluster.select_from(tmp_path, 3),
        lambda: badge.cluster.select(torch.nn.Linear(2, 2), torch.zeros(3, 2), 1, out=tmp_path),
    ):
        with pytest.raises(MissingExtraError, match=r"badge.cluster needs Ray: pip install 'badge-learn\[ray\]'"):
            call()


def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nobody:
        def is_initialized(self) -> bool:
            return False

        def init(self, **options: object) -> None:
            raise ConnectionError("nobody\nanswers")

    monkeypatch.setattr(session, "require_ray", Nobody)
    with pytest.raises(ClusterError, match=r"no Ray cluster at .far:1. \(nobody answers\)"), session.connected("far:1"):
        pass
