# SPDX-License-Identifier: Apache-2.0
"""A slave that acts as master: which broker of the name has the smallest id, and what follows.

A name server shows the slave with the smallest id in the place of a master that is gone, for
readers only. This slave hears of it from the list of members, or at once if the name server tells
brokers (NOTIFY_MIN_BROKER_ID_CHANGE). While it acts, consumers stay with it: it does not send them
to a master, it takes their offsets, their locks and their questions for offsets, and it does not
copy tables that would take their progress back. What a message would have to be written for stays
where it is: a slave's log has nothing of its own. So delayed messages, timers and half messages
wait until the master is back, as in the original without enableRemoteEscape. When it is, pulls that
are held are answered, so that consumers go there.

A connection to the master that goes on is kept, even if name servers have lost the master: the
original closes it.

Java: updateMinBroker, onMinBrokerChange, changeSpecialServiceStatus in BrokerController.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from txrocketmq.broker.cluster.members import Addresses, Members
from txrocketmq.broker.replication.slave import Slave
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.log.commit_point import CommitPoint
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import Hears, Life
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.primitives.listeners import tell_all
from txrocketmq.remoting.primitives.networks import is_host_and_port
from txrocketmq.remoting.protocol.operations.ha import ExchangeHAInfoRequestHeader

MASTER_ID: Final = 0

AskHa = Callable[[str, ExchangeHAInfoRequestHeader], PendingReply]
"""Sends EXCHANGE_BROKER_HA_INFO to an address."""


class Acting:
    """Whether this broker acts as master; `slave` is None on a master, which never has to."""

    def __init__(self, config: BrokerConfig, slave: Slave | None) -> None:
        self._config = config
        self._slave = slave
        self._ask_ha: AskHa | None = None
        self.is_isolated = False
        """Whether this broker is not online yet (pre_online.py)."""
        self.min_id = MASTER_ID
        """The smallest id of all brokers of the name that are online."""
        self.on_begin: list[Callable[[], None]] = []
        """Called when this slave begins to act."""
        self.on_master: list[Callable[[], None]] = []
        """Called when a master has come, while this is a slave."""

    def begin(self, ask_ha: AskHa) -> None:
        """Asks masters where they serve slaves by this, from now on."""
        self._ask_ha = ask_ha

    def life(
        self,
        members: Members,
        resume_held: Callable[[], object],
        create_new: Callable[[], object],
        commit: CommitPoint,
    ) -> Life:
        """It hears of the members, and `commit` how many there are. New topics are created when it
        begins to act, and held pulls resumed when a master has come.
        """
        if self._config.enable_slave_acting_master:
            commit.members = 1
        return Life(
            "acting master",
            hears=(
                Hears(members.on_known, self.knows),
                Hears(members.on_known, partial(self._count, commit)),
                Hears(self.on_master, resume_held),
                Hears(self.on_begin, create_new),
            ),
        )

    def _count(self, commit: CommitPoint, members: Addresses) -> None:
        commit.members = len({*members, self._config.broker_id})

    @property
    def acts(self) -> bool:
        """Whether this slave acts as master."""
        return (
            self._slave is not None
            and self._config.enable_slave_acting_master
            and not self.is_isolated
            and self.min_id == self._config.broker_id
        )

    @property
    def has_master(self) -> bool:
        """Whether there is a master, so that clients of this slave can go there."""
        slave = self._slave
        if slave is None or not slave.is_master_known:
            return slave is None
        return self.min_id == MASTER_ID or not self._config.enable_slave_acting_master

    def rests(self) -> bool:
        """Whether waiting messages are not delivered, as the broker is not online yet."""
        return self.is_isolated

    def comes_online(self, min_id: int) -> None:
        """Notes that this broker is online, and the smallest id of its name."""
        before = self.acts
        self.is_isolated = False
        self.min_id = min_id
        self._note(before=before)

    def knows(self, members: Addresses) -> None:
        """Hears from a name server which brokers of the name there are."""
        if members:
            least = min(members)
            self.told(least, members[least])

    def told(self, min_id: int, address: str | None, ha_address: str | None = None) -> None:
        """Hears which broker has the smallest id, where it is, and where it serves slaves."""
        slave = self._slave
        if slave is None or self.is_isolated or not self._config.enable_slave_acting_master:
            return
        if min_id == self.min_id or min_id < MASTER_ID:
            return
        before, self.min_id = self.acts, min_id
        if min_id != MASTER_ID:
            slave.lost_master()
        elif address is not None and is_host_and_port(address):
            self._master_came(slave, address, ha_address)
        self._note(before=before)
        if min_id == MASTER_ID:
            tell_all(self.on_master)

    def _note(self, *, before: bool) -> None:
        if self.acts != before:
            notices.acts(begins=self.acts)
        if self.acts and not before:
            tell_all(self.on_begin)

    def _master_came(self, slave: Slave, address: str, ha_address: str | None) -> None:
        if ha_address and is_host_and_port(ha_address):
            slave.master_is_back(ha_address, address)
            return
        slave.master_is_back(None, address)
        if self._ask_ha is None:
            return

        def answered(outcome: Reply[Any] | Exception) -> None:
            if isinstance(outcome, Exception) or outcome.code != ResponseCode.SUCCESS:
                return  # the next registration is answered with it
            told = outcome.header.master_ha_address if outcome.header is not None else None
            if told and is_host_and_port(told) and self.min_id == MASTER_ID:
                slave.master_is_back(told, address)

        self._ask_ha(address, ExchangeHAInfoRequestHeader()).then(answered)
