# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq tail` with a client among fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.cli.given import given
from tests.cli.stored import Stored
from tests.client.fakes import BROKER_A, Scene, a_route, result_of, started
from txrocketmq.cli.clients.tail import Tailing, command, main, tail
from txrocketmq.cli.reading import LOOK_AGAIN_MS
from txrocketmq.client.base.errors import MQClientError, NoRoute
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.protocol import offset, pull
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
)
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader


class Tail:
    """A tail that runs; `put` lets its pull find messages."""

    def __init__(self, scene: Scene, *arguments: str) -> None:
        self.scene = scene
        self.open: list[PendingReply] = []
        self.offset = 0
        on = scene.connections.on
        on(BROKER_A, pull.PULL_MESSAGE, self._pull)
        on(BROKER_A, offset.GET_MIN_OFFSET, Reply(GetMinOffsetResponseHeader(offset=0)))
        on(BROKER_A, offset.GET_MAX_OFFSET, Reply(GetMaxOffsetResponseHeader(offset=50)))
        options = given(command, Tailing, ["T", *arguments])
        self.done: Deferred[int] = started(tail(scene.client, options))

    def _pull(self, address: str, header: Any, body: bytes) -> PendingReply:
        self.wanted = header.subscription, header.expression_type
        self.offset = header.queue_offset
        self.open.append(PendingReply())
        return self.open[-1]

    def put(self, *bodies: bytes) -> None:
        header = PullMessageResponseHeader(
            suggest_which_broker_id=0,
            next_begin_offset=self.offset + len(bodies),
            min_offset=0,
            max_offset=99,
        )
        records = b"".join(encode_message(MessageExt("T", body)) for body in bodies)
        self.open.pop().resolve(Reply(header, records))


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.routes["T"] = a_route({"broker-a": 1})
    return scene


