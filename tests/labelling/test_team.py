"""What a team needs of the page: links and roles, adjudication, a test sample, several classes, comments, many at once."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import badge
from badge.cli import app
from badge.labelling.models import Texts
from pages import Person, Server, events

WORDS = {"good": "fine lovely great", "bad": "dull awful weak"}


Serve = Callable[..., Server]
Visit = Callable[..., Person]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Serve]:
    servers: list[Server] = []

    def start(n: int, *options: str, rows: list[dict[str, Any]] | None = None) -> Server:
        rows = rows or [{"id": f"t{i}", "text": f"{i}: a {WORDS[('good', 'bad')[i % 2]]} film"} for i in range(n)]
        (tmp_path / "pool.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
        servers.append(Server(tmp_path, "pool.jsonl", *options))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    """Opens pages, and closes them at the end."""
    people: list[Person] = []

    def open_page(url: str, name: str = "ann") -> Person:
        people.append(Person(browser, url, name))
        return people[-1]

    yield open_page
    for person in people:
        person.close()


def until(look: Callable[[], Any], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def links(server: Server) -> dict[str, str]:
    return dict(re.findall(r"open   (\w+) \(\w+\): (http\S+)", server.log.read_text()))


def exported(person: Person, server: Server) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(person.context.request.get(f"{server.home}/export/labels.csv").text())))


def test_links_roles_and_taking_a_link_back(visit: Visit, served: Serve) -> None:
    server = served(20, "--classes", "good,bad", "--people", "ann,ben,cid:adjudicate")
    by_name = links(server)
    assert set(by_name) == {"ann", "ben", "cid"} and "ann (admin)" in server.log.read_text()
    ben = visit(by_name["ben"], "somebody else")
    ben.press("1")
    assert events(server, "tell")[0]["by"] == "ben"  # the link says who it is
    assert ben.page.inner_text("#name") == "ben" and ben.page.is_disabled("#who")
    assert ben.page.is_hidden("text=Team")
    get, post = ben.context.request.get, ben.context.request.post
    for path in ("/team", "/api/team", "/disagreements", "/export/labels.csv"):
        assert get(server.home + path).status == 403, path
    change = {"request": "r", "name": "ben", "ids": ["t1"], "labels": ["bad"]}
    assert post(f"{server.home}/api/change", data=change, headers={"origin": server.home}).status == 403
    cid = visit(by_name["cid"])
    assert cid.context.request.get(f"{server.home}/api/disagreements").status == 200
    assert cid.context.request.get(f"{server.home}/api/team").status == 403
    ann = visit(by_name["ann"])
    ann.page.click("text=Team")
    ann.page.wait_for_selector("#people td:has-text('ben')")
    assert ann.page.evaluate("(t => t.scrollWidth <= t.parentElement.clientWidth)(document.querySelector('#people'))")
    assert ann.page.locator("#people th").count() == 7  # one hour, in which ben labelled
    ann.page.click("#people tr:has-text('ben') >> text=Revoke the link")
    ann.page.wait_for_selector("#people tr:has-text('ben') >> text=New link")
    ben.page.keyboard.press("1")
    ben.page.wait_for_function("() => document.querySelector('#saved').className === 'refused'")
    assert len(events(server, "tell")) == 1
    server.kill()
    server.start()  # it stays so
    assert get(f"{server.home}/api/state").status == 401 and get(by_name["ben"]).status == 401
    ann.page.reload()
    ann.page.click("#people tr:has-text('ben') >> text=New link")
    ann.page.wait_for_function("() => document.querySelector('#link').textContent.includes('token=')")
    assert get(ann.page.inner_text("#link").split(": ", 1)[1]).status == 200


def test_people_correct_their_own_labels_and_no_others(visit: Visit, served: Serve) -> None:
    server = served(12, "--classes", "good,bad", "--people", "ann,ben,cid")
    by_name = links(server)
    ann, ben = visit(by_name["ann"]), visit(by_name["ben"])
    ann.press("1")
    ben.press("1")
    (others,), (own,) = (event["ids"] for event in events(server, "tell"))
    page = ben.page
    page.goto(f"{server.home}/labels")
    page.wait_for_selector("#rows select")
    assert page.inner_text("#found") == "1 item" and page.is_hidden("#bulk")
    page.select_option("#rows select", "bad")
    page.click("#rows button >> text=Save")
    page.wait_for_selector("#rows >> text=Saved")
    assert [(e["id"], e["label"], e["by"]) for e in events(server, "relabel")] == [(own, "bad", "ben")]

    def correct(request: str, id: str) -> int:
        body = {"request": request, "id": id, "label": "bad"}
        return int(
            page.context.request.post(f"{server.home}/api/correct", data=body, headers={"origin": server.home}).status
        )

    assert correct("one", others) == 409  # of ann
    decided = {"request": "two", "ids": [own], "labels": ["good"]}
    ann.context.request.post(f"{server.home}/api/change", data=decided, headers={"origin": server.home})
    assert correct("three", own) == 409 and len(events(server, "relabel")) == 1  # what the admin set stands


def test_the_first_visit_asks_for_a_name(browser: Any, served: Serve) -> None:
    server = served(6, "--classes", "good,bad")
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.url)
    page.wait_for_selector("#naming[open]")
    page.fill("#naming-name", "  Zoe\u0308 ")
    page.keyboard.press("Enter")
    page.wait_for_selector("#item .text")
    page.keyboard.press("1")
    page.wait_for_function("() => document.querySelector('#said').textContent.startsWith('Saved')")
    (told,) = events(server, "tell")
    assert told["by"] == "Zo\u00eb" and told["seconds"] >= 0
    context.close()


def test_an_adjudicator_decides_ties(visit: Visit, served: Serve) -> None:
    server = served(2, "--classes", "good,bad", "--per-item", "2", "--batch-size", "2", "--adjudicator", "ann",
                    "--people", "ann,ben,cid,dan")  # fmt: skip
    by_name = links(server)
    for name, key in (("ben", "1"), ("cid", "2")):
        person = visit(by_name[name])
        person.press(key)
        person.press(key)
    dan = visit(by_name["dan"])
    dan.page.wait_for_selector("text=2 items are tied")  # not for a third person: there is an adjudicator
    ann = visit(by_name["ann"])
    ann.page.click("text=Disagreements >> nth=0")
    ann.page.wait_for_selector("#rows .votes")
    ann.page.keyboard.press("1")
    ann.page.wait_for_selector("text=1 open, 1 of them tied")
    ann.page.keyboard.press("2")
    ann.page.wait_for_selector("text=No disagreements are open")
    assert [(e["labels"], e["by"]) for e in events(server, "decide")] == [(["good"], "ann"), (["bad"], "ann")]
    assert {row["votes"] for row in exported(ann, server)} == {'{"ben": "good", "cid": "bad"}'}


def test_a_test_sample_is_asked_and_never_trained_on(visit: Visit, served: Serve) -> None:
    server = served(60, "--classes", "good,bad", "--test", "12", "--test-first", "--batch-size", "8")
    (aside,) = events(server, "test")
    sample = set(aside["ids"])
    ann = visit(server.url)
    for place in range(30):
        id = "t" + ann.text().split(":")[0]
        assert (id in sample) == (place < 12)
        assert "test sample" in ann.page.inner_text("#why").lower() or place >= 12
        ann.press("1" if int(id[1:]) % 2 == 0 else "2")
    asks = until(lambda: [e for e in events(server, "ask") if e.get("test")]) and events(server, "ask")
    assert not sample & {id for e in asks for id in e["ids"]}
    assert len([e for e in asks if e.get("test")][-1]["test"]) == 12
    for _ in range(10):  # the figure comes with the reply to an answer, once the batch is picked
        ann.press("1")
        if "%" in ann.page.inner_text("#test-figure"):
            break
        time.sleep(0.5)
    assert "%" in ann.page.inner_text("#test-figure")
    assert "12 of 12 test items" in ann.page.inner_text("#test-text")
    learner = badge.ActiveLearner(["x"] * 60, Texts(2), classes=["good", "bad"])
    learner.team.set_aside(10)
    learner.tell(sorted(learner.team.test)[:3], ["good", "bad", "good"])
    positions, _ = learner._book.ledger().labeled()
    assert len(positions) == 0 and len(learner.labels) == 3  # labels of the sample do not train


def test_several_classes_per_item(visit: Visit, served: Serve) -> None:
    server = served(30, "--classes", "red,big,old", "--multilabel", "--batch-size", "5")
    ann = visit(server.url)
    page = ann.page
    for i in range(12):
        even = int(ann.text().split(":")[0]) % 2 == 0
        page.keyboard.press("1")
        page.keyboard.press("3")
        page.keyboard.press("3" if even else "2")  # a second press takes it away
        pressed = [b.get_attribute("aria-pressed") for b in page.query_selector_all("#classes .class")]
        assert pressed == (["true", "false", "false"] if even else ["true", "true", "true"])
        ann.press("Enter")
        assert events(server, "tell")[i]["labels"] == [["red"] if even else ["red", "big", "old"]]
    before = ann.text()
    page.keyboard.press("Enter")  # nothing chosen: asked once more
    assert "No class is chosen" in page.inner_text("#saved") and ann.text() == before
    ann.press("Enter")
    assert events(server, "tell")[-1]["labels"] == [[]]
    ann.press("u")
    page.keyboard.press("2")
    ann.press("Enter")
    assert events(server, "relabel")[-1]["label"] == ["big"]
    assert until(lambda: [e for e in events(server, "ask") if e.get("predicted")])  # a model picked
    page.goto(f"{server.home}/labels")
    page.wait_for_selector("#rows select[multiple]")


def test_many_classes_by_keyboard(visit: Visit, served: Serve) -> None:
    names = [f"{group}_{i}" for group in ("card", "cash", "loan") for i in range(50)]
    server = served(40, "--classes", ",".join(names), "--batch-size", "5")
    ann = visit(server.url)
    page = ann.page
    assert [h.inner_text() for h in page.query_selector_all(".group h3")] == ["card", "cash", "loan"]
    for name in ("loan_49", "cash_7"):
        page.keyboard.press("/")
        page.keyboard.type(name)
        ann.press("Enter")
    page.keyboard.press("r")  # recently used
    page.wait_for_selector("#one[open]")
    assert "cash_7" in page.inner_text("#one-list button >> nth=0")
    ann.press("2")
    assert [e["labels"][0] for e in events(server, "tell")] == ["loan_49", "cash_7", "loan_49"]
    for i in range(9):
        page.keyboard.press("/")
        page.keyboard.type(("card_1", "cash_2")[i % 2])
        ann.press("Enter")
    for _ in range(30):  # on to an item with guesses
        page.keyboard.press("g")
        page.wait_for_timeout(100)
        if page.is_visible("#one"):
            break
        page.keyboard.press("/")
        page.keyboard.type("card_1")
        ann.press("Enter")
    assert len(page.query_selector_all("#one-list button")) == 5
    first = page.inner_text("#one-list button >> nth=0").split()[1]
    ann.press("1")
    assert events(server, "tell")[-1]["labels"] == [first]
    page.reload()
    ann.settle()
    keyed = page.query_selector_all(".class kbd")
    assert len(keyed) == 30  # the most used have keys now
    assert "card_1" in {key.evaluate("key => key.parentElement.dataset.name") for key in keyed}


def test_guidelines_and_classes_from_a_table(visit: Visit, served: Serve, tmp_path: Path) -> None:
    (tmp_path / "classes.csv").write_text(
        "name,description,key,colour\ngood,The writer liked it,y,#1d6b43\nbad,<b>The writer</b> did not,n,teal\n"
    )
    (tmp_path / "guide.md").write_text("# Irony\n\n- counts as **meant** <script>document.title='ran'</script>\n")
    server = served(6, "--classes", "classes.csv", "--guidelines", "guide.md")
    ann = visit(server.url)
    assert "Irony" in ann.page.inner_text("#guidelines") and "<script>" in ann.page.inner_text("#guidelines")
    assert "<b>The writer</b> did not" in ann.page.inner_text("#classes") and ann.page.title() == "Label · badge"
    ann.press("n")
    assert events(server, "tell")[0]["labels"] == ["bad"] and ann.said == []


def test_skip_a_labelled_item_comment_flag_and_change_many(visit: Visit, served: Serve) -> None:
    server = served(12, "--classes", "good,bad", "--batch-size", "12")
    ann = visit(server.url)
    page = ann.page
    first = ann.text().split(":")[0]
    page.keyboard.press("c")
    page.wait_for_selector("#commenting[open]")
    page.keyboard.type("hard to say")
    page.check("#flag")
    page.keyboard.press("Enter")
    page.wait_for_selector("#remarks >> text=hard to say")
    assert page.is_visible("#flagged")
    for _ in range(6):
        ann.press("1")
    ann.press("u")
    page.keyboard.press("s")  # a labelled item becomes a skipped one
    page.wait_for_selector("#skipping[open]")
    ann.press("3")
    (skip,) = events(server, "skip")
    assert skip["labelled"] and skip["by"] == "ann"
    page.goto(f"{server.home}/labels")
    page.wait_for_selector("#rows > li")
    assert page.inner_text("#found") == "5 items"
    page.select_option("#show", "flagged")
    page.wait_for_function("() => document.querySelectorAll('#rows > li').length === 1")
    assert f"t{first}" in page.inner_text("#rows")
    page.select_option("#show", "")
    page.wait_for_function("() => document.querySelectorAll('#rows > li').length === 5")
    page.click("#all")
    page.select_option("#to", "bad")
    page.click("#apply")
    page.wait_for_selector("text=Changed 5")
    (changed,) = events(server, "decide")  # one event
    assert changed["labels"] == ["bad"] * 5
    page.click("#undo-bulk")
    page.wait_for_selector("text=Changed back 5")
    assert {row["label"] for row in exported(ann, server)} == {"good"}
    (row,) = [row for row in exported(ann, server) if row["id"] == f"t{first}"]
    assert (
        json.loads(row["comments"]) == ["ann: hard to say"] and row["flagged"] == "true" and float(row["seconds"]) >= 0
    )


def test_long_texts_say_so_and_the_classes_stay_on_the_screen(visit: Visit, served: Serve) -> None:
    server = served(0, "--classes", "good,bad", rows=[{"text": f"{i} " + "word " * 2000} for i in range(4)])
    ann = visit(server.url)
    ann.page.wait_for_selector("text=More below")  # it appears in the next frame
    ann.page.keyboard.press("Space")
    ann.page.wait_for_function("() => document.querySelector('#item .long').scrollTop > 100")
    server.kill()
    rows = [{f"column {c}": f"{i}-{c}" for c in range(40)} for i in range(4)]
    (server.folder / "wide.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    wide = Server(server.folder, "wide.jsonl", "--classes", "good,bad")
    try:
        ann = visit(wide.url)
        tops = [box.bounding_box()["x"] for box in ann.page.query_selector_all("#item dl div")]  # type: ignore[index]
        assert len(set(tops)) == 2  # two columns
        box = ann.page.query_selector("#classes button").bounding_box()  # type: ignore[union-attr]
        assert box is not None and box["y"] + box["height"] <= 800
    finally:
        wide.kill()


def test_identical_items_are_asked_once(visit: Visit, served: Serve) -> None:
    rows = [{"id": f"t{i}", "text": f"text {i % 3}"} for i in range(12)]
    server = served(0, "--classes", "good,bad", "--batch-size", "4", rows=rows)
    ann = visit(server.url)
    for _ in range(3):
        ann.press("1" if ann.text() != "text 1" else "2")
    ann.page.wait_for_selector("text=All done")
    found = {row["id"]: row["label"] for row in exported(ann, server)}
    assert found == {f"t{i}": "bad" if i % 3 == 1 else "good" for i in range(12)}


def test_start_from_labels_and_guesses_in_the_file(visit: Visit, served: Serve) -> None:
    rows = [
        {"id": f"t{i}", "text": f"{i}: text", "known": "good" if i < 4 else None, "model": ("good", "bad")[i % 2]}
        for i in range(10)
    ]
    server = served(0, "--classes", "good,bad", "--label", "known", "--guess", "model", rows=rows)
    assert "4 labelled" in server.log.read_text() and "4 of them new" in server.log.read_text()
    ann = visit(server.url)
    assert ann.page.inner_text("#total").startswith("4 of 10")
    number = int(ann.text().split(":")[0])
    assert number >= 4 and "Suggested" in ann.page.inner_text("#was")
    assert "known" not in ann.page.inner_text("#item")  # neither column is shown
    ann.press("Enter")
    assert events(server, "tell")[-1]["labels"] == [("good", "bad")[number % 2]]
    server.kill()
    server.start()
    assert (
        "0 of them new" in server.log.read_text() and len([e for e in events(server, "tell") if e.get("source")]) == 1
    )


def test_the_model_is_saved_and_predicts_without_the_page(visit: Visit, served: Serve, tmp_path: Path) -> None:
    server = served(40, "--classes", "good,bad", "--batch-size", "6")
    ann = visit(server.url)
    for _ in range(14):
        ann.press("1" if int(ann.text().split(":")[0]) % 2 == 0 else "2")
    ann.page.goto(f"{server.home}/team")
    ann.page.click("#save")
    ann.page.wait_for_function("() => document.querySelector('#save-said').textContent.includes('Saved on the server')")
    folder = tmp_path / "pool.labels.model"
    program = (folder / "predict.py").read_text()
    assert sum(bool(line.strip()) for line in program.split('"""')[2].splitlines()) <= 10
    texts = ["a fine lovely great film", "a dull awful weak film"]
    environment = {**os.environ, "PYTHONPATH": str(Path(badge.__file__).parents[1])}
    call = [sys.executable, str(folder / "predict.py"), *texts]
    said = subprocess.run(call, capture_output=True, text=True, env=environment, check=True)
    assert said.stdout == f"good\t{texts[0]}\nbad\t{texts[1]}\n"
    server.kill()
    asked = ["label", str(tmp_path / "pool.jsonl"), "--classes", "good,bad", "--save", str(tmp_path / "m")]
    done = CliRunner().invoke(app, [*asked, "--journal", str(tmp_path / "pool.labels.jsonl"), "--port", "0"])
    assert (
        done.exit_code == 0 and "the model of 14 labels" in done.output and (tmp_path / "m" / "model.joblib").exists()
    )
