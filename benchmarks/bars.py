"""The bars: what must hold, what is hoped for, what was measured. Ratios are of medians within one run.

Each section is a function of a `Lab`, which measures and keeps what it measured; it returns `Bar`s. `SECTIONS` names
them, and `python -m benchmarks --only NAME` runs one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from benchmarks import inputs, measure
from benchmarks.inputs import Input
from benchmarks.measure import Memory, Run, Timing

__all__ = ["SECTIONS", "Bar", "Lab"]

MB = 10**6
#: Cores in use by other processes above which a time is not of a quiet machine.
NOISE = 0.1


@dataclass(frozen=True)
class Bar:
    """`measured` must be `sense` `must` (at least, at most), and is hoped to be so with `goal`. None: not measured."""

    section: str
    what: str
    sense: Literal["≥", "≤"]
    must: float
    goal: float | None
    measured: float | None
    unit: str = "×"
    threads: int = 1
    note: str = ""

    @property
    def verdict(self) -> str:
        """missed, met, or goal.

        >>> Bar("s", "w", "≥", 4, 10, 12.5).verdict, Bar("s", "w", "≤", 1.2, None, 1.3).verdict
        ('goal', 'missed')
        """
        if self.measured is None or math.isnan(self.measured):
            return "not measured"
        sign = 1 if self.sense == "≥" else -1
        if sign * self.measured < sign * self.must:
            return "missed"
        return "goal" if self.goal is not None and sign * self.measured >= sign * self.goal else "met"


@dataclass
class Lab:
    """What sections measure with: the number of threads, and a place for what was measured."""

    threads: int = 1
    repeats: int = measure.REPEATS
    budget: float = measure.BUDGET
    tell: Callable[[str], None] = lambda line: None
    timings: list[Timing] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)

    def seconds(self, of: Input, k: int, *contenders: str) -> dict[str, Timing]:
        """Times of contenders on one input, in turn."""
        return dict(zip(contenders, self.all_seconds([Run(c, of, k) for c in contenders]), strict=True))

    def all_seconds(self, runs: Sequence[Run], threads: int | None = None) -> list[Timing]:
        self.tell(f"{' · '.join(dict.fromkeys(r.contender for r in runs))} on {runs[0].input}, k = {runs[0].k:,}")
        found = measure.seconds(runs, threads or self.threads, self.repeats, self.budget)
        self.timings += found
        return found

    def memory(self, run: Run, threads: int | None = None) -> Memory:
        self.tell(f"memory of {run.contender} on {run.input}, k = {run.k:,}")
        found = measure.memory(run, threads or self.threads)
        self.memories.append(found)
        return found


def ratio(x: Timing, y: Timing) -> float | None:
    """How many times longer x takes than y."""
    return x.median / y.median if x.seconds and y.seconds else None


def counts(*timings: Timing) -> str:
    """Medians, and of how many repeats: slow ones have fewer."""
    parts = [
        f"{t.run.contender} {t.median:.3g} s ({len(t.seconds)} ×)" if t.seconds else f"{t.run.contender}: {t.missing}"
        for t in timings
    ]
    others = max((t.others or 0 for t in timings), default=0)
    if others > NOISE:
        parts.append(f"other processes used {others:.1f} cores")
    return "; ".join(parts)


def mnist(lab: Lab, k: int) -> list[Bar]:
    """Against the plain loop and the bare product on a trained network's embeddings."""
    must, goal, most, best = {100: (4, 10, 0.7, 0.4), 1_000: (20, 60, 1.2, 0.5), 10_000: (50, 120, 0.6, 0.2)}[k]
    section, bars = f"mnist-{k}", []
    for labels in (1_000, 5_000):
        of = inputs.trained(labels)
        what = f"MNIST MLP, {labels:,} labels, N = 60,000, k = {k:,}"
        if of.kind != "mnist":
            note = "MNIST is not at hand: set BADGE_DATA to the folder of mnist.npz"
            bars.append(Bar(section, f"{what}: plain loop / ours", "≥", must, goal, None, note=note))
            continue
        t = lab.seconds(of, k, "ours", "bare product", "plain loop")
        mine, plain, bare = t["ours"], t["plain loop"], t["bare product"]
        kept = {"threads": lab.threads, "note": counts(mine, plain, bare)}
        bars.append(Bar(section, f"{what}: plain loop / ours", "≥", must, goal, ratio(plain, mine), **kept))  # type: ignore[arg-type]
        bars.append(Bar(section, f"{what}: ours / bare product", "≤", most, best, ratio(mine, bare), **kept))  # type: ignore[arg-type]
    return bars


