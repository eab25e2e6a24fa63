# SPDX-License-Identifier: Apache-2.0
"""The largest request of each kind holds up nobody: what it runs in one turn is bounded.

`test_turns.py` asks small requests of a broker with much of everything; here one client sends as
much as a frame may carry. As there, lines of Python are counted, not time.
"""

from __future__ import annotations

import pytest

from tests.broker import largest
from tests.broker.largest import END, Largest, send_fields
from tests.broker.test_turns import (
    FIELDS,
    MANY,
    MOST_LINES_OF_EXPRESSIONS,
    MOST_LINES_OF_LOOKS,
    OF_LOOKS,
    Scene,
    scene,
)
from tests.counted import lines_of
from tests.fakes import NOW_MS, FakePeer
from txrocketmq.broker.processors.admin import admin_config
from txrocketmq.broker.processors.send.batches import MAX_BATCH
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.queues.batch_queue import MAX_BATCH_MESSAGES
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher
from txrocketmq.remoting.message.message import Message, MessageQueue, encode_batch
from txrocketmq.remoting.protocol.body.base import MOST_BYTES
from txrocketmq.remoting.protocol.body.route import TopicConfig

BATCH = 320
MOST_LINES_OF_SETTINGS = 200_000
"""How many lines may run to change settings, at once or not at all: some 9 ms."""
ASKED = list(largest.all_asked())

__all__ = ["scene"]


def served(scene: Scene, asked: Largest) -> tuple[list[int], bytes]:
    """How many lines run in each turn in which a request is served, and what is answered."""
    commands = [
        RemotingCommand(asked.code, dict(asked.fields), asked.body, opaque=each)
        for each in range(asked.times)
    ]
    peer = FakePeer(1)
    dispatcher = Dispatcher(scene.registry, lambda: NOW_MS, lambda: NOW_MS)
    at = 0
    turns = []

    def serve() -> None:
        nonlocal at
        at += dispatcher.serve(peer, commands[at:], lambda: False)

    while at < len(commands):
        turns.append(lines_of(serve))
        turns += scene.run()
    return turns, b"".join(map(bytes, peer.written))


REFUSED = {1007, *range(50, 55), *range(3001, 3011)}
"""What is always refused: here are no accounts."""


def test_every_request_is_looked_at(scene: Scene) -> None:
    others = {each.code for each in ASKED} | OF_LOOKS | {BATCH} | REFUSED
    assert set(scene.registry.bindings) == FIELDS.keys() | others


@pytest.mark.parametrize("asked", ASKED, ids=lambda each: f"{each.code} {each.what}")
def test_the_largest_request_never_runs_long_in_one_turn(scene: Scene, asked: Largest) -> None:
    if asked.code == 400:
        scene.parts.routes._queues["W"] = [MessageQueue("W", "b", each) for each in range(MANY)]
    served(scene, asked._replace(times=1, body=b""))  # codecs are derived when they are first used
    turns, _ = served(scene, asked)
    limit = MOST_LINES_OF_SETTINGS if asked.code == 25 else MOST_LINES_OF_EXPRESSIONS
    assert max(turns) < limit, f"{max(turns)} lines of Python in one turn"


def test_ends_of_long_half_messages_are_few_in_one_turn(scene: Scene) -> None:
    """Ends are short, and what they end need not be; the later ones of these are refused."""
    served(scene, Largest(37, "", END))
    half = f"TRAN_MSG\x01true\x02PGROUP\x01p\x02{largest.MANY_PROPERTIES}"
    offset = scene.parts.store.max_physical_offset
    served(scene, Largest(10, "", send_fields(half, sysFlag="4"), b"x"))
    end = {**END, "commitLogOffset": str(offset)}
    turns, answer = served(scene, Largest(37, "", end, times=64))
    assert answer.count(b"it was committed") > 50, answer[:500]
    assert len(turns) > 5
    assert max(turns) < MOST_LINES_OF_EXPRESSIONS


@pytest.mark.parametrize("code", [18, 34, 41, 42, 46, 200, 225, 200151, 400, 401])
def test_a_longer_body_is_refused_before_it_is_read(scene: Scene, code: int) -> None:
    turns, answer = served(scene, Largest(code, "", {}, b"[" * (MOST_BYTES + 1)))
    assert max(turns) < MOST_LINES_OF_LOOKS
    assert b"more than the limit of" in answer


def test_longer_settings_are_refused_before_they_are_read(scene: Scene) -> None:
    turns, answer = served(scene, Largest(25, "", {}, b"a\n" * admin_config.MOST_BYTES))
    assert max(turns) < MOST_LINES_OF_LOOKS
    assert b"change at most 20480 at once" in answer


@pytest.mark.parametrize("attributes", [{}, {"queue.type": "BatchCQ"}])
@pytest.mark.parametrize("count", [512, 513, MAX_BATCH])
def test_a_batch_of_many_messages_is_stored_in_many_turns(
    scene: Scene, count: int, attributes: dict[str, str]
) -> None:
    scene.parts.topics._topics["B"] = TopicConfig(topic_name="B", attributes=attributes)
    count = min(count, MAX_BATCH_MESSAGES) if attributes else count
    fields = send_fields("UNIQ_KEY\x01k\x02", batch="true", topic="B")
    one = encode_batch([Message("B", b"y")])
    served(scene, Largest(BATCH, "", fields, one))
    turns, answer = served(scene, Largest(BATCH, "", fields, one * count))
    assert b'"queueOffset":"1"' in answer
    assert scene.parts.store.max_offset("B", 0) == count + 1
    assert max(turns) < MOST_LINES_OF_EXPRESSIONS, f"{max(turns)} lines of Python in one turn"


def test_a_longer_batch_is_refused(scene: Scene) -> None:
    fields = send_fields("", batch="true")
    most = scene.parts.configuration.get(StoreConfig).max_message_size
    turns, answer = served(scene, Largest(BATCH, "", fields, bytes(most + 1)))
    assert max(turns) < MOST_LINES_OF_LOOKS
    assert b"the message is illegal" in answer
    body = encode_batch([Message("W", b"y")]) * (MAX_BATCH + 1)
    turns, answer = served(scene, Largest(BATCH, "", fields, body))
    assert max(turns) < MOST_LINES_OF_EXPRESSIONS
    assert b"the message is illegal" in answer
