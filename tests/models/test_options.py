"""The options of a pass: one table, the same at every door."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

import badge
import badge.cluster
from badge.errors import InputError
from badge.models import batches, inputs, one_pass, pools
from badge.models.options import ABOUT, SAME_OUTPUTS, ClusterOptions, Options, PassOptions

NET = torch.nn.Linear(4, 3)
X = torch.zeros(20, 4)
NAMES = {f.name for f in fields(Options)} - {"embeddings"}


def test_the_tables_of_options_agree() -> None:
    assert PassOptions.__optional_keys__ == NAMES == set(ABOUT)
    assert ClusterOptions.__optional_keys__ == NAMES - {"device", "passes"}
    assert SAME_OUTPUTS <= NAMES
    given = inspect.get_annotations(Options)
    assert all(
        given[k] == (v if isinstance(v, str) else v.__forward_arg__) for k, v in PassOptions.__annotations__.items()
    )


@pytest.mark.parametrize("door", [badge.predict, badge.select, badge.cluster.predict, badge.cluster.select])
def test_every_argument_is_documented_in_place(door: Any) -> None:
    names = set(inspect.signature(door).parameters)
    assert names >= NAMES - {"device", "passes"} and "options" not in names and "{options}" not in door.__doc__
    said = {name.strip() for line in door.__doc__.splitlines() for name in line.split(":")[0].split(",")}
    assert names <= said


def test_an_option_that_nobody_knows_is_named() -> None:
    with pytest.raises(TypeError, match=r"predict\(\) got an unexpected keyword argument 'batchsize'"):
        badge.predict(NET, X, batchsize=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"select\(\) got an unexpected keyword argument 'embeddings'"):
        badge.select(NET, X, 3, embeddings=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"predict\(\) got an unexpected keyword argument 'device'"):
        badge.cluster.predict(NET, X, "out", device="cpu")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number ≥ 1"),
        ({"max_length": 2.5}, "max_length must be a whole number ≥ 1"),
        ({"multilabel": "yes"}, "multilabel must be True or False"),
        ({"progress": 2}, "progress must be True or False"),
        ({"autocast": "bf16"}, "autocast must be True, a torch dtype or None"),
        ({"device": "gpu"}, "device='gpu' cannot be used"),
        ({"tokenizer": len, "processor": len}, "one thing under two names"),
        ({"processor": 3}, "a int cannot be"),
    ],
)
def test_options_are_checked_when_they_are_made(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Options(**given)


def test_the_identity_names_what_changes_the_outputs() -> None:
    assert Options().identity() == Options(batch_size=3, progress=True, device="cpu", embeddings=True).identity() == ""
    changed = [
        Options(head="fc"), Options(tokenizer=len), Options(processor=len), Options(max_length=5), Options(autocast=True),
        Options(autocast=torch.bfloat16), Options(multilabel=True), Options(multilabel=False), Options(embeddings=False),
        Options(embeddings="only"),
    ]  # fmt: skip
    assert len({one.identity() for one in changed}) == len(changed)
    assert Options(autocast=False).identity() == ""


def test_a_request_opens_its_pool_and_reads_the_signature_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: dict[str, int] = {"open_pool": 0, "positional": 0}

    def count(name: str, call: Any) -> Any:
        def counting(*args: Any, **kwargs: Any) -> Any:
            counted[name] += 1
            return call(*args, **kwargs)

        return counting

    for module in (one_pass, pools, inputs, batches):
        for name in counted:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, count(name, getattr(module, name)))
    badge.select(NET, X, 3)
    assert counted == {"open_pool": 1, "positional": 1}


def test_neither_door_needs_typing_extensions() -> None:
    code = """
import sys, torch, numpy  # torch imports it; these modules must not
sys.modules["typing_extensions"] = None
import badge.models.options, badge.models.predict, badge.cluster.predicting
print("imported")
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_small_whole_numbers_of_numpy_are_whole_numbers() -> None:
    assert Options(batch_size=np.int8(5)).batch_size * 1000 == 5000  # type: ignore[arg-type]
