"""Against a real Label Studio: `make test-label-studio` installs one in a separate environment and runs this."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from badge.cli import main
from badge.labelling.label_studio.client import Client
from badge.labelling.label_studio.layout import layout_of, read
from fake_label_studio import CONFIG

COMMAND = os.environ.get("BADGE_LABEL_STUDIO")
pytestmark = pytest.mark.skipif(not COMMAND, reason="no Label Studio here: make test-label-studio")

TOKEN = "a-token-for-tests"
GOOD, BAD = (
    ("a lovely fine day", "wonderful and bright", "love it"),
    ("an awful grey day", "terrible and dull", "hate it"),
)


class Server:
    """A Label Studio on sqlite in a folder, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        settings = {
            "LABEL_STUDIO_BASE_DATA_DIR": str(self.folder),
            "LABEL_STUDIO_USERNAME": "ann@example.org",
            "LABEL_STUDIO_PASSWORD": "a-password-for-tests",
            "LABEL_STUDIO_USER_TOKEN": TOKEN,
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "COLLECT_ANALYTICS": "False",
        }
        known = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        arguments = ["start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [str(COMMAND), *arguments],
            env={**known, **settings},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def wait(self, seconds: float = 240.0) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process is not None and self.process.poll() is None, "Label Studio ended by itself"
            try:
                if self.api("GET", "/api/projects/").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.5)
        raise AssertionError("Label Studio did not start")

    def kill(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def api(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        headers = {"Authorization": f"Token {TOKEN}"}
        return httpx.request(method, self.url + path, headers=headers, timeout=60.0, **arguments)

    def project(self, tasks: Sequence[str] | Sequence[bytes], config: str = CONFIG) -> int:
        """A project of texts, or of PNG files that are uploaded."""
        made = self.api("POST", "/api/projects/", json={"title": "reviews", "label_config": config})
        number = int(made.json()["id"])
        path = f"/api/projects/{number}/import"
        if isinstance(tasks[0], str):
            self.api("POST", path, json=[{"text": text} for text in tasks]).raise_for_status()
        else:
            files = [(f"{place}.png", (f"{place}.png", content, "image/png")) for place, content in enumerate(tasks)]
            self.api("POST", path, files=files).raise_for_status()
        return number

    def person(self, email: str) -> httpx.Client:
        """Somebody who signed up in the browser and is logged in there."""
        browser = httpx.Client(base_url=self.url, timeout=60.0, follow_redirects=True, headers={"Referer": self.url})
        browser.get("/user/signup/")
        form = {"email": email, "password": "a-password-for-tests", "allow_newsletters": "false"}
        form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
        browser.post("/user/signup/", data=form).raise_for_status()
        browser.headers["X-CSRFToken"] = browser.cookies["csrftoken"]
        assert browser.get("/api/current-user/whoami").json()["email"] == email
        return browser

    def next(self, project: int) -> dict[str, Any]:
        """The task that Label Studio serves next to whoever holds the token."""
        task: dict[str, Any] = self.api("GET", f"/api/projects/{project}/next/").json()
        return task

    def annotate(self, task: int, choice: str | None, **more: Any) -> int:
        result = layout_of(CONFIG).result_of(choice) if choice else []
        made = self.api("POST", f"/api/tasks/{task}/annotations/", json={"result": result, **more})
        made.raise_for_status()
        return int(made.json()["id"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("label-studio"))
    running.start()
    try:
        running.wait()
        yield running
    finally:
        running.kill()


@pytest.fixture
def picks(server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """`badge label-studio` on a project, and the task ids in the order in which its predictions put them."""

    def run(project: int, *options: str, token: str = TOKEN) -> list[int]:
        monkeypatch.setenv("LS_TOKEN", token)
        arguments = ["badge", "label-studio", "--url", server.url, "--project", str(project), *options]
        monkeypatch.setattr("sys.argv", arguments)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0, capsys.readouterr().err
        version = server.api("GET", f"/api/projects/{project}/").json()["model_version"]
        with closing(Client(server.url, project, TOKEN)) as talking:
            made = [(p, task["id"]) for task in talking.tasks() for p in task["predictions"]]
        scored = [(p["score"], task) for p, task in made if p["model_version"] == version]
        return [task for _, task in sorted(scored)]

    return run


def texts(n: int) -> list[str]:
    return [f"{(GOOD if i % 2 else BAD)[i % 3]}, number {i}" for i in range(n)]


def answer(task: dict[str, Any]) -> str:
    return "good" if int(task["data"]["text"].rsplit(" ", 1)[1]) % 2 else "bad"


def test_sixty_tasks_three_rounds_served_in_pick_order(server: Server, picks: Any) -> None:
    project = server.project(texts(60))
    seen: set[int] = set()
    for _ in range(3):
        order = picks(project, "--batch-size", "8")
        assert len(order) == 8 and not seen & set(order)
        served = []
        for _ in order:
            task = server.next(project)
            served.append(task["id"])
            server.annotate(task["id"], answer(task))
        assert served == order
        seen |= set(served)


def test_skips_relabelled_and_deleted_tasks_and_two_annotators(server: Server, picks: Any) -> None:
    project = server.project(texts(14))
    first = picks(project, "--batch-size", "6")
    server.annotate(first[0], None, was_cancelled=True)
    changed = server.annotate(first[1], "good")
    layout = layout_of(CONFIG)
    server.api("PATCH", f"/api/annotations/{changed}/", json={"result": layout.result_of("bad")}).raise_for_status()
    server.annotate(first[2], "good")
    withdrawn = server.annotate(first[3], "good")
    server.api("DELETE", f"/api/annotations/{withdrawn}/").raise_for_status()
    server.api("DELETE", f"/api/tasks/{first[4]}/").raise_for_status()
    bob = server.api(
        "POST", "/api/users/", json={"email": "bob@example.org", "username": "bob", "password": "bob-bob-bob"}
    )
    both = [{"completed_by": by, "result": layout.result_of("good")} for by in (1, bob.json()["id"])]
    server.api("POST", f"/api/projects/{project}/import", json=[{"data": {"text": "two of us"}, "annotations": both}])
    with closing(Client(server.url, project, TOKEN)) as talking:
        found = read(layout, talking.tasks(), talking.people())
    assert found.skipped == {first[0]}
    assert {task: found.labels.get(task) for task in first[1:5]} == {
        first[1]: "bad", first[2]: "good", first[3]: None, first[4]: None,
    }  # fmt: skip
    assert {"ann@example.org", "bob@example.org"} in [set(by) for by in found.given.values()]
    second = picks(project, "--batch-size", "20")
    assert set(second) == set(found.open) and first[3] in second
    assert not {first[0], first[1], first[2], first[4]} & set(second)


def test_images_that_were_uploaded_are_fetched_and_learnt(
    server: Server, picks: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    files = []
    for place in range(24):
        made = io.BytesIO()
        image.new("RGB", (48, 32), (40 + place, 20, 200) if place % 2 else (200, 200 + place, 40)).save(made, "PNG")
        files.append(made.getvalue())
    config = CONFIG.replace("<Text", "<Image").replace("$text", "$image")
    project, layout = server.project(files, config), layout_of(config)
    for _ in range(2):
        order = picks(project, "--batch-size", "6")
        for expected in order:
            task = server.next(project)
            assert task["id"] == expected
            blue = int(task["data"]["image"].rsplit("-", 1)[1].removesuffix(".png")) % 2
            result = layout.result_of("good" if blue else "bad")
            server.api("POST", f"/api/tasks/{expected}/annotations/", json={"result": result}).raise_for_status()
    assert len(list(tmp_path.rglob("*.png"))) == 24  # each was fetched once


def test_two_people_at_once_share_the_picks(server: Server, picks: Any) -> None:
    project, layout = server.project(texts(20)), layout_of(CONFIG)
    order = picks(project, "--batch-size", "6")
    with closing(server.person("cid@example.org")) as cid:
        served = []
        for _ in range(3):
            mine, theirs = server.next(project), cid.get(f"/api/projects/{project}/next/").json()
            assert mine["id"] != theirs["id"]
            server.annotate(mine["id"], answer(mine))
            body = {"result": layout.result_of(answer(theirs))}
            cid.post(f"/api/tasks/{theirs['id']}/annotations/", json=body).raise_for_status()
            served += [mine["id"], theirs["id"]]
    assert set(served) == set(order)
    with closing(Client(server.url, project, TOKEN)) as talking:
        found = read(layout, talking.tasks(), talking.people())
    assert Counter(who for by in found.given.values() for who in by) == {"ann@example.org": 3, "cid@example.org": 3}
    assert not set(picks(project, "--batch-size", "6")) & set(order)


def test_a_personal_access_token_until_it_is_taken_back(
    server: Server, picks: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    made = server.api("POST", "/api/token/", json={})
    made.raise_for_status()
    token = made.json()["token"]
    assert token.count(".") == 2
    project = server.project(texts(10))
    order = picks(project, "--batch-size", "4", token=token)
    assert len(order) == 4 and server.next(project)["id"] == order[0]
    server.api("POST", "/api/token/blacklist/", json={"refresh": token}).raise_for_status()
    with pytest.raises(AssertionError, match="refuses the token"):
        picks(project, "--batch-size", "4", token=token)


def test_a_server_killed_and_started_again_in_between(server: Server, picks: Any) -> None:
    project = server.project(texts(10))
    server.kill()
    server.start()
    deadline = time.monotonic() + 120  # without --watch the command does not wait for a server that is not there yet
    while time.monotonic() < deadline:
        try:
            httpx.get(server.url, timeout=5)
            break
        except httpx.HTTPError:
            time.sleep(0.5)
    order = picks(project, "--batch-size", "3")
    assert server.next(project)["id"] == order[0]


def test_a_token_that_expired_is_one_line(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LS_TOKEN", "expired")
    monkeypatch.setattr("sys.argv", ["badge", "label-studio", "--url", server.url, "--project", "1"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "refuses the token" in capsys.readouterr().err
