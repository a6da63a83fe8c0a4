"""The page after crashes, with hostile names and cookies, behind a proxy: nobody is let in, nothing is bricked or lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from test_session import Texts, answer, films

import badge
from badge.errors import InputError
from badge.labelling.desk import Desk
from badge.labelling.people import People, key_of, plain_name
from badge.labelling.session import Refused, Session
from badge.labelling.sources import open_source
from pages import Person, Server, free_port


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    sessions: list[Session] = []

    def make(n: int = 60, batch_size: int = 10, of: int = 1, **options: Any) -> Session:
        source = open_source(films(tmp_path, n))
        learner = badge.ActiveLearner(
            source.pool, Texts(2), classes=["good", "bad"], ids=source.ids, seed=0, journal=tmp_path / "labels.jsonl"
        )
        sessions.append(Session(learner, source, batch_size, of, loans=tmp_path / "labels.jsonl.loans", **options))
        return sessions[-1]

    yield make
    for session in sessions:
        session.close()


def restarted(opened: Callable[..., Session], session: Session) -> Session:
    session.close()
    return opened()


# -- the key ---------------------------------------------------------------------------------------------------------


def test_a_key_that_is_empty_foreign_or_readable_is_refused(tmp_path: Path) -> None:
    journal, key = tmp_path / "labels.jsonl", tmp_path / "labels.jsonl.key"
    key.touch(0o600)  # what a crash between creating and writing left
    with pytest.raises(InputError, match="holds no key"):
        key_of(journal)
    key.unlink()
    first = key_of(journal)
    key.chmod(0o640)
    with pytest.raises(InputError, match="read by others"):
        key_of(journal)
    key.chmod(0o600)
    assert key_of(journal) == first
    if os.getuid() == 0:
        os.chown(key, 12345, 12345)
        with pytest.raises(InputError, match="another user"):
            key_of(journal)
    with pytest.raises(InputError, match="lets everybody in"):
        People("")


def test_a_link_for_one_person_does_not_lock_everybody_else_out(opened: Callable[..., Session], tmp_path: Path) -> None:
    people = People("secret", tmp_path / "labels.jsonl.people")
    desk = Desk(opened(), people, "http://here", tmp_path / "model")
    with pytest.raises(InputError, match="one link for everybody: start it with --people"):
        desk.link("ben", "admin")
    assert people.find("secret") is not None and not (tmp_path / "labels.jsonl.people").exists()
    people.add("ann", "admin")
    assert desk.link("ben")["link"].startswith("http://here/?token=")


def test_a_kill_while_the_key_is_written_leaves_none(tmp_path: Path) -> None:
    """Killed at every system call that opens, writes or renames: the file is whole or not there."""
    script = (
        "import os, sys, tempfile\nfrom pathlib import Path\nfrom badge.labelling import people\n"
        "left = int(sys.argv[2])\n"
        "def counted(real):\n"
        "    def call(*given, **named):\n"
        "        global left\n"
        "        left -= 1\n"
        "        if left < 0: os.kill(os.getpid(), 9)\n"
        "        return real(*given, **named)\n"
        "    return call\n"
        "tempfile.mkstemp, os.fdopen, os.fsync = map(counted, (tempfile.mkstemp, os.fdopen, os.fsync))\n"
        "Path.replace = counted(Path.replace)\n"
        "people.key_of(Path(sys.argv[1]))\n"
    )
    for place in range(6):
        journal = tmp_path / f"j{place}"
        subprocess.run([sys.executable, "-c", script, str(journal), str(place)], env={**os.environ}, check=False)
        key = journal.with_name(journal.name + ".key")
        assert not key.exists() or len(key.read_text()) >= 30
        assert len(key_of(journal)) >= 30


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def client(opened: Callable[..., Session]) -> Iterator[Any]:
    testing = pytest.importorskip("starlette.testclient", reason="starlette is not installed")
    from badge.labelling.server import app_of

    session = opened()
    app = app_of(session, People("secret"), "127.0.0.1", 8600, "ann")
    client = testing.TestClient(app, base_url="http://127.0.0.1:8600", raise_server_exceptions=False)
    client.get("/?token=secret")
    client.session = session
    yield client


def post(client: Any, path: str, body: Any) -> Any:
    sent = {"origin": "http://127.0.0.1:8600", "content-type": "application/json"}
    return client.post(path, content=body if isinstance(body, bytes | str) else json.dumps(body), headers=sent)


def test_half_a_character_is_refused_before_the_journal(client: Any) -> None:
    item = post(client, "/api/next", {"client": "c", "name": "ann"}).json()
    body = {"request": "r", "client": "c", "name": "ann", "id": item["id"], "shown": item["shown"], "label": "good"}
    for field in ("request", "client", "name", "id", "label", "shown"):
        assert post(client, "/api/answer", {**body, field: "x\ud800"}).status_code == 400, field
    assert post(client, "/api/skip", {**body, "reason": "x\ud83d"}).status_code == 400
    assert post(client, "/api/next", {"client": "c", "name": "a\x00nn"}).status_code == 400
    told = badge.journal.read(client.session.learner._journal.path)
    assert not [e for e in told if e["event"] in ("tell", "skip")]
    assert client.get("/api/state").status_code == 200 and post(client, "/api/answer", body).status_code == 200


def test_names_are_trimmed_and_composed() -> None:
    assert plain_name(" ann ") == "ann" and plain_name("Zoe\u0308") == plain_name("Zo\u00eb")
    for bad in ("", "  ", "a\ud800", "a\nb", "x" * 201):
        with pytest.raises(InputError):
            plain_name(bad)


def test_half_a_character_never_reaches_the_journal(tmp_path: Path) -> None:
    with badge.ActiveLearner(["a", "b", "c"], Texts(2), classes=["x", "y"], journal=tmp_path / "j") as learner:
        with pytest.raises(InputError, match="name of whoever labelled"):
            learner.tell([0], ["x"], by="half \ud800", unasked=True)
        with pytest.raises(InputError, match="a reason is a text"):
            learner.skip([0], "half \ud800")
    assert len(badge.journal.read(tmp_path / "j")) == 1


# -- odd requests ------------------------------------------------------------------------------------------------------


def test_cookies_of_other_programs_lock_nobody_out(client: Any) -> None:
    ours = client.cookies["badge_8600"]
    client.cookies.clear()
    for others in ('{"a": 1}', "x=\x01", "a b c=1", "=", 'q="unfinished', "é=ü"):
        header = f"{others}; badge_8600={ours}; z=@@@".encode("latin-1")
        assert client.get("/api/state", headers={"cookie": header}).status_code == 200, others
    assert client.get("/api/state", headers={"cookie": "badge_8600=wrong"}).status_code == 401


def test_odd_pages_and_deep_json_are_no_server_errors(client: Any) -> None:
    for page in ("²", "-1", "1e3", "9" * 400, "٣"):
        assert client.get("/api/labels", params={"page": page}).status_code == 200, page
    assert post(client, "/api/next", "[" * 30_000 + "]" * 30_000).status_code == 400
    assert post(client, "/api/next", '{"a":' * 9000 + "1" + "}" * 9000).status_code == 400
    assert post(client, "/api/answer", '{"request": NaN}').status_code == 400


# -- restarts ----------------------------------------------------------------------------------------------------------


def test_a_second_answer_after_a_restart_is_refused_not_swallowed(opened: Callable[..., Session]) -> None:
    session = opened()
    held = session.next("a", "ann")
    session = restarted(opened, session)
    answer(session, "b1", "b", "ben", held["id"], "good")
    with pytest.raises(Refused, match="meanwhile"):
        answer(session, "a1", "a", "ann", held["id"], "good")  # the same label: ann's answer is not recorded
    assert [row.by for row in session.learner.history] == ["ben"]


def test_a_request_is_known_after_a_restart(opened: Callable[..., Session]) -> None:
    session = opened()
    first = session.next("a", "ann")
    session.answer("r1", "a", "ann", first["id"], first["shown"], "good")
    second = session.next("a", "ann")
    session.skip("r2", "a", "ann", second["id"], second["shown"], reason="torn")
    session = restarted(opened, session)
    said = session.answer("r1", "a", "ann", first["id"], first["shown"], "good")
    assert said["saved"] and said["label"] == "good"
    session.undo("r3", "a", "ann")  # brings the skipped item back
    assert not session.learner.skipped
    session = restarted(opened, session)
    session.skip("r2", "a", "ann", second["id"], second["shown"], reason="torn")  # the old skip again
    assert not session.learner.skipped
    assert len([e for e in badge.journal.read(session.learner._journal.path) if e["event"] == "skip"]) == 1


def test_undo_restart_relabel(opened: Callable[..., Session]) -> None:
    session = opened()
    first = session.next("a", "ann")
    answer(session, "1", "a", "ann", first["id"], "good")
    back = session.undo("2", "a", "ann")["next"]
    session = restarted(opened, session)
    assert session.next("a", "ann")["was"] == "good"  # the page is still looking at it
    assert session.undo("2", "a", "ann")["undone"] == back["id"]
    done = answer(session, "3", "a", "ann", back["id"], "bad", was="good")
    assert done["corrected"] and session.learner.labels[first["id"]] == "bad"


def test_loans_survive_a_restart(opened: Callable[..., Session]) -> None:
    session = opened()
    held = {client: session.next(client, client)["id"] for client in ("a", "b", "c")}
    session = restarted(opened, session)
    assert session.next("new", "new")["id"] not in held.values()
    assert {client: session.next(client, client)["id"] for client in held} == held


def test_sys_exit_in_a_trainer_does_not_end_the_picker(opened: Callable[..., Session]) -> None:
    session = opened(n=40, batch_size=4)
    fit, calls = session.learner.trainer.fit, []

    def leave(*given: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            sys.exit(3)
        return fit(*given)

    session.learner.trainer.fit = leave
    task = session.next("c", "c")
    for i in range(8):
        task = answer(session, str(i), "c", "c", task["id"], ("good", "bad")[i % 2])["next"]
    end = time.monotonic() + 20
    while time.monotonic() < end and not session.picker.guess:
        session.picker.wake()
        time.sleep(0.05)
    assert len(calls) >= 2 and session.picker.guess


# -- behind a proxy ----------------------------------------------------------------------------------------------------

NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port} ssl; server_name label.example.org;
    ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
    location / {{ proxy_pass http://127.0.0.1:{behind}; {host} }}
  }}
}}
"""


