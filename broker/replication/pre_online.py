# SPDX-License-Identifier: Apache-2.0
"""Before a broker is online, with enableSlaveActingMaster and several totalReplicas.

A master that comes back knows less than the slave that has acted for it: consumers have gone on. So
it is not known to name servers, and delivers nothing, before this has been done with each slave
that a name server names: the slave is told where the master is, it connects, and the master takes
the offsets and the progress of delay levels that are farther than its own. A slave first asks its
master where it serves slaves, and connects. Whoever finds nobody is online at once. It is tried
each second; what keeps it is logged once.

The original takes the slave's tables if their version is not smaller, and so goes back where the
slave's copy was some seconds old. Here each offset counts for itself, and none goes back, nor
beyond the end of its queue. Timer messages that a slave of ours has sent to other masters meanwhile
are passed over; what an original slave says of them is not taken, since it gives up what nobody
takes, and so they are delivered again.

Java: BrokerPreOnlineService.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from txrocketmq.broker.cluster.members import Addresses, Members, others
from txrocketmq.broker.cluster.outer_api import Identity
from txrocketmq.broker.cluster.registration import Registration
from txrocketmq.broker.delays.delay_offsets import DelayOffsets
from txrocketmq.broker.replication.acting import MASTER_ID, Acting
from txrocketmq.broker.replication.config_copy import Invoke
from txrocketmq.broker.replication.copied_progress import read_delay_offsets, read_offsets
from txrocketmq.broker.replication.copied_table import WRONG, CopyError
from txrocketmq.broker.replication.master import Master
from txrocketmq.broker.replication.slave import Slave
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.timers.timer_check import TimerProgress
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.timer.timers import Timers
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import SECOND_MS, Life, WalkBeat
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import Header, NoHeader
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from txrocketmq.remoting.primitives.networks import is_host_and_port
from txrocketmq.remoting.protocol import offset as offset_calls
from txrocketmq.remoting.protocol.operations import admin, ha
from txrocketmq.remoting.protocol.operations.ha import ExchangeHAInfoRequestHeader

TIMEOUT_MS: Final = 3_000
HANDSHAKE_MS: Final = 10_000
"""How long a connection of a slave is waited for before the slave is told again."""


class _NotYetOnline(Exception):
    """Why it is not online yet."""


@dataclass(kw_only=True)
class PreOnline:
    """Brings the broker online. From the beginning on it is isolated, if there is something to do.

    `slave` is None on a master.
    """

    config: BrokerConfig
    acting: Acting
    registration: Registration
    members: Members
    master: Master
    slave: Slave | None
    offsets: ConsumerOffsets
    delay_offsets: DelayOffsets
    timers: Timers

    _invoke: Invoke | None = field(init=False, default=None)
    _identity: Identity | None = field(init=False, default=None)
    _is_under_way: bool = field(init=False, default=False)
    _done: set[str] = field(init=False, default_factory=set)
    """The addresses of slaves from which everything has been taken."""
    _told: dict[str, int] = field(init=False, default_factory=dict)
    """When brokers were told, or asked, about replication last, by the steady clock."""
    _why: str = field(init=False, default="")

    def __post_init__(self) -> None:
        """Isolates the broker, unless it has nobody to wait for."""
        config, replicas = self.config, self.master.store.config.total_replicas
        self.acting.is_isolated = self.registration.is_held = (
            config.enable_slave_acting_master
            and replicas > 1
            and not config.skip_pre_online
            and bool(config.namesrv_addr)
        )

    def begin(self, invoke: Invoke, identity: Identity) -> None:
        """Begins; requests are sent by this."""
        self._invoke, self._identity = invoke, identity

    def life(self) -> Life:
        """It is tried every second until it is done."""
        if not self.acting.is_isolated:
            return Life("coming online")
        beat = WalkBeat(SECOND_MS, "coming online", lambda _, steady_ms: self._attempt(steady_ms))
        return Life("coming online", beats=(beat,))

    def _attempt(self, steady_ms: int) -> Steps[None] | None:
        if not self.acting.is_isolated or self._is_under_way or self._invoke is None:
            return None
        self._is_under_way = True
        return self._try(steady_ms)

    def _try(self, steady_ms: int) -> Steps[None]:
        try:
            yield from self._come_online(steady_ms)
        except _NotYetOnline as why:
            if str(why) != self._why:
                self._why = str(why)
                notices.not_online(self._why)
        finally:
            self._is_under_way = False

    def _come_online(self, steady_ms: int) -> Steps[None]:
        asked: list[Addresses | None] = []

        def wait(_: object, then: Callable[[], None]) -> None:
            def answered(found: Addresses | None) -> None:
                asked.append(found)
                then()

            self.members.ask(answered)

        yield wait
        if asked[0] is None:
            raise _NotYetOnline("no name server says which brokers of its name there are")
        found = others(asked[0], self._identity)
        if self.slave is None:
            yield from self._as_master(found, steady_ms)
            self._is_online(MASTER_ID)
            return
        if MASTER_ID in found:
            yield from self._as_slave(self.slave, found[MASTER_ID], steady_ms)
        self._is_online(min(found, default=self.config.broker_id))

    def _is_online(self, min_id: int) -> None:
        notices.is_online()
        self.acting.comes_online(min(min_id, self.config.broker_id))
        self.registration.release()
        self.members.beat()

    # --- a slave ---

    def _as_slave(self, slave: Slave, address: str, steady_ms: int) -> Steps[None]:
        """Waits until the master at this address is followed."""
        if slave.is_following:
            return
        if self._is_to_be_told(address, steady_ms):
            header = yield from self._ask(
                address, ha.EXCHANGE_BROKER_HA_INFO, ExchangeHAInfoRequestHeader()
            )
            told = None if header is None else header.master_ha_address
            if not told:
                return  # it serves no slaves
            if not is_host_and_port(told):
                raise _NotYetOnline(f"the master {address} says that it serves slaves at {told!r}")
            self._told[address] = steady_ms
            slave.master_is_back(told, address)
        raise _NotYetOnline(f"it does not follow the master {address} yet")

    # --- a master ---

    def _as_master(self, found: Addresses, steady_ms: int) -> Steps[None]:
        """Waits for each slave to connect, and takes over what it knows."""
        if not self.master.address:
            return  # no slaves are served
        for number, (_, address) in enumerate(sorted(found.items()), 1):
            if address in self._done:
                continue
            yield from self._tell(address, steady_ms)
            if not self._is_connected(address, number):
                raise _NotYetOnline(f"the slave {address} has not connected yet")
            yield from self._take(address)
            self._done.add(address)

    def _is_connected(self, address: str, number: int) -> bool:
        """Whether a slave has connected, or as many as were told, if its address is another."""
        hosts = self.master.replicas.hosts()
        return address.rpartition(":")[0].strip("[]") in hosts or len(hosts) >= number

    def _tell(self, address: str, steady_ms: int) -> Steps[None]:
        if not self._is_to_be_told(address, steady_ms):
            return
        own = "" if self._identity is None else self._identity.address
        header = ExchangeHAInfoRequestHeader(
            master_ha_address=self.master.address,
            master_flush_offset=self.master.start_offset,
            master_address=own,
        )
        yield from self._ask(address, ha.EXCHANGE_BROKER_HA_INFO, header)
        self._told[address] = steady_ms

    def _is_to_be_told(self, address: str, steady_ms: int) -> bool:
        told_ms = self._told.get(address)
        return told_ms is None or steady_ms - told_ms >= HANDSHAKE_MS

    def _take(self, address: str) -> Steps[None]:
        """Takes over offsets and progress of a slave where they are farther than here."""
        store = self.master.store
        reply = yield from self._reply(address, offset_calls.GET_ALL_DELAY_OFFSET, NoHeader())
        try:
            levels, _ = read_delay_offsets(reply, self.delay_offsets)
            reply = yield from self._reply(
                address, offset_calls.GET_ALL_CONSUMER_OFFSET, NoHeader()
            )
            held, _ = yield from read_offsets(reply, self.offsets)
        except (CopyError, *WRONG) as error:
            raise _NotYetOnline(
                f"the slave {address} does not say how far it is: {error}"
            ) from None
        for level, offset in levels.items():
            reached = min(offset, store.max_offset(SCHEDULE_TOPIC, level - 1))
            if reached > (self.delay_offsets.get(level) or 0):
                self.delay_offsets.set(level, reached)
        count = 0
        for key, queues in held.items():
            count += self.offsets.advance(key, self._bounded(key, queues))
            yield
        yield from self._take_timers(address)
        notices.took_over(address, count)

    def _take_timers(self, address: str) -> Steps[None]:
        """Passes over timer messages that a slave has sent elsewhere, if any may wait here."""
        if not self.timers.is_open or not self.master.store.max_offset(TIMER_TOPIC, 0):
            return
        outcome = yield from self._outcome(address, admin.GET_TIMER_CHECK_POINT, NoHeader())
        if not isinstance(outcome, Reply):
            raise _NotYetOnline(f"the broker {address} does not answer: {outcome}")
        progress = TimerProgress.decode(outcome.body_bytes)
        if outcome.code == ResponseCode.SUCCESS and progress is not None:
            self.timers.take_over(progress)

    def _bounded(self, key: str, queues: Mapping[int, int]) -> dict[int, int]:
        """Offsets that are not beyond the ends of their queues."""
        topic = key.partition("@")[0]
        end = self.master.store.max_offset
        return {each: min(offset, end(topic, each)) for each, offset in queues.items()}

    # --- questions ---

    def _ask(self, address: str, call: Call[Any, Any], header: Header) -> Steps[Any]:
        """Returns the header of an answer."""
        return (yield from self._reply(address, call, header)).header

    def _outcome(self, address: str, call: Call[Any, Any], header: Header) -> Steps[Any]:
        if self._invoke is None:
            raise _NotYetOnline("it has not started")
        pending = self._invoke(address, call, header, timeout_ms=TIMEOUT_MS)
        if not pending.done:
            yield lambda _, then: pending.then(lambda _: then())
        return pending.outcome

    def _reply(self, address: str, call: Call[Any, Any], header: Header) -> Steps[Reply[Any]]:
        outcome = yield from self._outcome(address, call, header)
        if not isinstance(outcome, Reply):
            raise _NotYetOnline(f"the broker {address} does not answer: {outcome}")
        if outcome.code != ResponseCode.SUCCESS:
            raise _NotYetOnline(
                f"the broker {address} answers {call.name} with code {outcome.code}:"
                f" {outcome.remark or ''!s:.200}"
            )
        return outcome
