# SPDX-License-Identifier: Apache-2.0
"""What a controller means for the parts of a broker, from one start to the next.

A broker is made for a role: before a controller has named a master it is a slave that follows
nobody and registers nowhere, so it takes no message. With another master, or another role, it is
stopped and made anew (process.py); the session with the controllers goes on. So nothing in the
broker has to change its role while it runs. The epochs are made to agree with the log when the
store is open: a master begins its epoch where its log ends.

Java: changeToMaster and changeToSlave in ReplicasManager and AutoSwitchHAService.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from txrocketmq.broker.cluster.registration import Registration
from txrocketmq.broker.controller.session import ControllerSession, InSync, LogState, Term
from txrocketmq.broker.replication.acting import AskHa
from txrocketmq.broker.replication.master import Master
from txrocketmq.broker.replication.slave import Slave
from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.log.commit_point import Policy, policy_here
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.replication.epochs import OPEN_END, Epoch, EpochTable
from txrocketmq.broker.store.replication.follower import Follower
from txrocketmq.broker.store.replication.in_sync import BrokersInSync, InSyncPolicy
from txrocketmq.broker.store.replication.term_follower import TermFollower
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import SECOND_MS, Beat, Life
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.primitives.networks import is_host_and_port
from txrocketmq.remoting.protocol.body.ha import EpochEntry, EpochEntryCache
from txrocketmq.remoting.protocol.operations.ha import ExchangeHAInfoRequestHeader


class Controlled:
    """Joins one broker with the session; the term is that for which the broker was made."""

    def __init__(self, session: ControllerSession, steady_clock: Callable[[], int]) -> None:
        self.session = session
        self.term: Term | None = session.term
        self._steady_ms = steady_clock
        self._registration: Registration | None = None
        self._ask_ha: AskHa | None = None
        self._follower: TermFollower | None = None
        self._is_asking = self._is_proposing = self._is_resting = False
        self._next_ms = 0
        """Nobody is proposed before this time, after a proposal in vain."""

    # --- parts ---

    def policy(self, config: StoreConfig) -> Policy | None:
        """What senders wait for; None where it is as always."""
        if not self.is_master:
            return None
        return InSyncPolicy(config, policy_here(config), lambda: self.brokers)

    def serve(self, store: MessageStore, files: OsFiles) -> BrokersInSync:
        """Makes what is known of the log's epochs, and of the brokers in sync."""
        config = store.config
        self._store = store
        self.epochs = EpochTable(
            files, config.beside(config.store_path_epoch_file, "epochFileCheckpoint")
        )
        own_id = -1 if self.term is None else self.term.broker_id
        self.brokers = BrokersInSync(config, self.epochs, lambda: store.max_physical_offset, own_id)
        return self.brokers

    def new_follower(self, steady_ms: int) -> Follower:
        """What follows the master on one connection."""
        store, broker_id = self._store, self.session.identity.broker_id
        self._follower = TermFollower(
            store, store.config, steady_ms, self.epochs, -1 if broker_id is None else broker_id
        )
        return self._follower

    def register(self, registration: Registration) -> None:
        """Has name servers told of the epoch, and of nothing before there is one."""
        self._registration = registration
        registration.is_held = self.term is None
        registration.epoch = 0 if self.term is None else self.term.epoch

    def life(self, master: Master, slave: Slave | None) -> Life:
        """A master looks who is in sync; a slave asks where its master serves slaves."""
        if slave is not None:
            return Life("controller", beats=(Beat(SECOND_MS, lambda: self._look_for(slave)),))
        master.tell_slaves(self.look)
        period_ms = self.session.config.check_sync_state_set_period
        return Life("controller", beats=(Beat(period_ms, self.look),))

    # --- the term ---

    @property
    def is_master(self) -> bool:
        """Whether this broker was made as master."""
        return self.term is not None and self.term.is_master

    @property
    def master_address(self) -> str:
        """Where the master serves requests; empty before there is one."""
        return "" if self.term is None or self.is_master else self.term.master_address

    def fits(self, term: Term) -> bool:
        """Whether the broker need not be made anew for a newer term, of which it then hears."""
        own = self.term
        if own is None or own._replace(epoch=term.epoch) != term:
            return False
        self.term = term
        if self.is_master:
            self.epochs.begin(Epoch(term.epoch, self._store.max_physical_offset))
        if self._registration is not None:
            self._registration.epoch = term.epoch
            self._registration.register(force=True)
        return True

    def opened(self) -> None:
        """Makes the epochs agree with the log, which is open now; raises ValueError, OSError."""
        self.epochs.load()
        end = self._store.max_physical_offset
        self.epochs.cut(end)
        if self.term is not None and self.is_master:
            self.epochs.begin(Epoch(self.term.epoch, end))
            self.heard_in_sync(self.session.in_sync)

    def begin(self, address: str, ask_ha: AskHa) -> None:
        """Begins: the broker listens at this address."""
        self._ask_ha = ask_ha
        self.session.lives_at(address)
        self.session.log_state = self.log_state

    def log_state(self) -> LogState:
        """How far the log is."""
        store, last = self._store, self.epochs.last
        end, confirmed = store.max_physical_offset, 0
        if self.is_master:
            confirmed = self.brokers.confirmed
        elif self._follower is not None:
            confirmed = self._follower.confirmed
        return LogState(-1 if last is None else last.number, end, confirmed)

    def rest(self) -> None:
        """Hears that the broker stops: its slaves leave because of that, and stay in sync, as one
        of them is to take over. Controllers go on being told the last state.
        """
        if not self._is_resting:
            state, self._is_resting = self.log_state(), True
            self.session.log_state = lambda: state

    def epoch_cache(self) -> EpochEntryCache:
        """The epochs of the log, as administrators ask for them."""
        config, entries = self.session.config, self.epochs.entries
        ends = [*(each.start for each in entries[1:]), OPEN_END]
        return EpochEntryCache(
            cluster_name=config.broker_cluster_name,
            broker_name=config.broker_name,
            broker_id=config.broker_id if self.term is None else self.term.broker_id,
            epoch_list=[
                EpochEntry(epoch=each.number, start_offset=each.start, end_offset=end)
                for each, end in zip(entries, ends, strict=False)
            ],
            max_offset=self._store.max_physical_offset,
        )

    # --- a master ---

    def heard_in_sync(self, found: InSync) -> None:
        """Hears whom the controller takes to be in sync."""
        if not self.is_master:
            return
        self.brokers.agreed(found.ids)
        self._store.commit.members = len(found.ids)
        notices.in_sync(found.ids)
        self._store.confirmed()

    def look(self) -> None:
        """Proposes another set of brokers in sync, if the present one is not right."""
        brokers, steady_ms = self.brokers, self._steady_ms()
        if self._is_proposing or self._is_resting or not self.is_master:
            return
        if steady_ms < self._next_ms:
            return
        wanted = brokers.wanted(steady_ms)
        if wanted == brokers.ids:
            return
        self._is_proposing, brokers.proposed = True, wanted

        def done() -> None:
            self._is_proposing, brokers.proposed = False, None
            if brokers.ids != wanted:
                self._next_ms = steady_ms + SECOND_MS
            self._store.confirmed()

        self.session.propose(wanted, done)

    # --- a slave ---

    def _look_for(self, slave: Slave) -> None:
        """Asks the master where it serves slaves, as long as it is not followed."""
        address, ask = self.master_address, self._ask_ha
        if not address or ask is None or self._is_asking or slave.is_following:
            return
        self._is_asking = True

        def answered(outcome: Reply[Any] | Exception) -> None:
            self._is_asking = False
            header = None if isinstance(outcome, Exception) else outcome.header
            told = None if header is None else header.master_ha_address
            if told and is_host_and_port(told):
                slave.told_master(told, address)

        ask(address, ExchangeHAInfoRequestHeader()).then(answered)
