# SPDX-License-Identifier: Apache-2.0
"""How much of a pop is decoded in one turn."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from tests.proxy.scene import ProxyScene, a_message
from txrocketmq.client.consumer.popping.pop_result import Popped
from txrocketmq.proxy.receives import popped
from txrocketmq.proxy.receives.popped import (
    MOST_BATCHES_INFLATED,
    MOST_INFLATED_HERE,
    PORTION_BYTES,
    popped_in_turns,
    portions,
)
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import Encoding
from txrocketmq.remoting.message.compression import CompressionType, compress
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import Message, encode_batch, encode_message
from txrocketmq.remoting.message.tags import SUB_ALL, SubscriptionData
from txrocketmq.remoting.protocol import pop


@given(st.lists(st.integers(0, 3 * PORTION_BYTES // 2), max_size=12))
def test_portions_are_whole_records_of_so_many_bytes(sizes: list[int]) -> None:
    records = [encode_message(a_message(bytes(size))) for size in sizes]
    cut = list(portions(b"".join(records)))
    assert b"".join(cut) == b"".join(records)
    assert len(cut) <= len(records)
    ends = {sum(map(len, records[: n + 1])) for n in range(len(records))}
    at = 0
    for portion in cut:
        at += len(portion)
        assert at in ends
        assert len(portion) <= PORTION_BYTES or bytes(portion) in records


@given(st.binary(max_size=100))
def test_bytes_that_are_no_records_stay_together(data: bytes) -> None:
    record = encode_message(a_message())
    assert b"".join(portions(record + data)) == record + data


class Turns:
    """The turns that the proxy leaves to others, each of which ends when it is told to."""

    def __init__(self, scene: ProxyScene, monkeypatch: pytest.MonkeyPatch) -> None:
        self._left: list[Deferred[None]] = []
        monkeypatch.setattr(scene.clock, "pause", self._pause)

    def _pause(self, delay_ms: float) -> Deferred[None]:
        self._left.append(Deferred())
        return self._left[-1]

    def next(self) -> None:
        """Lets the proxy go on, if it waits."""
        if self._left:
            self._left.pop().callback(None)


def count(monkeypatch: pytest.MonkeyPatch, name: str, what: Callable[[Any], int]) -> list[int]:
    """What each call of a function of the module was given first."""
    calls: list[int] = []
    original = getattr(popped, name)

    def counted(first: Any, *rest: Any, **named: Any) -> Any:
        calls.append(what(first))
        return original(first, *rest, **named)

    monkeypatch.setattr(popped, name, counted)
    return calls


def test_a_long_pop_is_decoded_in_turns(scene: ProxyScene, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded, turns = count(monkeypatch, "all_messages", len), Turns(scene, monkeypatch)
    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, scene.popped(*(a_message(bytes(30_000), n) for n in range(8))))
    outcome = scene.receive()
    for turn in range(1, 5):
        assert len(decoded) == turn
        assert decoded[-1] <= PORTION_BYTES
        assert bool(outcome.sink.sent) is (turn == 4)
        turns.next()
    assert len(decoded) == 4
    assert len(outcome.sink.sent) == 10


def test_bodies_are_decompressed_one_after_another(
    scene: ProxyScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So no more than one is held, and one turn does not decompress all."""
    inflated, turns = count(monkeypatch, "decompress", len), Turns(scene, monkeypatch)
    body = zlib.compress(bytes(MOST_INFLATED_HERE))
    flag = MessageSysFlag.COMPRESSED
    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, scene.popped(*(a_message(body, n, sys_flag=flag) for n in range(5))))
    outcome = scene.receive()
    for turn in range(1, 6):
        assert len(inflated) == turn
        assert len(outcome.sink.sent) >= turn + 1
        turns.next()
    answers = outcome.written("ReceiveMessageResponse")
    assert [len(each.message.body) for each in answers[1:-1]] == [MOST_INFLATED_HERE] * 5


def test_a_body_that_becomes_long_is_decompressed_in_a_thread(
    scene: ProxyScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_threads = []
    in_thread = scene.clock.in_thread

    def counted(work: Any) -> Any:
        in_threads.append(work)
        return in_thread(work)

    monkeypatch.setattr(scene.clock, "in_thread", counted)
    bodies = [bytes(MOST_INFLATED_HERE + 1), b"short"]
    flag = MessageSysFlag.COMPRESSED
    scene.heartbeat()
    scene.on(
        pop.POP_MESSAGE,
        scene.popped(
            *(a_message(zlib.compress(its), n, sys_flag=flag) for n, its in enumerate(bodies))
        ),
    )
    outcome = scene.receive()
    scene.advance(100)
    answers = outcome.written("ReceiveMessageResponse")
    assert [each.message.body for each in answers[1:-1]] == bodies
    assert len(in_threads) == 1


def test_a_damaged_body_is_passed_on(scene: ProxyScene) -> None:
    scene.heartbeat()
    damaged = a_message(b"no zlib", sys_flag=MessageSysFlag.COMPRESSED)
    scene.on(pop.POP_MESSAGE, scene.popped(damaged, a_message(b"x", 1)))
    outcome = scene.receive()
    answers = outcome.written("ReceiveMessageResponse")
    assert answers[0].status.code == Code.OK
    assert [each.message.body for each in answers[1:-1]] == [b"no zlib", b"x"]
    assert answers[1].message.system_properties.body_encoding == Encoding.GZIP


def test_the_inner_batches_of_a_pop_become_only_so_much_together(
    scene: ProxyScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they are decoded in one turn or in several."""
    turns = Turns(scene, monkeypatch)
    batch = encode_batch([Message("T", bytes(MOST_BATCHES_INFLATED // 2 - 1_000))])
    flag = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP | MessageSysFlag.COMPRESSED
    flag |= CompressionType.ZSTD.flag
    body = compress(batch, CompressionType.ZSTD)
    pad = {"pad": "x" * 30_000}
    bombs = [a_message(body, n, sys_flag=flag, properties=pad) for n in range(8)]
    reply = scene.popped(*bombs)
    everything = SubscriptionData("T", SUB_ALL)
    decoded: list[Popped] = []
    coroutine = popped_in_turns(
        scene.clock, reply.header, reply.body_bytes, "broker-a", everything, is_orderly=False
    )
    Deferred.fromCoroutine(coroutine).addCallback(decoded.append)
    for _ in range(3):
        assert not decoded
        turns.next()
    (found,) = decoded
    assert [len(each.body) > len(body) for each in found.wanted] == [True] * 2 + [False] * 6
