# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter

from tests.broker.transaction.scene import Scene
from txrocketmq.broker.transaction.question import Questions


def test_the_question_has_all_that_the_answer_needs(scene: Scene) -> None:
    peer = scene.joins()
    half = scene.begin(b"what became of me?", TAGS="a")
    assert Questions(scene.parts.producers, "broker-a").ask(half)
    ((header, asked),) = scene.asked(peer)
    assert header.tran_state_table_offset == half.queue_offset
    assert header.commit_log_offset == half.commit_log_offset
    assert header.msg_id == header.transaction_id == half.properties["UNIQ_KEY"]
    assert header.offset_msg_id == half.offset_msg_id
    assert (header.topic, header.bname) == ("RMQ_SYS_TRANS_HALF_TOPIC", "broker-a")
    assert (asked.topic, asked.queue_id, asked.body) == ("T", 2, half.body)
    assert asked.properties == half.properties


def test_producers_are_asked_in_turns(scene: Scene) -> None:
    peers = [scene.joins(client_id=name) for name in "abc"]
    scene.joins("other", "d")
    half = scene.begin()
    questions = Questions(scene.parts.producers, "b")
    for _ in range(6):
        assert questions.ask(half)
    assert Counter(len(peer.told) for peer in peers) == {2: 3}


def test_who_does_not_read_is_not_asked(scene: Scene) -> None:
    slow, quick = scene.joins(client_id="a"), scene.joins(client_id="b")
    slow.reads = False
    half = scene.begin()
    questions = Questions(scene.parts.producers, "b")
    for _ in range(3):
        assert questions.ask(half)
    assert (len(slow.told), len(quick.told)) == (0, 3)
    quick.reads = False
    assert not questions.ask(half)


def test_where_nobody_is_nobody_is_asked(scene: Scene) -> None:
    half = scene.begin(group="gone")
    questions = Questions(scene.parts.producers, "b")
    assert not questions.ask(half)
    peer = scene.joins("gone")
    for name in ("REAL_TOPIC", "REAL_QID"):
        value = half.properties.pop(name)
        assert not questions.ask(half)
        half.properties[name] = value
    half.properties["x"] = "y" * 40_000
    assert not questions.ask(half)  # no record has room for that
    assert not peer.told