def test_messages_are_printed_until_enough(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Tail(scene, "--count", "3")
    assert running.offset == 50
    running.put(b"one")
    assert not running.done.called
    running.put(b"two", b"three", b"four")
    assert result_of(running.done) == 0
    assert [line.rpartition(" ")[2] for line in capsys.readouterr().out.splitlines()] == [
        "one",
        "two",
        "three",
    ]


def test_what_is_asked_for(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = {
        (): ("*", "TAG"),
        ("--tag", "a || b"): ("a || b", "TAG"),
        ("--sql", "a > 5"): ("a > 5", "SQL92"),
    }
    for arguments, pulled in wanted.items():
        running = Tail(scene, *arguments)
        assert running.wanted == pulled
        running.done.addErrback(lambda _: None)
        running.done.cancel()
    assert main(["T", "--tag", "a", "--sql", "a > 5"]) == 2
    assert "--tag and --sql are both given: choose one" in capsys.readouterr().err


def test_from_first_as_json(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    running = Tail(scene, "--from", "first", "--count", "1", "--json")
    assert running.offset == 0
    running.put(b"one")
    assert json.loads(capsys.readouterr().out)["body"] == "one"


def test_a_topic_that_is_not_there_is_waited_for_and_read_whole(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    route = scene.routes.pop("T")
    running = Tail(scene, "--count", "1")
    assert "topic T has no route" in capsys.readouterr().err
    scene.time.advance(LOOK_AGAIN_MS / 1000)
    assert capsys.readouterr().err == ""
    scene.routes["T"] = route
    scene.time.advance(LOOK_AGAIN_MS / 1000)
    assert running.offset == 0  # what came after the start of tail is not passed over
    running.put(b"one")
    assert result_of(running.done) == 0


@pytest.fixture
def stored(scene: Scene) -> Stored:
    """Three queues with nine messages, stored one after the other; pulls do not wait."""
    made = Stored(scene)
    made.topic("T", 3)
    for n in range(9):
        made.put("T", n % 3, b"m%d" % n, 1_000_000_000_000 + n, TAGS="ab"[n % 2])
    return made


def printed(stored: Stored, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    options = given(command, Tailing, ["T", *words])
    options.check()
    result_of(tail(stored.scene.client, options))
    return capsys.readouterr().out


def test_what_is_there_comes_in_the_order_of_storing(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    form = ["-f", "%s "]
    for words, wanted in (
        (["--from", "first"], "m0 m1 m2 m3 m4 m5 m6 m7 m8 "),
        (["--from", "1000000000006"], "m6 m7 m8 "),
        ([], "m0 m1 m2 m3 m4 m5 m6 m7 m8 "),
        (["--from", "last"], ""),
        (["--last", "2"], "m7 m8 "),
        (["--last", "100"], "m0 m1 m2 m3 m4 m5 m6 m7 m8 "),
        (["--from", "first", "--tag", "a"], "m0 m2 m4 m6 m8 "),
        (["--from", "first", "--count", "4"], "m0 m1 m2 m3 "),
        (["--from", "first", "--queue", "1"], "m1 m4 m7 "),
        (["--last", "2", "--queue", "broker-a/0", "--queue", "2"], "m6 m8 "),
    ):
        assert printed(stored, capsys, "--no-follow", *form, *words) == wanted, words


def test_the_exit_code_says_that_there_were_fewer_than_wanted(stored: Stored) -> None:
    for count, code in (("9", 0), ("10", 1)):
        words = ["T", "--from", "first", "--no-follow", "--count", count]
        assert result_of(tail(stored.scene.client, given(command, Tailing, words))) == code


def test_the_last_and_then_the_new(
    stored: Stored, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[int, int]] = []

    def wait(_: str, header: Any, __: bytes) -> PendingReply | Reply[Any]:
        if header.queue_offset < 3:
            return stored._pull(_, header, __)
        asked.append((header.queue_id, header.queue_offset))
        return PendingReply()

    scene.connections.on(BROKER_A, pull.PULL_MESSAGE, wait)
    running = started(tail(scene.client, given(command, Tailing, ["T", "--last", "1"])))
    assert capsys.readouterr().out.endswith(" m8\n")
    assert sorted(asked) == [(0, 3), (1, 3), (2, 3)]
    running.addErrback(lambda _: None)
    running.cancel()


def test_only_the_queues_that_are_named_are_followed(scene: Scene) -> None:
    scene.routes["T"] = a_route({"broker-a": 3})
    running = Tail(scene, "--queue", "1")
    assert len(running.open) == 1
    running.done.addErrback(lambda _: None)
    running.done.cancel()


@pytest.mark.parametrize("words", [["--queue", "7"], ["--queue", "broker-x/0", "--no-follow"]])
def test_a_queue_that_is_not_there(stored: Stored, words: list[str]) -> None:
    with pytest.raises(MQClientError, match="does not have this queue; it has broker-a/0, broker-"):
        result_of(tail(stored.scene.client, given(command, Tailing, ["T", *words])))


def test_what_is_not_followed_is_not_waited_for(scene: Scene) -> None:
    scene.routes.clear()
    with pytest.raises(NoRoute):
        result_of(tail(scene.client, given(command, Tailing, ["T", "--no-follow"])))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--queue", "x"], "'x' is not a queue: write ID or BROKER/ID"),
        (["--last", "0"], "'0' is not a whole number of at least 1"),
        (["--last", "10001"], "--last takes at most 10000 messages: give --from"),
        (["--last", "1", "--from", "first"], "--last and --from are both given: choose one"),
        (["--from", "-2"], "the last 2 messages are --last 2 here"),
        (["--json", "-f", "%s"], "--json and --format are both given: choose one"),
        (["-f", "T"], "new messages are followed without any option"),
    ],
)
def test_wrong_usage(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["T", *words]) == 2
    assert why in capsys.readouterr().err


def test_silence_ends_it(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    running = Tail(scene, "--timeout", "5")
    scene.time.advance(4)
    running.put(b"one")
    scene.time.advance(4)
    assert not running.done.called
    scene.time.advance(1)
    assert result_of(running.done) == 0
    assert scene.time.getDelayedCalls() == []


def test_silence_before_enough_is_told_by_the_exit_code(scene: Scene) -> None:
    running = Tail(scene, "--timeout", "5", "--count", "1")
    scene.time.advance(5)
    assert result_of(running.done) == 1


def test_silence_also_ends_the_wait_for_a_topic(scene: Scene) -> None:
    scene.routes.clear()
    running = Tail(scene, "--timeout", "2")
    for _ in range(5):
        scene.time.advance(LOOK_AGAIN_MS / 1000)
    assert result_of(running.done) == 0


def test_a_cancelled_tail_leaves_nothing_behind(scene: Scene) -> None:
    running = Tail(scene, "--timeout", "5")
    running.done.addErrback(lambda _: None)
    running.done.cancel()
    assert running.done.called
    assert scene.time.getDelayedCalls() == []
