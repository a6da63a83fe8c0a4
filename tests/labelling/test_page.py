"""The labelling page in a real browser: to the end by keyboard, images, two people, kills, a phone, hostile items."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import badge
from pages import Person, Server, check

SCRIPT = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\"> & \"quoted\""


def texts(n: int) -> dict[str, str]:
    """Text -> class, all different."""
    words = {"good": ["fine", "lovely", "great"], "bad": ["dull", "awful", "weak"]}
    rng = np.random.default_rng(0)
    found = {}
    for i in range(n):
        label = ("good", "bad")[i % 2]
        found[f"{i}: a {rng.choice(words[label])} film, {rng.choice(words[label])} from start to end"] = label
    return found


def write_texts(folder: Path, truth: dict[str, str]) -> Path:
    with (folder / "films.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text"])
        rows.writerows([f"f{i}", text] for i, text in enumerate(truth))
    return folder / "films.csv"


@pytest.fixture
def films(tmp_path: Path) -> Iterator[tuple[Server, dict[str, str]]]:
    truth = texts(120)
    write_texts(tmp_path, truth)
    server = Server(tmp_path, "films.csv", "--classes", "good,bad", "--batch-size", "10")
    yield server, truth
    server.kill()


def labels_of(server: Server) -> dict[Any, Any]:
    """What the journal says, without the server."""
    given: dict[Any, Any] = {}
    for event in badge.journal.read(server.folder / "films.labels.jsonl"):
        if event["event"] == "tell":
            given.update(zip(event["ids"], event["labels"], strict=True))
        if event["event"] == "relabel":
            given[event["id"]] = event["label"]
        if event["event"] == "decide":
            given.update(zip(event["ids"], event["labels"], strict=True))
    return given


def wait_for_picks(server: Server) -> list[Any]:
    """The first batch that a model picked."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for event in badge.journal.read(server.folder / "films.labels.jsonl"):
            if event["event"] == "ask" and event.get("predicted"):
                return list(event["ids"])
        time.sleep(0.1)
    raise AssertionError("no model picked a batch")


def test_thirty_texts_by_keyboard_to_the_end(browser: Any, tmp_path: Path) -> None:
    truth = texts(30)
    write_texts(tmp_path, truth)
    server = Server(tmp_path, "films.csv", "--classes", "good,bad", "--batch-size", "10")
    try:
        ann = Person(browser, server.url)
        assert "token" not in ann.page.url
        for _ in range(30):
            ann.press("1" if truth[ann.text()] == "good" else "2")
        ann.page.wait_for_selector("text=All done")
        assert labels_of(server) == {f"f{i}": label for i, label in enumerate(truth.values())}
        told = [e for e in badge.journal.read(tmp_path / "films.labels.jsonl") if e["event"] == "tell"]
        assert len(told) == 30 and {event["by"] for event in told} == {"ann"}
        ann.wait("() => document.querySelector('#total').textContent.startsWith('30 of 30')")  # it may be behind
        assert ann.said == []
        assert all(url.startswith((server.home, "data:")) for url in ann.requests)  # nothing from outside
        exported = ann.context.request.get(f"{server.home}/export/labels.csv").text()
        rows = list(csv.DictReader(io.StringIO(exported)))
        assert {row["text"]: row["label"] for row in rows} == truth
        lines = ann.context.request.get(f"{server.home}/export/labels.jsonl").text().splitlines()
        assert {row["text"]: row["label"] for row in map(json.loads, lines)} == truth
        ann.close()
    finally:
        server.stop()


