# SPDX-License-Identifier: Apache-2.0
"""Replication for administrators, slaves and name servers.

905 to 908, 1007, 1008. By 905 a name server says which broker of its name has the smallest id, and
a slave with enableSlaveActingMaster acts upon it (acting.py). 908 changes nothing, and is answered
with SUCCESS. 906 asks a master where slaves connect, and its fields are absent while none are
served; or it tells a slave where its master is, which counts until a name server says something
else. 1007 is SYSTEM_ERROR (1) without a controller; 1008 is what a controller tells when it has
chosen a master, and changes nothing without one.

Java: AdminBrokerProcessor.
"""

from __future__ import annotations

from collections.abc import Callable

from txrocketmq.broker.controller.controlled import Controlled
from txrocketmq.broker.replication.acting import Acting
from txrocketmq.broker.replication.master import Master
from txrocketmq.broker.replication.slave import Slave
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.primitives.networks import is_host_and_port
from txrocketmq.remoting.protocol.body.ha import (
    HAClientRuntimeInfo,
    HAConnectionRuntimeInfo,
    HARuntimeInfo,
)
from txrocketmq.remoting.protocol.operations import ha
from txrocketmq.remoting.protocol.operations.ha import (
    ExchangeHAInfoRequestHeader,
    ExchangeHAInfoResponseHeader,
    NotifyBrokerRoleChangedRequestHeader,
    NotifyMinBrokerIdChangeRequestHeader,
    ResetMasterFlushOffsetHeader,
)


class AdminHaProcessor:
    """Shows the slaves of a master, and tells slaves about it. `address` is that of the broker."""

    def __init__(
        self,
        master: Master,
        address: Callable[[], str],
        slave: Slave | None,
        acting: Acting,
        controlled: Controlled | None = None,
    ) -> None:
        self._controlled = controlled
        self._master = master
        self._address = address
        self._slave = slave
        self._acting = acting

    @serves(ha.GET_BROKER_HA_STATUS)
    def ha_status(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Answers which slaves have how much of the log; a slave, how far it is itself."""
        if self._slave is not None:
            return Reply(body=_of_slave(self._slave, request).encode())
        states = self._master.replicas.states(request.steady_ms)
        slaves = [
            HAConnectionRuntimeInfo(
                addr=each.address,
                slave_ack_offset=each.acknowledged,
                diff=each.behind,
                in_sync=each.is_in_sync,
                transferred_byte_in_second=each.bytes_in_second,
                transfer_from_where=each.next_offset,
            )
            for each in states
        ]
        body = HARuntimeInfo(
            master=True,
            master_commit_log_max_offset=self._master.store.max_physical_offset,
            in_sync_slave_nums=sum(each.is_in_sync for each in states),
            ha_connection_info=slaves,
        )
        return Reply(body=body.encode())

    @serves(ha.EXCHANGE_BROKER_HA_INFO)
    def exchange(
        self, request: Request[ExchangeHAInfoRequestHeader]
    ) -> Reply[ExchangeHAInfoResponseHeader]:
        """Tells a slave where it finds this master, and where the log ended at its start."""
        header, slave = request.header, self._slave
        if slave is not None and header.master_ha_address:
            if not is_host_and_port(header.master_ha_address):
                raise ResponseError(
                    ResponseCode.INVALID_PARAMETER,
                    "masterHaAddress must be an address like 192.168.0.1:10912",
                )
            slave.told_master(header.master_ha_address, header.master_address)
        if slave is not None or header.master_ha_address is not None:
            return Reply(ExchangeHAInfoResponseHeader())  # it is about another master
        return Reply(
            ExchangeHAInfoResponseHeader(
                master_ha_address=self._master.address or None,
                master_flush_offset=self._master.start_offset,
                master_address=self._address(),
            )
        )

    @serves(ha.NOTIFY_MIN_BROKER_ID_CHANGE)
    def min_id_changed(
        self, request: Request[NotifyMinBrokerIdChangeRequestHeader]
    ) -> Reply[NoHeader]:
        """Hears which broker of the name has the smallest id."""
        header = request.header
        if header.min_broker_id is not None:
            self._acting.told(header.min_broker_id, header.min_broker_addr, header.ha_broker_addr)
        return Reply()

    @serves(ha.RESET_MASTER_FLUSH_OFFSET)
    def reset_flush_offset(self, request: Request[ResetMasterFlushOffsetHeader]) -> Reply[NoHeader]:
        """Would reset up to where the master has flushed, which nothing here depends on."""
        return Reply()

    @serves(ha.GET_BROKER_EPOCH_CACHE)
    def epochs(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Lists the terms of masters, which only a controller begins."""
        controlled = self._controlled
        if controlled is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")
        return Reply(body=controlled.epoch_cache().encode())

    @serves(ha.NOTIFY_BROKER_ROLE_CHANGED)
    def role_changed(
        self, request: Request[NotifyBrokerRoleChangedRequestHeader]
    ) -> Reply[NoHeader]:
        """Hears that there may be another master, and asks the controller, if there is one."""
        if self._controlled is not None:
            self._controlled.session.notified(request.steady_ms)
        return Reply()


def _of_slave(slave: Slave, request: Request[NoHeader]) -> HARuntimeInfo:
    state = slave.state(request.steady_ms)
    began_ms = request.now_ms - request.steady_ms  # of the steady clock
    return HARuntimeInfo(
        ha_client_runtime_info=HAClientRuntimeInfo(
            master_addr=state.ha_address or None,
            transferred_byte_in_second=state.bytes_in_second,
            max_offset=state.max_offset,
            last_read_timestamp=began_ms + state.read_ms,
            last_write_timestamp=began_ms + state.reported_ms if state.reported_ms else 0,
        )
    )
