# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.broker.conftest import Parts
from tests.fakes import refused, reply_of, request
from txrocketmq.broker.processors.admin.admin_group import AdminGroupProcessor
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.topics import TRANS_HALF_TOPIC
from txrocketmq.remoting.protocol.body.topic import (
    GroupForbidden,
    GroupList,
    QuerySubscriptionResponseBody,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    SubscriptionGroupWrapper,
    TopicList,
)
from txrocketmq.remoting.protocol.topic import (
    DeleteSubscriptionGroupRequestHeader,
    GetAllSubscriptionGroupRequestHeader,
    GetSubscriptionGroupConfigRequestHeader,
    QuerySubscriptionByConsumerRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
    QueryTopicsByConsumerRequestHeader,
    UpdateGroupForbiddenRequestHeader,
)


@pytest.fixture
def admin(parts: Parts) -> AdminGroupProcessor:
    return AdminGroupProcessor(
        parts.config, parts.groups, parts.consumers, parts.offsets, "127.0.0.1:10911", parts.walks
    )


def update(admin: AdminGroupProcessor, group: SubscriptionGroupConfig) -> None:
    admin.update(request(NoHeader(), group.encode()))


def test_a_group_is_made_and_changed(parts: Parts, admin: AdminGroupProcessor) -> None:
    update(admin, SubscriptionGroupConfig(group_name="g", retry_max_times=3))
    update(
        admin,
        SubscriptionGroupConfig(
            group_name="g", consume_enable=False, attributes={"+priority.factor": "100"}
        ),
    )
    group = parts.groups.get("g")
    assert group is not None
    assert (group.retry_max_times, group.consume_enable) == (16, False)
    assert group.attributes == {"priority.factor": "100"}
    assert reply_of(admin.update(request(NoHeader()))).code == ResponseCode.SUCCESS


def test_groups_that_cannot_be(parts: Parts, admin: AdminGroupProcessor) -> None:
    with refused(ResponseCode.INVALID_PARAMETER, "illegal characters"):
        update(admin, SubscriptionGroupConfig(group_name="a.b"))
    with refused(ResponseCode.INVALID_PARAMETER, "blank"):
        update(admin, SubscriptionGroupConfig())
    with refused(ResponseCode.SYSTEM_ERROR, "unsupported key: x"):
        update(admin, SubscriptionGroupConfig(group_name="g", attributes={"+x": "1"}))
    assert parts.groups.get("g") is None


def test_several_groups_are_made_or_none(parts: Parts, admin: AdminGroupProcessor) -> None:
    def ask(*names: str) -> None:
        body = SubscriptionGroupList(
            group_config_list=[SubscriptionGroupConfig(group_name=name) for name in names]
        )
        admin.update_list(request(NoHeader(), body.encode()))

    with refused(ResponseCode.INVALID_PARAMETER):
        ask("g", "b c")
    assert parts.groups.get("g") is None
    ask("g", "h")
    assert {"g", "h"} <= set(parts.groups.all())


@pytest.mark.parametrize(
    ("header", "left"),
    [
        (DeleteSubscriptionGroupRequestHeader(group_name="g"), 5),
        (DeleteSubscriptionGroupRequestHeader(group_name="g", clean_offset=True), -1),
        (DeleteSubscriptionGroupRequestHeader(group_name="g", remove_offset=True), -1),
    ],
)
def test_a_group_is_deleted_with_its_offsets_if_told_so(
    parts: Parts,
    admin: AdminGroupProcessor,
    header: DeleteSubscriptionGroupRequestHeader,
    left: int,
) -> None:
    parts.groups.find("g")
    parts.offsets.commit("g", "T", 0, 5)
    admin.delete(request(header))
    assert parts.groups.get("g") is None
    assert parts.offsets.query("g", "T", 0) == left
    assert reply_of(admin.delete(request(header))).code == ResponseCode.SUCCESS


def test_reading_is_forbidden_asked_for_and_allowed(admin: AdminGroupProcessor) -> None:
    def ask(*, readable: bool | None) -> bool | None:
        header = UpdateGroupForbiddenRequestHeader(group="g", topic="T", readable=readable)
        return GroupForbidden.decode(reply_of(admin.forbid(request(header))).body_bytes).readable

    assert ask(readable=None) is True
    assert ask(readable=False) is False
    assert ask(readable=None) is False
    assert ask(readable=True) is True


