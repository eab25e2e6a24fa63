# SPDX-License-Identifier: Apache-2.0
"""Our consumers, each in a process of its own, with the interface of the official ones."""

import itertools
import json
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from compat_tests.java_client import Json, text
from compat_tests.scene import Scene, poll

DRIVER = Path(__file__).parent / "clients" / "ours" / "driver.py"
ANSWER_S = 60
ENDS_S = 60


class OurError(Exception):
    """An operation raised an error: the message has its class and its text."""


class OurConsumer:
    """One consumer; `kind` is push, orderly or lite."""

    def __init__(
        self,
        scene: Scene,
        kind: str,
        topic: str,
        group: str,
        *,
        model: str = "CLUSTERING",
        expression: str = "*",
        config: Json | None = None,
        **settings: Any,
    ) -> None:
        told = {
            "kind": kind,
            "namesrv": scene.namesrv,
            "topic": topic,
            "group": group,
            "model": model,
            "expression": expression,
            "config": config or {},
            **settings,
        }
        self._process = subprocess.Popen(
            [sys.executable, str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._events: list[Json] = []
        self._answers: dict[int, Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._started: Future[str] = Future()
        threading.Thread(target=self._read, daemon=True).start()
        self._tell(told)
        self.client_id = self._started.result(ANSWER_S)

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    def events(self) -> list[Json]:
        """Returns all messages that have come so far, with their times."""
        return list(self._events)

    def messages(self) -> list[Json]:
        return [event["message"] for event in self._events]

    def bodies(self) -> list[str]:
        return [text(each) for each in self.messages()]

    def wait_for(self, count: int, timeout_s: float = 60) -> list[Json]:
        poll(lambda: len(self._events) >= count, f"our consumer has {count} messages", timeout_s)
        return self.messages()

    def assignment(self) -> list[Json]:
        found: list[Json] = self.call("assignment")
        return found

    def locked(self) -> set[int]:
        return {each["queue_id"] for each in self.assignment() if each["locked"]}

    def rebalance(self) -> None:
        self.call("rebalance")

    def poll_until(self, count: int, timeout_s: float = 60) -> list[Json]:
        found: list[Json] = []

        def enough() -> bool:
            found.extend(self.call("poll", timeout_ms=1_000))
            return len(found) >= count

        poll(enough, f"our consumer has polled {count} messages", timeout_s)
        return found

    def call(self, op: str, **arguments: Any) -> Any:
        """Carries out an operation; returns its result. Raises OurError."""
        number = next(self._numbers)
        answer: Future[Any] = Future()
        self._answers[number] = answer
        self._tell({"op": op, "number": number, **arguments})
        return answer.result(ANSWER_S)

    def stop(self) -> None:
        """Stops the consumer in order."""
        if self._process.poll() is None:
            self.call("stop")
            assert self._process.wait(ENDS_S) == 0

    def kill(self) -> None:
        """Kills the process."""
        self._process.kill()
        self._process.wait(ENDS_S)

    def _tell(self, line: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            if "message" in event:
                self._events.append(event)
            elif "started" in event:
                self._started.set_result(event["started"])
            elif "failed" in event:
                self._started.set_exception(OurError(event["failed"]))
            elif "error" in event:
                self._answers.pop(event["number"]).set_exception(
                    OurError(f"{event['error']}: {event['text']}")
                )
            else:
                self._answers.pop(event["number"]).set_result(event["result"])
