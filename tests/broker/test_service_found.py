# SPDX-License-Identifier: Apache-2.0
"""A broker with accounts, and requests that find messages by something else than their topic.

Messages of all topics are in one log and one index, and such a request may name any topic or none.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.test_service import Client, Scene
from tests.broker.test_service_accounts import NO_PERMISSION, Account, alice_of, guarded, rules
from tests.broker.test_service_guards import send_fields
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.ids import Host, encode_message_id
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.tags import java_string_hash
from txrocketmq.remoting.message.topics import TRANS_CHECK_MAX_TIME_TOPIC
from txrocketmq.remoting.protocol.body.route import TopicConfig


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return guarded(tmp_path)


@pytest.fixture
def alice(scene: Scene) -> Account:
    return alice_of(scene)


def test_a_message_that_is_found_by_its_id_is_seen_by_those_who_may(
    scene: Scene, alice: Account
) -> None:
    """Whatever topic the request names: messages of all topics are in one log."""
    root = Account(Client(scene))
    scene.broker.parts.topics.update(TopicConfig(topic_name="Other"))
    assert root.ask(310, send_fields("Other"), b"secret").code == 0
    assert root.ask(3006, *rules("alice", ("Topic:T", "Get"))).code == 0
    second = scene.broker.parts.store.max_physical_offset
    assert root.ask(310, send_fields("T"), b"open").code == 0
    for topic in ({"topic": "T"}, {}):
        answer = alice.ask(33, {"offset": "0", **topic})
        assert (answer.code, answer.body) == (NO_PERMISSION, b"")
        assert "Topic:Other" in (answer.remark or "")
        assert alice.ask(33, {"offset": str(second), **topic}).body.count(b"open") == 1
    assert root.ask(33, {"offset": "0"}).body.count(b"secret") == 1


def test_a_transaction_is_ended_by_those_who_may_send_to_its_topic(
    scene: Scene, alice: Account
) -> None:
    """Whatever topic the request names; clients of 4.9 name none."""
    root, store = Account(Client(scene)), scene.broker.parts.store
    scene.broker.parts.topics.update(TopicConfig(topic_name="Other"))

    def begin(topic: str, at: int) -> dict[str, str]:
        """Sends a half message; returns the fields of what commits it."""
        offset = store.max_physical_offset
        half = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": f"U{at}"}
        fields = {**send_fields(topic), "f": "4", "i": encode_properties(half)}
        assert root.ask(310, fields, b"half").code == 0
        return {
            "producerGroup": "p", "tranStateTableOffset": str(at), "commitLogOffset": str(offset),
            "commitOrRollback": "8", "fromTransactionCheck": "false", "msgId": f"U{at}",
        }  # fmt: skip

    other, own = begin("Other", 0), begin("T", 1)
    for topic in ({"topic": "T"}, {}):
        for how in ("8", "12"):
            answer = alice.ask(37, {**other, **topic, "commitOrRollback": how})
            assert answer.code == NO_PERMISSION
            assert "Topic:Other" in (answer.remark or "")
    assert scene.broker.parts.access.audit.refused[37, "no policy allows it"] == 4
    assert alice.ask(37, own).code == 0
    assert root.ask(37, other).code == 0, "nothing has ended it before"
    assert store.max_offset("Other", 0) == store.max_offset("T", 0) == 1


def id_of(offset: int) -> str:
    return encode_message_id(Host("127.0.0.1", 10911), offset)


@pytest.fixture
def second(scene: Scene, alice: Account) -> int:
    """A message of Other, at which the log begins, and one of T; returns the offset of this one."""
    root = Account(Client(scene))
    scene.broker.parts.topics.update(TopicConfig(topic_name="Other"))
    assert root.ask(310, send_fields("Other"), b"secret").code == 0
    offset = scene.broker.parts.store.max_physical_offset
    assert root.ask(310, send_fields("T"), b"open").code == 0
    return offset


def test_a_message_is_sent_back_by_those_who_may_consume_it(
    scene: Scene, alice: Account, second: int
) -> None:
    """Otherwise a member of any group would read every message as one of its own retries."""
    store = scene.broker.parts.store
    before = store.max_physical_offset
    for topic in ({"originTopic": "T"}, {}):
        answer = alice.ask(36, {"offset": "0", "group": "g", "delayLevel": "0", **topic})
        assert answer.code == NO_PERMISSION
        assert "Topic:Other" in (answer.remark or "")
    assert store.max_physical_offset == before
    assert alice.ask(36, {"offset": str(second), "group": "g", "delayLevel": "0"}).code == 0
    assert store.max_physical_offset > before


def test_a_retry_is_sent_back_by_its_group(scene: Scene, alice: Account, second: int) -> None:
    parts = scene.broker.parts
    at = [parts.store.max_physical_offset]
    for group in ("g", "other"):
        message = InnerMessage(f"%RETRY%{group}", 0, b"again", 1, bytes(8), bytes(8), {})
        parts.store.put([message.to_put()], scene.clock.now_ms())
        at.append(parts.store.max_physical_offset)
    fields = {"group": "g", "delayLevel": "0"}
    assert alice.ask(36, {"offset": str(at[0]), **fields}).code == 0
    answer = alice.ask(36, {"offset": str(at[1]), **fields})
    assert answer.code == NO_PERMISSION
    assert "Group:other" in (answer.remark or "")


def test_a_message_is_consumed_at_once_by_those_who_may(
    scene: Scene, alice: Account, second: int
) -> None:
    fields = {"consumerGroup": "g", "clientId": "c", "brokerName": "DEFAULT_BROKER"}
    for topic in ({"topic": "T"}, {}):
        answer = alice.ask(309, {**fields, **topic, "msgId": id_of(0)})
        assert answer.code == NO_PERMISSION
        assert "Topic:Other" in (answer.remark or "")
    answer = alice.ask(309, {**fields, "topic": "T", "msgId": id_of(second)})
    assert answer.code == ResponseCode.SYSTEM_ERROR, "there is no consumer, but it was looked for"
    assert "not online" in (answer.remark or "")


def test_a_half_message_is_resumed_by_those_who_may_change_its_topic(
    scene: Scene, alice: Account
) -> None:
    root, parts = Account(Client(scene)), scene.broker.parts
    assert root.ask(3006, *rules("alice", ("Topic:T", "Update"))).code == 0
    at = []
    for topic in ("Other", "T"):
        at.append(parts.store.max_physical_offset)
        properties = {"REAL_TOPIC": topic, "REAL_QID": "0", "PGROUP": "p"}
        name = TRANS_CHECK_MAX_TIME_TOPIC
        message = InnerMessage(name, 0, b"half", 1, bytes(8), bytes(8), properties)
        parts.store.put([message.to_put()], scene.clock.now_ms())
    answer = alice.ask(323, {"topic": "T", "msgId": id_of(at[0])})
    assert answer.code == NO_PERMISSION
    assert "Topic:Other" in (answer.remark or "")
    assert alice.ask(323, {"topic": "T", "msgId": id_of(at[1])}).code == 0


def same_hash(text: str, before: str) -> str:
    """Returns a key for which `before` and the key have the same hash together as the text."""
    length, first = 7, ord("0")
    wanted = java_string_hash(text) - java_string_hash(before) * 31**length
    rest = (wanted - sum(first * 31**at for at in range(length))) % 2**32
    digits = [rest // 31**at % 31 for at in reversed(range(length))]
    key = "".join(chr(first + digit) for digit in digits)
    assert java_string_hash(before + key) == java_string_hash(text)
    return key


def test_a_key_with_the_hash_of_another_shows_nothing_of_other_topics(
    scene: Scene, alice: Account
) -> None:
    root = Account(Client(scene))
    scene.broker.parts.topics.update(TopicConfig(topic_name="Other"))
    key = same_hash("Other#k", "T#")
    for topic, name, body in (("Other", "k", b"secret"), ("T", key, b"open")):
        fields = {**send_fields(topic), "i": encode_properties({"KEYS": name})}
        assert root.ask(310, fields, body).code == 0
    asked = {"topic": "T", "key": key, "maxNum": "9", "beginTimestamp": "0"}
    answer = alice.ask(12, {**asked, "endTimestamp": str(2**62)})
    assert (answer.code, answer.body.count(b"open")) == (0, 1)
    assert b"secret" not in answer.body
