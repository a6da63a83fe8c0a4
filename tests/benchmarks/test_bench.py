"""The benchmark measures what it says: every contender selects, times and memory are of the run, verdicts are right."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from badge.errors import BadgeError, InputError
from badge.features import gradient_embedding
from benchmarks import bars, grid, inputs, machine, measure, report, stages
from benchmarks.bars import Bar, Lab
from benchmarks.contenders import CONTENDERS, residual
from benchmarks.inputs import Input
from benchmarks.measure import Run, Timing

SMALL = Input("skewed", 200, 4, 16)


@pytest.fixture
def mnist(monkeypatch: pytest.MonkeyPatch) -> None:
    """MNIST where it lies beside the clone or in $BADGE_DATA."""
    given = os.environ.get("BADGE_DATA") or Path(__file__).parents[3] / "shared" / "data"
    if not (Path(given) / "mnist.npz").is_file():
        pytest.skip("mnist.npz is neither in $BADGE_DATA nor in ../shared/data")
    monkeypatch.setenv("BADGE_DATA", str(given))


@pytest.mark.filterwarnings("ignore")  # the peers' own
@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender(name: str) -> None:
    contender = CONTENDERS[name]
    if contender.missing:
        pytest.skip(contender.missing)
    picks = contender.prepare(inputs.load(SMALL), 5)(1)
    if name.startswith("bare product"):  # a yardstick
        assert picks is None
        return
    assert picks is not None and picks.shape == (5,)
    assert picks.min() >= 0 and picks.max() < SMALL.n
    if contender.distinct:
        assert len(set(picks.tolist())) == 5


def test_the_plain_loops_follow_the_law() -> None:
    """First pick and distances are those of the reference; each draw is from the squared distances to the picks."""
    outputs = inputs.load(SMALL)
    g = gradient_embedding(outputs)
    assert torch.equal(residual(outputs.probabilities), g.a)
    runs = [CONTENDERS["plain furthest-first"], CONTENDERS["plain furthest-first, ties in float64"]]
    a, b = (c.prepare(outputs, 50)(3) for c in runs)
    assert a is not None and b is not None and a.tolist() == b.tolist()
    pick = CONTENDERS["plain loop"].prepare(outputs, 2)
    found = [pick(seed) for seed in range(1500)]
    second = np.array([int(p[1]) for p in found if p is not None])
    sq_dists = g.sq_dists(g).double().numpy()
    law = (sq_dists / sq_dists.sum(1, keepdims=True)).mean(0)
    top = np.argsort(-law)[:10]
    expected = 1500 * law[top]
    observed = np.bincount(second, minlength=SMALL.n)[top]
    assert ((observed - expected) ** 2 / expected).sum() < 35  # chi-square, 10 degrees of freedom: p = 1e-4


def test_contender_not_installed() -> None:
    from benchmarks.contenders import Contender

    absent = Contender("absent", CONTENDERS["ours"].prepare, package="badge-no-such-package")
    assert absent.missing is not None and "badge-learn[bench]" in absent.missing
    assert absent.version == ""


def test_generated_inputs() -> None:
    for kind in ("skewed", "isotropic"):
        x, y = (inputs.load(Input(kind, 3_000, 10, 256)) for _ in range(2))
        assert torch.equal(x.embeddings, y.embeddings) and torch.equal(x.probabilities, y.probabilities)
        assert torch.allclose(x.probabilities.sum(1), torch.ones(3_000), atol=1e-5)
    low, *_, high = inputs.quantiles(inputs.load(Input("isotropic", 3_000, 10, 256)), (0.01, 0.99))
    assert high / low < 1.5
    for c, d in grid.SHAPES[:3]:
        low, high = inputs.quantiles(inputs.load(Input("skewed", 3_000, c, d)), (0.05, 0.95))
        assert 10**2 < high / low < 10**4
    with pytest.raises(InputError, match="unknown kind"):
        Input("round", 3, 3, 3)


@pytest.mark.usefixtures("mnist")
def test_skewed_inputs_are_like_a_trained_network() -> None:
    """Ratios of quantiles to the 95th percentile, within a factor of 2.5 of the MNIST network with 1,000 labels."""
    of = inputs.trained(1_000)
    assert of.kind == "mnist"
    real = np.array(inputs.quantiles(inputs.load(of)))
    made = np.array(inputs.quantiles(inputs.load(Input("skewed", 20_000, of.c, of.d))))
    ratio = (made / made[4]) / (real / real[4])
    assert ((ratio > 1 / 2.5) & (ratio < 2.5)).all(), ratio


def test_trained_inputs_without_mnist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="digits come with scikit-learn")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("BADGE_DATA", raising=False)
    of = inputs.trained(100)
    assert of.kind == "digits"
    first, again = inputs.load(of), inputs.load(of)
    assert (tmp_path / "badge" / "bench" / "digits-mlp-100-seed0-v1.npz").is_file()
    assert torch.equal(first.embeddings, again.embeddings) and len(first) == of.n
    [bar] = [b for b in bars.mnist(Lab(), 100) if "1,000 labels" in b.what]
    assert bar.verdict == "not measured" and "BADGE_DATA" in bar.note


def test_seconds_in_a_process_of_its_own() -> None:
    of = Input("skewed", 2_000, 4, 64)
    ours, plain, bare = (Run(name, of, 40) for name in ("ours", "plain loop", "bare product"))
    timings = measure.seconds([ours, plain, bare], threads=1, repeats=3)
    assert [len(t.seconds) for t in timings] == [3, 3, 3]
    assert all(0 < t.median < 5 for t in timings)
    assert [t.distinct for t in timings] == [True, True, None]
    assert all(t.others is None or 0 <= t.others <= (os.cpu_count() or 1) for t in timings)


def test_same_picks_and_memory() -> None:
    of = Input("skewed", 20_000, 4, 64)
    runs = [Run(name, of, 20) for name in ("ours kcenter-grad", "plain furthest-first", "plain loop")]
    same = measure._same_picks(runs, seeds=2)
    assert same[:2] == [40, 40] and same[2] < 40
    assert measure._memory(Run("ours", of, 20, mapped=True))["input_bytes"] == of.bytes // 2
    matrix = measure.memory(Run("plain loop", of, 20), threads=1)  # a new process: no heap to fill up again
    assert matrix.input_bytes == of.bytes and matrix.seconds is not None and matrix.seconds > 0
    if matrix.peak is not None:  # the loop's buffers, at least; and less than the materialised matrix
        assert 4 * of.n < matrix.peak < 4 * of.n * of.c * of.d


def test_slow_contenders_run_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr(time, "perf_counter", lambda: 10.0 * next(clock))
    [answer] = measure._seconds([Run("plain loop", SMALL, 5)], repeats=5, budget=35.0)
    assert answer["seconds"] == [10.0] * 3


def test_a_process_that_fails_says_so() -> None:
    with pytest.raises(BadgeError, match="asked for 300 of 200"):
        measure.memory(Run("ours", SMALL, 300), threads=1)


def test_a_noisy_machine_is_noted() -> None:
    quiet, noisy = (Timing(Run("ours", SMALL, 5), 1, [1.0], True, others) for others in (0.02, 1.3))
    assert bars.counts(quiet) == "ours 1 s (1 ×)"
    assert bars.counts(noisy).endswith("other processes used 1.3 cores")


def test_verdicts() -> None:
    def verdict(sense: Any, must: float, goal: float | None, measured: float | None) -> str:
        return Bar("s", "w", sense, must, goal, measured).verdict

    assert verdict("≥", 20, 60, 19.9) == "missed"
    assert verdict("≥", 20, 60, 20) == "met"
    assert verdict("≥", 20, 60, 60) == "goal"
    assert verdict("≤", 1.2, 0.5, 1.3) == "missed"
    assert verdict("≤", 1.2, 0.5, 0.4) == "goal"
    assert verdict("≤", 11, None, 3) == "met"
    assert verdict("≤", 11, None, None) == "not measured"


def test_the_bars_are_those_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """With invented times, every row has the limits that were asked for and the ratio of the medians."""
    cost = {"ours": 1.0, "plain loop": 30.0, "bare product": 2.0, "scikit-learn": 90.0, "scikit-activeml": 900.0}
    cost |= {"ours kcenter-grad": 1.0, "plain furthest-first": 10.0}

    def seconds(runs: list[Run], threads: int, *rest: Any) -> list[Timing]:
        return [Timing(r, threads, [cost.get(r.contender, 7.0) * r.input.n / 1000] * 5, True) for r in runs]

    def memory(run: Run, threads: int) -> measure.Memory:
        return measure.Memory(run, threads, 100 * bars.MB, 300 * bars.MB, 50 * bars.MB, 1.0)

    monkeypatch.setattr(measure, "seconds", seconds)
    monkeypatch.setattr(measure, "memory", memory)
    monkeypatch.setattr(measure, "same_picks", lambda runs, threads: [2000, 2000, 1999])
    monkeypatch.setattr(inputs, "trained", lambda labels: Input("mnist", 60_000, 10, 256, labels))
    monkeypatch.setattr("benchmarks.devices.CASES", ())
    monkeypatch.setattr("benchmarks.noticed.noticed", lambda lab: [])
    monkeypatch.setattr("benchmarks.doors.doors", lambda lab: [])  # these measure, also here
    monkeypatch.setattr("benchmarks.people.people", lambda lab: [])
    lab = Lab()
    found = {name: section(lab) for name, section in bars.SECTIONS.items()}

    def limits(name: str) -> list[tuple[str, float, float | None, float | None]]:
        return [(b.sense, b.must, b.goal, b.measured) for b in found[name]]

    assert limits("mnist-100") == [("≥", 4, 10, 30.0), ("≤", 0.7, 0.4, 0.5)] * 2
    assert limits("mnist-1000") == [("≥", 20, 60, 30.0), ("≤", 1.2, 0.5, 0.5)] * 2
    assert limits("mnist-10000") == [("≥", 50, 120, 30.0), ("≤", 0.6, 0.2, 0.5)] * 2
    assert limits("isotropic") == [("≥", 8, 15, 30.0)]
    assert limits("skewed") == [("≥", 15, 30, 30.0), ("≥", 4, 8, 30.0)]
    assert limits("peers") == [("≥", 100, None, 900.0), ("≥", 100, None, 90.0)]
    assert limits("kcenter") == [("≥", 8, 20, 10.0), ("≥", 100, None, 100.0)] * 2
    assert all(bar[:2] == ("≤", 330.0) and bar[3] == 300.0 for bar in limits("memory"))
    assert limits("growth") == [("≤", 11, None, 10.0)] * 2
    assert limits("memmap") == [("≤", 2_000, None, 50.0), ("≤", 28, 20, 10.0)]
    assert limits("kdpp")[:2] == [("≤", 60, None, 140.0), ("≤", 4_000, None, 400.0)]
    assert limits("coreset") == [("≤", 1.2, 0.5, 1.0), ("≤", 330.0, None, 300.0)]


def test_what_people_notice_is_measured_at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.noticed.SCALE", 1e-3)
    monkeypatch.setattr(inputs, "trained", lambda labels: SMALL)
    monkeypatch.setattr(inputs, "letters", list)
    found = bars.SECTIONS["noticed"](Lab(repeats=1))
    assert len(found) == 23 and all(bar.measured is not None and bar.measured >= 0 for bar in found)
    assert len({bar.what for bar in found}) == len(found)


def results() -> dict[str, Any]:
    lab = Lab()
    of = Input("skewed", 50_000, 10, 512)
    lab.timings = [Timing(Run("ours", of, k), 1, [k / 1e4] * 5, True) for k in (100, 1_000)]
    lab.timings += [Timing(Run("plain loop", of, 1_000), 1, [2.0], True)]
    lab.timings += [Timing(Run("scikit-learn", of, 1_000), 1, missing="not installed")]
    lab.memories = [measure.Memory(Run("ours", of, 1_000), 1, 10**8, 5 * 10**7, 5 * 10**7, 0.1)]
    found = report.record(lab, [Bar("skewed", "plain | ours", "≥", 15, 30, 20.0)], {"commit": "abc", "date": "today"})
    found["stages"] = [report.stage_record("ours", 0.1, [stages.Stage("f.g", 3, 0.09, 0.9)], [], {})]
    return found


def test_results_are_merged_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "bench" / "results.json"
    report.save(results(), file)
    anew = report.record(Lab(), [Bar("skewed", "plain | ours", "≥", 15, 30, 40.0)], {"commit": "def", "date": "later"})
    merged = report.save(anew, file)
    assert json.loads(file.read_text(encoding="utf-8")) == merged
    assert set(merged) == {"format", "machine", "bars", "timings", "memories", "stages", "costs"}
    assert [(b["measured"], b["verdict"], b["commit"]) for b in merged["bars"]] == [(40.0, "goal", "def")]
    assert len(merged["timings"]) == 4 and {t["commit"] for t in merged["timings"]} == {"abc"}
    assert merged["timings"][0]["run"] == {
        "contender": "ours",
        "input": {"kind": "skewed", "n": 50_000, "c": 10, "d": 512, "labels": None, "seed": 0},
        "k": 100,
        "mapped": False,
    }


def test_tables_and_page() -> None:
    found = results()
    assert report.bar_rows(found) == [["plain | ours", "1", "≥ 15 ×", "≥ 30 ×", "20 ×", "met", ""]]
    columns = report._TABLES["timings"][1]
    rows = {r[1]: dict(zip(columns, r, strict=True)) for r in report.timing_rows(found)}
    assert rows["1,000"]["plain loop"] == "2 s, 20 × (1 repeats)"
    assert rows["1,000"]["scikit-learn"] == "not run"
    assert report.memory_rows(found)[0][3:] == ["100 MB", "50 MB", "0.5 ×"]
    assert [row[3] for row in report.step_rows(found)] == ["90 %", "10 %"]
    assert len(report.tables(found)) == 5
    page = report.into_markdown("before\n<!-- bench: bars -->\nold\n<!-- bench end -->\nafter", found)
    assert page.startswith("before\n") and page.endswith("\nafter") and "old" not in page
    assert "| plain \\| ours | 1 |" in page
    assert report.into_markdown(page, found) == page


def test_the_page_of_the_docs_has_every_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "benchmarks.md"
    text = page.read_text(encoding="utf-8")
    for name in ("machine", *report._TABLES):
        assert f"<!-- bench: {name} -->" in text
    assert text.count("<!-- bench end -->") == len(report._TABLES) + 1


def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert report.plot(results(), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"
    assert not report.plot({"timings": []}, tmp_path / "none.png")


def test_stages_put_library_time_on_the_caller() -> None:
    seconds, steps, functions = stages.profile(Input("isotropic", 4_000, 4, 64), 20)
    assert seconds > 0
    for found in (steps, functions):
        assert abs(sum(s.share for s in found) - 1) < 1e-9
        assert found == sorted(found, key=lambda s: -s.seconds)
    assert any(s.name.startswith("kmeanspp.") for s in steps)
    assert any(s.name.startswith("rows.") for s in functions)
    # a made-up profile: badge's f took 1 s itself and called numpy for 2 s, which nobody else did
    f, library = (f"{stages.HOME}/samplers/kmeanspp.py", 1, "f"), ("numpy.py", 1, "g")
    made = {f: (1, 1, 1.0, 3.0, {}), library: (1, 1, 2.0, 2.0, {f: (1, 1, 2.0, 2.0)})}
    assert stages.functions(made) == stages.steps(made) == [stages.Stage("kmeanspp.f", 1, 3.0, 1.0)]
    # numpy called back a function of badge for 1.5 s of its 2 s: that counts once, and there
    back = (f"{stages.HOME}/samplers/kmeanspp.py", 9, "b")
    made = {
        **made,
        library: (1, 1, 0.5, 2.0, {f: (1, 1, 0.5, 2.0)}),
        back: (1, 1, 1.5, 1.5, {library: (1, 1, 1.5, 1.5)}),
    }
    by_name = {stage.name: stage.seconds for stage in stages.functions(made)}
    assert by_name == {"kmeanspp.f": 1.5, "kmeanspp.b": 1.5} and len(stages.steps(made)) == 2
    # called back through itself, the inner call is in the outer one's seconds too: no function takes less than none
    twice = {**made, back: (1, 2, 1.5, 1.5, {library: (1, 2, 1.5, 2.9)})}
    assert min(stage.seconds for stage in stages.functions(twice)) >= 0


def test_grid_leaves_out_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Input("skewed", 1_000_000, 100, 768)
    monkeypatch.setattr(grid, "free_bytes", lambda: 24e9)
    lab = Lab()
    monkeypatch.setattr(Lab, "all_seconds", lambda self, runs: [Timing(r, 1, [2.0]) for r in runs])
    monkeypatch.setattr(grid, "LIMIT", 20)
    grid.run(lab, of)
    reasons = {(t.run.contender, t.run.k): t.missing for t in lab.timings if t.missing}
    assert "GB" in str(reasons["scikit-learn", 100])
    assert "over the limit" in str(reasons["plain loop", 10_000])
    assert ("ours", 10_000) not in reasons
    bare = {t.run.k: t.seconds for t in lab.timings if t.run.contender == "bare product"}
    assert bare == {1_000: [20.0], 10_000: [200.0]}  # scaled from k = 100, which was measured


def test_grid_has_every_kind_and_no_k_above_a_half() -> None:
    assert {of.kind for of in grid.pools()} >= {"skewed", "isotropic"}
    assert all(2 * k <= of.n for of in grid.pools() for k in grid.batches(of))
    shown = [(of.n, k) for of in grid.pools() for k in grid.batches(of) if grid.plotted(of, k) and of.kind == "skewed"]
    assert len({n for n, k in shown if k == 1_000}) == 4 and len({k for n, k in shown if n == 50_000}) == 3


def test_the_grid_goes_on_where_it_was_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from benchmarks import command

    pools = [Input("skewed", n, 3, 8) for n in (300, 400)]
    monkeypatch.setattr(grid, "pools", lambda: pools)
    asked: list[Input] = []

    def fail_on_the_second(self: Lab, runs: list[Run]) -> list[Timing]:
        asked.append(runs[0].input)
        if len(asked) == 2:
            raise KeyboardInterrupt
        self.timings += (found := [Timing(r, 1, [1.0]) for r in runs])
        return found

    monkeypatch.setattr(Lab, "all_seconds", fail_on_the_second)
    # What a bar has measured of an input does not make its row of the grid whole.
    of_a_bar = Lab(timings=[Timing(Run("bare product", pools[1], 100), 1, [1.0])])
    report.save(report.record(of_a_bar, [], machine.describe()), tmp_path / "results.json")
    with pytest.raises(KeyboardInterrupt):
        command.run(only=["grid"], out=tmp_path)
    results = command.run(only=["grid"], out=tmp_path)
    assert asked == [pools[0], pools[1], pools[1]]
    assert {t["run"]["input"]["n"] for t in results["timings"]} == {300, 400}


def test_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from benchmarks import __main__, command

    app = typer.Typer()
    app.command()(__main__.bench)
    monkeypatch.setattr(command, "_profiled", lambda: [(SMALL, 5)])
    page = tmp_path / "page.md"
    page.write_text("<!-- bench: steps --><!-- bench end -->\n<!-- bench: machine --><!-- bench end -->", "utf-8")
    asked = ["--only", "profile", "--out", str(tmp_path / "out"), "--markdown", str(page)]
    ended = CliRunner().invoke(app, asked)
    assert ended.exit_code == 0, ended.output
    assert "Where the time goes" in ended.stdout
    saved = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert saved["machine"]["torch"] == torch.__version__ and saved["stages"][0]["what"] == f"{SMALL}, k = 5"
    text = page.read_text(encoding="utf-8")
    assert "| selection | step |" in text and "- torch: " in text
    ended = CliRunner().invoke(app, ["--only", "nothing"])
    assert isinstance(ended.exception, BadgeError) and "mnist-1000" in str(ended.exception)


def test_an_input_is_made_once_for_all_that_run_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Input] = []
    load = inputs.load
    monkeypatch.setattr(inputs, "load", lambda of: made.append(of) or load(of))
    measure._seconds([Run("ours", SMALL, k) for k in (2, 3, 4)], repeats=1, budget=9.0)
    assert made == [SMALL]


def test_the_doors_are_measured() -> None:
    """Each row has its figure; the ratios themselves are not judged on a machine that others use."""
    from benchmarks.doors import doors

    found = doors(Lab(repeats=1), rows=2_000)
    assert [bar.unit for bar in found] == ["×", "×", "s", "passes"]
    assert all(bar.measured is not None and bar.measured > 0 for bar in found[:3]) and found[3].measured == 0
