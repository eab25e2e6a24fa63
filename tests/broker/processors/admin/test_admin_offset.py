# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import FakePeer, refused, reply_of, request
from txrocketmq.broker.processors.admin.admin_offset import AdminOffsetProcessor
from txrocketmq.broker.pulls.long_polling import HeldRequest
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import offset as calls
from txrocketmq.remoting.protocol.body.offset import (
    MessageQueueForC,
    QueryCorrectionOffsetBody,
    ResetOffsetBody,
    ResetOffsetBodyForC,
)
from txrocketmq.remoting.protocol.offset import (
    CloneGroupOffsetRequestHeader,
    QueryCorrectionOffsetHeader,
    ResetOffsetRequestHeader,
)


@pytest.fixture
def admin(parts: Parts) -> AdminOffsetProcessor:
    """With a topic of two queues, three messages in the first, one each 10 ms."""
    parts.topic("T", 2)
    parts.groups.find("g")
    for number in range(3):
        parts.put("T", 0, stored_ms=parts.now_ms + 10 * number)
    return AdminOffsetProcessor(
        parts.config,
        parts.topics,
        parts.groups,
        parts.consumers,
        parts.offsets,
        parts.store,
        parts.polling,
        parts.walks,
    )


def reset(
    admin: AdminOffsetProcessor,
    timestamp: int = -1,
    *,
    topic: str = "T",
    group: str = "g",
    language: str = "JAVA",
    **fields: Any,
) -> dict[int, int]:
    header = ResetOffsetRequestHeader(
        topic=topic, group=group, timestamp=timestamp, **{"is_force": True, **fields}
    )
    body = ResetOffsetBody.decode(
        reply_of(admin.reset(request(header, language=language))).body_bytes
    )
    assert {queue.broker_name for queue in body.offset_table} == {"DEFAULT_BROKER"}
    return {queue.queue_id: at for queue, at in body.offset_table.items()}


def test_all_queues_are_sent_to_a_time(parts: Parts, admin: AdminOffsetProcessor) -> None:
    assert reset(admin, parts.now_ms + 10) == {0: 1, 1: 0}
    assert parts.offsets.take_reset("g", "T", 0) == 1
    assert parts.offsets.query("g", "T", 0) == 1


def test_all_queues_are_sent_to_their_ends(parts: Parts, admin: AdminOffsetProcessor) -> None:
    assert reset(admin) == {0: 3, 1: 0}


def test_one_queue_is_sent_to_an_offset_or_a_time(
    parts: Parts, admin: AdminOffsetProcessor
) -> None:
    assert reset(admin, queue_id=0, offset=2) == {0: 2}
    assert reset(admin, parts.now_ms + 10, queue_id=0, offset=-1) == {0: 1}
    assert reset(admin, parts.now_ms, queue_id=0) == {0: 0}
    assert parts.offsets.query("g", "T", 1) == -1


@pytest.mark.parametrize("offset", [-2, 5])
def test_an_offset_that_the_queue_does_not_have(admin: AdminOffsetProcessor, offset: int) -> None:
    with refused(ResponseCode.SYSTEM_ERROR, f"Target offset {offset} not in consume queue range"):
        reset(admin, queue_id=0, offset=offset)


def test_what_cannot_be_reset(parts: Parts, admin: AdminOffsetProcessor) -> None:
    with refused(ResponseCode.TOPIC_NOT_EXIST, "Topic U does not exist"):
        reset(admin, topic="U")
    with refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "Group h does not exist"):
        reset(admin, group="h")
    parts.topic("empty", 0)
    with refused(ResponseCode.SYSTEM_ERROR, "No queues to reset."):
        reset(admin, topic="empty")


def test_pulls_that_wait_are_told_at_once(parts: Parts, admin: AdminOffsetProcessor) -> None:
    seen: list[int | None] = []
    parts.polling.hold(
        HeldRequest(
            FakePeer(),
            "T",
            0,
            3,
            parts.now_ms,
            lambda: seen.append(parts.offsets.take_reset("g", "T", 0)),
        )
    )
    reset(admin, parts.now_ms)
    assert seen == [0]


@pytest.fixture
def older(parts: Parts, admin: AdminOffsetProcessor) -> AdminOffsetProcessor:
    """As 4.9 does it, with a group that has read one message of the first queue."""
    parts.set(use_server_side_reset_offset=False)
    parts.offsets.commit("g", "T", 0, 1)
    parts.offsets.commit("g", "T", 1, 0)
    return admin


