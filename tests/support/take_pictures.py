"""Pictures of the labelling page in a real browser: those of the docs, and with --all every page in every state.

python tests/support/take_pictures.py docs/images
python tests/support/take_pictures.py /tmp/pictures --all
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from pages import CHROMIUM, FLAGS, Person, Server

SUBJECTS = ("The acting", "The script", "The music", "The ending", "Every scene", "The camera work")
SAID = {
    "good": (
        "was tender and clever",
        "carries the whole film",
        "stayed with me for days",
        "is a joy from start to end",
    ),
    "bad": ("was flat and slow", "spoils a fine idea", "bored everybody around me", "makes no sense at all"),
    "unclear": ("is what one expects", "divides the audience", "was hard to judge from row 30"),
}
REVIEWS = [
    (name, f"{subject} {said}.") for name, all_said in SAID.items() for subject, said in product(SUBJECTS, all_said)
]
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True}
CLASSES = (
    "name,description,key,colour\ngood,The writer liked it,,#1d6b43\nbad,The writer did not,,#a3261c\n"
    "unclear,Neither or both,,\n"
)
WIDE = [{f"column {c}": f"value {i}-{c}" for c in range(30)} for i in range(4)]
GUIDE = "Judge the **whole** review, not one sentence.\n\n- irony counts as what it means\n"


@contextmanager
def served(*options: str, rows: list[dict[str, Any]] | None = None) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shown = rows or [{"id": f"r{i}", "text": text, "source": "web"} for i, (_, text) in enumerate(REVIEWS)]
        (folder / "reviews.jsonl").write_text("".join(json.dumps(row) + "\n" for row in shown))
        (folder / "classes.csv").write_text(CLASSES)
        (folder / "guide.md").write_text(GUIDE)
        server = Server(folder, "reviews.jsonl", *options)
        try:
            yield server
        finally:
            server.kill()


def answer(person: Person, count: int, wrong_every: int = 0) -> None:
    """Label as the reviews say. Every `wrong_every`-th answer is another class."""
    keys = {text: str(1 + list(SAID).index(name)) for name, text in REVIEWS}
    for number in range(1, count + 1):
        key = keys[person.text()]
        person.press(str(int(key) % 2 + 1) if wrong_every and number % wrong_every == 0 else key)


def take(person: Person, file: Path) -> None:
    person.page.wait_for_timeout(400)
    person.page.screenshot(path=str(file))
    print(file)


def of_the_docs(browser: Any, out: Path) -> None:
    usual = ("--classes", "classes.csv", "--guidelines", "guide.md", "--batch-size", "6", "--encoder", "none")
    with served(*usual, "--test", "12") as server:
        ann = Person(browser, server.url, viewport={"width": 1280, "height": 860})
        answer(ann, 40)
        ann.page.wait_for_function("() => document.querySelector('#test-figure').textContent.includes('%')")
        answer(ann, 4)
        take(ann, out / "label.png")
        phone = Person(browser, server.url, color_scheme="dark", **PHONE)
        take(phone, out / "label-phone.png")
        ann.page.goto(f"{server.home}/labels")
        ann.page.wait_for_selector("#rows > li")
        take(ann, out / "labels.png")
    with served("--classes", "good,bad,unclear", "--of", "2", "--batch-size", "12", "--people", "ann,ben") as server:
        links = dict(re.findall(r"open   (\w+) \(\w+\): (http\S+)", server.log.read_text()))
        ann, ben = (Person(browser, links[name], viewport={"width": 1280, "height": 860}) for name in ("ann", "ben"))
        answer(ann, 12)
        answer(ben, 12, wrong_every=4)
        ann.page.goto(f"{server.home}/disagreements")
        ann.page.wait_for_selector("#rows .votes")
        take(ann, out / "disagreements.png")
        ann.page.goto(f"{server.home}/team")
        ann.page.wait_for_selector("#people td")
        take(ann, out / "team.png")

    with served("--classes", "good,bad,unclear", "--encoder", "none", rows=WIDE) as server:
        take(Person(browser, server.url, viewport={"width": 1280, "height": 860}), out / "label-wide.png")


def of_everything(browser: Any, out: Path) -> None:
    many = ",".join(f"{group}_{i}" for group in ("card", "cash", "loan") for i in range(50))
    arabic = [{"text": f"كان الفيلم جميلاً جداً، المشهد {i} <b>لا</b>"} for i in range(8)]
    long = [{"text": f"{i} " + "A long review goes on and on. " * 200} for i in range(4)]
    looks: dict[str, dict[str, Any]] = {
        "light": {}, "dark": {"color_scheme": "dark"}, "phone": PHONE, "phone-dark": {**PHONE, "color_scheme": "dark"}
    }  # fmt: skip
    cases: dict[str, tuple[tuple[str, ...], list[dict[str, Any]] | None]] = {
        "150-classes": (("--classes", many), None),
        "rtl": (("--classes", "جيد,سيئ"), arabic),
        "long": (("--classes", "good,bad"), long),
        "wide": (("--classes", "good,bad"), WIDE),
        "several": (("--classes", "good,bad,unclear", "--multilabel"), None),
    }
    for case, (options, rows) in cases.items():
        with served(*options, "--encoder", "none", rows=rows) as server:
            for look, context in looks.items():
                person = Person(browser, server.url, **context)
                take(person, out / f"{case}-{look}.png")
                if case == "150-classes":
                    person.press("1")
                for path in ("labels", "team") if case == "150-classes" else ():
                    person.page.goto(f"{server.home}/{path}")
                    take(person, out / f"{path}-{look}.png")
                person.close()


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        of_the_docs(browser, given.out)
        if given.all:
            of_everything(browser, given.out)
        browser.close()


if __name__ == "__main__":
    main()
