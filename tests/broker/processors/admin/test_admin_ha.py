# SPDX-License-Identifier: Apache-2.0
"""What a master says about its slaves, and to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from tests.broker.replication.slaves import FakeSlave
from tests.fakes import NOW_MS, refused, request
from txrocketmq.broker.processors.admin.admin_ha import AdminHaProcessor
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.body.ha import HAConnectionRuntimeInfo, HARuntimeInfo
from txrocketmq.remoting.protocol.operations.ha import (
    ExchangeHAInfoRequestHeader,
    ExchangeHAInfoResponseHeader,
    NotifyMinBrokerIdChangeRequestHeader,
    ResetMasterFlushOffsetHeader,
)


@pytest.fixture
def admin(parts: Parts) -> AdminHaProcessor:
    return AdminHaProcessor(parts.master, lambda: "127.0.0.1:10911", None, parts.acting)


def test_the_state_of_slaves(parts: Parts, admin: AdminHaProcessor) -> None:
    parts.put("T")
    end = parts.store.max_physical_offset
    shown = HARuntimeInfo.decode(admin.ha_status(request(NoHeader())).body_bytes)
    assert shown == HARuntimeInfo(master=True, master_commit_log_max_offset=end)
    slave = FakeSlave(parts)
    slave.report(5)
    shown = HARuntimeInfo.decode(admin.ha_status(request(NoHeader())).body_bytes)
    assert shown.in_sync_slave_nums == 1
    assert list(shown.ha_connection_info) == [
        HAConnectionRuntimeInfo(
            addr="10.0.0.1:5", slave_ack_offset=5, diff=end - 5, in_sync=True,
            transferred_byte_in_second=0, transfer_from_where=end,
        )
    ]  # fmt: skip


def test_slaves_are_told_where_to_connect(parts: Parts, admin: AdminHaProcessor) -> None:
    asks = request(ExchangeHAInfoRequestHeader())
    assert admin.exchange(asks).header == ExchangeHAInfoResponseHeader(
        master_flush_offset=0, master_address="127.0.0.1:10911"
    )
    parts.master.address, parts.master.start_offset = "10.0.0.9:10912", 7
    assert admin.exchange(asks).header == ExchangeHAInfoResponseHeader(
        master_ha_address="10.0.0.9:10912", master_flush_offset=7, master_address="127.0.0.1:10911"
    )
    told = request(ExchangeHAInfoRequestHeader(master_ha_address="10.0.0.8:10912"))
    assert admin.exchange(told).header == ExchangeHAInfoResponseHeader()


def test_what_matters_to_slaves_only(admin: AdminHaProcessor) -> None:
    flushed = request(ResetMasterFlushOffsetHeader(master_flush_offset=0))
    assert admin.reset_flush_offset(flushed).code == ResponseCode.SUCCESS
    changed = request(NotifyMinBrokerIdChangeRequestHeader(min_broker_id=1))
    assert admin.min_id_changed(changed).code == ResponseCode.SUCCESS
    with refused(ResponseCode.SYSTEM_ERROR, "only for controllerMode"):
        admin.epochs(request(NoHeader()))


def test_a_name_server_tells_who_has_the_smallest_id(tmp_path: Path) -> None:
    made, admin = of_slave(tmp_path)
    made.set(enable_slave_acting_master=True, broker_id=1)
    header = NotifyMinBrokerIdChangeRequestHeader(
        min_broker_id=1, min_broker_addr="10.0.0.1:10921", offline_broker_addr="10.0.0.9:10911"
    )
    assert admin.min_id_changed(request(header)).code == ResponseCode.SUCCESS
    assert made.acting.acts
    header = NotifyMinBrokerIdChangeRequestHeader(
        min_broker_id=0, min_broker_addr="10.0.0.9:10911", ha_broker_addr="10.0.0.9:10912"
    )
    admin.min_id_changed(request(header))
    admin.min_id_changed(request(NotifyMinBrokerIdChangeRequestHeader()))
    assert not made.acting.acts
    assert made.slave is not None
    assert made.slave.ha_address == "10.0.0.9:10912"


def of_slave(folder: Path, **settings: object) -> tuple[Parts, AdminHaProcessor]:
    made = Parts(folder, store_settings={"broker_role": "SLAVE", **settings})
    return made, AdminHaProcessor(made.master, lambda: "127.0.0.1:10921", made.slave, made.acting)


def test_a_slave_shows_how_far_it_is(tmp_path: Path) -> None:
    parts, admin = of_slave(tmp_path, ha_master_address="10.0.0.9:10912")
    parts.store.append_raw(0, b"abc")
    asks = request(NoHeader())
    shown = HARuntimeInfo.decode(admin.ha_status(asks).body_bytes)
    assert (shown.master, shown.master_commit_log_max_offset) == (False, 0)
    client = shown.ha_client_runtime_info
    assert (client.master_addr, client.max_offset) == ("10.0.0.9:10912", 3)
    assert client.last_read_timestamp == asks.now_ms - asks.steady_ms + NOW_MS
    assert (client.last_write_timestamp, client.transferred_byte_in_second) == (0, 0)


def test_a_slave_is_told_where_its_master_is(tmp_path: Path) -> None:
    parts, admin = of_slave(tmp_path)
    assert parts.slave is not None
    asked = admin.exchange(request(ExchangeHAInfoRequestHeader()))
    assert asked.header == ExchangeHAInfoResponseHeader(), "it has no slaves"
    told = ExchangeHAInfoRequestHeader(
        master_ha_address="10.0.0.8:10912", master_address="10.0.0.8:10911"
    )
    assert admin.exchange(request(told)).header == ExchangeHAInfoResponseHeader()
    assert parts.slave.ha_address == "10.0.0.8:10912"
    assert parts.slave.master_address == "10.0.0.8:10911"
    with refused(ResponseCode.INVALID_PARAMETER, "must be an address"):
        admin.exchange(request(ExchangeHAInfoRequestHeader(master_ha_address="10.0.0.8")))
