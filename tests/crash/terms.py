# SPDX-License-Identifier: Apache-2.0
"""A pair whose master is chosen by a controller, which is a table in the test.

It knows the term and the brokers in sync. Only one of these can become master, and then it is alone
in sync, until the other one has followed it. The master proposes another set, and the controller
agrees at once or later.
"""

from __future__ import annotations

from random import Random
from typing import cast

from tests.crash.ledger import Ledger
from tests.crash.replicas import Node, Pair
from txrocketmq.broker.store.formats.config import SYNC_MASTER, StoreConfig
from txrocketmq.broker.store.log.commit_point import policy_here
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.replication.epochs import Epoch, EpochTable
from txrocketmq.broker.store.replication.follower import Follower
from txrocketmq.broker.store.replication.in_sync import BrokersInSync, InSyncPolicy
from txrocketmq.broker.store.replication.replicas import Replicas
from txrocketmq.broker.store.replication.term_follower import TermFollower


class TermNode(Node):
    """One machine, with the id that the controller has given it."""

    def __init__(self, pair: TermPair, number: int) -> None:
        super().__init__(pair)
        self._terms = pair
        self.number = number

    def open(self, config: StoreConfig) -> None:
        """Opens the store, and makes the epochs agree with it."""
        pair, is_master = self._terms, config.broker_role == SYNC_MASTER
        self.epochs = EpochTable(self.disk, "/store/epochFileCheckpoint")
        self.brokers = BrokersInSync(config, self.epochs, lambda: self.end, self.number)
        policy = InSyncPolicy(config, policy_here(config), lambda: self.brokers)
        self.store = MessageStore(config, files=self.disk, policy=policy if is_master else None)
        self.said = self.store.load(pair.now_ms, pair.steady_ms).warnings
        self.epochs.load()
        self.epochs.cut(self.end)
        if is_master:
            self.epochs.begin(Epoch(pair.term, self.end))
            self.brokers.agreed(pair.in_sync)
        self.replicas = Replicas(self.store, config, self.store.commit, self.brokers)


class TermPair(Pair):
    """A master and its slave, and what the controller knows of them."""

    def __init__(self, ledger: Ledger, random: Random, now_ms: int, *, is_strict: bool) -> None:
        self.term = 1
        self.in_sync = frozenset({1})
        super().__init__(ledger, random, now_ms, is_strict=is_strict)

    def new_nodes(self) -> tuple[Node, Node]:
        """Makes both machines."""
        return TermNode(self, 1), TermNode(self, 2)

    def new_follower(self, store: MessageStore) -> Follower:
        """What follows the master on one connection."""
        slave = self._slave
        return TermFollower(store, store.config, self.steady_ms, slave.epochs, slave.number)

    @property
    def _master(self) -> TermNode:
        return cast("TermNode", self.master)

    @property
    def _slave(self) -> TermNode:
        return cast("TermNode", self.slave)

    def pass_bytes(self) -> None:
        """Lets bytes pass; the controller may agree to another set then."""
        super().pass_bytes()
        self.propose(surely=False)

    def disconnect(self) -> None:
        """Ends the connection: the slave is no more in sync, as soon as the controller agrees."""
        was_connected = self.link is not None
        super().disconnect()
        if was_connected:
            self.propose(surely=True)

    def propose(self, *, surely: bool) -> None:
        """Has the controller agree to who is in sync, surely or perhaps."""
        brokers = self._master.brokers
        wanted = brokers.wanted(self.steady_ms)
        brokers.proposed = None if wanted == brokers.ids else wanted
        if brokers.proposed is not None and (surely or self.random.random() < 0.3):
            self.in_sync, brokers.proposed = wanted, None
            brokers.agreed(wanted)
        self.master.store.confirmed()

    @property
    def is_safe(self) -> bool:
        """Whether the controller would choose the slave."""
        return self._slave.number in self.in_sync

    def lose_master(self, *, loses_power: bool, both: bool = False) -> None:
        """The controller chooses the slave, and the old master comes back as its slave."""
        for _ in range(100):
            if self.is_safe:
                break
            self.pass_bytes()
            self.slave.flush()
            self.tick(50)
        assert self.is_safe, "the slave is in sync"
        self.link = None  # the master is gone before it can say more
        self.term += 1
        self.in_sync = frozenset({self._slave.number})
        super().lose_master(loses_power=loses_power, both=both)