def test_undo_skip_correct_and_the_model(browser: Any, films: tuple[Server, dict[str, str]]) -> None:
    server, truth = films
    ann = Person(browser, server.url)
    page = ann.page
    first = ann.text()
    assert re.search("at random|A typical item", page.inner_text("#why"))
    ann.press("2")
    assert ann.text() != first
    ann.press("u")  # back, and the other way
    assert ann.text() == first and "bad" in page.inner_text("#was")
    ann.press("1")
    assert labels_of(server) == {next(f"f{i}" for i, text in enumerate(truth) if text == first): "good"}
    skipped = ann.text()
    page.keyboard.press("s")
    page.wait_for_selector("#skipping[open]")
    ann.press("1")
    events = badge.journal.read(server.folder / "films.labels.jsonl")
    assert [e["reason"] for e in events if e["event"] == "skip"] == ["I cannot tell"]
    ann.press("u")  # a skip is undone by asking it again
    assert ann.text() == skipped
    for _ in range(8):
        ann.press("1" if truth[ann.text()] == "good" else "2")
    picked = wait_for_picks(server)
    for _ in range(20):  # on to an item that a model picked
        if next(f"f{i}" for i, text in enumerate(truth) if text == ann.text()) in picked:
            break
        ann.press("1" if truth[ann.text()] == "good" else "2")
    assert "model" in page.inner_text("#why")
    assert page.is_hidden("#guess") and page.is_visible("#guess-toggle")
    page.click("#guess-toggle")
    assert page.inner_text("#guess").split(",")[0] in ("good", "bad")
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("1")  # keys do nothing while a dialog is open
    page.keyboard.press("Escape")
    page.click("nav >> text=Labels")
    page.wait_for_selector("#rows li")
    page.fill("#text", first)
    page.wait_for_function("() => document.querySelectorAll('#rows li').length === 1")
    page.select_option("#rows select", "bad")
    page.click("#rows >> text=Save")
    page.wait_for_selector("#rows >> text=Saved")
    assert labels_of(server)[next(f"f{i}" for i, text in enumerate(truth) if text == first)] == "bad"
    page.select_option("#label", "good")
    page.wait_for_function("() => document.querySelectorAll('#rows li').length === 0")
    assert ann.said == []
    ann.close()


def test_two_browsers_never_see_the_same_item(browser: Any, films: tuple[Server, dict[str, str]]) -> None:
    server, truth = films
    people = [Person(browser, server.url, name) for name in ("ann", "bob")]
    seen: list[list[str]] = [[], []]
    for _ in range(10):
        for person, mine in zip(people, seen, strict=True):
            mine.append(person.text())
        assert people[0].text() != people[1].text()
        for person in people:
            person.press("1" if truth[person.text()] == "good" else "2")
    assert not set(seen[0]) & set(seen[1])
    who = {
        e["ids"][0]: e["by"] for e in badge.journal.read(server.folder / "films.labels.jsonl") if e["event"] == "tell"
    }
    assert sorted(who.values()) == ["ann"] * 10 + ["bob"] * 10
    for person in people:
        person.close()


def test_the_server_is_killed_under_a_waiting_page(browser: Any, films: tuple[Server, dict[str, str]]) -> None:
    server, truth = films
    ann = Person(browser, server.url)
    for _ in range(3):
        ann.press("1" if truth[ann.text()] == "good" else "2")
    held = ann.text()
    server.kill()
    ann.page.keyboard.press("2")
    ann.page.wait_for_selector("#notice:visible")
    assert "does not answer" in ann.page.inner_text("#notice")
    assert len(labels_of(server)) == 3
    server.start()
    ann.page.wait_for_selector("#notice", state="hidden")
    ann.settle()
    assert ann.text() != held
    assert len(labels_of(server)) == 4
    assert labels_of(server)[next(f"f{i}" for i, text in enumerate(truth) if text == held)] == "bad"
    ann.press("1")
    assert len(labels_of(server)) == 5
    ann.close()


def test_double_click_and_two_tabs(browser: Any, films: tuple[Server, dict[str, str]]) -> None:
    server, _ = films
    ann = Person(browser, server.url)
    ann.page.dblclick("#classes button")
    ann.settle()
    time.sleep(0.3)
    assert 1 <= len(labels_of(server)) <= 2  # never the same item twice; a slow second click answers the next
    told = [e["ids"][0] for e in badge.journal.read(server.folder / "films.labels.jsonl") if e["event"] == "tell"]
    assert len(told) == len(set(told))
    tab = ann.context.new_page()
    tab.goto(server.home)
    tab.wait_for_selector("#item .text")
    assert tab.inner_text("#item .text") != ann.text()
    headers = {"origin": server.home}
    shown = ann.context.request.post(
        f"{server.home}/api/next", data={"client": "t", "name": "ann"}, headers=headers
    ).json()
    body = {"client": "t", "name": "ann", "request": "r1", "label": "good", "id": shown["id"], "shown": shown["shown"]}
    replies = [
        ann.context.request.post(f"{server.home}/api/answer", data=body, headers=headers).json() for _ in range(2)
    ]
    assert replies[0] == replies[1]
    again = ann.context.request.post(
        f"{server.home}/api/answer", data={**body, "request": "r2", "label": "bad"}, headers=headers
    )
    assert again.status == 409 and "stands" in again.json()["refused"]
    assert labels_of(server)[shown["id"]] == "good"
    ann.close()


