# SPDX-License-Identifier: Apache-2.0
"""A cluster for administrators: two masters and a slave with prepared answers."""

from __future__ import annotations

from typing import Any

from tests.client.fakes import BROKER_A, BROKER_B, NAME_SERVER, Scene, a_route
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.admin.config import AdminConfig
from txrocketmq.client.admin.destinations import Destinations
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import route, topic
from txrocketmq.remoting.protocol.body.route import BrokerData, ClusterInfo
from txrocketmq.remoting.protocol.body.topic import (
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
)

SLAVE = "10.0.1.3:10911"
QUEUE = MessageQueue("T", "broker-a", 0)
CONNECTIONS = (
    b'{"connectionSet":[{"clientId":"c1","clientAddr":"10.0.2.1:5","language":"JAVA","version":1}],'
    b'"subscriptionTable":{"T":{"topic":"T","subString":"a","tagsSet":["a"],"codeSet":[97],'
    b'"subVersion":1,"expressionType":"TAG","classFilterMode":false}},'
    b'"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING",'
    b'"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET"}'
)


def a_cluster(**clusters: list[str]) -> Reply[Any]:
    """Returns the registered brokers; by default all are in one cluster."""
    info = ClusterInfo(
        broker_addr_table={
            "broker-a": BrokerData(
                cluster="c", broker_name="broker-a", broker_addrs={0: BROKER_A, 1: SLAVE}
            ),
            "broker-b": BrokerData(cluster="c", broker_name="broker-b", broker_addrs={0: BROKER_B}),
        },
        cluster_addr_table=clusters or {"c": ["broker-a", "broker-b"]},
    )
    return Reply(body=info.encode())


class Cluster(Scene):
    """Brokers a and b with the topic T, and an admin client."""

    def __init__(self, **clusters: list[str]) -> None:
        super().__init__()
        self.groups: dict[str, dict[str, SubscriptionGroupConfig]] = {BROKER_A: {}, BROKER_B: {}}
        self.connections.on(NAME_SERVER, route.GET_BROKER_CLUSTER_INFO, a_cluster(**clusters))
        self.routes["T"] = a_route({"broker-a": 2, "broker-b": 1})
        for address in (BROKER_A, BROKER_B):
            self.connections.on(address, topic.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, self._table)
        self.admin = Admin(self.client)
        self.destinations = Destinations(self.client, AdminConfig())

    def _table(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        wrapper = SubscriptionGroupWrapper(subscription_group_table=self.groups[address])
        return Reply(body=wrapper.encode())

    def know(self, group: str) -> None:
        """Makes a group known to both masters."""
        for table in self.groups.values():
            table[group] = SubscriptionGroupConfig(group_name=group)

    def on_both(self, call: Call[Any, Any], answer: Any) -> None:
        """Sets the answer of both masters to a call."""
        for address in (BROKER_A, BROKER_B):
            self.connections.on(address, call, answer)

    def asked(self, call: Call[Any, Any]) -> list[str]:
        """Returns the addresses that were asked by a call."""
        return [address for address, _ in self.connections.questions(call)]


def refused(code: int = ResponseCode.SYSTEM_ERROR, remark: str = "no") -> Reply[Any]:
    """Returns an answer that is not success."""
    return Reply(code=code, remark=remark)
