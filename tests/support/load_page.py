"""Many people at one labelling server: how many answers are lost, and how long one takes.

    python tests/support/load_page.py --people 50 --answers 10000 --items 1000000

Starts `badge label` in a new folder, lets every person label over HTTP at once, kills the server with SIGKILL, and
compares its journal with what the server had confirmed. An answer's time is taken at the client, from request to reply,
and by the server itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

import badge
from pages import Server

__all__ = ["run"]


def run(people: int = 50, answers: int = 10_000, items: int = 20_000, pause: float = 0.0) -> dict[str, Any]:
    """Figures of one run; `lost` and `doubled` count confirmed answers that the journal has not, or has twice."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool.txt"
        with path.open("w") as file:
            file.writelines(
                f"{'fine' if i % 2 else 'dull'} film number {i}, seen on day {i % 97}\n" for i in range(items)
            )
        started = time.monotonic()
        server = Server(Path(folder), "pool.txt", "--classes", "good,bad", "--batch-size", str(4 * people), seconds=300)
        opening = time.monotonic() - started
        started = time.monotonic()
        confirmed, times_of = asyncio.run(_all(server, people, answers // people, pause))
        taken = time.monotonic() - started
        server.kill()
        told: list[Any] = []
        for event in badge.journal.read(Path(folder) / "pool.labels.jsonl"):
            if event["event"] == "tell":
                told += [(id, label, event["by"]) for id, label in zip(event["ids"], event["labels"], strict=True)]
    kept = {(str(id), label, by) for id, label, by in told}
    times, inside = (sorted(part) for part in zip(*times_of, strict=True))
    return {
        "people": people,
        "items": items,
        "confirmed": len(confirmed),
        "lost": len(set(confirmed) - kept),
        "doubled": len(told) - len({id for id, *_ in told}),
        "unconfirmed": len(kept - set(confirmed)),
        "answers_per_second": round(len(confirmed) / taken, 1),
        "client_median_ms": round(statistics.median(times), 1),
        "client_p95_ms": round(times[int(0.95 * len(times))], 1),
        "server_median_ms": round(statistics.median(inside), 1),
        "server_p95_ms": round(inside[int(0.95 * len(inside))], 1),
        "opening_seconds": round(opening, 1),
    }


async def _all(
    server: Server, people: int, each: int, pause: float
) -> tuple[list[tuple[Any, str, str]], list[tuple[float, float]]]:
    done = await asyncio.gather(*(_one(server, f"person {i}", each, pause) for i in range(people)))
    return [one for mine, _ in done for one in mine], [pair for _, mine in done for pair in mine]


async def _one(
    server: Server, name: str, each: int, pause: float
) -> tuple[list[tuple[Any, str, str]], list[tuple[float, float]]]:
    confirmed, milliseconds = [], []
    headers = {"origin": server.home}
    async with httpx.AsyncClient(base_url=server.home, headers=headers, timeout=120) as client:
        await client.get(server.url)
        task = (await client.post("/api/next", json={"client": name, "name": name})).json()
        for number in range(each):
            while "id" not in task:
                await asyncio.sleep(0.05)
                task = (await client.post("/api/next", json={"client": name, "name": name})).json()
            label = ("bad", "good")[int(task["id"]) % 2]
            body = {"request": f"{name}-{number}", "client": name, "name": name, "label": label}
            body |= {"id": task["id"], "shown": task["shown"]}
            started = time.perf_counter()
            reply = await client.post("/api/answer", json=body)
            inside = float(reply.headers["server-timing"].split("dur=")[1])
            milliseconds.append((1000 * (time.perf_counter() - started), inside))
            said = reply.json()
            assert reply.status_code == 200, said
            confirmed.append((said["id"], said["label"], name))
            task = said["next"]
            await asyncio.sleep(pause)
    return confirmed, milliseconds


def main() -> None:
    """Print the figures as JSON; exit code 1 where an answer was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("people", 50), ("answers", 10_000), ("items", 20_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that a person thinks before each answer")
    found = run(**vars(parser.parse_args()))
    print(json.dumps(found, indent=1))
    raise SystemExit(bool(found["lost"] or found["doubled"]))


if __name__ == "__main__":
    main()
