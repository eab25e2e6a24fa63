# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import FakePeer, refused, reply_of, request
from txrocketmq.broker.processors.admin.admin_topic import AdminTopicProcessor
from txrocketmq.broker.pulls.long_polling import HeldRequest
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.topics import MAX_QUEUES
from txrocketmq.remoting.protocol.body.route import (
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigAndQueueMapping,
)
from txrocketmq.remoting.protocol.body.stats import TopicOffset, TopicStatsTable
from txrocketmq.remoting.protocol.body.topic import CreateTopicListRequestBody, TopicList
from txrocketmq.remoting.protocol.operations.admin import GetTopicStatsInfoRequestHeader
from txrocketmq.remoting.protocol.topic import (
    CreateTopicListRequestHeader,
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetAllTopicConfigRequestHeader,
    GetTopicConfigRequestHeader,
)


@pytest.fixture
def admin(parts: Parts) -> AdminTopicProcessor:
    return AdminTopicProcessor(
        parts.config,
        parts.topics,
        parts.offsets,
        parts.store,
        parts.stats,
        parts.polling,
        parts.walks,
    )


def wanted(name: str = "T", **fields: Any) -> CreateTopicRequestHeader:
    values: dict[str, Any] = {
        "topic": name,
        "default_topic": "TBW102",
        "read_queue_nums": 4,
        "write_queue_nums": 4,
        "perm": 6,
        "topic_filter_type": "SINGLE_TAG",
    }
    return CreateTopicRequestHeader(**{**values, **fields})


def test_a_topic_is_made_and_changed(parts: Parts, admin: AdminTopicProcessor) -> None:
    admin.update(request(wanted(order=True, topic_sys_flag=2, attributes="+message.type=FIFO")))
    assert parts.topics.get("T") == TopicConfig(
        topic_name="T",
        read_queue_nums=4,
        write_queue_nums=4,
        perm=6,
        topic_sys_flag=2,
        order=True,
        attributes={"message.type": "FIFO"},
    )
    admin.update(request(wanted(perm=4, attributes="-message.type")))
    changed = parts.topics.get("T")
    assert changed is not None
    assert (changed.perm, changed.attributes, changed.order) == (4, {}, False)


def test_the_same_again_changes_nothing(parts: Parts, admin: AdminTopicProcessor) -> None:
    admin.update(request(wanted()))
    version = parts.topics.data_version
    assert reply_of(admin.update(request(wanted()))).code == ResponseCode.SUCCESS
    assert parts.topics.data_version == version


@pytest.mark.parametrize(
    ("header", "code", "remark"),
    [
        (wanted("a.b"), ResponseCode.INVALID_PARAMETER, "illegal characters"),
        (wanted("TBW102"), ResponseCode.INVALID_PARAMETER, "conflict with system topic"),
        (wanted("rmq_sys_x"), ResponseCode.INVALID_PARAMETER, "conflict with system topic"),
        (wanted(topic_filter_type="X"), ResponseCode.SYSTEM_ERROR, "topicFilterType = [X]"),
        (wanted(attributes="nonsense"), ResponseCode.SYSTEM_ERROR, "format is wrong"),
        (wanted(attributes="+no.such=1"), ResponseCode.SYSTEM_ERROR, "unsupported key"),
        (wanted(attributes="+message.type=MIXED"), ResponseCode.INVALID_PARAMETER, "MIXED"),
        (wanted(read_queue_nums=-1), ResponseCode.INVALID_PARAMETER, "-1 queues"),
        (wanted(write_queue_nums=MAX_QUEUES + 1), ResponseCode.INVALID_PARAMETER, "65537 queues"),
    ],
)
def test_topics_that_cannot_be(
    parts: Parts,
    admin: AdminTopicProcessor,
    header: CreateTopicRequestHeader,
    code: ResponseCode,
    remark: str,
) -> None:
    before = parts.topics.all()
    with refused(code, remark):
        admin.update(request(header))
    assert parts.topics.all() == before


def test_system_topics_may_be_changed_where_that_is_on(
    parts: Parts, admin: AdminTopicProcessor
) -> None:
    parts.set(validate_system_topic_when_update_topic=False)
    admin.update(request(wanted("TBW102", perm=7)))
    assert parts.topics.all()["TBW102"].write_queue_nums == 4


def test_a_topic_takes_messages_of_all_types_where_that_is_on(
    parts: Parts, admin: AdminTopicProcessor
) -> None:
    parts.set(enable_mixed_message_type=True)
    admin.update(request(wanted(attributes="+message.type=MIXED")))
    topic = parts.topics.all()["T"]
    assert topic.attributes == {"message.type": "MIXED"}


def test_several_topics_are_made_or_none(parts: Parts, admin: AdminTopicProcessor) -> None:
    def ask(*names: str) -> None:
        body = CreateTopicListRequestBody(
            topic_config_list=[TopicConfig(topic_name=name) for name in names]
        )
        admin.update_list(request(CreateTopicListRequestHeader(), body.encode()))

    with refused(ResponseCode.INVALID_PARAMETER):
        ask("A", "b.c")
    assert parts.topics.get("A") is None
    ask("A")
    ask("A", "B")
    assert {"A", "B"} <= set(parts.topics.all())


