# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transforms.own_properties import OwnProperties, own_properties
from txrocketmq.broker.settings.config import BrokerConfig


def message(
    topic: str = "T", way: Way = Way.SEND, body: bytes = b"body", **properties: str
) -> InnerMessage:
    return InnerMessage(topic, 1, body, 1, bytes(8), bytes(8), properties, way=way)


def test_what_a_client_wrote_under_the_brokers_names_does_not_count() -> None:
    forged = message(CLUSTER="mine", TRACE_ON="false", MSG_REGION="moon", own="kept")
    OwnProperties().apply(forged, 0)
    assert forged.properties == {"own": "kept"}


def test_what_a_broker_writes() -> None:
    config = BrokerConfig(region_id="R", trace_on=False, broker_cluster_name="C")
    assert own_properties(config) == {"MSG_REGION": "R", "TRACE_ON": "false", "CLUSTER": "C"}
