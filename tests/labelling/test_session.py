"""The labelling session and its server without a browser: lending, answers once, threads, restarts, the guard."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import badge
from badge.cli import app
from badge.errors import InputError, JournalError
from badge.labelling import command
from badge.labelling.board import Board
from badge.labelling.lending import Loans
from badge.labelling.models import Texts
from badge.labelling.people import People, key_of
from badge.labelling.picking import UNKNOWN
from badge.labelling.session import Refused, Session
from badge.labelling.sources import Items, open_source
from load_page import run

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("starlette", reason="starlette is not installed")


Open = Callable[..., Session]


def films(folder: Path, n: int = 60) -> Path:
    path = folder / "films.csv"
    path.write_text(
        "id,text\n" + "".join(f'f{i},"a {"fine" if i % 2 else "dull"} film, number {i}"\n' for i in range(n))
    )
    return path


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    sessions: list[Session] = []

    def make(n: int = 60, batch_size: int = 10, of: int = 1, **options: Any) -> Session:
        source = open_source(films(tmp_path, n))
        known: dict[str, Any] = {"classes": ["good", "bad"], "ids": source.ids, "journal": tmp_path / "labels.jsonl"}
        learner = badge.ActiveLearner(source.pool, Texts(2), seed=0, **known)
        sessions.append(Session(learner, source, batch_size, of, **options))
        return sessions[-1]

    yield make
    for session in sessions:
        session.close()


def truth(id: str) -> str:
    return "good" if int(id[1:]) % 2 else "bad"


def answer(session: Session, request: str, client: str, name: str, id: str, label: str, was: str | None = None) -> Any:
    return session.answer(request, client, name, id, session.items.seal(session.items.id(id)), label, was)


def work(session: Session, client: str, count: int, name: str | None = None) -> list[str]:
    done = []
    task = session.next(client, name or client)
    for i in range(count):
        while "id" not in task and task["waiting"]:
            time.sleep(0.02)
            task = session.next(client, name or client)
        if "id" not in task:
            break
        done.append(task["id"])
        request = f"{client}-{i}-{task['id']}"
        task = answer(session, request, client, name or client, task["id"], truth(task["id"]))["next"]
    return done


def until(look: Callable[[], Any]) -> Any:
    end = time.monotonic() + 20
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.02)
    assert found
    return found


# -- lending ---------------------------------------------------------------------------------------------------------


def test_a_loan_comes_back_after_a_while() -> None:
    now = [0.0]
    loans = Loans(seconds=10, clock=lambda: now[0])
    assert loans.lend(["a", "b"], "ann") == "a" and loans.lend(["a", "b"], "bob") == "b"
    assert loans.lend(["a", "b"], "eve") is None
    now[0] = 9.0
    held = loans.held("ann")
    assert held is not None and held.id == "a"  # renewed
    now[0] = 11.0
    assert loans.lend(["a", "b"], "eve") == "b" and loans.held("bob") is None
    now[0] = 30.0
    assert loans.lend(["a"], "eve") == "a" and loans.held("ann") is None


def test_an_item_goes_to_one_client_at_a_time_and_stays_with_it(opened: Open) -> None:
    session = opened()
    ids = [session.next(f"c{i}", f"p{i}")["id"] for i in range(8)]
    assert len(set(ids)) == 8
    assert session.next("c3", "p3")["id"] == ids[3]  # a reload of the page


def test_all_of_a_pool_by_many_threads(opened: Open) -> None:
    session = opened(n=120, batch_size=20)
    done: list[list[str]] = [[] for _ in range(6)]
    threads = [threading.Thread(target=lambda i=i: done[i].extend(work(session, f"c{i}", 1000))) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    everything = [id for mine in done for id in mine]
    assert len(everything) == len(set(everything)) == 120
    assert session.learner.labels == {id: truth(id) for id in everything}
    assert session.next("late", "late")["done"]
    assert session.board.overview()["labelled"] == 120


# -- answers -----------------------------------------------------------------------------------------------------------


def test_a_request_that_comes_twice_has_one_effect(opened: Open) -> None:
    session = opened()
    id = session.next("c", "ann")["id"]
    first = answer(session, "r", "c", "ann", id, "good")
    assert answer(session, "r", "c", "ann", id, "bad") is first
    assert session.learner.labels[id] == "good"
    # a pick made in the background may come between: count answers alone
    events = badge.journal.read(session.learner._journal.path)  # type: ignore[arg-type]
    assert [event["event"] for event in events].count("tell") == 1
    with pytest.raises(Refused, match="labelled “good” meanwhile"):
        answer(session, "r2", "d", "bob", id, "bad")
    with pytest.raises(InputError, match="not one of the classes"):
        answer(session, "r3", "c", "ann", session.next("c", "ann")["id"], "ugly")
    with pytest.raises(InputError, match="there is no item"):
        answer(session, "r4", "c", "ann", "f9999", "good")


def test_a_time_is_a_number_of_a_day_at_most(opened: Open) -> None:
    session = opened()
    kept = {1.26: 1.3, 0: 0.0, 86_400: 86_400.0}
    for given in (*kept, True, False, -1, 86_401, "5", None, [1], float("nan"), float("inf")):
        id = session.next("c", "ann")["id"]
        shown = session.items.seal(session.items.id(id))
        session.answer(repr(given), "c", "ann", id, shown, "good", None, given)
        expected = None if isinstance(given, bool | list) else kept.get(given)  # type: ignore[call-overload]
        assert session.team.times()[-1].seconds == expected


def test_undo_goes_back_and_a_label_stands_until_it_is_corrected(opened: Open) -> None:
    session = opened()
    first = session.next("c", "ann")["id"]
    answer(session, "1", "c", "ann", first, "good")
    back = session.undo("2", "c", "ann")["next"]
    assert back["id"] == first and back["was"] == "good" and session.learner.labels[first] == "good"
    after = answer(session, "3", "c", "ann", first, "bad", was="good")
    assert after["corrected"] and session.learner.labels[first] == "bad" and after["next"]["id"] != first
    session.skip("4", "c", "ann", after["next"]["id"], after["next"]["shown"], reason="torn page")
    assert session.learner.skipped == {after["next"]["id"]: "torn page"}
    assert session.undo("5", "c", "ann")["next"]["id"] == after["next"]["id"] and not session.learner.skipped
    with pytest.raises(Refused, match="nothing to undo"):
        session.undo("6", "d", "bob")


def test_after_a_restart_everything_goes_on(opened: Open) -> None:
    session = opened()
    done = work(session, "c", 12, "ann")
    labels, pending = session.learner.labels, session.learner.pending.tolist()
    session.close()
    again = opened()
    assert again.learner.labels == labels and set(pending) <= set(again.learner.pending.tolist())
    assert again.undo("r", "new", "ann")["next"]["id"] == done[-1]
    assert len(work(again, "d", 100, "ann")) == 48


def test_two_people_are_asked_about_each_item(opened: Open) -> None:
    session = opened(n=12, batch_size=12, of=2)
    assert len(work(session, "a", 12, "ann")) == 12 and not session.learner.labels
    back = session.undo("u", "a", "ann")["next"]
    assert back["was"] == truth(back["id"])
    answer(session, "v", "a", "ann", back["id"], truth(back["id"]), was=back["was"])
    assert session.next("a", "ann")["waiting"]
    assert len(work(session, "b", 12, "bob")) == 12
    assert session.learner.labels == {f"f{i}": truth(f"f{i}") for i in range(12)}
    assert session.next("a", "ann")["done"]


def test_nobody_waits_for_a_training(opened: Open) -> None:
    session = opened(n=60, batch_size=4)
    release = threading.Event()
    fit = session.learner.trainer.fit
    session.learner.trainer.fit = lambda *given: release.wait(20) and fit(*given)
    done = work(session, "c", 25)  # many more than a batch, while the first model trains
    assert len(done) == 25 and session.learner.labels == {id: truth(id) for id in done}
    assert "random" in session.next("c", "c")["why"]
    release.set()
    until(lambda: session.picker.guess)
    assert len(work(session, "c", 5)) == 5


def test_a_pick_is_shown_once_its_reasons_are_known(opened: Open) -> None:
    session = opened(n=60, batch_size=4)
    reached, release = threading.Event(), threading.Event()
    explain = session.learner.explain

    def slowly() -> Any:
        found = explain()  # fails where no model picked
        reached.set()
        release.wait(20)
        return found

    session.learner.explain = slowly  # type: ignore[method-assign,assignment]
    shown = [session.next("c", "c")]
    while not reached.is_set() or len(shown) < 20:
        shown.append(answer(session, str(len(shown)), "c", "c", shown[-1]["id"], truth(shown[-1]["id"]))["next"])
        if len(shown) > 8:
            assert reached.wait(20)
    assert set(session.learner.pending.tolist()) - {task["id"] for task in shown}
    assert "so you need not wait" in shown[-1]["why"] and UNKNOWN not in {task["why"] for task in shown}
    release.set()
    until(lambda: not session.picker.busy)
    task = answer(session, "last", "c", "c", shown[-1]["id"], truth(shown[-1]["id"]))["next"]
    assert task["batch"] and "best guess" in task["why"]


def test_a_training_that_fails_is_said_and_does_not_stop_the_work(opened: Open) -> None:
    session = opened(n=30, batch_size=4)

    def fail(*given: Any) -> None:
        raise InputError("no model today")

    session.learner.trainer.fit = fail
    assert len(work(session, "c", 20)) == 20
    assert "no model today" in until(lambda: session.state()["overview"]["trouble"])


# -- the server's guard --------------------------------------------------------------------------------------------------


@pytest.fixture
def client(opened: Open, tmp_path: Path) -> Iterator[Any]:
    from starlette.testclient import TestClient

    from badge.labelling.server import app_of

    app = app_of(opened(), People("secret"), "127.0.0.1", 8600, "ann")
    yield TestClient(app, base_url="http://127.0.0.1:8600")


def post(client: Any, path: str, body: Any, **headers: str) -> Any:
    sent = {"origin": "http://127.0.0.1:8600", "content-type": "application/json", **headers}
    return client.post(path, content=body if isinstance(body, bytes) else json.dumps(body), headers=sent)


def test_only_the_token_lets_in_and_then_the_cookie(client: Any) -> None:
    assert client.get("/").status_code == client.get("/api/state").status_code == 401
    assert client.get("/?token=wrong").status_code == 401
    opened = client.get("/?token=secret")
    assert opened.status_code == 200
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "secret" not in cookie
    assert client.get("/api/state").status_code == 200  # by the cookie
    policy = opened.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert opened.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"host": "evil.example:8600", "origin": "http://evil.example:8600"}, 421),
        ({"host": "192.168.0.7:8600", "origin": "http://192.168.0.7:8600"}, 421),
        ({"content-type": "text/plain"}, 415),
        ({}, 200),
        ({"host": "localhost:8600", "origin": "http://localhost:8600", "cookie": "bad"}, 401),
    ],
)
def test_writes_come_from_our_own_page(client: Any, headers: dict[str, str], status: int) -> None:
    client.get("/?token=secret")
    assert post(client, "/api/next", {"client": "c", "name": "ann"}, **headers).status_code == status


def test_large_and_broken_requests(client: Any) -> None:
    client.get("/?token=secret")
    assert post(client, "/api/next", b"x" * 70_000).status_code == 413

    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 1000

    sent = {"origin": "http://127.0.0.1:8600", "content-type": "application/json"}
    assert client.post("/api/next", content=endless(), headers=sent).status_code == 413  # without a length
    for body in (b"", b"{", b"[]", b'{"client": "c"}', b'{"client": 5, "name": "a"}', b'{"client": "c", "name": ""}'):
        assert post(client, "/api/next", body).status_code == 400
    answered = {"request": "r", "client": "c", "name": "a", "id": [1], "label": "good"}
    assert post(client, "/api/answer", answered).status_code == 400
    assert client.put("/api/next").status_code == 405
    assert client.get("/api/labels?page=-1").status_code == client.get("/api/labels?page=x").status_code == 200
    assert client.get("/static/label.html").status_code == client.get("/nothing").status_code == 404


def test_the_key_is_kept_and_only_for_its_owner(tmp_path: Path) -> None:
    first = key_of(tmp_path / "labels.jsonl")
    assert key_of(tmp_path / "labels.jsonl") == first and len(first) >= 30
    assert (tmp_path / "labels.jsonl.key").stat().st_mode & 0o077 == 0


def test_many_people_lose_nothing() -> None:
    """A hundredth of what `python tests/support/load_page.py` does."""
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    found = run(people=10, answers=100, items=400)
    assert found["confirmed"] == 100 and found["lost"] == found["doubled"] == found["unconfirmed"] == 0


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    films(tmp_path)
    monkeypatch.chdir(tmp_path)
    served: list[Any] = []

    def serve(app: Any, session: Session, host: str, *given: Any) -> None:
        served.append((session.learner.classes, len(session.source), host))
        session.close()

    monkeypatch.setattr("badge.labelling.server.serve", serve)

    def label(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["label", "films.csv", "--classes", *arguments])

    first = label("good,bad", "--port", "0")
    assert first.exit_code == 0 and "/?token=" in first.output and "lets others" not in first.output
    assert served[-1] == (["good", "bad"], 60, "127.0.0.1")
    films(tmp_path, 80)  # the pool grew, and a class more
    team = label("good,bad,unclear", "--port", "0", "--host", "0.0.0.0")
    assert team.exit_code == 0 and "lets others on the network in" in team.output
    assert served[-1] == (["good", "bad", "unclear"], 80, "0.0.0.0")
    other = label("bad,good", "--port", "0").exception  # a class was added, so somebody has worked with it
    assert isinstance(other, JournalError) and "delete it" not in str(other)
    label("good,bad", "--port", "0", "--journal", "tried.jsonl")
    tried = label("bad,good", "--port", "0", "--journal", "tried.jsonl").exception
    assert isinstance(tried, JournalError) and "it holds no labels: delete it, or give --journal" in str(tried)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = label("good,bad,unclear", "--port", str(taken.getsockname()[1]))
    assert isinstance(busy.exception, InputError) and "--port 0" in str(busy.exception)


def test_a_strategy_without_a_name_is_refused(tmp_path: Path) -> None:
    arguments = ["--classes", "good,bad", "--strategy", "", "--journal", str(tmp_path / "j.jsonl"), "--save", "model"]
    result = CliRunner().invoke(app, ["label", str(films(tmp_path)), *arguments])
    assert "unknown strategy ''" in str(result.exception)


def test_formulas_among_the_texts_are_not_run_by_spreadsheets(tmp_path: Path) -> None:
    """Texts come from anyone: a cell that begins like a formula is kept from being one, and read back as it was."""
    (tmp_path / "t.csv").write_text("id,text\n" + "".join(f"=f{i},=cmd|' /C calc'!A{i}\n" for i in range(12)))
    source = open_source(tmp_path / "t.csv")
    classes = ["=good", "bad"]
    learner = badge.ActiveLearner(source.pool, Texts(2), classes=classes, ids=source.ids, journal=tmp_path / "j")
    session = Session(learner, source, 4)
    ids = learner.ask(4).tolist()
    learner.tell(ids, ["=good"] * 4, by="=me")
    lines = session.board.as_csv().splitlines()
    assert len(lines) == 5 and not any(cell.startswith("=") for line in lines for cell in line.split(","))
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    session.close()
    again = badge.ActiveLearner(source.pool, Texts(2), classes=classes, ids=source.ids)
    assert again.import_csv(tmp_path / "labels.csv") == 4
    assert again.labels == dict.fromkeys(sorted(ids), "=good")


def test_a_corrected_label_keeps_what_the_model_had_predicted_in_the_files(tmp_path: Path) -> None:
    source = open_source(films(tmp_path))
    learner = badge.ActiveLearner(source.pool, Texts(2), classes=["good", "bad"], ids=source.ids, seed=0)
    for _ in range(2):
        ids = learner.ask(10).tolist()
        learner.tell(ids, [truth(id) for id in ids], by="ann")
    row = learner.history.rows[-1]
    learner.relabel(row.id, "bad" if row.label == "good" else "good", by="ann")
    (found,) = [one for one in Board(learner, Items(source), 1, None).exported() if one["id"] == row.id]
    assert row.predicted is not None and found["predicted"] == row.predicted and found["label"] != row.label


def test_the_address_is_said_when_the_server_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the address at once is not refused, and a second server does not get the port."""
    seen: list[str] = []

    def opened(people: People, key: str, home: str) -> None:
        host, port = home.removeprefix("http://").rsplit(":", 1)
        socket.create_connection((host, int(port)), timeout=5).close()
        with pytest.raises(InputError, match=f"cannot listen on {host}, port {port}"):
            command._listening(host, int(port))
        seen.append(home)

    monkeypatch.setattr(command, "_say_links", opened)
    monkeypatch.setattr("badge.labelling.server.serve", lambda app, session, *rest: session.close())
    (tmp_path / "a.csv").write_text("text\nfine\ndull\nlong\n")
    command.run(open_source(tmp_path / "a.csv"), command.Options("good,bad", tmp_path / "a.jsonl", port=0))
    assert len(seen) == 1
