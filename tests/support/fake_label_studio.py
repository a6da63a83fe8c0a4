"""A Label Studio in memory, as far as its REST interface is used: for what the real server cannot be made to do at will."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx

CONFIG = (
    '<View><Text name="t" value="$text"/><Choices name="c" toName="t" choice="single">'
    '<Choice value="good"/><Choice value="bad"/></Choices></View>'
)


class FakeLabelStudio:
    """Tasks by id, annotations and predictions in them; `failing` answers are given before real ones."""

    def __init__(self, texts: list[str], token: str = "secret", files: Callable[[str], bytes] | None = None) -> None:
        self.token, self.calls, self.files = token, 0, files
        self.failing: list[int | Exception] = []
        self.settings: dict[str, Any] = {
            "label_config": CONFIG,
            "model_version": "",
            "sampling": "Sequential sampling",
        }
        self.tasks: dict[int, dict[str, Any]] = {
            n: {"id": n, "data": {"text": text}, "annotations": [], "predictions": []}
            for n, text in enumerate(texts, start=101)
        }
        self.clock = 0

    def annotate(self, task: int, choice: str | None, by: int = 1, skip: bool = False) -> None:
        self.clock += 1
        value = (
            [{"from_name": "c", "to_name": "t", "type": "choices", "value": {"choices": [choice]}}] if choice else []
        )
        annotation = {"completed_by": by, "was_cancelled": skip, "result": value, "updated_at": f"{self.clock:09d}"}
        kept = [a for a in self.tasks[task]["annotations"] if a["completed_by"] != by]
        self.tasks[task]["annotations"] = [*kept, annotation]

    def served(self) -> list[int]:
        """The order in which Label Studio would serve open tasks of the current model version."""
        scored = [
            (p["score"], t["id"])
            for t in self.tasks.values()
            for p in t["predictions"]
            if p["model_version"] == self.settings["model_version"] and not t["annotations"]
        ]
        return [task for _, task in sorted(scored)]

    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.calls += 1
        if self.failing:
            failure = self.failing.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return httpx.Response(failure, text="no")
        path, body = request.url.path, json.loads(request.content or b"null")
        if path == "/api/token/refresh/":
            right = body["refresh"] == self.token
            return httpx.Response(200, json={"access": "short"}) if right else httpx.Response(401, json={})
        if request.headers.get("authorization") not in (f"Token {self.token}", "Bearer short"):
            return httpx.Response(401, json={"detail": "Invalid token."})
        return self._project(request, path, body)

    def _project(self, request: httpx.Request, path: str, body: Any) -> httpx.Response:
        if path.startswith("/data/") and self.files is not None:
            return httpx.Response(200, content=self.files(path))
        if path == "/api/projects/7/":
            self.settings.update(body or {})
            return httpx.Response(200, json=self.settings)
        if path == "/api/tasks/":
            page, size = int(request.url.params["page"]), int(request.url.params["page_size"])
            tasks = list(self.tasks.values())
            return httpx.Response(200, json={"total": len(tasks), "tasks": tasks[(page - 1) * size : page * size]})
        if path == "/api/users/":
            users = [{"id": 1, "email": "ann@x.org", "username": ""}, {"id": 2, "email": "", "username": "bob"}]
            return httpx.Response(200, json=users)
        if path == "/api/projects/7/import/predictions":
            for item in body:
                self.tasks[item["task"]]["predictions"].append(item)
            return httpx.Response(201, json={"created": len(body)})
        if path == "/api/projects/7/model-versions/":
            if request.method == "DELETE":
                for task in self.tasks.values():
                    task["predictions"] = [
                        p for p in task["predictions"] if p["model_version"] != body["model_version"]
                    ]
                return httpx.Response(200, json=1)
            versions: dict[str, int] = {}
            for task in self.tasks.values():
                for p in task["predictions"]:
                    versions[p["model_version"]] = versions.get(p["model_version"], 0) + 1
            return httpx.Response(200, json=versions)
        return httpx.Response(404, json={"detail": "Not found."})
