# SPDX-License-Identifier: Apache-2.0
"""What a broker says of itself when it registers, and how it is read: a topic in each step.

Java: RegisterBrokerBody, and the arguments of RouteInfoManager.registerBroker.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from txrocketmq.remoting.serialize.json_members import taking

ZONE_NAME: Final = "__ZONE_NAME"
LONG_BYTES: Final = 64 * 1024
"""A longer body is read in steps."""
MOST_BESIDES: Final = 64 * 1024
"""How many bytes such a body may have besides topics and their mappings."""
_WRAPPER: Final = ("topicConfigSerializeWrapper",)


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
    body = yield from _body(request)
    wrapper = body.topic_config_serialize_wrapper
    return Registration(
        cluster=header.cluster_name,
        broker_name=header.broker_name,
        broker_id=header.broker_id,
        address=header.broker_addr,
        ha_address=header.ha_server_addr,
        topics=wrapper.topic_config_table,
        data_version=wrapper.data_version,
        filter_servers=body.filter_server_list,
        queue_mappings=wrapper.topic_queue_mapping_info_map,
        heartbeat_timeout_ms=header.heartbeat_timeout_millis,
        enable_acting_master=header.enable_acting_master,
        zone=(request.command.ext_fields or {}).get(ZONE_NAME),
    )


def _body(
    request: Request[RegisterBrokerRequestHeader],
) -> Generator[None, None, RegisterBrokerBody]:
    """Returns the body of a request: what may be long in it is read in steps."""
    header, data, version = request.header, request.body, request.command.version
    if header.body_crc32 and body_crc(data) != header.body_crc32:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, "crc32 not match")
    if not data:
        return RegisterBrokerBody()
    is_old = version < MQVersion.V3_0_11  # it had no filter servers: the topics are all of the body
    if header.compressed and not is_old:
        return (yield from RegisterBrokerBody.reading_compressed(data, version))
    topics: dict[str, TopicConfig] = {}
    mappings: dict[str, TopicQueueMappingInfo] = {}
    if len(data) > LONG_BYTES:
        path = () if is_old else _WRAPPER
        text = data.decode("utf-8", "replace")
        text = yield from taking(text, (*path, "topicConfigTable"), topics, TopicConfig.from_json)
        maps = *path, "topicQueueMappingInfoMap"
        text = yield from taking(text, maps, mappings, TopicQueueMappingInfo.from_json)
        data = text.encode()
        if len(data) > MOST_BESIDES:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"the registration has {len(data)} bytes besides its topics and their mappings,"
                f" and may have {MOST_BESIDES}",
            )
    if is_old:
        wrapper = TopicConfigAndMappingSerializeWrapper.decode(data)
        body = RegisterBrokerBody()
    else:
        body = RegisterBrokerBody.decode(data)
        if not (topics or mappings):
            return body
        wrapper = body.topic_config_serialize_wrapper
    wrapper = replace(
        wrapper,
        topic_config_table=topics or wrapper.topic_config_table,
        topic_queue_mapping_info_map=mappings or wrapper.topic_queue_mapping_info_map,
    )
    return replace(body, topic_config_serialize_wrapper=wrapper)