def test_a_deleted_topic_leaves_nothing(parts: Parts, admin: AdminTopicProcessor) -> None:
    for name in ("T", "%RETRY%g_T", "%RETRY%g+T", "%RETRY%h_T", "U"):
        parts.topic(name)
    parts.put("T")
    parts.offsets.commit("g", "T", 0, 1)
    parts.offsets.commit("g", "U", 0, 1)
    parts.stats.put("T", 1, 1)
    admin.delete(request(DeleteTopicRequestHeader(topic="T")))
    left = [name for name in parts.topics.all() if not parts.topics.is_system(name)]
    assert left == ["%RETRY%h_T", "U"]
    assert parts.store.topics() == []
    assert dict(parts.offsets.entries()) == {"U@g": {0: 1}}
    assert parts.stats.item("TOPIC_PUT_NUMS", "T") is None


def test_pulls_that_wait_hear_of_the_deletion(parts: Parts, admin: AdminTopicProcessor) -> None:
    seen: list[object] = []
    parts.topic("T")
    parts.polling.hold(
        HeldRequest(FakePeer(), "T", 3, 0, parts.now_ms, lambda: seen.append(parts.topics.get("T")))
    )
    admin.delete(request(DeleteTopicRequestHeader(topic="T")))
    assert seen == [None]


def test_pop_retry_topics_stay_where_that_is_off(parts: Parts, admin: AdminTopicProcessor) -> None:
    parts.set(clear_retry_topic_when_delete_topic=False)
    parts.topic("T")
    parts.topic("%RETRY%g_T")
    parts.offsets.commit("g", "T", 0, 1)
    admin.delete(request(DeleteTopicRequestHeader(topic="T")))
    assert parts.topics.get("%RETRY%g_T") is not None


def test_deleting_what_is_not_there_is_done_already(admin: AdminTopicProcessor) -> None:
    assert reply_of(admin.delete(request(DeleteTopicRequestHeader(topic="none")))).code == 0


def test_what_cannot_be_deleted(admin: AdminTopicProcessor) -> None:
    with refused(ResponseCode.INVALID_PARAMETER, "blank"):
        admin.delete(request(DeleteTopicRequestHeader(topic=" ")))
    with refused(ResponseCode.INVALID_PARAMETER, "conflict with system topic"):
        admin.delete(request(DeleteTopicRequestHeader(topic="SCHEDULE_TOPIC_XXXX")))


def pages(admin: AdminTopicProcessor, header: GetAllTopicConfigRequestHeader) -> set[str]:
    reply = reply_of(admin.all_topics(request(header)))
    assert reply.header is not None
    assert reply.header.total_topic_num == 14
    body = TopicConfigAndMappingSerializeWrapper.decode(reply.body_bytes)
    return set(body.topic_config_table)


def test_all_topics_for_callers_that_do_not_page(parts: Parts, admin: AdminTopicProcessor) -> None:
    parts.topic("T")
    assert pages(admin, GetAllTopicConfigRequestHeader()) == set(parts.topics.all())


def test_pages_of_topics(parts: Parts, admin: AdminTopicProcessor) -> None:
    parts.topic("T")
    version = parts.topics.data_version.encode().decode()
    seen: set[str] = set()
    for start in range(0, 14, 5):
        page = pages(
            admin,
            GetAllTopicConfigRequestHeader(topic_seq=start, data_version=version, max_topic_num=5),
        )
        assert len(page) == min(5, 14 - start)
        seen |= page
    assert seen == set(parts.topics.all())
    parts.set(split_metadata_size=2)
    first = GetAllTopicConfigRequestHeader(topic_seq=0, data_version=version, max_topic_num=5)
    assert len(pages(admin, first)) == 2
    parts.set(enable_split_metadata=False)
    assert len(pages(admin, first)) == 14


def test_a_version_that_is_none_is_an_error_of_the_caller(
    parts: Parts, admin: AdminTopicProcessor
) -> None:
    with pytest.raises(HeaderError):
        admin.all_topics(
            request(GetAllTopicConfigRequestHeader(topic_seq=1, data_version="{", max_topic_num=5))
        )


def test_one_topic(parts: Parts, admin: AdminTopicProcessor) -> None:
    parts.topic("T", 3)
    reply = admin.topic_config(request(GetTopicConfigRequestHeader(topic="T")))
    body = TopicConfigAndQueueMapping.decode(reply.body_bytes)
    assert (body.topic_name, body.read_queue_nums, body.mapping_detail) == ("T", 3, None)
    with refused(ResponseCode.TOPIC_NOT_EXIST, "No topic in this broker. topic: U"):
        admin.topic_config(request(GetTopicConfigRequestHeader(topic="U")))


def test_system_topics(parts: Parts, admin: AdminTopicProcessor) -> None:
    listed = TopicList.decode(admin.system_topics(request(NoHeader())).body_bytes).topic_list
    assert {"TBW102", "SCHEDULE_TOPIC_XXXX", "DefaultCluster"} <= set(listed)


def test_bounds_of_all_queues(parts: Parts, admin: AdminTopicProcessor) -> None:
    parts.topics.update(TopicConfig(topic_name="T", read_queue_nums=1, write_queue_nums=2))
    parts.put("T", 0)
    parts.put("T", 0, stored_ms=parts.now_ms + 7)
    reply = reply_of(admin.topic_stats(request(GetTopicStatsInfoRequestHeader(topic="T"))))
    table = TopicStatsTable.decode(reply.body_bytes).offset_table
    assert table == {
        MessageQueue("T", "DEFAULT_BROKER", 0): TopicOffset(
            min_offset=0, max_offset=2, last_update_timestamp=parts.now_ms + 7
        ),
        MessageQueue("T", "DEFAULT_BROKER", 1): TopicOffset(),
    }
    with refused(ResponseCode.TOPIC_NOT_EXIST, "topic[U] not exist"):
        admin.topic_stats(request(GetTopicStatsInfoRequestHeader(topic="U")))