def test_consumers_are_told_to_reset(parts: Parts, older: AdminOffsetProcessor) -> None:
    peers = [parts.consumer("g", name, "T") for name in ("c1", "c2")]
    assert reset(older, parts.now_ms + 20) == {0: 2, 1: 0}
    for peer in peers:
        ((call, header, body),) = peer.told
        assert call is calls.RESET_CONSUMER_CLIENT_OFFSET
        assert header == ResetOffsetRequestHeader(
            topic="T", group="g", timestamp=parts.now_ms + 20, is_force=False
        )
        table = ResetOffsetBody.decode(body).offset_table
        assert table == {
            MessageQueue("T", "DEFAULT_BROKER", 0): 2,
            MessageQueue("T", "DEFAULT_BROKER", 1): 0,
        }
    assert parts.offsets.query("g", "T", 0) == 1


def test_without_force_consumers_only_go_back(parts: Parts, older: AdminOffsetProcessor) -> None:
    parts.consumer("g", "c1", "T")
    assert reset(older, parts.now_ms + 20, is_force=False) == {0: 1, 1: 0}
    assert reset(older, parts.now_ms, is_force=False) == {0: 0, 1: 0}


def test_cpp_clients_get_a_list(parts: Parts, older: AdminOffsetProcessor) -> None:
    peer = parts.consumer("g", "c1", "T")
    reset(older, language="CPP")
    ((_, _, body),) = peer.told
    assert ResetOffsetBodyForC.decode(body).offset_table == (
        MessageQueueForC(topic="T", broker_name="DEFAULT_BROKER", queue_id=0, offset=3),
        MessageQueueForC(topic="T", broker_name="DEFAULT_BROKER", queue_id=1, offset=0),
    )


def test_consumers_that_cannot_be_told(parts: Parts, older: AdminOffsetProcessor) -> None:
    with refused(ResponseCode.CONSUMER_NOT_ONLINE, "Consumer not online"):
        reset(older)
    with refused(ResponseCode.SYSTEM_ERROR, "THe consumer group <h> not exist"):
        reset(older, group="h")
    with refused(ResponseCode.TOPIC_NOT_EXIST, "no topic in this broker. topic=U"):
        reset(older, topic="U")
    parts.consumer("g", "old", "T", version=27)
    with refused(ResponseCode.SYSTEM_ERROR, "does not support this feature. version=27"):
        reset(older)


def test_the_least_offsets_of_other_groups(parts: Parts, admin: AdminOffsetProcessor) -> None:
    for group, offset in (("a", 2), ("b", 3), ("left out", 1), ("compared", 5)):
        parts.offsets.commit(group, "T", 0, offset)
    parts.offsets.commit("compared", "T", 1, 5)
    parts.offsets.commit("a", "T", 1, 7)

    def ask(**fields: Any) -> dict[int, int]:
        header = QueryCorrectionOffsetHeader(topic="T", compare_group="compared", **fields)
        reply = reply_of(admin.correction(request(header)))
        return dict(QueryCorrectionOffsetBody.decode(reply.body_bytes).correction_offsets)

    assert ask(filter_groups="left out") == {0: 2, 1: 5}
    assert ask() == {0: 1, 1: 5}
    assert ask(filter_groups="left out,compared") == {0: 2, 1: 2**63 - 1}
    assert parts.offsets.query("left out", "T", 0) == 1


def test_offsets_are_cloned(parts: Parts, admin: AdminOffsetProcessor) -> None:
    parts.topic("U")
    for topic in ("T", "U", "deleted"):
        parts.offsets.commit("g", topic, 0, 2)

    def clone(target: str, topic: str | None = None, *, offline: bool = False) -> set[str]:
        header = CloneGroupOffsetRequestHeader(
            src_group="g", dest_group=target, topic=topic, offline=offline
        )
        admin.clone(request(header))
        return parts.offsets.topics_of(target)

    assert clone("one", "T") == {"T"}
    assert clone("all") == {"T", "U"}
    assert clone("none", "unknown") == set()
    parts.consumer("g", "c", "T")
    assert clone("subscribed") == {"T"}
    assert clone("offline", offline=True) == {"T", "U"}
    assert parts.offsets.of("all", "U") == {0: 2}
