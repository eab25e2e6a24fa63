# SPDX-License-Identifier: Apache-2.0
"""High availability: member groups, HA state, broker containers, and the controller's codes.

In the original, brokers serve codes 1007 and 1008. The controller, a process of its own, serves the
rest of 1001 to 1018, which are declared so that clients can speak to it.
"""

from __future__ import annotations

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.header import Header, Int, Long, NoHeader, header


@header("org.apache.rocketmq.remoting.protocol.header.GetBrokerMemberGroupRequestHeader")
class GetBrokerMemberGroupRequestHeader(Header):
    """Asks for the addresses of all brokers that share a name."""

    cluster_name: str
    broker_name: str


@header("org.apache.rocketmq.remoting.protocol.header.AddBrokerRequestHeader")
class AddBrokerRequestHeader(Header):
    """Starts a broker in a broker container."""

    config_path: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.RemoveBrokerRequestHeader")
class RemoveBrokerRequestHeader(Header):
    """Stops a broker of a broker container."""

    broker_name: str
    broker_cluster_name: str
    broker_id: Long


@header("org.apache.rocketmq.remoting.protocol.header.NotifyMinBrokerIdChangeRequestHeader")
class NotifyMinBrokerIdChangeRequestHeader(Header):
    """A name server tells the brokers of one name which of them now has the smallest id."""

    min_broker_id: Long | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.ExchangeHAInfoRequestHeader")
class ExchangeHAInfoRequestHeader(Header):
    """A slave asks with all fields absent; whoever sets them tells the receiver about a master."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.ExchangeHAInfoResponseHeader")
class ExchangeHAInfoResponseHeader(Header):
    """The master's addresses, and the commit-log offset in bytes up to which it has flushed."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.ResetMasterFlushOffsetHeader")
class ResetMasterFlushOffsetHeader(Header):
    """Tells a slave the commit-log offset in bytes up to which its master has flushed."""

    master_flush_offset: Long


@header("org.apache.rocketmq.remoting.protocol.header.NotifyBrokerRoleChangedRequestHeader")
class NotifyBrokerRoleChangedRequestHeader(Header):
    """The controller tells a broker who is master now; the body is SyncStateSet."""

    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None
    master_broker_id: Long | None = None


@header("org.apache.rocketmq.remoting.protocol.header.controller.AlterSyncStateSetRequestHeader")
class AlterSyncStateSetRequestHeader(Header):
    """A master reports which slaves are in sync now; the body is SyncStateSet."""

    broker_name: str | None = None
    master_broker_id: Long | None = None
    master_epoch: Int | None = None
    invoke_time: Long = 0


@header("org.apache.rocketmq.remoting.protocol.header.controller.AlterSyncStateSetResponseHeader")
class AlterSyncStateSetResponseHeader(Header):
    """The new epoch of the set of brokers in sync."""

    new_sync_state_set_epoch: Int = 0


@header("org.apache.rocketmq.remoting.protocol.header.controller.ElectMasterRequestHeader")
class ElectMasterRequestHeader(Header):
    """Makes the controller choose a master among the brokers of one name.

    With `designate_elect`, it is to choose `broker_id`.
    """

    cluster_name: str = ""
    broker_name: str = ""
    broker_id: Long = -1
    designate_elect: bool = False
    invoke_time: Long | None = None


@header("org.apache.rocketmq.remoting.protocol.header.controller.ElectMasterResponseHeader")
class ElectMasterResponseHeader(Header):
    """The master that the controller has chosen, with the epochs."""

    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None


@header(
    "org.apache.rocketmq.remoting.protocol.header.controller.register.RegisterBrokerToControllerRequestHeader"
)
class RegisterBrokerToControllerRequestHeader(Header):
    """A broker registers with the controller."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: Long | None = None
    broker_address: str | None = None
    invoke_time: Long = 0


@header(
    "org.apache.rocketmq.remoting.protocol.header.controller.register.RegisterBrokerToControllerResponseHeader"
)
class RegisterBrokerToControllerResponseHeader(Header):
    """The master of the broker's name, if there is one."""

    cluster_name: str | None = None
    broker_name: str | None = None
    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None


@header("org.apache.rocketmq.remoting.protocol.header.controller.GetReplicaInfoRequestHeader")
class GetReplicaInfoRequestHeader(Header):
    """Asks which broker is the master of a broker name."""

    broker_name: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.controller.GetReplicaInfoResponseHeader")
