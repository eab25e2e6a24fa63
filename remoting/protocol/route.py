# SPDX-License-Identifier: Apache-2.0
"""Registration of brokers, routes, and the key-values of name servers.

Java: DefaultRequestProcessor and ClientRequestProcessor of the name server.
"""

from __future__ import annotations

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.header import Header, Int, Long, NoHeader, header
from txrocketmq.remoting.protocol.base import TopicRequestHeader


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.PutKVConfigRequestHeader")
class PutKVConfigRequestHeader(Header):
    """Sets the value of a key in a namespace of the name server's key-values."""

    namespace: str
    key: str
    value: str


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.GetKVConfigRequestHeader")
class GetKVConfigRequestHeader(Header):
    """Asks for the value of a key."""

    namespace: str
    key: str


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.GetKVConfigResponseHeader")
class GetKVConfigResponseHeader(Header):
    """The value of the key."""

    value: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.DeleteKVConfigRequestHeader")
class DeleteKVConfigRequestHeader(Header):
    """Deletes a key and its value."""

    namespace: str
    key: str


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.GetKVListByNamespaceRequestHeader")
class GetKVListByNamespaceRequestHeader(Header):
    """Asks for all keys and values of a namespace."""

    namespace: str


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.RegisterBrokerRequestHeader")
class RegisterBrokerRequestHeader(Header):
    """Registers a broker and its topics, which are in the body.

    `body_crc32` is 0 if the body is not to be checked.
    """

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Long
    heartbeat_timeout_millis: Long | None = None
    enable_acting_master: bool | None = None
    compressed: bool = False
    body_crc32: Int = 0


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.RegisterBrokerResponseHeader")
class RegisterBrokerResponseHeader(Header):
    """The addresses of the master, if a slave has registered."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.UnRegisterBrokerRequestHeader")
class UnRegisterBrokerRequestHeader(Header):
    """Removes a broker that stops."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.QueryDataVersionRequestHeader")
class QueryDataVersionRequestHeader(Header):
    """Asks whether a broker's registration is still current; the body is its DataVersion."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.QueryDataVersionResponseHeader")
class QueryDataVersionResponseHeader(Header):
    """Whether the broker must register again."""

    changed: bool


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.BrokerHeartbeatRequestHeader")
class BrokerHeartbeatRequestHeader(Header):
    """A sign of life between registrations; the optional fields are for a controller."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Long | None = None
    epoch: Int | None = None
    max_offset: Long | None = None
    confirm_offset: Long | None = None
    heartbeat_timeout_mills: Long | None = None
    election_priority: Int | None = None


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.GetRouteInfoRequestHeader")
class GetRouteInfoRequestHeader(TopicRequestHeader):
    """Asks which brokers have a topic.

    `accept_standard_json_only` asks for strict JSON.
    """

    topic: str
    accept_standard_json_only: bool | None = None


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.WipeWritePermOfBrokerRequestHeader")
class WipeWritePermOfBrokerRequestHeader(Header):
    """Takes the write permission from all topics of a broker."""

    broker_name: str


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.WipeWritePermOfBrokerResponseHeader")
class WipeWritePermOfBrokerResponseHeader(Header):
    """How many topics lost the write permission."""

    wipe_topic_count: Int


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.AddWritePermOfBrokerRequestHeader")
class AddWritePermOfBrokerRequestHeader(Header):
    """Gives the write permission back to all topics of a broker."""

    broker_name: str


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.AddWritePermOfBrokerResponseHeader")
class AddWritePermOfBrokerResponseHeader(Header):
    """How many topics got the write permission back."""

    add_topic_count: Int


PUT_KV_CONFIG = define(RequestCode.PUT_KV_CONFIG, PutKVConfigRequestHeader, NoHeader)
GET_KV_CONFIG = define(
    RequestCode.GET_KV_CONFIG, GetKVConfigRequestHeader, GetKVConfigResponseHeader
)
DELETE_KV_CONFIG = define(RequestCode.DELETE_KV_CONFIG, DeleteKVConfigRequestHeader, NoHeader)
GET_KVLIST_BY_NAMESPACE = define(
    RequestCode.GET_KVLIST_BY_NAMESPACE, GetKVListByNamespaceRequestHeader, NoHeader
)
REGISTER_BROKER = define(
    RequestCode.REGISTER_BROKER, RegisterBrokerRequestHeader, RegisterBrokerResponseHeader
)
UNREGISTER_BROKER = define(RequestCode.UNREGISTER_BROKER, UnRegisterBrokerRequestHeader, NoHeader)
QUERY_DATA_VERSION = define(
    RequestCode.QUERY_DATA_VERSION, QueryDataVersionRequestHeader, QueryDataVersionResponseHeader
)
BROKER_HEARTBEAT = define(RequestCode.BROKER_HEARTBEAT, BrokerHeartbeatRequestHeader, NoHeader)
GET_ROUTEINFO_BY_TOPIC = define(
    RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader, NoHeader
)
GET_BROKER_CLUSTER_INFO = define(RequestCode.GET_BROKER_CLUSTER_INFO, NoHeader, NoHeader)
WIPE_WRITE_PERM_OF_BROKER = define(
    RequestCode.WIPE_WRITE_PERM_OF_BROKER,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)
ADD_WRITE_PERM_OF_BROKER = define(
    RequestCode.ADD_WRITE_PERM_OF_BROKER,
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
)
