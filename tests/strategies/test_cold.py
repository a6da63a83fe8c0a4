"""Cold start: k-means++ on embeddings and TypiClust, before any label."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import badge
from badge.cli import app
from badge.errors import InputError, JournalError, ModelError
from badge.samplers.lloyd import lloyd
from badge.strategies import cold
from badge.testing.laws import chi_square
from laws import ACCEPTED

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(8, 6)) * 500  # so far apart that k-means finds them from every start
SIZES = [60, 50, 40, 30, 20, 15, 12, 10]
GROUP = np.repeat(np.arange(8), SIZES)
Z = CENTRES[GROUP] + RNG.normal(size=(len(GROUP), 6))
OUT = badge.Outputs(embeddings=Z)


def plain_typicality(x: np.ndarray, k: int, power: int = 1) -> np.ndarray:
    """The paper's formula, one example at a time; its authors' code has squared distances."""
    found = []
    for i in range(len(x)):
        distances = np.sort(np.linalg.norm(np.delete(x, i, axis=0) - x[i], axis=1))[:k]
        found.append(1 / (distances**power).mean())
    return np.array(found)


@pytest.mark.parametrize("seed", range(3))
def test_typiclust_takes_the_most_typical_of_the_largest_clusters(seed: int) -> None:
    ids = badge.select_from(OUT, 8, "typiclust", seed=seed)
    expected = []
    for group in np.argsort([-size for size in SIZES], kind="stable"):
        members = np.flatnonzero(group == GROUP)
        expected.append(members[plain_typicality(Z[members], min(20, len(members) // 2)).argmax()])
    assert ids.tolist() == expected


def test_a_wrong_typiclust_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least typical of each cluster is another answer: the test above can fail."""
    right = badge.select_from(OUT, 8, "typiclust")
    monkeypatch.setattr(cold, "most_typical", lambda features, rows, squared: len(rows) - 1)
    assert (badge.select_from(OUT, 8, "typiclust") != right).any()


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(("n", "done", "k"), [(300, 0, 30), (400, 20, 130), (300, 480, 40)])
def test_picks_are_those_of_the_authors_loop(n: int, done: int, k: int, squared: bool) -> None:
    """After the same k-means, with the numbers of their code: up to 500 clusters, of more than 5 rows, K = min(20, half)."""
    rng = np.random.default_rng(n)
    z = rng.normal(size=(n + done, 2)) * rng.gamma(0.5, size=(n + done, 1))
    labeled = badge.Outputs(embeddings=z[n:]) if done else None
    strategy = partial(cold.typiclust, squared=squared)
    picks = badge.select_from(badge.Outputs(embeddings=z[:n]), k, strategy, seed=1, labeled=labeled).tolist()
    clusters = min(done + k, 500)
    cluster = lloyd(badge.Dense(z), clusters, np.random.default_rng(1)).numpy()
    sizes, labels = (np.bincount(some, minlength=clusters) for some in (cluster, cluster[n:]))
    left = {c: np.flatnonzero(cluster[:n] == c) for c in np.lexsort((-sizes, labels)).tolist() if sizes[c] > 5}
    turns = [c for turn in range(n) for c, members in left.items() if turn < len(members)]
    for c, pick in zip(turns, picks, strict=False):
        assert pick in left[c]
        if len(left[c]) > 1:
            means = 1 / plain_typicality(z[left[c]], max(1, min(20, len(left[c]) // 2)), 2 if squared else 1)
            assert means[left[c] == pick] == pytest.approx(means.min())
        left[c] = left[c][left[c] != pick]
    assert len(turns) >= k or all(sizes[cluster[pick]] <= 5 for pick in picks[len(turns) :])


def test_clusters_that_hold_labels_come_last() -> None:
    done = [int(np.flatnonzero(g == GROUP)[0]) for g in (0, 1, 2)]
    ids = badge.select_from(OUT, 5, "typiclust", exclude=done)
    assert sorted(GROUP[ids].tolist()) == [3, 4, 5, 6, 7]
    rest = np.setdiff1d(np.arange(len(Z)), done)
    same = badge.select_from(OUT[rest], 5, "typiclust", labeled=OUT[done])
    assert (rest[same] == ids).all()


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
def test_clusters_and_typicality_do_not_depend_on_a_common_offset(offset: float) -> None:
    """‖x‖² + ‖c‖² − 2⟨x, c⟩ has no digit left of a distance of 1 at 1e8."""
    moved = (Z + offset) - offset  # what the numbers still hold
    assert badge.select_from(badge.Outputs(embeddings=Z + offset), 8, "typiclust").tolist() == (
        badge.select_from(badge.Outputs(embeddings=moved), 8, "typiclust").tolist()
    )
    near = RNG.normal(size=(300, 4))
    cluster = lloyd(badge.Dense(near + offset), 6, np.random.default_rng(0)).numpy()
    means = np.stack([near[cluster == c].mean(axis=0) for c in range(6)])
    assert (((near[:, None] - means) ** 2).sum(axis=2).argmin(axis=1) == cluster).all()


@pytest.mark.parametrize("k", [1, 4, 12, 40, 236, 237])
def test_any_number_of_picks_is_distinct(k: int) -> None:
    for name in ("typiclust", "kmeanspp"):
        ids = badge.select_from(OUT, k, name)
        assert len(set(ids.tolist())) == k
    few = badge.Outputs(embeddings=np.zeros((6, 2)))
    assert sorted(badge.select_from(few, 6, "typiclust").tolist()) == list(range(6))


def test_more_picks_than_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters are gone through again, each time without what was taken."""
    monkeypatch.setattr(cold, "MOST_CLUSTERS", 8)
    ids = badge.select_from(OUT, 20, "typiclust")
    assert GROUP[ids].tolist()[:16] == list(range(8)) * 2 and len(set(ids.tolist())) == 20


def test_kmeanspp_on_embeddings_has_the_law() -> None:
    """The first uniform, the second in proportion to the squared distance; with labelled examples, from them on."""
    x = np.array([[0.0], [1.0], [3.0]])
    pair = badge.Outputs(embeddings=x)
    counts: dict[Any, int] = {}
    for seed in range(300):
        picks = tuple(badge.select_from(pair, 2, "kmeanspp", seed=seed).tolist())
        counts[picks] = counts.get(picks, 0) + 1
    sq = (x - x.T) ** 2
    law = {(i, j): sq[i, j] / sq[i].sum() / 3 for i in range(3) for j in range(3) if i != j}
    assert chi_square(counts, law) > ACCEPTED
    uniform = dict.fromkeys(law, 1 / 6)
    assert chi_square(counts, uniform) < ACCEPTED
    assert {int(badge.select_from(pair, 1, "kmeanspp", seed=s, labeled=pair[[0, 1]])[0]) for s in range(9)} == {2}


def test_lloyd_is_a_fixed_point() -> None:
    """Every row is nearer to the mean of its cluster than to any other mean."""
    cluster = lloyd(badge.Dense(Z), 8, np.random.default_rng(0)).numpy()
    assert len({(int(a), int(b)) for a, b in zip(cluster, GROUP, strict=True)}) == 8
    means = np.stack([Z[cluster == c].mean(axis=0) for c in range(8)])
    assert (((Z[:, None] - means) ** 2).sum(axis=2).argmin(axis=1) == cluster).all()


# -- a model without a head --------------------------------------------------------------------------------------------


class Backbone(torch.nn.Module):
    """Ends in a pooled map; `grid` leaves the places in."""

    def __init__(self, grid: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.map, self.grid = torch.nn.Conv1d(1, 5, 2), grid

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.relu(self.map(x[:, None]))
        return found[..., None] if self.grid else found.mean(dim=2)


def test_what_a_model_without_a_head_returns_is_the_embedding(tmp_path: Path) -> None:
    pool = torch.from_numpy(Z).float()
    net = Backbone()
    with torch.no_grad():
        expected = net(pool)
    out = badge.predict(net, pool, embeddings="only", batch_size=50)
    torch.testing.assert_close(out.embeddings, expected)
    torch.testing.assert_close(badge.predict(Backbone(grid=True), pool, embeddings="only").embeddings, expected)
    for name in ("typiclust", "kmeanspp"):
        wanted = badge.select_from(out, 8, name).tolist()
        assert badge.select(net, pool, 8, strategy=name).tolist() == wanted
        assert badge.select(net, pool, 8, strategy=name, out=tmp_path / name).tolist() == wanted
    with pytest.raises(InputError, match="hold no probabilities: the pass was made for embeddings only"):
        badge.select_from(badge.Outputs.load(tmp_path / "kmeanspp"), 8)


def test_of_a_classifier_it_is_the_input_of_the_output_layer() -> None:
    pool = torch.from_numpy(Z).float()
    net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
    out = badge.predict(net, pool, embeddings="only")
    torch.testing.assert_close(out.embeddings, torch.relu(net[0](pool)).detach())
    assert not out.has_probabilities
    assert badge.select(net, pool, 8, strategy="kmeanspp").tolist() == badge.select_from(out, 8, "kmeanspp").tolist()

    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"logits": net(x) / 2}

    with pytest.raises(ModelError, match="no linear layer gives the logits"):  # a classifier: not an embedding
        badge.select(Scaled(), pool, 8, strategy="typiclust")


def test_a_transformer_without_a_head() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = transformers.BertModel(transformers.BertConfig(vocab_size=20, **sizes)).eval()
    mask = (torch.arange(7) < torch.arange(30)[:, None] % 6 + 1).long()
    pool = {"input_ids": torch.randint(0, 20, (30, 7)), "attention_mask": mask}
    with torch.no_grad():
        hidden = model(**pool).last_hidden_state
    expected = (hidden * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
    out = badge.predict(model, pool, embeddings="only")
    torch.testing.assert_close(out.embeddings, expected)
    assert (
        badge.select(model, pool, 5, strategy="typiclust").tolist() == badge.select_from(out, 5, "typiclust").tolist()
    )
    for strategy in ("badge", "conf"):  # its pooled state is not the logits of a classifier
        with pytest.raises(ModelError, match="last_hidden_state, pooler_output and no logits: it has no head"):
            badge.select(model, pool, 5, strategy=strategy)


# -- the learner, the command line -------------------------------------------------------------------------------------


def learner(**options: Any) -> badge.ActiveLearner:
    from sklearn.naive_bayes import GaussianNB

    return badge.ActiveLearner(Z, GaussianNB(), classes=8, seed=3, **options)


def test_the_learners_first_batch(tmp_path: Path) -> None:
    with learner(first="typiclust", embeddings=Z, journal=tmp_path / "j.jsonl") as first:
        ids = first.ask(8)
        assert sorted(GROUP[ids].tolist()) == list(range(8))
        first.tell(ids, GROUP[ids])
        later = first.ask(5)
    with learner(first="typiclust", embeddings=Z, journal=tmp_path / "j.jsonl") as again:
        assert again.pending.tolist() == later.tolist()
    uniform = learner()
    assert sorted(GROUP[uniform.ask(8)].tolist()) != list(range(8))


def test_the_journal_says_what_picked_first(tmp_path: Path) -> None:
    """The picks depend on it; once a model has picked, it is no matter any more."""
    journal = tmp_path / "j.jsonl"
    with learner(first="typiclust", embeddings=Z, journal=journal) as first:
        first.tell(first.ask(3), [0, 0, 0])  # one class: there is no model yet
    assert badge.journal.read(journal)[0]["first"] == "typiclust"
    for other in ({}, {"first": "kmeanspp", "embeddings": Z}):
        with pytest.raises(JournalError, match="its strategy of the first batch is 'typiclust', yours is"):
            learner(journal=journal, **other)
    with learner(first="typiclust", embeddings=Z, journal=journal) as again:
        ids = again.ask(30)
        again.tell(ids, GROUP[ids])
        again.ask(2)
    learner(journal=journal).close()
    with learner(journal=tmp_path / "uniform.jsonl") as uniform:
        uniform.ask(3)
    assert "first" not in badge.journal.read(tmp_path / "uniform.jsonl")[0]


def test_a_frozen_encoder_has_the_embeddings(tmp_path: Path) -> None:
    from badge.training import Frozen

    frozen = Frozen(torch.nn.Identity(), keep=tmp_path)
    with badge.ActiveLearner(Z.astype(np.float32), frozen, classes=8, first="typiclust") as one:
        assert sorted(GROUP[one.ask(8)].tolist()) == list(range(8))


def test_mistakes() -> None:
    with pytest.raises(InputError, match="pass embeddings="):
        learner(first="typiclust")
    with pytest.raises(InputError, match="embeddings have 3 rows for a pool of 237"):
        learner(first="typiclust", embeddings=Z[:3])
    with pytest.raises(InputError, match="name what picks it"):
        learner(embeddings=Z)
    with pytest.raises(InputError, match="unknown strategy 'typi'"):
        learner(first="typi", embeddings=Z)
    for wrong in ("bait", "coreset", "wkmeans"):
        with pytest.raises(
            InputError, match=f"{wrong} needs a model: the first batch is picked by kmeanspp, typiclust"
        ):
            learner(first=wrong, embeddings=Z)


def test_the_command_line(tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", Z)
    for name in ("typiclust", "kmeanspp", "maxherding", "uherding", "probcover", "auto"):
        call = ["select", "--embeddings", str(tmp_path / "z.npy"), "-k", "8", "--strategy", name]
        done = CliRunner().invoke(app, call)
        assert [int(line) for line in done.stdout.split()] == badge.select_from(OUT, 8, name).tolist()
        refused = CliRunner().invoke(app, [*call, "--format", "csv"])
        assert "it needs --probabilities too" in str(refused.exception)
    (tmp_path / "done.txt").write_text("0\n1\n")
    labelled = ["select", "--embeddings", str(tmp_path / "z.npy"), "-k", "8", "--exclude", str(tmp_path / "done.txt")]
    refused = CliRunner().invoke(app, [*labelled, "--strategy", "uherding"])
    assert "--probabilities is missing" in str(refused.exception)  # there is a model once there are labels


def test_squared_distances_are_the_authors_code() -> None:
    """One far neighbour weighs more in a mean of squares: 0 has neighbours at 1 and 4, 10 at 2.9 and 2.9."""
    from badge.samplers.lloyd import least_mean_distance

    x = badge.Dense(np.array([[0.0], [1.0], [-4.0], [10.0], [12.9], [7.1]]))
    assert [least_mean_distance(x, torch.arange(6), 2, squared) for squared in (False, True)] == [0, 3]


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("stripes", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_most_typical_row_is_that_of_all_sorted_distances(
    seed: int, stripes: bool, squared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from badge.samplers.lloyd import least_mean_distance

    if stripes:  # of 128 rows, each compared with those behind it
        monkeypatch.setattr("badge.samplers.lloyd.WHOLE", 0)
        monkeypatch.setattr("badge.samplers.lloyd.STRIPE", 1)
    rng = np.random.default_rng(seed)
    x = 3 + rng.normal(size=(300, 4)) * rng.gamma(1.0, size=(300, 1))
    if seed > 2:
        x[200:225] = x[250]  # equal rows, at distance 0 from each other: the first of them
    rows = np.flatnonzero(rng.random(300) < 0.8)
    d = np.linalg.norm(x[rows][:, None] - x[rows], axis=2)
    np.fill_diagonal(d, np.inf)
    means = np.sort(d**2 if squared else d, axis=1)[:, :20].mean(axis=1)
    assert least_mean_distance(badge.Dense(x), torch.from_numpy(rows), 20, squared) == int(means.argmin())


@pytest.mark.parametrize("seed", [205, 373, 1186, 2057, 2837, *range(100)])
def test_copies_have_a_most_typical_row_too(seed: int) -> None:
    """Distances of copies are 0 but for rounding, which differs from product to product."""
    from badge.samplers.lloyd import least_mean_distance

    rng = np.random.default_rng(seed)
    n, width = int(rng.integers(2, 12)), int(rng.integers(1, 6))
    x = rng.normal(size=(rng.integers(1, 8), width)).astype("f4")
    x = x[rng.integers(len(x), size=n)]
    k = max(1, n // 2)
    d = np.linalg.norm(x[:, None].astype(float) - x, axis=2)
    np.fill_diagonal(d, np.inf)
    means = np.sort(d, axis=1)[:, :k].mean(axis=1)
    found = least_mean_distance(badge.Dense(x), torch.arange(n), k)
    assert means[found] <= means.min() + 1e-3
