# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from tests.broker.conftest import STORE_HOST
from tests.broker.transaction.scene import COMMIT, Scene
from txrocketmq.broker.transaction.half_queue import HalfQueue
from txrocketmq.broker.transaction.op_message import op_messages


def half_queue(scene: Scene) -> HalfQueue:
    queue = HalfQueue(0, scene.parts.store, scene.parts.offsets)
    queue.begin_round()
    return queue


def test_op_messages_are_read_to_the_end_in_parts(scene: Scene) -> None:
    count = 600
    halves = [scene.begin() for _ in range(count)]
    for half in halves[1:]:
        scene.end(half, COMMIT)
    scene.make_durable()
    queue = half_queue(scene)
    reads = 1
    while not queue.read_ops():
        reads += 1
    assert reads > 2
    assert (queue.next_open(0), queue.next_open(1)) == (0, count)
    message = queue.message(0)
    assert message is not None
    assert message.properties == halves[0].properties
    assert queue.message(count) is None


def test_what_comes_after_the_round_began_is_for_the_next(scene: Scene) -> None:
    scene.begin()
    queue = half_queue(scene)
    scene.begin()
    assert queue.next_open(1) == 1
    queue.begin_round()
    assert (queue.next_open(1), queue.top) == (1, 2)


def test_progress_is_kept_when_the_log_is_durable(scene: Scene) -> None:
    query = scene.parts.offsets.query
    queue = half_queue(scene)
    scene.end(scene.begin(), COMMIT)
    scene.make_durable()
    scene.begin()  # is not durable yet
    queue.begin_round()
    assert queue.read_ops() is False
    assert queue.read_ops() is True
    queue.ended.done_before(1)
    queue.settle()
    assert query("CID_RMQ_SYS_TRANS", "RMQ_SYS_TRANS_HALF_TOPIC", 0) == -1
    scene.parts.store.flush.flush_all()
    scene.begin()  # what comes after that is not waited for
    queue.settle()
    assert query("CID_RMQ_SYS_TRANS", "RMQ_SYS_TRANS_HALF_TOPIC", 0) == 1
    assert query("CID_RMQ_SYS_TRANS", "RMQ_SYS_TRANS_OP_HALF_TOPIC", 0) == 1


def test_progress_beyond_the_queues_begins_at_their_end(scene: Scene) -> None:
    """A crash may have cost the log its last messages, but not the file of offsets."""
    scene.begin()
    for topic in ("RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"):
        scene.parts.offsets.commit("CID_RMQ_SYS_TRANS", topic, 0, 9)
    queue = half_queue(scene)
    assert (queue.ended.half_offset, queue.ended.op_offset) == (1, 0)


def test_an_op_message_that_is_too_far_ahead_ends_the_reading(scene: Scene) -> None:
    for _ in range(4):
        scene.begin()
    queue = half_queue(scene)
    queue.ended._max_marks = 2
    put = scene.parts.store.put
    put(op_messages([(0, 3)], STORE_HOST, scene.parts.now_ms), scene.parts.now_ms)
    assert queue.read_ops()
    assert queue.ended.read_offset == 0
    queue.ended.done_before(2)
    assert not queue.read_ops()
    assert queue.next_open(3) == 4
