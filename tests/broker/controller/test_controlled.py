# SPDX-License-Identifier: Apache-2.0
"""A broker that was made for what a controller has decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.broker.controller.controllers import BROKER, OTHER, FakeController, Seat
from tests.broker.store.replication.terms import greeting, report
from txrocketmq.broker.controller.controlled import Controlled
from txrocketmq.broker.controller.session import InSync, LogState, Term
from txrocketmq.broker.replication.master import Replica
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.store.replication.epochs import Epoch
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.protocol.operations.ha import (
    ExchangeHAInfoRequestHeader,
    ExchangeHAInfoResponseHeader,
)

HA = "10.0.0.6:10912"


class End:
    """A master's end of the connection of a slave."""

    def wake(self) -> None: ...

    def close(self) -> None: ...


class Made:
    """A broker for the term of a session."""

    def __init__(self, folder: Path, seat: Seat) -> None:
        self.controlled = Controlled(seat.session, lambda: self.parts.now_ms)
        role = "SYNC_MASTER" if self.controlled.is_master else "SLAVE"
        settings = {"broker_role": role, "mapped_file_size_commit_log": 1 << 20}
        self.parts = Parts(folder, store_settings=settings, controlled=self.controlled)
        self.controlled.opened()
        self.asked: list[tuple[str, PendingReply]] = []
        self.controlled.begin(BROKER, self._ask)
        seat.session.on_in_sync = self.controlled.heard_in_sync
        self.life()

    def life(self) -> Any:
        return self.controlled.life(self.parts.master, self.parts.slave)

    def _ask(self, address: str, header: ExchangeHAInfoRequestHeader) -> PendingReply:
        self.asked.append((address, PendingReply()))
        return self.asked[-1][1]

    def beat(self) -> None:
        for each in self.life().beats:
            each.work()

    def slave(self, broker_id: int) -> Replica:
        """A slave that has all."""
        found = self.parts.master.begin("10.0.0.1", 5, End())
        assert found is not None
        found.received(greeting(broker_id))
        found.sent(len(b"".join(found.pieces())))
        found.received(report(self.parts.store.max_physical_offset))
        return found

    def close(self) -> None:
        self.parts.store.stop(self.parts.now_ms)


@pytest.fixture
def seat(tmp_path: Path) -> Seat:
    return Seat(tmp_path, FakeController())


@pytest.fixture
def make(tmp_path: Path, seat: Seat) -> Iterator[Callable[[], Made]]:
    made: list[Made] = []

    def make_one() -> Made:
        made.append(Made(tmp_path / "broker", seat))
        return made[-1]

    yield make_one
    for each in made:
        each.close()


def test_before_there_is_a_master_it_is_a_slave_of_nobody(make: Callable[[], Made]) -> None:
    one = make()
    assert one.parts.registration.is_held
    assert one.parts.slave is not None
    one.beat()
    one.parts.slave.found_master(HA, OTHER)
    one.parts.slave.told_master(HA, OTHER)
    assert (one.asked, one.parts.slave.ha_address, one.parts.slave.master_address) == ([], "", None)
    assert one.controlled.log_state() == LogState(-1, 0, 0)
    assert not one.controlled.fits(Term(1, 1, BROKER, 1))


def test_a_master_begins_its_epoch_where_its_log_ends(
    seat: Seat, make: Callable[[], Made], message: Callable[..., Any]
) -> None:
    seat.pass_s()
    one = make()
    assert [*one.controlled.epochs.entries] == [Epoch(1, 0)]
    assert not one.parts.registration.is_held
    assert one.parts.registration.table().data_version.state_version == 1
    one.parts.store.put([message()], one.parts.now_ms)
    end = one.parts.store.max_physical_offset
    one.close()
    seat.session.term = Term(4, 1, BROKER, 1)
    again = make()
    assert [*again.controlled.epochs.entries] == [Epoch(1, 0), Epoch(4, end)]
    assert again.controlled.log_state() == LogState(4, end, end)
    assert again.controlled.fits(Term(5, 1, BROKER, 1))
    assert not again.controlled.fits(Term(6, 7, OTHER, 1))
    assert again.parts.registration.table().data_version.state_version == 5
    cache = again.controlled.epoch_cache()
    assert [each.epoch for each in cache.epoch_list] == [1, 5]
    assert (cache.max_offset, cache.broker_id) == (end, 1)


def test_a_slave_joins_and_leaves(
    seat: Seat, make: Callable[[], Made], message: Callable[..., Any]
) -> None:
    seat.pass_s()
    one = make()
    slave = one.slave(2)
    assert seat.controller.in_sync == {1, 2}
    assert one.controlled.brokers.ids == {1, 2}
    assert one.parts.store.commit.members == 2
    one.parts.store.put([message()], one.parts.now_ms)
    waiting = one.parts.store.commit.outcome(one.parts.store.max_physical_offset)
    assert not isinstance(waiting, PutStatus)
    slave.ended("gone")
    assert seat.controller.in_sync == {1}
    assert waiting.outcome is PutStatus.PUT_OK


def test_a_proposal_in_vain_is_repeated_after_a_while(seat: Seat, make: Callable[[], Made]) -> None:
    seat.pass_s()
    one = make()
    seat.controller.refuses[1001] = 2006
    seat.controller.codes()
    one.slave(2)
    for _ in range(5):
        one.controlled.look()
    assert seat.controller.codes() == [1001]
    one.parts.now_ms += 1_000
    seat.controller.refuses.clear()
    one.beat()
    assert seat.controller.in_sync == {1, 2}


def test_a_slave_asks_its_master_where_it_serves_slaves(
    seat: Seat, make: Callable[[], Made]
) -> None:
    seat.controller.master = 7, OTHER, 5
    seat.pass_s()
    one = make()
    slave = one.parts.slave
    assert slave is not None
    assert (slave.master_address, slave.ha_address) == (OTHER, "")
    one.beat()
    one.beat()
    [(address, pending)] = one.asked
    assert address == OTHER
    pending.resolve(ConnectError("not yet"))
    one.beat()
    header = ExchangeHAInfoResponseHeader(master_ha_address=HA, master_address=OTHER)
    one.asked[1][1].resolve(Reply(header))
    assert slave.ha_address == HA
    slave.found_master("10.0.0.9:10912", "10.0.0.9:10911")
    assert (slave.master_address, slave.ha_address) == (OTHER, HA)
    slave.found_master("10.0.0.6:1", OTHER)
    assert slave.ha_address == "10.0.0.6:1"
    assert one.controlled.fits(Term(6, 7, OTHER, 1))
    one.controlled.heard_in_sync(InSync(frozenset({1, 7}), 9))
    assert one.parts.store.commit.members is None


def test_the_last_state_is_told_while_the_broker_is_made_anew(
    seat: Seat, make: Callable[[], Made], message: Callable[..., Any]
) -> None:
    seat.pass_s()
    one = make()
    slave = one.slave(2)
    one.parts.store.put([message()], one.parts.now_ms)
    state = one.controlled.log_state()
    one.controlled.rest()
    slave.ended("the master stops")
    assert seat.controller.in_sync == {1, 2}, "it is to take over"
    one.close()
    one.controlled.rest()
    assert seat.session.log_state() == state
