# SPDX-License-Identifier: Apache-2.0
"""The state of replication, and messages between brokers and controllers (5.x).

Java: HARuntimeInfo, EpochEntryCache, SyncStateSet and others in remoting.protocol.body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from txrocketmq.remoting.protocol.body.base import Body, body, member
from txrocketmq.remoting.protocol.body.route import BrokerMemberGroup


@body("org.apache.rocketmq.remoting.protocol.body.HARuntimeInfo.HAConnectionRuntimeInfo")
class HAConnectionRuntimeInfo(Body):
    """A slave as its master sees it; offsets are in bytes of the commit log."""

    addr: str | None = None
    slave_ack_offset: int = 0
    diff: int = 0
    in_sync: bool = False
    transferred_byte_in_second: int = 0
    transfer_from_where: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.HARuntimeInfo.HAClientRuntimeInfo")
class HAClientRuntimeInfo(Body):
    """A slave as it sees itself; times are in ms."""

    master_addr: str | None = None
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.HARuntimeInfo")
class HARuntimeInfo(Body):
    """The answer to GET_BROKER_HA_STATUS."""

    master: bool = False
    master_commit_log_max_offset: int = 0
    in_sync_slave_nums: int = 0
    ha_connection_info: Sequence[HAConnectionRuntimeInfo] = ()
    ha_client_runtime_info: HAClientRuntimeInfo = HAClientRuntimeInfo()


@body("org.apache.rocketmq.remoting.protocol.EpochEntry")
class EpochEntry(Body):
    """A term of a master: the offsets in the commit log where its messages begin and end.

    The last term has no end yet, which the largest number stands for.
    """

    epoch: int
    start_offset: int
    end_offset: int = 2**63 - 1


@body("org.apache.rocketmq.remoting.protocol.body.EpochEntryCache")
class EpochEntryCache(Body):
    """The answer to GET_BROKER_EPOCH_CACHE."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: int = 0
    epoch_list: Sequence[EpochEntry] = ()
    max_offset: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.SyncStateSet")
class SyncStateSet(Body):
    """The ids of the brokers that have all messages: the master and the slaves in sync."""

    sync_state_set: frozenset[int] = frozenset()
    sync_state_set_epoch: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.ElectMasterResponseBody")
class ElectMasterResponseBody(Body):
    """The ids of the brokers that have all messages, and all brokers of the name."""

    broker_member_group: BrokerMemberGroup | None = None
    sync_state_set: frozenset[int] = frozenset()


@body("org.apache.rocketmq.remoting.protocol.body.RoleChangeNotifyEntry")
class RoleChangeNotifyEntry(Body):
    """What the controller tells brokers when it has chosen a master."""

    broker_member_group: BrokerMemberGroup | None = None
    master_address: str | None = None
    master_broker_id: int | None = None
    master_epoch: int = 0
    sync_state_set_epoch: int = 0
    sync_state_set: frozenset[int] | None = None


@body("org.apache.rocketmq.remoting.protocol.body.BrokerReplicasInfo.ReplicaIdentity")
class ReplicaIdentity(Body):
    """One broker among those of a name."""

    broker_name: str | None = None
    broker_id: int | None = None
    broker_address: str | None = None
    alive: bool | None = None


@body("org.apache.rocketmq.remoting.protocol.body.BrokerReplicasInfo.ReplicasInfo")
class ReplicasInfo(Body):
    """The brokers of one name: the master, those in sync with it, and the others."""

    master_broker_id: int | None = None
    master_address: str | None = None
    master_epoch: int | None = None
    sync_state_set_epoch: int | None = None
    in_sync_replicas: Sequence[ReplicaIdentity] | None = None
    not_in_sync_replicas: Sequence[ReplicaIdentity] | None = None


@body("org.apache.rocketmq.remoting.protocol.body.BrokerReplicasInfo")
class BrokerReplicasInfo(Body):
    """The answer to CONTROLLER_GET_SYNC_STATE_DATA, by broker name."""

    replicas_info_table: Mapping[str, ReplicasInfo] = member(default_factory=dict)
