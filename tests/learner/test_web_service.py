"""The program of docs/web-service.md, served by uvicorn, under load: nothing fails, is asked twice or is lost."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import badge
from forks import FORKS
from pages import free_port

pytest.importorskip("fastapi", reason="fastapi is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "web-service.md"
CLIENTS, EACH = 16, 12


def serve(folder: Path, port: int) -> None:
    import uvicorn

    os.chdir(folder)
    sys.path.insert(0, str(folder))
    uvicorn.run("service:app", port=port, log_level="warning")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[str]:
    program = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    (tmp_path / "service.py").write_text(program, encoding="utf-8")
    port = free_port()
    server = FORKS.Process(target=serve, args=(tmp_path, port))
    server.start()
    home = f"http://127.0.0.1:{port}"
    end = time.monotonic() + 60
    while True:
        try:
            httpx.get(f"{home}/docs")
            break
        except httpx.TransportError:
            assert server.is_alive() and time.monotonic() < end
            time.sleep(0.1)
    yield home
    server.terminate()
    server.join(30)


def test_the_service_under_load(home: str, tmp_path: Path) -> None:
    asked: Counter[int] = Counter()
    told: dict[int, str] = {}
    scores: dict[int, list[dict[str, float]]] = {}
    wrong: list[Any] = []

    def works(name: str) -> None:
        with httpx.Client(base_url=home, timeout=120) as client:
            ids: list[int] = []
            for _ in range(EACH):
                if not ids:
                    ids = client.post("/batches/4").raise_for_status().json()["ids"]
                    asked.update(ids)
                id = ids.pop()
                answer = {"id": id, "label": ("no", "yes")[id % 2], "by": name}
                for _ in range(2):  # a client that got no reply sends it again
                    client.post("/labels", json=answer).raise_for_status()
                told[id] = str(answer["label"])
                found = client.get("/scores/7")
                if found.status_code != 409:
                    scores.setdefault(0, []).append(found.raise_for_status().json())

    def tries(name: str) -> None:
        try:
            works(name)
        except Exception as error:
            wrong.append(error)

    clients = [threading.Thread(target=tries, args=(f"person {i}",)) for i in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert not wrong, wrong
    assert len(told) == CLIENTS * EACH and max(asked.values()) == 1
    assert all(abs(sum(score.values()) - 1) < 1e-5 for score in scores[0])
    refused = httpx.post(f"{home}/labels", json={"id": next(iter(told)), "label": "maybe"})
    assert refused.status_code == 422 and "'maybe'" in refused.json()["detail"]
    for path, status in (("/batches/501", 422), ("/batches/0", 422), ("/scores/500", 404), ("/scores/-1", 404)):
        way = "POST" if path.startswith("/batches") else "GET"
        refused = httpx.request(way, home + path)
        assert refused.status_code == status and refused.json()["detail"], path
    events = [event for event in badge.journal.read(tmp_path / "labels.jsonl") if event["event"] == "tell"]
    assert {id: label for e in events for id, label in zip(e["ids"], e["labels"], strict=True)} == told
    assert sum(len(event["ids"]) for event in events) == len(told)
