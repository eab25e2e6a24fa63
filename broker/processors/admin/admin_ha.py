# SPDX-License-Identifier: Apache-2.0
"""Replication for administrators, slaves and name servers.

905 to 908, 1007. This broker is a master: 905, by which a name server says which broker of its name
has the smallest id, and 908 matter to slaves only, and are answered with SUCCESS. 906 tells slaves
where to connect; its fields are absent while none are served. 1007 is SYSTEM_ERROR (1), as without
a controller. Java: AdminBrokerProcessor.
"""

from __future__ import annotations

from collections.abc import Callable

from txrocketmq.broker.replication.master import Master
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.body.ha import HAConnectionRuntimeInfo, HARuntimeInfo
from txrocketmq.remoting.protocol.operations import ha
from txrocketmq.remoting.protocol.operations.ha import (
    ExchangeHAInfoRequestHeader,
    ExchangeHAInfoResponseHeader,
    NotifyMinBrokerIdChangeRequestHeader,
    ResetMasterFlushOffsetHeader,
)


class AdminHaProcessor:
    """Shows the slaves of a master, and tells slaves about it. `address` is that of the broker."""

    def __init__(self, master: Master, address: Callable[[], str]) -> None:
        self._master = master
        self._address = address

    @serves(ha.GET_BROKER_HA_STATUS)
    def ha_status(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Answers which slaves have how much of the log."""
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
        if request.header.master_ha_address is not None:
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
        """Hears which broker of the name has the smallest id: a master has it whoever goes."""
        return Reply()

    @serves(ha.RESET_MASTER_FLUSH_OFFSET)
    def reset_flush_offset(self, request: Request[ResetMasterFlushOffsetHeader]) -> Reply[NoHeader]:
        """Resets a slave's flush offset; on a master it does nothing and answers SUCCESS."""
        return Reply()

    @serves(ha.GET_BROKER_EPOCH_CACHE)
    def epochs(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Would list the terms of masters, which only a controller begins."""
        raise ResponseError(ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")
