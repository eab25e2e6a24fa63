# SPDX-License-Identifier: Apache-2.0
"""Groups of consumers: what is asked of which server, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.admin.fake_cluster import Cluster, refused
from tests.client.fakes import BROKER_A, BROKER_B, NAME_SERVER, result_of
from txrocketmq.client.base.errors import GroupNotFound, NotKept
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import pull, route, topic
from txrocketmq.remoting.protocol.body.pop import SetMessageRequestModeRequestBody
from txrocketmq.remoting.protocol.body.stats import ConsumeStats, OffsetWrapper
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.operations import admin as calls
from txrocketmq.remoting.serialize.json import decode_body


class Keeping(Cluster):
    """Brokers that keep what they are told, but for what they are too old for."""

    def __init__(self, *dropped: str) -> None:
        super().__init__()
        self._dropped = dropped
        self.bodies: list[Any] = []
        self.on_both(topic.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, self._keep)

    def _keep(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        told: Any = decode_body(body)
        self.bodies.append(told)
        kept = {name: value for name, value in told.items() if name not in self._dropped}
        attributes = kept.get("attributes", {})
        kept["attributes"] = {n[1:]: v for n, v in attributes.items() if n.startswith("+")}
        self.groups[address][told["groupName"]] = SubscriptionGroupConfig.from_json(kept)
        return Reply()


def test_a_group_is_made_at_all_masters() -> None:
    cluster = Keeping()
    result_of(cluster.admin.create_group("g", retry_max_times=3, attributes={"a": "1"}))
    assert cluster.asked(topic.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP) == [BROKER_A, BROKER_B]
    assert cluster.bodies[0]["attributes"] == {"+a": "1"}
    configs = result_of(cluster.admin.group_configs("g"))
    assert [each.retry_max_times for each in configs.values()] == [3, 3]
    assert result_of(cluster.admin.groups()) == ["g"]


def test_only_what_is_given_is_changed() -> None:
    cluster = Keeping()
    result_of(cluster.admin.create_group("g", retry_max_times=3, broker="broker-b"))
    result_of(cluster.admin.update_group("g", consume_enable=False, attributes={"a": None}))
    assert cluster.bodies[1]["retryMaxTimes"] == 3
    assert cluster.bodies[1]["attributes"] == {"-a": ""}
    assert list(result_of(cluster.admin.group_configs("g"))) == ["broker-b"]


def test_what_a_broker_does_not_keep_is_told() -> None:
    cluster = Keeping("consumeTimeoutMinute")
    with pytest.raises(NotKept, match="does not keep consume_timeout_minute of group g"):
        result_of(cluster.admin.create_group("g", consume_timeout_minute=7, broker="broker-a"))


def test_a_setting_that_is_misspelt() -> None:
    with pytest.raises(TypeError, match="'retry_max'; did you mean retry_max_times"):
        result_of(Keeping().admin.create_group("g", retry_max=3))


def test_a_group_that_nobody_knows() -> None:
    cluster = Cluster()
    for asked in (
        cluster.admin.group_configs,
        cluster.admin.update_group,
        cluster.admin.delete_group,
    ):
        with pytest.raises(GroupNotFound, match="group g"):
            result_of(asked("g"))


def test_a_group_ends_with_its_topics() -> None:
    cluster = Cluster()
    cluster.know("g")
    cluster.routes["%DLQ%g"] = cluster.routes["T"]
    cluster.on_both(topic.DELETE_SUBSCRIPTIONGROUP, Reply())
    cluster.on_both(topic.DELETE_TOPIC_IN_BROKER, Reply())
    cluster.connections.on(NAME_SERVER, topic.DELETE_TOPIC_IN_NAMESRV, Reply())
    cluster.connections.on(NAME_SERVER, route.GET_KV_CONFIG, refused(ResponseCode.QUERY_NOT_FOUND))
    result_of(cluster.admin.delete_group("g"))
    (_, header), _ = cluster.connections.questions(topic.DELETE_SUBSCRIPTIONGROUP)
    assert (header.clean_offset, header.remove_offset) == (True, True)  # 5.x, 4.x
    ((_, header),) = cluster.connections.questions(topic.DELETE_TOPIC_IN_NAMESRV)
    assert header.topic == "%DLQ%g"


def test_progress_is_of_all_brokers() -> None:
    def stats(name: str, come: int) -> Reply[Any]:
        wrapper = OffsetWrapper(broker_offset=10, consumer_offset=come)
        table = {MessageQueue("T", name, 0): wrapper}
        return Reply(body=ConsumeStats(offset_table=table, consume_tps=2.0).encode())

    cluster = Cluster()
    cluster.connections.on(BROKER_A, calls.GET_CONSUME_STATS, stats("broker-a", 7))
    cluster.connections.on(BROKER_B, calls.GET_CONSUME_STATS, stats("broker-b", 10))
    found = result_of(cluster.admin.progress("g", "T"))
    assert (found.lag, found.consume_tps, len(found.queues)) == (3, 4.0, 2)


def test_a_group_without_progress_is_there_or_not() -> None:
    cluster = Cluster()
    cluster.on_both(calls.GET_CONSUME_STATS, Reply(body=ConsumeStats().encode()))
    with pytest.raises(GroupNotFound):
        result_of(cluster.admin.progress("g"))
    cluster.know("g")
    assert result_of(cluster.admin.progress("g")).queues == ()


def test_the_request_mode_is_told_to_the_brokers_of_the_topic() -> None:
    cluster = Cluster()
    cluster.on_both(pull.SET_MESSAGE_REQUEST_MODE, Reply())
    result_of(cluster.admin.set_request_mode("g", "T", "POP", pop_share_queue_num=-1))
    (_, _, _, body, _), _ = [
        each for each in cluster.connections.asked if each[1] is pull.SET_MESSAGE_REQUEST_MODE
    ]
    told = SetMessageRequestModeRequestBody.decode(body)
    assert (told.mode, told.pop_share_queue_num) == ("POP", -1)
    with pytest.raises(ValueError, match="PULL or POP, not 'pop'"):
        result_of(cluster.admin.set_request_mode("g", "T", "pop"))