def all_groups(
    admin: AdminGroupProcessor, header: GetAllSubscriptionGroupRequestHeader
) -> SubscriptionGroupWrapper:
    reply = reply_of(admin.all_groups(request(header)))
    assert reply.header is not None
    assert reply.header.total_group_num == 9
    return SubscriptionGroupWrapper.decode(reply.body_bytes)


def test_all_groups_and_pages_of_them(parts: Parts, admin: AdminGroupProcessor) -> None:
    parts.groups.find("g")
    parts.groups.set_readable("g", "T", readable=False)
    everything = all_groups(admin, GetAllSubscriptionGroupRequestHeader())
    assert set(everything.subscription_group_table) == set(parts.groups.all())
    assert everything.forbidden_table == {"g": {"T": 4}}
    version = everything.data_version.encode().decode()
    seen: list[str] = []
    for start in (0, 4, 8):
        page = all_groups(
            admin,
            GetAllSubscriptionGroupRequestHeader(
                group_seq=start, max_group_num=4, data_version=version
            ),
        )
        seen += page.subscription_group_table
        assert page.forbidden_table == ({"g": {"T": 4}} if "g" in seen[start:] else {})
    assert sorted(seen) == sorted(parts.groups.all())
    parts.set(enable_split_metadata=False)
    page = all_groups(admin, GetAllSubscriptionGroupRequestHeader(group_seq=0, max_group_num=4))
    assert len(page.subscription_group_table) == 9


def test_one_group_is_made_as_by_a_heartbeat(parts: Parts, admin: AdminGroupProcessor) -> None:
    header = GetSubscriptionGroupConfigRequestHeader(group="g")
    reply = admin.group_config(request(header))
    assert SubscriptionGroupConfig.decode(reply.body_bytes).group_name == "g"
    parts.set(auto_create_subscription_group=False)
    with refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker"):
        admin.group_config(request(GetSubscriptionGroupConfigRequestHeader(group="h")))


def test_who_consumes_a_topic(parts: Parts, admin: AdminGroupProcessor) -> None:
    parts.consumer("here", "c", "T")
    parts.offsets.commit("gone", "T", 0, 1)
    parts.offsets.commit("other", "U", 0, 1)
    reply = reply_of(admin.groups_of_topic(request(QueryTopicConsumeByWhoRequestHeader(topic="T"))))
    assert GroupList.decode(reply.body_bytes).group_list == ("gone", "here")


def test_the_check_of_transactions_is_a_group_of_the_half_topic(
    parts: Parts, admin: AdminGroupProcessor
) -> None:
    """As in the original, once the check has made progress there."""
    parts.offsets.commit("CID_RMQ_SYS_TRANS", TRANS_HALF_TOPIC, 0, 1)
    header = QueryTopicConsumeByWhoRequestHeader(topic=TRANS_HALF_TOPIC)
    reply = reply_of(admin.groups_of_topic(request(header)))
    assert GroupList.decode(reply.body_bytes).group_list == ("CID_RMQ_SYS_TRANS",)


def test_what_a_group_consumes(parts: Parts, admin: AdminGroupProcessor) -> None:
    parts.offsets.commit("g", "T", 0, 1)
    reply = reply_of(admin.topics_of_group(request(QueryTopicsByConsumerRequestHeader(group="g"))))
    body = TopicList.decode(reply.body_bytes)
    assert (body.topic_list, body.broker_addr) == (("T",), "127.0.0.1:10911")


def test_what_a_group_wants_of_a_topic(parts: Parts, admin: AdminGroupProcessor) -> None:
    parts.consumer("g", "c", "T")

    def ask(group: str) -> QuerySubscriptionResponseBody:
        header = QuerySubscriptionByConsumerRequestHeader(group=group, topic="T")
        return QuerySubscriptionResponseBody.decode(admin.subscription(request(header)).body_bytes)

    wanted = ask("g")
    assert wanted.subscription_data is not None
    assert (wanted.subscription_data.sub_string, wanted.group, wanted.topic) == ("*", "g", "T")
    assert ask("h").subscription_data is None
