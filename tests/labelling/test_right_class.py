"""An answer is of the item on the screen and of the class that the person means: search, slow replies, large ids, ties."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pages import Person, Server, events

CLASSES = ["calendar_update", "cook_time", "time", "date", "Card_arrival", "card_linking", "lost_or_stolen_card"]
MANY = [*CLASSES, *(f"intent_{i}" for i in range(20))]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(rows: list[dict[str, Any]], *options: str) -> Server:
        (tmp_path / "pool.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
        servers.append(Server(tmp_path, "pool.jsonl", *options))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


def labels(server: Server) -> list[tuple[Any, Any]]:
    return [pair for e in events(server, "tell") for pair in zip(e["ids"], e["labels"], strict=True)]


def texts(n: int) -> list[dict[str, Any]]:
    return [{"id": f"t{i}", "text": f"text number {i}"} for i in range(n)]


@pytest.fixture(scope="module")
def many(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Person]]:
    """A page with many classes."""
    folder = tmp_path_factory.mktemp("many")
    (folder / "pool.jsonl").write_text("\n".join(map(json.dumps, texts(20))) + "\n")
    server = Server(folder, "pool.jsonl", "--classes", ",".join(MANY))
    ann = Person(browser, server.url)
    yield server, ann
    ann.close()
    server.kill()


@pytest.mark.parametrize(
    ("typed", "saved"),
    [
        ("date", "date"),  # not calendar_update, which contains it
        ("time", "time"),
        ("cook t", "cook_time"),
        ("CARD arr", "Card_arrival"),
        ("stolen", "lost_or_stolen_card"),
        ("lost card", "lost_or_stolen_card"),
        ("clndr", "calendar_update"),
        ("card", None),  # two begin with it
        ("zzz", None),
    ],
)
def test_search_takes_what_the_page_shows(many: tuple[Server, Person], typed: str, saved: str | None) -> None:
    server, ann = many
    before = labels(server)
    ann.page.keyboard.press("/")
    ann.page.keyboard.type(typed)
    said = ann.page.inner_text("#takes")
    if saved is None:
        ann.page.keyboard.press("Enter")
        ann.page.wait_for_timeout(300)
        assert labels(server) == before and "Enter takes" not in said
        ann.page.keyboard.press("Escape")
    else:
        assert said == f"Enter takes {saved}"
        ann.press("Enter")
        assert [label for _, label in labels(server)[len(before) :]] == [saved]


def test_an_arrow_chooses_among_equals(many: tuple[Server, Person]) -> None:
    server, ann = many
    before = labels(server)
    ann.page.keyboard.press("/")
    ann.page.keyboard.type("card")
    ann.page.keyboard.press("ArrowDown")
    ann.page.keyboard.press("ArrowDown")
    assert ann.page.inner_text("#takes") == "Enter takes card_linking"
    ann.press("Enter")
    assert [label for _, label in labels(server)[len(before) :]] == ["card_linking"]


@pytest.mark.parametrize("latency", [0, 100, 300, 1000])
def test_a_slow_reply_does_not_take_the_focus(browser: Any, served: Callable[..., Server], latency: int) -> None:
    server = served(texts(9), "--classes", ",".join(MANY))
    ann = Person(browser, server.url)
    page = ann.page
    page.evaluate(
        "ms => { const real = fetch; window.fetch = (...given) => "
        "new Promise(done => setTimeout(done, ms)).then(() => real(...given)); }",
        latency,
    )
    first = page.inner_text("#item .text")
    page.keyboard.press("/")
    page.keyboard.type("date")
    page.keyboard.press("Enter")  # the reply takes a while, and the person types on
    page.keyboard.press("/")
    page.keyboard.type("cook_ti", delay=latency / 5)
    page.wait_for_function("first => document.querySelector('#item .text').innerText !== first", arg=first)
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.type("me")
    second = page.inner_text("#item .text")
    page.keyboard.press("Enter")
    page.wait_for_function("second => document.querySelector('#item .text').innerText !== second", arg=second)
    shown = {row["text"]: row["id"] for row in texts(9)}
    assert labels(server) == [(shown[first], "date"), (shown[second], "cook_time")]
    assert not events(server, "skip")
    ann.close()


def test_keys_pressed_while_a_reply_is_on_its_way_do_not_count(browser: Any, served: Callable[..., Server]) -> None:
    server = served(texts(9), "--classes", "good,bad")
    ann = Person(browser, server.url)
    ann.page.evaluate(
        "() => { const real = fetch; window.fetch = (...given) => "
        "new Promise(done => setTimeout(done, 400)).then(() => real(...given)); }"
    )
    first = ann.text()
    ann.page.keyboard.press("1")
    for key in "2", "2", "1":
        ann.page.keyboard.press(key)
    ann.page.wait_for_function("first => document.querySelector('#item .text').innerText !== first", arg=first)
    ann.page.wait_for_timeout(600)
    assert [label for _, label in labels(server)] == ["good"]
    ann.close()


def test_ids_above_two_to_the_53_are_those_of_their_items(browser: Any, served: Callable[..., Server]) -> None:
    base = 2**53
    rows = [{"id": base + i, "text": f"number {base + i}"} for i in range(8)]
    server = served(rows, "--classes", "good,bad", "--batch-size", "8")
    ann = Person(browser, server.url)
    given = {}
    for _ in range(8):
        number = int(ann.text().split()[-1])
        given[number] = "good" if number % 3 else "bad"
        ann.press("1" if given[number] == "good" else "2")
    assert dict(labels(server)) == given
    ann.close()


def test_an_answer_names_what_was_shown(browser: Any, served: Callable[..., Server]) -> None:
    server = served(texts(6), "--classes", "good,bad")
    ann = Person(browser, server.url)
    held = ann.text()
    server.kill()
    rows = [{**row, "text": row["text"].replace("text", "other")} if row["text"] == held else row for row in texts(6)]
    (server.folder / "pool.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    journal = server.folder / "pool.labels.jsonl"
    journal.write_text(
        "\n".join(line for line in journal.read_text().splitlines() if False) + ""
    )  # a new pool's journal
    journal.with_name(journal.name + ".last").unlink(missing_ok=True)
    server.start()
    ann.page.keyboard.press("1")
    ann.page.wait_for_function("() => document.querySelector('#saved').className === 'refused'")
    assert "changed since you opened it" in ann.page.inner_text("#saved") and labels(server) == []
    ann.close()


def test_a_tie_goes_to_a_third_person_or_is_decided(browser: Any, served: Callable[..., Server]) -> None:
    server = served(texts(2), "--classes", "good,bad", "--of", "2", "--batch-size", "2")
    ann = Person(browser, server.url, "ann")
    for _ in range(2):
        ann.press("1")
    ben = Person(browser, server.url, "ben")
    for _ in range(2):
        ben.press("2")
    ben.page.wait_for_selector("text=2 items are tied")
    ann.page.reload()
    ann.page.wait_for_selector("text=2 items are tied")
    cid = Person(browser, server.url, "cid")
    third = cid.text()
    cid.press("1")
    cid.page.goto(f"{server.home}/disagreements")
    cid.page.wait_for_selector("#rows .votes")
    said = cid.page.inner_text("#rows .votes >> nth=0")
    assert "ann: good" in said and "ben: bad" in said
    assert cid.page.inner_text("#pairs").count("and") == 3  # every pair of the three
    cid.page.keyboard.press("2")  # decides the tie, which stands first: ben's word
    cid.page.wait_for_selector("text=Decided: bad")
    rows = list(csv.DictReader(io.StringIO(cid.context.request.get(f"{server.home}/export/labels.csv").text())))
    by_text = {row["text"]: row for row in rows}
    assert by_text[third]["label"] == "good" and by_text[third]["by"] == "ann, cid"
    assert json.loads(by_text[third]["votes"]) == {"ann": "good", "ben": "bad", "cid": "good"}
    (other,) = [row for row in rows if row["text"] != third]
    assert (
        other["label"] == "bad" and other["by"] == "cid" and json.loads(other["votes"]) == {"ann": "good", "ben": "bad"}
    )
    assert [e["by"] for e in events(server, "decide")] == ["cid"]
    for person in (ann, ben, cid):
        person.close()


def test_a_key_means_one_class_whatever_people_said(
    browser: Any, served: Callable[..., Server], tmp_path: Path
) -> None:
    (tmp_path / "classes.csv").write_text("name,key\ngood,\nbad,\nunclear,k\n")
    server = served(texts(2), "--classes", "classes.csv", "--of", "2", "--batch-size", "2")
    for name, keys in (("ann", "2k"), ("ben", "k2")):
        person = Person(browser, server.url, name)
        for key in keys:
            person.press(key)
        person.close()
    cid = Person(browser, server.url, "cid")
    cid.page.goto(f"{server.home}/disagreements")
    cid.page.wait_for_selector("#rows .votes")
    for row in range(2):
        buttons = cid.page.query_selector_all(f"#rows > li:nth-child({row + 1}) .choices button")
        assert [one.inner_text().split()[:2] for one in buttons] == [["1", "good"], ["2", "bad"], ["k", "unclear"]]
        assert {"ann", "ben"} == {one.inner_text().split()[2] for one in buttons[1:]}  # who said it
    cid.page.keyboard.press("ArrowDown")
    cid.page.wait_for_selector("#rows > li:nth-child(2).marked")
    cid.page.keyboard.press("1")  # what nobody said
    cid.page.wait_for_selector("text=Decided: good")
    cid.page.keyboard.press("k")
    cid.page.wait_for_selector("text=Decided: unclear")
    assert [e["labels"] for e in events(server, "decide")] == [["good"], ["unclear"]]
    cid.close()
