# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq consume` with a client among fakes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.cli.given import given
from tests.client.consumer.fake_broker import Broker, found
from tests.client.fakes import Scene, a_route, result_of, started
from txrocketmq.cli.clients.consume import Consuming, command, consume, main
from txrocketmq.cli.reading import LOOK_AGAIN_MS
from txrocketmq.client.consumer.config import ConsumeFrom


class Running:
    """A command that runs in a group of its own, at 5 in a queue."""

    def __init__(self, *arguments: str) -> None:
        self.scene = Scene()
        self.scene.routes["T"] = a_route({"broker-a": 1})
        self.broker = Broker(self.scene)
        self.options = given(command, Consuming, ["T", "--group", "g", *arguments])
        self.done: Deferred[int]

    def start(self) -> None:
        self.done = started(consume(self.scene.client, self.options))


def bodies(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.rpartition(" ")[2] for line in capsys.readouterr().out.splitlines()]


def test_what_is_printed_is_committed(capsys: pytest.CaptureFixture[str]) -> None:
    running = Running("--count", "2")
    running.broker.answers = [found(7, 5, 6)]
    running.start()
    assert result_of(running.done) == 0
    assert bodies(capsys) == ["m5", "m6"]
    assert running.broker.committed() == [(0, 7)]


def test_what_is_too_much_is_left_for_the_group(capsys: pytest.CaptureFixture[str]) -> None:
    running = Running("--count", "1", "--json")
    running.broker.answers = [found(8, 5, 6, 7)]
    running.start()
    assert result_of(running.done) == 0
    assert json.loads(capsys.readouterr().out)["body"] == "m5"
    assert running.broker.committed() == [(0, 6)]


def test_a_topic_that_is_not_there_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    running = Running("--count", "1")
    route = running.scene.routes.pop("T")
    running.broker.answers = [found(6, 5)]
    running.start()
    assert "topic T has no route" in capsys.readouterr().err
    running.scene.routes["T"] = route
    running.scene.time.advance(LOOK_AGAIN_MS / 1000)
    assert result_of(running.done) == 0


def test_silence_ends_it() -> None:
    running = Running("--timeout", "5", "--count", "1")
    running.start()
    running.scene.time.advance(5)
    assert result_of(running.done) == 1


def test_an_end_from_outside_leaves_the_group() -> None:
    running = Running()
    running.start()
    running.done.addErrback(lambda _: None)
    running.done.cancel()
    assert running.done.called
    assert running.scene.time.getDelayedCalls() == []


def test_a_reader_that_goes_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def write(self, _: Any) -> None:
            raise BrokenPipeError

    running = Running()
    running.broker.answers = [found(7, 5, 6)]
    monkeypatch.setattr(sys, "stdout", Gone())
    running.start()
    with pytest.raises(BrokenPipeError):
        result_of(running.done)
    assert running.broker.committed() == []


@pytest.mark.parametrize(
    ("where", "start"),
    [("first", ConsumeFrom.FIRST_OFFSET), ("1795248930123", ConsumeFrom.TIMESTAMP)],
)
def test_a_new_group_begins_where_it_is_told(where: str, start: ConsumeFrom) -> None:
    running = Running("--from", where, "--timeout", "1")
    running.broker.offset = None
    running.start()
    assert running.broker.beats()[0].consumer_data_set[0].consume_from_where == start.value
    offsets = [header.queue_offset for header in running.broker.pulls()]
    assert offsets == [0 if where == "first" else 1795248930123]
    running.scene.time.advance(1)
    assert result_of(running.done) == 0


def test_a_group_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["T"]) == 2
    assert "--group" in capsys.readouterr().err


def test_queues_may_be_locked_and_read_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    running = Running("--count", "2", "--orderly")
    running.broker.answers = [found(7, 5, 6)]
    running.start()
    assert result_of(running.done) == 0
    assert bodies(capsys) == ["m5", "m6"]
    assert running.broker.locks()
    assert running.broker.committed() == [(0, 7)]


def test_all_messages_may_be_wanted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    running = Running("--count", "2", "--broadcast", "--from", "first")
    running.broker.members = ["10.0.0.1@other"]
    running.broker.answers = [found(7, 5, 6)]
    running.start()
    assert result_of(running.done) == 0
    assert bodies(capsys) == ["m5", "m6"]
    assert running.broker.committed() == []
    assert list(tmp_path.rglob("offsets.json"))
