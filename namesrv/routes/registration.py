# SPDX-License-Identifier: Apache-2.0
"""What a broker says of itself when it registers, and how it is read: a topic in each step.

Java: RegisterBrokerBody, and the arguments of RouteInfoManager.registerBroker.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from txrocketmq.remoting.call import Request
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.protocol.body.route import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)
from txrocketmq.remoting.protocol.body.static_topic import TopicQueueMappingInfo
from txrocketmq.remoting.protocol.route import RegisterBrokerRequestHeader
from txrocketmq.remoting.serialize.json import JsonError
from txrocketmq.remoting.serialize.json_members import members

ZONE_NAME: Final = "__ZONE_NAME"
LONG_BYTES: Final = 64 * 1024
"""A longer body is read in steps, if it is plain JSON."""
_TABLE: Final = "topicConfigSerializeWrapper", "topicConfigTable"
_TOPICS_A_STEP: Final = 2


@dataclass(frozen=True, slots=True)
class Registration:
    """What a broker says of itself.

    `enable_acting_master` is None for a 4.x broker; `filter_servers` is None if it says nothing of
    them.
    """

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str
    topics: Mapping[str, TopicConfig]
    data_version: DataVersion
    filter_servers: Sequence[str] | None = None
    queue_mappings: Mapping[str, TopicQueueMappingInfo] = field(default_factory=dict)
    heartbeat_timeout_ms: int | None = None
    enable_acting_master: bool | None = None
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Registered:
    """The answer to a registration; for a slave it says where its master is."""

    master_address: str | None = None
    ha_address: str | None = None


def read(request: Request[RegisterBrokerRequestHeader]) -> Generator[None, None, Registration]:
    """Reads the registration in a request.

    Raises ResponseError when its checksum is wrong, and HeaderError when it is none.
    """
    header = request.header
    body, topics = yield from _body(request)
    wrapper = body.topic_config_serialize_wrapper
    return Registration(
        cluster=header.cluster_name,
        broker_name=header.broker_name,
        broker_id=header.broker_id,
        address=header.broker_addr,
        ha_address=header.ha_server_addr,
        topics=topics or wrapper.topic_config_table,
        data_version=wrapper.data_version,
        filter_servers=body.filter_server_list,
        queue_mappings=wrapper.topic_queue_mapping_info_map,
        heartbeat_timeout_ms=header.heartbeat_timeout_millis,
        enable_acting_master=header.enable_acting_master,
        zone=(request.command.ext_fields or {}).get(ZONE_NAME),
    )


def _body(
    request: Request[RegisterBrokerRequestHeader],
) -> Generator[None, None, tuple[RegisterBrokerBody, dict[str, TopicConfig]]]:
    """Returns the body of a request, and its topics if these were read in steps."""
    header, data, version = request.header, request.body, request.command.version
    topics: dict[str, TopicConfig] = {}
    if header.body_crc32 and body_crc(data) != header.body_crc32:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, "crc32 not match")
    if not data:
        return RegisterBrokerBody(), topics
    if version < MQVersion.V3_0_11:  # it knew no filter servers: the topics are all of the body
        wrapper = TopicConfigAndMappingSerializeWrapper.decode(data)
        return RegisterBrokerBody(topic_config_serialize_wrapper=wrapper), topics
    if header.compressed:
        return RegisterBrokerBody.decode_compressed(data, version), topics
    if len(data) > LONG_BYTES:
        try:
            text = yield from _read_topics(data.decode("utf-8", "replace"), topics)
        except JsonError:  # it is JSON to fastjson only, or none at all
            topics.clear()
        else:
            data = text.encode()
    return RegisterBrokerBody.decode(data), topics


def _read_topics(text: str, topics: dict[str, TopicConfig]) -> Generator[None, None, str]:
    """Adds the topics of a body; returns its text without them."""
    found = members(text, _TABLE)
    while True:
        try:
            for _ in range(_TOPICS_A_STEP):
                name, value = next(found)
                topics[name] = TopicConfig.from_json(value)
        except StopIteration as end:
            rest: str = end.value
            return rest
        yield
