# SPDX-License-Identifier: Apache-2.0
"""A running name server and broker whose wall clock is set back and forward by an hour.

libfaketime sets it, for that process only, and leaves the monotonic clock alone. On Debian it is
installed by itself for root; elsewhere the tests are skipped without it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests import debian
from compat_tests.probe import request
from txrocketmq.remoting.serialize.json import decode_body
from txrocketmq.testing.server import Server

SEND, PULL, COMMIT, RUNTIME_INFO, ROUTE = 10, 11, 15, 28, 105
PULL_NOT_FOUND = 19
DEADLINE_S = 15


def libraries() -> list[Path]:
    return sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


@pytest.fixture(scope="session")
def library() -> Path:
    """libfaketime."""
    if not sys.platform.startswith("linux"):
        pytest.skip("libfaketime is looked for on Linux only")
    if not libraries():
        try:
            debian.install("libfaketime", sys.stderr.write)
        except debian.NotInstalled as error:
            pytest.skip(str(error))
    return libraries()[0]


class Stepped:
    """A server whose wall clock the test sets."""

    def __init__(self, offset_file: Path) -> None:
        self._offset_file = offset_file
        self.server = Server.start(flushConsumerOffsetInterval="1000")
        self._broker = int(self.server.broker_addr.rpartition(":")[2])
        self._namesrv = int(self.server.namesrv_addr.rpartition(":")[2])

    def set_by(self, seconds: int) -> None:
        """Sets the wall clock so far from the true time."""
        new = self._offset_file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.replace(self._offset_file)

    def send(self, topic: str, **properties: str) -> int:
        """Sends a message; the wall clock's time at which the server stored it."""
        fields = {
            "producerGroup": "p", "topic": topic, "defaultTopic": "TBW102",
            "defaultTopicQueueNums": "1", "queueId": "0", "sysFlag": "0", "bornTimestamp": "1",
            "flag": "0", "reconsumeTimes": "0", "unitMode": "false", "batch": "false",
            "properties": "".join(f"{name}\x01{value}\x02" for name, value in properties.items()),
        }  # fmt: skip
        answer, _ = request(self._broker, SEND, fields, b"body")
        assert answer["code"] == 0, answer
        return int(answer["extFields"]["queueOffset"])

    def pull(self, topic: str, offset: int, hold_ms: int = 0) -> tuple[int, int, bytes]:
        """Code, next offset and messages of a pull that may wait."""
        fields = {
            "consumerGroup": "g", "topic": topic, "queueId": "0", "queueOffset": str(offset),
            "maxMsgNums": "32", "sysFlag": "6" if hold_ms else "4", "commitOffset": "0",
            "suspendTimeoutMillis": str(hold_ms), "subscription": "*", "subVersion": "0",
        }  # fmt: skip
        answer, body = request(self._broker, PULL, fields, timeout_s=DEADLINE_S)
        return answer["code"], int(answer["extFields"]["nextBeginOffset"]), body

    def stored_ms(self, topic: str) -> int:
        """By which time the newest message of a topic is stored."""
        code, _, body = self.pull(topic, self.end(topic) - 1)
        assert code == 0
        return int.from_bytes(body[56:64], "big")

    def end(self, topic: str) -> int:
        """How many messages a topic has."""
        fields = {"topic": topic, "queueId": "0", "committed": "true"}
        return int(request(self._broker, 30, fields)[0]["extFields"]["offset"])

    def commit(self, topic: str, offset: int) -> None:
        fields = {
            "consumerGroup": "g", "topic": topic, "queueId": "0", "commitOffset": str(offset),
        }  # fmt: skip
        assert request(self._broker, COMMIT, fields)[0]["code"] == 0

    def saved(self) -> object:
        """The offsets in the file."""
        path = self.server.store / "config" / "consumerOffset.json"
        return decode_body(path.read_bytes())["offsetTable"] if path.exists() else None

    def unflushed(self) -> str:
        _, body = request(self._broker, RUNTIME_INFO)
        table: dict[str, str] = json.loads(body)["table"]
        return table["remainHowManyDataToFlush"]

    def has_route(self, topic: str) -> bool:
        return bool(request(self._namesrv, ROUTE, {"topic": topic})[0]["code"] == 0)


def until(what: str, is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline_s, f"{what}: not within {DEADLINE_S} s"
        time.sleep(0.05)  # another process: there is nothing that could tell


@pytest.fixture
def stepped(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stepped]:
    offset_file = tmp_path / "faketime"
    offset_file.write_text("+0\n")
    with monkeypatch.context() as environment:
        environment.setenv("LD_PRELOAD", str(library))
        environment.setenv("FAKETIME_TIMESTAMP_FILE", str(offset_file))
        environment.setenv("FAKETIME_NO_CACHE", "1")
        environment.setenv("DONT_FAKE_MONOTONIC", "1")
        environment.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        stepped = Stepped(offset_file)
    yield stepped
    stepped.server.stop()


@pytest.mark.parametrize("seconds", [-3_600, 3_600])
def test_all_that_is_timed_goes_on(stepped: Stepped, seconds: int) -> None:
    stepped.send("T")
    stepped.send("Waits", DELAY="2")  # 5 s
    began_s = time.monotonic()
    for turn, set_by_s in enumerate((seconds, 0)):
        stepped.set_by(set_by_s)
        stepped.send("T")
        off_s = stepped.stored_ms("T") / 1000 - time.time()
        assert abs(off_s - set_by_s) < 60, "the wall clock of the server was set"
        until("the flush", lambda: stepped.unflushed() == "0 B")
        stepped.commit("T", turn + 1)
        wanted = {"T@g": {0: turn + 1}}
        until("the saved offsets", lambda wanted=wanted: stepped.saved() == wanted)  # type: ignore[misc]
        pulled_s = time.monotonic()
        assert stepped.pull("T", stepped.end("T"), 1_000)[0] == PULL_NOT_FOUND
        assert 0.9 < time.monotonic() - pulled_s < DEADLINE_S
        before = stepped.end(f"Delayed{turn}")
        stepped.send(f"Delayed{turn}", DELAY="1")
        until("the delayed message", lambda n=turn, b=before: stepped.end(f"Delayed{n}") > b)  # type: ignore[misc]
        until("the route", lambda n=turn: stepped.has_route(f"Delayed{n}"))  # type: ignore[misc]
    until("what was delayed before", lambda: stepped.end("Waits") == 1)
    assert time.monotonic() - began_s < 2 * DEADLINE_S