class GetReplicaInfoResponseHeader(Header):
    """The master of the broker name, with its epoch."""

    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None


@header("org.apache.rocketmq.remoting.protocol.header.controller.GetMetaDataResponseHeader")
class GetMetaDataResponseHeader(Header):
    """The addresses of the controllers, and which of them is the leader."""

    group: str | None = None
    controller_leader_id: str | None = None
    controller_leader_address: str | None = None
    is_leader: bool = False
    peers: str | None = None


@header(
    "org.apache.rocketmq.remoting.protocol.header.controller.admin.CleanControllerBrokerDataRequestHeader"
)
class CleanControllerBrokerDataRequestHeader(Header):
    """Makes the controller forget brokers; their ids are separated by semicolons."""

    cluster_name: str | None = None
    broker_name: str
    broker_controller_ids_to_clean: str | None = None
    is_clean_living_broker: bool = False
    invoke_time: Long = 0


@header(
    "org.apache.rocketmq.remoting.protocol.header.controller.register.GetNextBrokerIdRequestHeader"
)
class GetNextBrokerIdRequestHeader(Header):
    """Asks for the next free broker id of a broker name."""

    cluster_name: str | None = None
    broker_name: str | None = None


@header(
    "org.apache.rocketmq.remoting.protocol.header.controller.register.GetNextBrokerIdResponseHeader"
)
class GetNextBrokerIdResponseHeader(Header):
    """The next free broker id."""

    cluster_name: str | None = None
    broker_name: str | None = None
    next_broker_id: Long | None = None


@header(
    "org.apache.rocketmq.remoting.protocol.header.controller.register.ApplyBrokerIdRequestHeader"
)
class ApplyBrokerIdRequestHeader(Header):
    """A broker asks the controller to reserve a broker id for it."""

    cluster_name: str | None = None
    broker_name: str | None = None
    applied_broker_id: Long | None = None
    register_check_code: str | None = None


@header(
    "org.apache.rocketmq.remoting.protocol.header.controller.register.ApplyBrokerIdResponseHeader"
)
class ApplyBrokerIdResponseHeader(Header):
    """Confirms that the broker id is reserved."""

    cluster_name: str | None = None
    broker_name: str | None = None


@header("org.apache.rocketmq.controller.impl.task.BrokerCloseChannelRequest")
class BrokerCloseChannelRequest(Header):
    """Sent between JRaft controllers: the connection of a broker was closed."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: Long | None = None


@header("org.apache.rocketmq.controller.impl.task.CheckNotActiveBrokerRequest")
class CheckNotActiveBrokerRequest(Header):
    """Sent between JRaft controllers: looks for brokers that are not active at a time in ms."""

    check_time_millis: Long | None = None


@header("org.apache.rocketmq.controller.impl.task.GetBrokerLiveInfoRequest")
class GetBrokerLiveInfoRequest(Header):
    """Sent between JRaft controllers: asks for what is known about live brokers."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: Long | None = None


@header("org.apache.rocketmq.controller.impl.task.GetSyncStateDataRequest")
class GetSyncStateDataRequest(Header):
    """Sent between JRaft controllers: asks which brokers are in sync."""

    invoke_time: Long | None = None


@header("org.apache.rocketmq.controller.impl.task.RaftBrokerHeartBeatEventRequest")
class RaftBrokerHeartBeatEventRequest(Header):
    """Sent between JRaft controllers: the heartbeat of a broker."""

    cluster_name_identity_info: str | None = None
    broker_name_identity_info: str | None = None
    broker_id_identity_info: Long | None = None
    broker_name: str | None = None
    broker_addr: str | None = None
    heartbeat_timeout_millis: Long | None = None
    broker_id: Long | None = None
    last_update_timestamp: Long | None = None
    epoch: Int | None = None
    max_offset: Long | None = None
    confirm_offset: Long | None = None
    election_priority: Int | None = None