def generated(lab: Lab, kind: str, asked: dict[int, tuple[float, float]]) -> list[Bar]:
    """Against the plain loop on generated inputs, N = 50,000, (10, 512)."""
    bars = []
    for k, (must, goal) in asked.items():
        of = Input(kind, 50_000, 10, 512)
        t = lab.seconds(of, k, "ours", "bare product", "plain loop")
        what = f"{kind}, N = 50,000, (10, 512), k = {k:,}: plain loop / ours"
        found, note = ratio(t["plain loop"], t["ours"]), counts(*t.values())
        bars.append(Bar(kind, what, "≥", must, goal, found, threads=lab.threads, note=note))
    return bars


def peers(lab: Lab) -> list[Bar]:
    """Against scikit-activeml and scikit-learn on the materialised matrix; bmdal-reg beside them."""
    of, k = Input("skewed", 20_000, 10, 256), 200
    names = ("scikit-activeml", "scikit-learn", "bmdal-reg kmeanspp")
    t = lab.seconds(of, k, "ours", *names)
    for name in ("ours", *names):
        if not t[name].missing:
            lab.memory(Run(name, of, k))
    what = "N = 20,000, (10, 256), k = 200"
    return [
        Bar("peers", f"{what}: {name} / ours", "≥", 100, None, ratio(t[name], t["ours"]), threads=lab.threads,
            note=counts(t[name], t["ours"]))
        for name in names[:2]
    ]  # fmt: skip