@pytest.mark.parametrize("host", ["proxy_set_header Host $http_host;", ""])
def test_a_proxy_with_tls(browser: Any, tmp_path: Path, host: str) -> None:
    nginx = next((path for path in ("/usr/sbin/nginx", "/usr/bin/nginx") if Path(path).exists()), None)
    if nginx is None:
        pytest.skip("no nginx on this machine")
    films(tmp_path)
    port = free_port()
    public = f"https://localhost:{port}"
    server = Server(tmp_path, "films.csv", "--classes", "good,bad", "--public-url", public)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    (tmp_path / "nginx.conf").write_text(NGINX.format(folder=tmp_path, port=port, behind=server.port, host=host))
    proxy = subprocess.Popen([nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
    try:
        for _ in range(100):
            try:
                httpx.get(public, verify=False)
                break
            except httpx.TransportError:
                time.sleep(0.05)
        assert server.url.startswith(f"{public}/?token=")
        ann = Person(browser, server.url, ignore_https_errors=True)
        for _ in range(3):
            ann.press("1")
        (cookie,) = ann.context.cookies()
        assert cookie["secure"] and cookie["httpOnly"] and ann.said == []
        told = [e for e in badge.journal.read(tmp_path / "films.labels.jsonl") if e["event"] == "tell"]
        assert len(told) == 3
        with httpx.Client(base_url=public, verify=False) as other:  # another site's page, through the same proxy
            other.get(server.url)
            sent = {"origin": "https://evil.example", "content-type": "application/json"}
            assert other.post("/api/next", json={"client": "c", "name": "a"}, headers=sent).status_code == 403
        ann.close()
    finally:
        proxy.terminate()
        proxy.wait(10)
        server.kill()


def test_a_public_url_has_no_path() -> None:
    from badge.labelling.guard import public_origin

    for bad in ("label.example.org", "https://a/b", "ftp://a", "https://", "https://[x"):
        with pytest.raises(InputError, match="--public-url"):
            public_origin(bad)
