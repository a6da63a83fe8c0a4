"""BALD against the textbook formula, from arrays, passes with dropout and lists of models."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import badge
from badge.errors import InputError, ModelError
from badge.strategies.bald import mean_of, mutual_information


def members(count: int, n: int = 30, c: int = 4) -> list[badge.Outputs]:
    rng = np.random.default_rng(0)
    return [badge.Outputs.from_logits(2 * rng.normal(size=(n, c))) for _ in range(count)]


def textbook(p: np.ndarray) -> np.ndarray:
    """KL from the joint of member and label to the product of the marginals; p is [members, rows, classes]."""
    return (p / len(p) * np.log(p / p.mean(axis=0))).sum(axis=(0, 2))


def net(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))


def test_the_textbook_formula() -> None:
    some = members(5)
    joint = textbook(np.stack([one.probabilities.numpy() for one in some]))
    together = mean_of(iter(some))
    np.testing.assert_allclose(mutual_information(together).numpy(), joint, atol=1e-12)
    assert badge.select_from(together, k=3, strategy="bald").tolist() == np.argsort(-joint)[:3].tolist()
    assert sorted(badge.select_from(together, k=30, strategy="power-bald").tolist()) == list(range(30))
    left = badge.select_from(together, k=3, strategy="bald", exclude=np.argsort(-joint)[:2])
    assert left.tolist() == np.argsort(-joint)[2:5].tolist()


def test_binary_and_multilabel() -> None:
    for options in ({}, {"multilabel": True}):
        pair = mean_of([badge.Outputs([[0.9]], **options), badge.Outputs([[0.1]], **options)])
        expected = np.log(2) + 0.9 * np.log(0.9) + 0.1 * np.log(0.1)
        assert float(mutual_information(pair)[0]) == pytest.approx(expected)


def test_passes_with_dropout() -> None:
    """Only dropout is on; many passes approach the mean over all masks, and two calls say the same."""
    model, pool = net(), torch.randn(40, 5)
    modes, state = [m.training for m in model.modules()], {k: v.clone() for k, v in model.state_dict().items()}
    before = torch.get_rng_state()
    out = badge.predict(model, pool, passes=200, batch_size=16)
    assert torch.equal(torch.get_rng_state(), before) and modes == [m.training for m in model.modules()]
    assert all(torch.equal(state[k], v) for k, v in model.state_dict().items())  # batch norm was in eval mode
    assert torch.equal(out.embeddings, badge.predict(model, pool).embeddings)
    again = badge.predict(model, pool, passes=200, batch_size=16)
    assert torch.equal(out.probabilities, again.probabilities)
    model.eval()
    with torch.no_grad():
        h = model[:3](pool)
        masks = (torch.rand(200, 40, 16, generator=torch.Generator().manual_seed(1)) < 0.5).float() * 2
        p = torch.softmax(model[4](h * masks), dim=2).double().numpy()
    np.testing.assert_allclose(mutual_information(out).numpy(), textbook(p), atol=0.05)
    assert np.corrcoef(mutual_information(out).numpy(), textbook(p))[0, 1] > 0.95
    assert len(badge.select(model, pool, k=5, strategy="bald", passes=5)) == 5


def test_a_list_of_models() -> None:
    pool = torch.randn(20, 5)
    nets = [net(seed).eval() for seed in range(3)]
    single = [badge.predict(one, pool) for one in nets]
    out = badge.predict(nets, pool, batch_size=8)
    expected = textbook(np.stack([one.probabilities.double().numpy() for one in single]))
    np.testing.assert_allclose(mutual_information(out).numpy(), expected, atol=1e-6)
    assert torch.equal(out.embeddings, single[0].embeddings)
    x, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 3
    fitted = [LogisticRegression(C=c).fit(x, y) for c in (0.01, 1.0)]
    found = badge.predict(fitted, x)
    expected = textbook(np.stack([one.predict_proba(x) for one in fitted]))
    np.testing.assert_allclose(mutual_information(found).numpy(), expected, atol=1e-6)


POWER: Any = badge.strategies.get("power-bald")


@pytest.mark.parametrize("strategy", ["bald", "power-bald", partial(POWER, beta=2.0)])
def test_one_answer_is_refused_before_the_pass(strategy: Any) -> None:
    """A pass over a large pool takes hours."""
    ran: list[int] = []
    model = net()
    model.register_forward_hook(lambda *_: ran.append(1))
    with pytest.raises(InputError, match=r"bald compares several answers .* passes=20"):
        badge.select(model, torch.randn(9, 5), k=2, strategy=strategy)
    assert not ran
    assert len(badge.select(model, torch.randn(9, 5), k=2, strategy=strategy, passes=2)) == 2 and ran
    assert len(badge.select([model, net(1)], torch.randn(9, 5), k=2, strategy=strategy)) == 2


def test_what_is_kept_does_not_grow_with_passes() -> None:
    few, many = (badge.predict(net(), torch.randn(9, 5), passes=passes) for passes in (2, 50))
    assert few.probabilities.shape == many.probabilities.shape == (9, 3)
    assert few.expected_entropy.shape == many.expected_entropy.shape == (9, 1)  # type: ignore[union-attr]


def test_mistakes(tmp_path: object) -> None:
    with pytest.raises(InputError, match="two members or more that can disagree, not 1"):
        mean_of(members(1))
    with pytest.raises(InputError, match=r"members differ: probabilities \(30, 4\) and \(9, 4\)"):
        mean_of([*members(1), *members(1, n=9)])
    with pytest.raises(InputError, match="bald compares several answers"):
        badge.select_from(members(1)[0], k=2, strategy="bald")
    with pytest.raises(ModelError, match="no dropout layers"):
        badge.predict(nn.Linear(5, 3), torch.randn(4, 5), passes=4)
    with pytest.raises(InputError, match="passes=1 must be at least 2"):
        badge.predict(net(), torch.randn(4, 5), passes=1)
    with pytest.raises(ModelError, match="a LogisticRegression has none, pass a list of models"):
        badge.predict(LogisticRegression(), np.ones((4, 5)), passes=4)
    for models, options in (([], {}), ([net()], {}), ([net(), net()], {"passes": 4})):
        with pytest.raises(ModelError, match=rf"a list of {len(models)} models.*: pass two or more models, or one"):
            badge.predict(models, torch.randn(4, 5), **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="do not pass out="):
        badge.predict(net(), torch.randn(4, 5), passes=4, out=tmp_path)  # type: ignore[arg-type]
