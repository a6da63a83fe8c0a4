"""Picks for Label Studio: the reading of a project, the order in which picks come first, and servers that misbehave."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from badge.errors import InputError, ServerError
from badge.labelling.label_studio import client, rounds
from badge.labelling.label_studio.client import Client
from badge.labelling.label_studio.layout import Project, layout_of, read
from badge.labelling.label_studio.rounds import Settings, picks_for, run_round, watch
from fake_label_studio import CONFIG, FakeLabelStudio

TEXTS = [f"text {i}" for i in range(12)]
LAYOUT = layout_of(CONFIG)


def connected(server: FakeLabelStudio, token: str = "secret", project: int = 7) -> Client:
    return Client("http://studio.example/", project, token, transport=server.transport())


def last_first(project: Project, k: int) -> tuple[list[int], list[str | None]]:
    """Picks that are easy to foresee: the open tasks from behind."""
    ids = project.open[::-1][:k]
    return ids, ["good"] * len(ids)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


# -- what a project asks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("<View>", "not XML"),
        ("<View/>", "0 <Choices>"),
        (
            CONFIG.replace("</View>", '<Choices name="d" toName="t"/></View>'),
            "2 <Choices>: name one with --control: c, d",
        ),
        (CONFIG.replace('"single"', '"multiple"'), "several"),
        (CONFIG.replace('<Choice value="bad"/>', ""), "two or more"),
        (CONFIG.replace("Text ", "Audio "), "a <Text> or an <Image>"),
        (CONFIG.replace("$text", "text"), "a <Text> or an <Image>"),
    ],
)
def test_configurations_that_cannot_be_picked_for(config: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        layout_of(config)


def test_one_question_of_two_is_named_and_aliases_are_the_labels() -> None:
    choices = '<Choice value="Ja" alias="y"/><Choice value="n"/>'
    second = f'<Image name="i" value="$photo"/><Choices name="d" toName="i">{choices}</Choices>'
    layout = layout_of(CONFIG.replace("</View>", second + "</View>"), control="d")
    assert (layout.kind, layout.field, layout.classes) == ("image", "photo", ("y", "n"))
    with pytest.raises(InputError, match="no Choices named 'e'; it has: c, d"):
        layout_of(CONFIG.replace("</View>", second + "</View>"), control="e")


def test_the_state_of_a_project() -> None:
    server = FakeLabelStudio(TEXTS)
    server.annotate(101, "good")
    server.annotate(102, "good", by=1)
    server.annotate(102, "bad", by=2)  # a tie
    server.annotate(103, "bad", by=1)
    server.annotate(103, "good", by=1)  # changed one's mind
    server.annotate(104, None, skip=True)
    server.annotate(105, None)  # submitted empty
    server.annotate(106, "gone")  # a choice that was removed
    server.annotate(107, None, by=2, skip=True)
    server.annotate(107, "bad", by=1)  # skipped by one, labelled by another
    server.tasks[108]["data"] = {"other": "x"}
    found = read(LAYOUT, server.tasks.values(), {1: "ann"})
    assert found.labels == {101: "good", 103: "good", 107: "bad"}
    assert found.given[102] == {"ann": "good", "user 2": "bad"} and sum(map(len, found.given.values())) == 5
    assert found.skipped == {104, 105}
    assert found.open == [106, 109, 110, 111, 112]
    assert "1 tasks (first: 108) have no 'text'" in found.odd[0] and "'gone'" in found.odd[1]


def test_the_digest_follows_what_picks_depend_on() -> None:
    server = FakeLabelStudio(TEXTS)
    server.annotate(101, "good")

    def digest(*settings: object) -> str:
        return read(LAYOUT, server.tasks.values(), {}).digest(*settings)

    first = digest()
    assert digest() == first and digest(5) != first
    changes: list[Callable[[], Any]] = [
        lambda: server.annotate(102, "bad"),
        lambda: server.annotate(101, "bad"),
        lambda: server.annotate(103, None, skip=True),
        lambda: server.tasks.pop(104),
    ]
    seen = {first}
    for change in changes:
        change()
        assert digest() not in seen
        seen.add(digest())


# -- rounds ------------------------------------------------------------------------------------------------------------


def test_picks_come_first_and_a_second_look_does_nothing() -> None:
    server = FakeLabelStudio(TEXTS)
    said: list[str] = []
    done = run_round(connected(server), last_first, Settings(batch_size=4), said.append)
    assert server.served() == list(done.picks) == [112, 111, 110, 109]
    assert server.settings["sampling"] == "Uncertainty sampling" and said == []
    assert all(p["result"] == [] for t in server.tasks.values() for p in t["predictions"])  # guesses bias
    before = server.calls
    again = run_round(
        connected(server), lambda project, k: pytest.fail("picked again"), Settings(batch_size=4), said.append
    )
    assert again.picks == done.picks and server.calls == before + 3


def test_earlier_predictions_go_and_those_of_others_stay() -> None:
    server = FakeLabelStudio(TEXTS)
    server.tasks[101]["predictions"].append({"model_version": "mine", "score": 0.0, "task": 101})
    run_round(connected(server), last_first, Settings(batch_size=4), print)
    server.annotate(112, "good")
    done = run_round(connected(server), last_first, Settings(batch_size=4, show_guess=True), print)
    assert server.served() == list(done.picks) == [111, 110, 109, 108]
    versions = {p["model_version"] for t in server.tasks.values() for p in t["predictions"]}
    assert versions == {"mine", done.version}
    assert server.tasks[111]["predictions"][0]["result"] == LAYOUT.result_of("good")


@pytest.mark.parametrize("cut", range(1, 9))
def test_cut_off_anywhere_the_next_round_puts_it_right(cut: int) -> None:
    server = FakeLabelStudio(TEXTS)
    run_round(connected(server), last_first, Settings(batch_size=3), print)
    server.annotate(112, "bad")
    cut_off = connected(server)
    request, count = cut_off._request, iter(range(1, 100))

    def dying(*args: Any, **kwargs: Any) -> Any:
        if next(count) > cut:
            raise KeyboardInterrupt
        return request(*args, **kwargs)

    cut_off._request = dying  # type: ignore[method-assign]
    try:
        run_round(cut_off, last_first, Settings(batch_size=3), print)
    except KeyboardInterrupt:
        served = server.served()
        assert served in ([111, 110], [111, 110, 109])  # the old picks or the new ones, never a mixture
    done = run_round(connected(server), last_first, Settings(batch_size=3), print)
    assert server.served() == list(done.picks) == [111, 110, 109]


def test_nothing_left_to_label() -> None:
    server = FakeLabelStudio(["a"])
    server.annotate(101, "good")
    assert run_round(connected(server), last_first, Settings(), print).picks == ()


def test_watching_picks_again_when_enough_labels_came(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeLabelStudio(TEXTS)
    settings = Settings(batch_size=4, again_after=2, every=0.0)
    orders: list[list[int]] = []

    def work(seconds: float) -> None:  # while the loop sleeps somebody labels one task of those that come first
        if not orders or orders[-1][0] != server.served()[0]:
            orders.append(server.served())
        server.annotate(server.served()[0], "good")

    monkeypatch.setattr(time, "sleep", work)
    said: list[str] = []
    watch(connected(server), last_first, settings, said.append, rounds=3)
    told = [line for line in said if "picks come first" in line]
    assert [line.split(" labels")[0] for line in told] == ["0", "2", "4"]
    assert "12 tasks open; 4 picks come first" in told[0]
    assert orders[0] == [112, 111, 110, 109] and server.served() == [108, 107, 106, 105]


# -- servers that misbehave --------------------------------------------------------------------------------------------


def test_a_server_that_restarts_is_waited_for(slept: list[float]) -> None:
    server = FakeLabelStudio(TEXTS)
    server.failing = [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), 502, 503]
    assert connected(server).settings()["label_config"] == CONFIG
    assert slept == [0.5, 1.0, 2.0, 4.0]


def test_a_server_that_stays_away_is_one_line(slept: list[float]) -> None:
    server = FakeLabelStudio(TEXTS)
    server.failing = [httpx.ConnectError("refused")] * 50
    with pytest.raises(ServerError, match=r"cannot reach http://studio.example/ \(refused\), tried 8 times") as caught:
        connected(server).settings()
    assert caught.value.passing


def test_watching_outlives_a_server_that_is_away_for_long(monkeypatch: pytest.MonkeyPatch, slept: list[float]) -> None:
    server = FakeLabelStudio(TEXTS)
    server.failing = [httpx.ConnectError("refused")] * 20
    said: list[str] = []
    watch(connected(server), last_first, Settings(batch_size=2, every=0.0), said.append, rounds=1)
    assert server.served() == [112, 111]
    assert [line for line in said if line.endswith("still trying")] == said[:1]


def test_expired_tokens_and_wrong_projects_are_one_line() -> None:
    server = FakeLabelStudio(TEXTS)
    with pytest.raises(ServerError, match="refuses the token"):
        connected(server, token="old").settings()
    with pytest.raises(ServerError, match="refuses the token"):
        watch(connected(server, token="a.b.c"), last_first, Settings(), print)
    with pytest.raises(ServerError, match="no project 8"):
        connected(server, project=8).settings()
    with pytest.raises(InputError, match="token is empty"):
        connected(server, token=" ")
    with pytest.raises(InputError, match="http://host:port"):
        Client("localhost", 7, "secret")


def test_a_personal_access_token_is_exchanged_and_exchanged_again() -> None:
    server = FakeLabelStudio(TEXTS, token="head.body.tail")
    talking = connected(server, token="head.body.tail")
    assert talking.settings()["label_config"] == CONFIG and server.calls == 2
    talking._header = "Bearer expired"
    assert talking.settings()["label_config"] == CONFIG and server.calls == 5


def test_another_kind_of_server_is_one_line() -> None:
    page = httpx.MockTransport(lambda request: httpx.Response(200, text="<html>"))
    with pytest.raises(ServerError, match="something other than JSON"):
        Client("http://studio.example", 7, "secret", transport=page).settings()


def test_a_mistyped_address_fails_at_once_unless_one_watches() -> None:
    def nobody(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    waited: list[float] = []
    hasty = Client(
        "http://stduio.example", 7, "secret", lambda s, r: waited.append(s), httpx.MockTransport(nobody), False
    )
    with pytest.raises(ServerError, match=r"cannot reach http://stduio.example/ .*check --url"):
        hasty.settings()
    assert waited == []
    with pytest.raises(InputError, match=r"'http://\[::1' is not of the form http://host:port"):
        Client("http://[::1", 7, "secret")


def test_pages_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PAGE", 5)
    server = FakeLabelStudio(TEXTS)
    assert [task["id"] for task in connected(server).tasks()] == list(server.tasks)
    run_round(connected(server), last_first, Settings(batch_size=11), print)
    assert len(server.served()) == 11


def test_files_of_other_servers_are_fetched_without_the_token() -> None:
    asked: list[tuple[str, str | None]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((str(request.url), request.headers.get("authorization")))
        return httpx.Response(200, content=b"png")

    talking = Client("http://studio.example", 7, "secret", transport=httpx.MockTransport(answer))
    assert talking.file("/data/upload/1/a.png") == talking.file("https://other.example/b.png") == b"png"
    assert asked == [
        ("http://studio.example/data/upload/1/a.png", "Token secret"),
        ("https://other.example/b.png", None),
    ]


# -- picks of a model --------------------------------------------------------------------------------------------------


def test_a_model_picks_among_open_tasks_and_guesses() -> None:
    words = {"good": "a lovely bright day", "bad": "an awful grey night"}
    server = FakeLabelStudio([f"{words[('good', 'bad')[i % 2]]} {i}" for i in range(12)])
    for task in (101, 102, 103, 104):
        server.annotate(task, "good" if task % 2 else "bad")
    server.annotate(105, None, skip=True)
    talking = connected(server)
    pick = picks_for(talking, strategy="badge", seed=0)
    done = run_round(talking, pick, Settings(batch_size=5, show_guess=True), print)
    assert server.served() == list(done.picks) and set(done.picks) <= set(range(106, 113)) and len(done.picks) == 5
    for task in done.picks:
        assert server.tasks[task]["predictions"][0]["result"] == LAYOUT.result_of("good" if task % 2 else "bad")
    assert run_round(talking, pick, Settings(batch_size=4, name="other"), print).picks != done.picks


def test_images_are_fetched_once_and_picked_among(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    from PIL import Image

    monkeypatch.setattr(rounds, "cache_folder", lambda: tmp_path)
    asked: list[str] = []

    def content(path: str) -> bytes:
        asked.append(path)
        buffer = io.BytesIO()
        Image.new("RGB", (8, 8), (255, 0, 0) if int(path[-5]) % 2 else (0, 0, 255)).save(buffer, "PNG")
        return buffer.getvalue()

    server = FakeLabelStudio([f"/data/upload/{i}.png" for i in range(8)], files=content)
    server.settings["label_config"] = CONFIG.replace("<Text ", "<Image ")
    talking = connected(server)
    pick = picks_for(talking, strategy="rand", seed=0)
    first = run_round(talking, pick, Settings(batch_size=2), print)
    assert len(first.picks) == 2 and len(asked) == 8
    server.annotate(first.picks[0], "good")
    assert len(run_round(talking, pick, Settings(batch_size=2), print).picks) == 2 and len(asked) == 8
