"""`badge select` on files: what it reads, what it writes, and one clear line on bad input."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import badge
from select_command import OUT, N, P, Z, lines


def test_positions_one_a_line(run: Any) -> None:
    assert run("-k", 7) == (0, lines(7), "")
    assert run("-k", 7, "--strategy", "entropy", "--seed", 3) == (0, lines(7, strategy="entropy", seed=3), "")
    assert run("-k", 7, "--seed", 1)[1] == lines(7, seed=1) != lines(7)


def test_every_format_is_read(run: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    np.savez("both.npz", probabilities=P, embeddings=Z)
    np.savez("p.npz", P)
    np.savetxt("p.csv", P, delimiter=",")
    np.savetxt("z.csv", Z, delimiter=",", header="a,b,c,d,e", comments="")
    parquet.write_table(pa.table({f"c{i}": P[:, i] for i in range(4)}), "p.parquet")
    parquet.write_table(pa.table({"embedding": list(Z)}), "z.parquet")  # one column of lists
    badge.predict(torch.nn.Linear(5, 4), torch.from_numpy(Z), out="pool")
    for p, z in (("both.npz", "both.npz"), ("p.npz", "z.npy"), ("p.csv", "z.csv"), ("p.parquet", "z.parquet")):
        assert run("--probabilities", p, "--embeddings", z, "-k", 7, arrays=False) == (0, lines(7), ""), p
    expected = "".join(f"{i}\n" for i in badge.select_from(badge.Outputs.load("pool"), 7))
    assert run("--outputs", "pool", "-k", 7, arrays=False) == (0, expected, "")


def test_npy_stays_on_disk(run: Any) -> None:
    from badge.cli.pool import read_numbers

    for patterns in ((), ("*",)):
        assert isinstance(read_numbers(Path("z.npy"), "embeddings", patterns).values, np.memmap)


def test_ids_and_exclude(run: Any) -> None:
    names = [f"img {i:02d}.png" for i in range(N)]
    Path("names.txt").write_text("\n".join(names) + "\n")
    Path("done.txt").write_text("\n".join(names[:50]) + "\n\n")
    Path("positions.txt").write_text("\r\n".join(map(str, range(50))))
    picks = badge.select_from(OUT, 10, exclude=range(50))
    assert run("-k", 10, "--exclude", "positions.txt")[1].split() == [str(i) for i in picks]
    code, out, _ = run("-k", 10, "--ids", "names.txt", "--exclude", "done.txt")
    assert code == 0 and out.splitlines() == [names[i] for i in picks]


def test_labelled_examples(run: Any) -> None:
    Path("done.txt").write_text("0\n1\n2\n")
    assert run("-k", 5, "--strategy", "coreset", "--exclude", "done.txt")[1] == lines(
        5, strategy="coreset", exclude=[0, 1, 2]
    )
    np.save("lp.npy", P[:9])
    np.save("lz.npy", Z[:9] + 1)
    labeled = badge.Outputs(P[:9], Z[:9] + 1)
    options = ("--strategy", "coreset", "--labeled-probabilities", "lp.npy", "--labeled-embeddings", "lz.npy")
    assert run("-k", 5, *options)[1] == lines(5, strategy="coreset", labeled=labeled)


def test_csv_and_json_say_why(run: Any) -> None:
    Path("names.txt").write_text("\n".join(f"n{i}" for i in range(N)))
    ids = badge.select_from(OUT, 6)
    why = badge.explain(OUT, ids)
    rows = list(csv.DictReader(io.StringIO(run("-k", 6, "--format", "csv", "--ids", "names.txt")[1])))
    assert list(rows[0]) == ["rank", "id", "position", "norm", "label", "confidence", "nearest", "coverage"]
    assert [int(row["position"]) for row in rows] == ids.tolist()
    assert [row["id"] for row in rows] == [f"n{i}" for i in ids]
    np.testing.assert_allclose([float(row["norm"]) for row in rows], why.norm)
    assert rows[0]["nearest"] == ""  # there is no earlier pick
    page = json.loads(run("-k", 6, "--format", "json", "--output", "picks.json")[1] or Path("picks.json").read_text())
    assert (page["strategy"], page["seed"], page["k"], page["pool"]) == ("badge", 0, 6, N)
    assert [pick["coverage"] for pick in page["picks"]] == why.coverage.tolist()
    assert sum(pick["coverage"] for pick in page["picks"]) == N
    assert page["mean_norm"] == pytest.approx(why.mean_norm)


@pytest.mark.parametrize("strategy", ["uherding", "maxherding", "probcover", "bait", "bait-binary", "auto"])
def test_csv_and_json_say_what_each_pick_added(strategy: str, run: Any) -> None:
    """With the strategy's seed, excluded rows and labelled examples; `badge.explain` is tested against plain loops."""
    Path("done.txt").write_text("0\n1\n2\n3\n")
    np.save("lp.npy", P[:9])
    np.save("lz.npy", Z[:9] + 1)
    labeled = badge.Outputs(P[:9], Z[:9] + 1)
    files = ("--labeled-probabilities", "lp.npy", "--labeled-embeddings", "lz.npy")
    exclude = ("--exclude", "done.txt")
    cases: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (exclude, {"exclude": [0, 1, 2, 3]}),
        (files, {"labeled": labeled}),
        ((*files, *exclude), {"labeled": labeled, "exclude": [0, 1, 2, 3]}),
    ]
    if strategy != "auto":
        cases.append(((), {}))
    for said, options in cases:
        given = ("-k", 6, "--seed", 3, "--strategy", strategy, *said)
        picks = badge.select_from(OUT, 6, strategy, 3, **options)
        gain = badge.explain(OUT, picks, strategy, seed=3, **options).gain
        assert gain is not None
        code, table, error = run(*given, "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(table)))
        assert code == 0 and "objective" not in error and [int(row["position"]) for row in rows] == picks.tolist()
        np.testing.assert_allclose([float(row["gain"]) for row in rows], gain)
        page = json.loads(run(*given, "--format", "json")[1])
        np.testing.assert_allclose([pick["gain"] for pick in page["picks"]], gain)


@pytest.mark.parametrize(
    ("strategy", "line"),
    [
        ("badge", "note: badge has no objective that each pick adds to: there is no gain"),
        ("wkmeans", "note: wkmeans has no objective that each pick adds to: there is no gain"),
        (
            "auto",
            "note: auto picks the first batch by typiclust, which has no objective that each pick adds to: there is",
        ),
    ],
)
def test_one_line_says_that_there_is_no_gain(strategy: str, line: str, run: Any) -> None:
    code, table, error = run("-k", 6, "--strategy", strategy, "--format", "csv")
    assert code == 0 and "gain" not in table and line in " ".join(error.split())
    assert "gain" not in "".join(run("-k", 6, "--strategy", strategy)[1:])


BAD: list[tuple[list[object], str]] = [
    (["-k", 61], "asked for 61 of 60"),
    (["-k", 0], "k"),
    (["-k", 3, "--seed", -1], "seed"),
    (["-k", 3, "--strategy", "bagde"], "unknown strategy 'bagde': did you mean badge? Known: badge"),
    (["-k", 3, "--strategy", "coreset"], "labeled"),
    (["-k", 3, "--outputs", "."], "one or the other"),
    (["-k", 3, "--ids", "short.txt"], "has 2 lines; the pool has 60 rows"),
    (["-k", 3, "--ids", "missing.txt"], "there is no file missing.txt"),
    (["-k", 3, "--exclude", "short.txt"], "'a' is not a position from 0 to 59; for identifiers give --ids too"),
    (["-k", 3, "--exclude", "far.txt"], "'60' is not a position"),
    (["-k", 3, "--ids", "names.txt", "--exclude", "short.txt"], "2 of 2 are not in the pool (first: 'a')"),
    (["-k", 3, "--embeddings", "missing.npy"], "there is no file missing.npy"),
    (
        ["-k", 3, "--embeddings", "short.txt"],
        "none of .csv, .tsv, .jsonl (each also with .gz or .xz), .xlsx, .parquet",
    ),
    (["-k", 3, "--embeddings", "torn.npy"], "torn.npy cannot be read"),
    (["-k", 3, "--embeddings", "words.csv"], "words.csv has no column of numbers"),
    (["-k", 3, "--embeddings", "empty.csv"], "empty.csv is empty"),
    (["-k", 3, "--embeddings", "two.npz"], "two.npz holds 'a', 'b'"),
    (["-k", 3, "--embeddings", "few.npy"], "60 rows and embeddings 59"),
    (["-k", 3, "--embeddings", "nan.npy"], "embeddings hold NaN or inf in 1 row (first: 4)"),
    (["-k", 3, "--probabilities", "z.npy"], "these look like logits"),
    (["-k", 3, "--labeled-embeddings", "z.npy"], "--labeled-probabilities is missing"),
    (["-k", 3, "--output", "no/such/dir"], "cannot be written"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_one_line_and_exit_code_2(arguments: list[object], message: str, run: Any) -> None:
    Path("short.txt").write_text("a\nb\n")
    Path("far.txt").write_text("60\n")
    Path("names.txt").write_text("\n".join(f"n{i}" for i in range(N)))
    Path("torn.npy").write_bytes(Path("z.npy").read_bytes()[:200])
    Path("words.csv").write_text("x\nhello\n")
    Path("empty.csv").write_text("")
    np.savez("two.npz", a=P, b=Z)
    np.save("few.npy", Z[:-1])
    np.save("nan.npy", np.where(np.arange(N)[:, None] == 4, np.nan, Z))
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1 and message in err


@pytest.mark.parametrize("strategy", ["conf", "marg", "entropy", "rand"])
def test_what_looks_at_probabilities_only_needs_no_embeddings(strategy: str, run: Any) -> None:
    arguments = ("--probabilities", "p.npy", "-k", 7, "--strategy", strategy)
    assert run(*arguments, arrays=False) == (0, lines(7, strategy=strategy), "")
    code, out, err = run(*arguments, "--format", "csv", arrays=False)
    assert (code, out) == (2, "") and "needs --embeddings too" in err
    code, _, err = run("--probabilities", "p.npy", "-k", 7, arrays=False)
    assert code == 2 and "--embeddings is missing" in err


def test_neither_arrays_nor_outputs(run: Any) -> None:
    assert run("-k", 3, arrays=False)[2] == "error: --probabilities is missing (or give --outputs DIR)\n"
    code, _, err = run("-k", 3, "--outputs", "nowhere", arrays=False)
    assert code == 2 and "--outputs: there is no directory nowhere" in err


def test_the_installed_command_and_its_help() -> None:
    """No traceback from a real process, and help without loading torch."""
    program = "import sys; from badge.cli import main; sys.argv = ['badge', *sys.argv[1:]]; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "select", "-k", "3"], capture_output=True, text=True, env=environment()
    )
    assert (done.returncode, done.stderr) == (2, "error: --probabilities is missing (or give --outputs DIR)\n")
    light = "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules)); " + program
    done = subprocess.run(
        [sys.executable, "-c", light, "select", "--help"], capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 0 and done.stdout.rstrip().endswith("False")
    assert "badge select --probabilities p.npy --embeddings z.npy -k 100" in done.stdout


def environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}


def test_identifiers_must_be_distinct(run: Any) -> None:
    Path("names.txt").write_text("\n".join(["same", "same", *(f"n{i}" for i in range(2, N))]))
    code, out, err = run("-k", 3, "--ids", "names.txt")
    assert (code, out) == (2, "") and "names 'same' more than once" in err and err.count("\n") == 1


def test_a_strategy_of_ones_own(run: Any) -> None:
    assert run("-k", 3, "--strategy", "own_parts:lowest") == (0, "0\n1\n2\n", "")
    assert run("-k", 3, "--strategy", "own_parts:Counting") == (0, "1\n2\n3\n", "")
    code, _, err = run("-k", 3, "--strategy", "own_parts:lowst")
    assert code == 2 and "module 'own_parts' has no 'lowst'" in err


def test_several_labels_per_example(run: Any) -> None:
    logits = np.random.default_rng(5).normal(size=(N, 3))
    p = 1 / (1 + np.exp(-logits))
    np.save("labels.npy", p)
    np.save("logits.npy", logits)
    out = badge.Outputs(p, Z, multilabel=True)
    expected = "".join(f"{i}\n" for i in badge.select_from(out, 6))
    for kind, file in (("--probabilities", "labels.npy"), ("--logits", "logits.npy")):
        code, said, _ = run(kind, file, "--embeddings", "z.npy", "--multilabel", "-k", 6, arrays=False)
        assert (code, said) == (0, expected)
        assert run(kind, file, "--embeddings", "z.npy", "-k", 6, arrays=False)[:2] != (0, expected)
    given = ("--probabilities", "labels.npy", "--embeddings", "z.npy", "--multilabel", "-k", 6)
    why = badge.explain(out, badge.select_from(out, 6)).rows()
    picks = json.loads(run(*given, "--format", "json", arrays=False)[1])["picks"]
    assert [pick["label"] for pick in picks] == [row["label"] for row in why]
    table = list(csv.DictReader(io.StringIO(run(*given, "--format", "csv", arrays=False)[1])))
    assert [row["label"] for row in table] == [" ".join(map(str, row["label"])) for row in why]
    badge.predict(torch.nn.Linear(5, 4), torch.from_numpy(Z).float(), out="single")
    code, _, error = run("--outputs", "single", "--multilabel", "-k", 6, arrays=False)
    assert code == 2 and "holds one label per example" in error