def kcenter(lab: Lab) -> list[Bar]:
    """Furthest-first against the plain loop, and pick by pick against the one that decides ties in float64."""
    bars, k = [], 1_000
    for labels in (1_000, 5_000):
        of = inputs.trained(labels)
        k = min(k, of.n // 4)
        t = lab.seconds(of, k, "ours kcenter-grad", "plain furthest-first")
        if labels == 5_000:  # beside the bar, and slower than the plain loop
            lab.seconds(of, k, "ours kcenter-grad", "bmdal-reg maxdist")
        lab.tell("the same picks, one by one")
        mine, exact = (Run(c, of, k) for c in ("ours kcenter-grad", "plain furthest-first, ties in float64"))
        same = measure.same_picks([mine, exact, Run("plain furthest-first", of, k)], lab.threads)
        what = f"kcenter, {of.kind.upper()} MLP, {labels:,} labels, N = {of.n:,}, k = {k:,}"
        found = ratio(t["plain furthest-first"], t["ours kcenter-grad"])
        note = counts(*t.values())
        bars.append(Bar("kcenter", f"{what}: plain / ours", "≥", 8, 20, found, threads=lab.threads, note=note))
        note = f"{same[1]:,} of {same[0]:,} picks; {same[2]:,} with the plain loop in float32"
        share = 100 * same[1] / same[0]
        bars.append(Bar("kcenter", f"{what}: same picks", "≥", 100, None, share, "%", threads=lab.threads, note=note))
    return bars


def memory_bar(section: str, what: str, found: Memory) -> Bar:
    """Peak extra memory against 1.3 × the bytes of the inputs + 200 MB."""
    limit = (1.3 * found.input_bytes + 200 * MB) / MB
    peak = None if found.peak is None else found.peak / MB
    note = found.missing or f"inputs {found.input_bytes / MB:,.0f} MB, so {found.peak / found.input_bytes:.2f} × them"  # type: ignore[operator]
    return Bar(section, f"{what}: peak extra memory", "≤", limit, None, peak, "MB", found.threads, note)


def memory(lab: Lab) -> list[Bar]:
    """Peak memory above the inputs, each in a new process; the plain loop's beside ours."""
    bars = []
    cases = [(inputs.trained(5_000), 1_000), (inputs.trained(1_000), 10_000)]
    cases += [(Input("isotropic", 50_000, 10, 512), 1_000), (Input("skewed", 200_000, 10, 512), 1_000)]
    for of, k in cases:
        k = min(k, of.n // 4)
        bars.append(memory_bar("memory", f"{of}, k = {k:,}", lab.memory(Run("ours", of, k))))
    lab.memory(Run("plain loop", *cases[0]))
    return bars


def growth(lab: Lab) -> list[Bar]:
    """Ten times as many rows in at most eleven times the time."""
    bars = []
    for kind in ("skewed", "isotropic"):
        small, large = (Run("ours", Input(kind, n, 10, 256), 1_000) for n in (100_000, 1_000_000))
        t = lab.all_seconds([small, large])
        note = counts(*t)
        what = f"{kind}, (10, 256), k = 1,000: time at N = 1,000,000 / at 100,000"
        bars.append(Bar("growth", what, "≤", 11, None, ratio(t[1], t[0]), threads=lab.threads, note=note))
    return bars


def memmap(lab: Lab) -> list[Bar]:
    """5,000,000 × (10 + 512) in float16 on disk: 5.2 GB that are never in memory as a whole."""
    found = lab.memory(Run("ours", Input("skewed", 5_000_000, 10, 512), 1_000, mapped=True))
    measured = None if found.anonymous is None else found.anonymous / MB
    note = found.missing or f"{found.seconds:.0f} s; 5.2 GB on disk"
    what = "memory-mapped float16, N = 5,000,000, (10, 512), k = 1,000: anonymous memory"
    per_row = None if found.anonymous is None else found.anonymous / found.run.input.n
    return [
        Bar("memmap", what, "≤", 2_000, None, measured, "MB", found.threads, note),
        Bar("memmap", f"{what} per row", "≤", 28, 20, per_row, "bytes", found.threads, "all of it at its peak"),
    ]


def kdpp(lab: Lab) -> list[Bar]:
    """The k-DPP: within a minute on 2 threads at k = 1,000, under 4 GB at k = 10,000; DPPy's times beside ours."""
    letter = Input("skewed", 20_000, 26, 1_024)
    steps = math.floor(5 * 1_000 * math.log(1_000))
    [t] = lab.all_seconds([Run("ours k-DPP mcmc", letter, 1_000)], threads=2)
    m = lab.memory(Run("ours k-DPP mcmc, 100 steps", letter, 10_000), threads=2)
    peak = None if m.peak is None else (m.peak + m.input_bytes) / MB
    lab.seconds(Input("skewed", 1_000, 10, 256), 50, "ours k-DPP exact", "DPPy exact", "ours k-DPP mcmc", "DPPy mcmc")
    return [
        Bar("kdpp", f"mcmc, {steps:,} steps, N = 20,000, (26, 1024), k = 1,000", "≤", 60, None, t.median, "s", 2, counts(t)),
        Bar("kdpp", "mcmc, 100 steps, same, k = 10,000: peak memory with its inputs", "≤", 4_000, None, peak, "MB", 2,
            m.missing or f"{m.seconds:.3g} s"),
    ]  # fmt: skip


def coreset(lab: Lab) -> list[Bar]:
    """50,000 labelled against a pool of 50,000, without the matrix of their distances (10 GB); 500 against 60,000."""
    of = Input("skewed", 60_500, 10, 256)
    t = lab.seconds(of, 100, "ours coreset, 500 labelled", "bare product with 500 labelled")
    few = ratio(t["ours coreset, 500 labelled"], t["bare product with 500 labelled"])
    what = "coreset, 500 labelled, N = 60,000, D = 256, k = 100: ours / bare product N × D × labelled"
    quick = Bar("coreset", what, "≤", 1.2, 0.5, few, threads=lab.threads, note=counts(*t.values()))
    found = lab.memory(Run("ours coreset, half labelled", Input("skewed", 100_000, 10, 512), 1_000))
    bar = memory_bar("coreset", "coreset, 50,000 labelled, N = 50,000, D = 512, k = 1,000", found)
    seconds = "" if found.seconds is None else f"{found.seconds:.3g} s; "
    return [quick, Bar(**{**vars(bar), "note": seconds + bar.note})]


def devices(lab: Lab) -> list[Bar]:
    """How often the host waits for a device, counted without one."""
    from benchmarks.devices import devices as counted

    return counted(lab)


def noticed(lab: Lab) -> list[Bar]:
    """What people notice: small pools, a busy machine, passes over texts, pools on disk."""
    from benchmarks.noticed import noticed as measured

    return measured(lab)


def doors(lab: Lab) -> list[Bar]:
    """What validation, the pass over a pool and an answer to a wrong call cost over what they lead to."""
    from benchmarks.doors import doors as measured

    return measured(lab)


def people(lab: Lab) -> list[Bar]:
    """What a person waits for: the page of a large pool, a report."""
    from benchmarks.people import people as measured

    return measured(lab)


SECTIONS: dict[str, Callable[[Lab], list[Bar]]] = {
    "mnist-100": lambda lab: mnist(lab, 100),
    "mnist-1000": lambda lab: mnist(lab, 1_000),
    "mnist-10000": lambda lab: mnist(lab, 10_000),
    "isotropic": lambda lab: generated(lab, "isotropic", {1_000: (8, 15)}),
    "skewed": lambda lab: generated(lab, "skewed", {1_000: (15, 30), 100: (4, 8)}),
    "peers": peers,
    "kcenter": kcenter,
    "memory": memory,
    "growth": growth,
    "kdpp": kdpp,
    "coreset": coreset,
    "devices": devices,
    "noticed": noticed,
    "doors": doors,
    "people": people,
    "memmap": memmap,
}
