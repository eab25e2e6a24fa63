# SPDX-License-Identifier: Apache-2.0
"""Whether a broker filters by an SQL92 expression, asked before the first pull.

The original gives all messages to a pull whose expression it cannot read, and nobody would notice.
Java: MQClientInstance.checkClientInBroker.
"""

from __future__ import annotations

from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.tags import SQL92, SubscriptionData
from txrocketmq.remoting.protocol.body.heartbeat import CheckClientRequestBody
from txrocketmq.remoting.protocol.heartbeat import CHECK_CLIENT_CONFIG
from txrocketmq.spark.errors import ClusterError
from txrocketmq.spark.live.cluster import Cluster
from txrocketmq.spark.live.rpc import Refused


def check_expression(cluster: Cluster, queue: MessageQueue, expression: str, group: str) -> None:
    """ClusterError says why the broker of a queue does not filter by an expression."""
    wanted = SubscriptionData(queue.topic, expression, expression_type=SQL92)
    body = CheckClientRequestBody(client_id="spark", group=group, subscription_data=wanted)
    try:
        cluster.ask_each(CHECK_CLIENT_CONFIG, {queue: NoHeader()}, body=body.encode())
    except Refused as error:
        if error.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED:
            why = "cannot read it"
        else:
            why = "does not filter by it (enablePropertyFilter=true in its settings lets it)"
        raise ClusterError(
            f"option sqlExpression: broker {queue.broker_name} {why}: {error.remark}"
        ) from error
