# SPDX-License-Identifier: Apache-2.0
"""Settings of replication that are live: for each a check that a change counts at once."""

from __future__ import annotations

from tests.broker.conftest import Parts
from tests.broker.replication.slaves import FakeSlave
from tests.broker.store.replication.terms import Mastery
from tests.fakes import NOW_MS
from tests.live import Checks
from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.message_store import PutStatus
from txrocketmq.broker.store.replication.follower import Follower
from txrocketmq.broker.store.replication.frames import REPORT_CODEC
from txrocketmq.broker.store.replication.in_sync import BrokersInSync

check = Checks()


def sent(parts: Parts) -> PutStatus | Ticket:
    parts.put("T")
    return parts.store.commit.outcome(parts.store.max_physical_offset)


@check
def in_sync_replicas(parts: Parts) -> None:
    assert sent(parts) is PutStatus.SLAVE_NOT_AVAILABLE
    parts.set(in_sync_replicas=1)
    assert sent(parts) is PutStatus.PUT_OK
    parts.set(in_sync_replicas=2)
    assert isinstance(sent(parts), Ticket)


@check
def enable_auto_in_sync_replicas(parts: Parts) -> None:
    parts.set(in_sync_replicas=2)
    parts.store.commit.members = 1
    assert parts.store.commit.lacks_brokers
    parts.set(enable_auto_in_sync_replicas=True)
    assert not parts.store.commit.lacks_brokers


@check
def min_in_sync_replicas(parts: Parts) -> None:
    parts.set(in_sync_replicas=2, enable_auto_in_sync_replicas=True)
    parts.store.commit.members = 1
    assert not parts.store.commit.lacks_brokers
    parts.set(min_in_sync_replicas=2)
    assert parts.store.commit.lacks_brokers


@check
def slave_timeout(parts: Parts) -> None:
    parts.set(in_sync_replicas=2, slave_timeout=500)
    outcome = sent(parts)
    parts.master.tick(NOW_MS, 0)
    parts.master.tick(NOW_MS, 500)
    assert isinstance(outcome, Ticket)
    assert outcome.outcome is PutStatus.FLUSH_SLAVE_TIMEOUT


@check
def ha_slave_fallbehind_max(parts: Parts) -> None:
    FakeSlave(parts).report(0)
    assert isinstance(sent(parts), Ticket)
    parts.set(ha_slave_fallbehind_max=1)
    assert sent(parts) is PutStatus.SLAVE_NOT_AVAILABLE


@check
def ha_max_gap_not_in_sync(parts: Parts) -> None:
    parts.put("T")
    FakeSlave(parts).report(0)
    assert [each.is_in_sync for each in parts.master.replicas.states(0)] == [True]
    parts.set(ha_max_gap_not_in_sync=1)
    assert [each.is_in_sync for each in parts.master.replicas.states(0)] == [False]


@check
def ha_send_heartbeat_interval(parts: Parts) -> None:
    slave = FakeSlave(parts)
    slave.report(0)
    parts.now_ms += 2_000
    slave.wake()
    assert slave.frames == []
    parts.set(ha_send_heartbeat_interval=2_000)
    slave.wake()
    assert slave.frames == [(0, b"")]


@check
def ha_housekeeping_interval(parts: Parts) -> None:
    slave = FakeSlave(parts)
    parts.now_ms += 2_000
    parts.master.tick(parts.now_ms, parts.now_ms)
    assert not slave.is_closed
    parts.set(ha_housekeeping_interval=1_000)
    parts.master.tick(parts.now_ms, parts.now_ms)
    assert slave.is_closed


@check
def ha_transfer_batch_size(parts: Parts) -> None:
    parts.put("T")
    slave = FakeSlave(parts)
    parts.set(ha_transfer_batch_size=50)
    slave.report(0)
    assert {len(data) for _, data in slave.frames[:-1]} == {50}


@check
def ha_flow_control_enable(parts: Parts) -> None:
    parts.set(max_ha_transfer_byte_in_second=1)
    slave = FakeSlave(parts)
    slave.report(0)
    parts.put("T")
    parts.set(ha_flow_control_enable=True)
    count = len(slave.log)
    parts.put("T")
    assert count == len(slave.log) > 0


@check
def max_ha_transfer_byte_in_second(parts: Parts) -> None:
    parts.set(ha_flow_control_enable=True)
    parts.set(max_ha_transfer_byte_in_second=50)
    parts.put("T")
    FakeSlave(parts).report(0)
    (state,) = parts.master.replicas.states(0)
    assert state.next_offset == 50


@check
def ha_report_durable(parts: Parts) -> None:
    follower = Follower(parts.store, parts.store.config, 0)
    parts.put("T")
    end = parts.store.max_physical_offset
    assert [follower.report(0) for _ in range(2)] == [REPORT_CODEC.pack(end)] * 2
    parts.set(ha_report_durable=True)
    assert follower.report(0) == REPORT_CODEC.pack(0)


@check
def sync_from_last_file(parts: Parts) -> None:
    parts.set(sync_from_last_file=True)
    for _ in range(30):
        parts.put("T", body=bytes(30_000))
    slave = FakeSlave(parts)
    slave.report(0)
    size = parts.store.config.mapped_file_size_commit_log
    assert slave.frames[0][0] == parts.store.max_physical_offset // size * size > 0


@check
def ha_max_time_slave_not_catchup(parts: Parts) -> None:
    mastery = Mastery()
    log = mastery.log
    mastery.brokers = brokers = BrokersInSync(
        parts.store.config, mastery.epochs, lambda: log.max_physical_offset, 1
    )
    mastery.slave(2)
    brokers.agreed({1, 2})
    log.max_physical_offset += 1
    assert brokers.wanted(1_000) == {1, 2}
    parts.set(ha_max_time_slave_not_catchup=999)
    assert brokers.wanted(1_000) == {1}