def test_images(browser: Any, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    (tmp_path / "photos" / "more").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(12):
        pixels = np.zeros((40, 60, 3), dtype=np.uint8)
        pixels[..., i % 2] = 200 + rng.integers(40, size=(40, 60))
        image.fromarray(pixels).save(
            tmp_path / "photos" / ("more" if i > 5 else ".") / f"p{i}.{'png' if i % 3 else 'webp'}"
        )
    (tmp_path / "photos" / "fake.png").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    )
    (tmp_path / "photos" / "real.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (tmp_path / "secret.png").write_bytes(b"no")
    (tmp_path / "photos" / "out.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "classes.txt").write_text("red\ngreen\n")
    server = Server(tmp_path, "photos", "--classes", "classes.txt", "--batch-size", "4", "--journal", "p.jsonl")
    try:
        ann = Person(browser, server.url, color_scheme="dark")
        seen = set()
        for _ in range(13):
            ann.page.wait_for_function(
                "() => (i => !i || (i.complete && i.naturalWidth > 0))(document.querySelector('#item img'))"
            )
            name = ann.page.inner_text("#item figcaption")
            seen.add(name)
            number = 0 if name == "fake.png" else int(name.split("/")[-1][1:].split(".")[0])
            ann.press("1" if number % 2 == 0 else "2")
        ann.page.wait_for_selector("text=All done")
        assert len(seen) == 13 and "fake.png" in seen and not seen & {"real.svg", "out.png"}
        assert "more/p7.png" in seen
        assert len([line for line in ann.said if "404" not in line]) == 0  # fake.png is no image
        fetch = ann.context.request.get
        shown = fetch(f"{server.home}/file?id=more/p7.png")
        assert shown.headers["content-type"] == "image/png" and "sandbox" in shown.headers["content-security-policy"]
        assert shown.headers["x-content-type-options"] == "nosniff"
        for id in ("../secret.png", "out.png", "/etc/passwd", "more/../../secret.png", "p.jsonl", ""):
            assert fetch(f"{server.home}/file", params={"id": id}).status == 404
        assert fetch(f"{server.home}/static/..%2f..%2fcommand.py").status == 404
        svg = ann.context.new_page()
        svg.goto(f"{server.home}/file?id=fake.png")
        assert svg.evaluate("document.querySelector('script')") is None
        ann.close()
    finally:
        server.kill()


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_width_accessibility_and_hostile_texts(browser: Any, tmp_path: Path, width: int, scheme: str) -> None:
    rows = [{"text": f"{SCRIPT} number {i}", "note": SCRIPT, "n": i} for i in range(8)]
    (tmp_path / "films.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    names = ",".join(["<b>good</b>", "bad", *(f"class_number_{i}" for i in range(36))])
    server = Server(tmp_path, "films.jsonl", "--classes", names, "--batch-size", "4")
    try:
        ann = Person(browser, server.url, viewport={"width": width, "height": 800}, color_scheme=scheme)
        page = ann.page
        assert ann.text().startswith("<script>") and page.title() == "Label · badge"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.query_selector("header").bounding_box()["height"] < 70  # one line, on a phone too
        check(page)
        page.keyboard.press("/")
        page.keyboard.type("number_35")
        ann.press("Enter")  # the class that has no key
        ann.press("1")
        assert set(labels_of(server).values()) == {"class_number_35", "<b>good</b>"}
        page.keyboard.press("?")
        check(page)
        page.keyboard.press("Escape")
        page.keyboard.press("s")
        page.wait_for_selector("#skipping[open]")
        check(page)
        page.keyboard.press("Escape")
        ann.settle()
        page.goto(f"{server.home}/labels")
        page.wait_for_selector("#rows li")
        assert page.title() == "Labels · badge"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        check(page)
        assert ann.said == []
        ann.close()
    finally:
        server.kill()


def test_keyboard_alone_reaches_everything(browser: Any, films: tuple[Server, dict[str, str]]) -> None:
    server, _ = films
    ann = Person(browser, server.url)
    reached = []
    for _ in range(16):
        ann.page.keyboard.press("Tab")
        reached.append(ann.page.evaluate("document.activeElement.textContent.trim().replace(/\\s+/g, ' ')"))
    assert {"1good", "2bad", "u Undo", "s Skip", "? Help", "CSV", "JSON lines"} <= {text.strip() for text in reached}
    ann.page.focus("#classes button:nth-child(2)")
    ann.press("Enter")
    assert list(labels_of(server).values()) == ["bad"]
    assert ann.page.evaluate("document.activeElement.id") == "item"  # a screen reader goes on with the new item
    assert "Saved: bad" in ann.page.inner_text("#said")
    ann.close()