GET_BROKER_MEMBER_GROUP = define(
    RequestCode.GET_BROKER_MEMBER_GROUP, GetBrokerMemberGroupRequestHeader, NoHeader
)
ADD_BROKER = define(RequestCode.ADD_BROKER, AddBrokerRequestHeader, NoHeader)
REMOVE_BROKER = define(RequestCode.REMOVE_BROKER, RemoveBrokerRequestHeader, NoHeader)
NOTIFY_MIN_BROKER_ID_CHANGE = define(
    RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, NotifyMinBrokerIdChangeRequestHeader, NoHeader
)
EXCHANGE_BROKER_HA_INFO = define(
    RequestCode.EXCHANGE_BROKER_HA_INFO, ExchangeHAInfoRequestHeader, ExchangeHAInfoResponseHeader
)
GET_BROKER_HA_STATUS = define(RequestCode.GET_BROKER_HA_STATUS, NoHeader, NoHeader)
RESET_MASTER_FLUSH_OFFSET = define(
    RequestCode.RESET_MASTER_FLUSH_OFFSET, ResetMasterFlushOffsetHeader, NoHeader
)
CONTROLLER_ALTER_SYNC_STATE_SET = define(
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
    AlterSyncStateSetRequestHeader,
    AlterSyncStateSetResponseHeader,
)
CONTROLLER_ELECT_MASTER = define(
    RequestCode.CONTROLLER_ELECT_MASTER, ElectMasterRequestHeader, ElectMasterResponseHeader
)
CONTROLLER_REGISTER_BROKER = define(
    RequestCode.CONTROLLER_REGISTER_BROKER,
    RegisterBrokerToControllerRequestHeader,
    RegisterBrokerToControllerResponseHeader,
)
CONTROLLER_GET_REPLICA_INFO = define(
    RequestCode.CONTROLLER_GET_REPLICA_INFO,
    GetReplicaInfoRequestHeader,
    GetReplicaInfoResponseHeader,
)
CONTROLLER_GET_METADATA_INFO = define(
    RequestCode.CONTROLLER_GET_METADATA_INFO, NoHeader, GetMetaDataResponseHeader
)
CONTROLLER_GET_SYNC_STATE_DATA = define(
    RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, NoHeader, NoHeader
)
GET_BROKER_EPOCH_CACHE = define(RequestCode.GET_BROKER_EPOCH_CACHE, NoHeader, NoHeader)
NOTIFY_BROKER_ROLE_CHANGED = define(
    RequestCode.NOTIFY_BROKER_ROLE_CHANGED, NotifyBrokerRoleChangedRequestHeader, NoHeader
)
UPDATE_CONTROLLER_CONFIG = define(RequestCode.UPDATE_CONTROLLER_CONFIG, NoHeader, NoHeader)
GET_CONTROLLER_CONFIG = define(RequestCode.GET_CONTROLLER_CONFIG, NoHeader, NoHeader)
CLEAN_BROKER_DATA = define(
    RequestCode.CLEAN_BROKER_DATA, CleanControllerBrokerDataRequestHeader, NoHeader
)
CONTROLLER_GET_NEXT_BROKER_ID = define(
    RequestCode.CONTROLLER_GET_NEXT_BROKER_ID,
    GetNextBrokerIdRequestHeader,
    GetNextBrokerIdResponseHeader,
)
CONTROLLER_APPLY_BROKER_ID = define(
    RequestCode.CONTROLLER_APPLY_BROKER_ID, ApplyBrokerIdRequestHeader, ApplyBrokerIdResponseHeader
)
BROKER_CLOSE_CHANNEL_REQUEST = define(
    RequestCode.BROKER_CLOSE_CHANNEL_REQUEST, BrokerCloseChannelRequest, NoHeader
)
CHECK_NOT_ACTIVE_BROKER_REQUEST = define(
    RequestCode.CHECK_NOT_ACTIVE_BROKER_REQUEST, CheckNotActiveBrokerRequest, NoHeader
)
GET_BROKER_LIVE_INFO_REQUEST = define(
    RequestCode.GET_BROKER_LIVE_INFO_REQUEST, GetBrokerLiveInfoRequest, NoHeader
)
GET_SYNC_STATE_DATA_REQUEST = define(
    RequestCode.GET_SYNC_STATE_DATA_REQUEST, GetSyncStateDataRequest, NoHeader
)
RAFT_BROKER_HEART_BEAT_EVENT_REQUEST = define(
    RequestCode.RAFT_BROKER_HEART_BEAT_EVENT_REQUEST, RaftBrokerHeartBeatEventRequest, NoHeader
)
