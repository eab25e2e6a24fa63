# SPDX-License-Identifier: Apache-2.0
"""A broker and its controllers: it enrols, tells them that it lives, and hears who is master.

At first the leader among the controllers is looked for, which serves all other requests. The broker
gets an id there, once, says at each start where it is, and asks for an election if there is no
master. Then it asks again and again who is master. A controller also tells it when that changes;
anybody could do that, so it is only a reason to ask at once. Signs of life go to all controllers.

A term that is not newer than the known one changes nothing, unless its master has moved. Whatever
fails is tried again in the next second, from the search for the leader on; what is known goes on to
count meanwhile.

Java: ReplicasManager, the part of BrokerOuterAPI for controllers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from txrocketmq.broker.controller.identity_file import IdentityFile
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.work import notices
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.primitives.networks import is_host_and_port
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.ha import SyncStateSet
from txrocketmq.remoting.protocol.operations import ha
from txrocketmq.remoting.protocol.route import BrokerHeartbeatRequestHeader

TIMEOUT_MS: Final = 3_000
NOTIFIED_MS: Final = 200
"""How long after a question for which somebody was the reason another one waits for a tick."""
_MASTER_KNOWN: Final = (ResponseCode.SUCCESS, ResponseCode.CONTROLLER_MASTER_STILL_EXIST)


class ControllerCalls(Protocol):
    """What sends requests: Connections of the remoting."""

    def invoke(
        self, address: str, call: Any, header: Any, body: bytes = b"", *, timeout_ms: int
    ) -> PendingReply:
        """Sends a request to "host:port"."""

    def invoke_oneway(self, address: str, call: Any, header: Any, body: bytes = b"") -> bool:
        """Sends a request that has no answer."""


class Term(NamedTuple):
    """What a controller has decided: who is master, and who this broker is."""

    epoch: int
    master_id: int
    master_address: str
    broker_id: int

    @property
    def is_master(self) -> bool:
        """Whether this broker is the master."""
        return self.master_id == self.broker_id


class InSync(NamedTuple):
    """The ids of the brokers that have all messages, and the version of this set."""

    ids: frozenset[int]
    version: int


class LogState(NamedTuple):
    """How far the log of this broker is."""

    epoch: int
    end: int
    confirmed: int


@dataclass
class ControllerSession:
    """Speaks with controllers; `tick` is to be called every second.

    `address` is where clients reach this broker, and `log_state` says how far it is. `on_term` is
    called with each newer term, and `on_in_sync` with each newer set, while this is the master.
    """

    config: BrokerConfig
    identity: IdentityFile
    asks: ControllerCalls
    now_ms: Callable[[], int]
    address: str = ""
    log_state: Callable[[], LogState] = lambda: LogState(-1, 0, 0)
    on_term: Callable[[Term], object] = lambda _: None
    on_in_sync: Callable[[InSync], object] = lambda _: None

    term: Term | None = field(init=False, default=None)
    """The newest term; None before a controller has named one."""
    in_sync: InSync = field(init=False, default=InSync(frozenset(), -1))
    _leader: str | None = field(init=False, default=None)
    _is_enrolled: bool = field(init=False, default=False)
    _is_asking: bool = field(init=False, default=False)
    _looked_ms: int = field(init=False, default=-(1 << 40))
    _notified_ms: int = field(init=False, default=-(1 << 40))
    _found_ms: int = field(init=False, default=0)
    _why: str = field(init=False, default="")

    @property
    def controllers(self) -> list[str]:
        """The addresses of all controllers."""
        return [each for each in map(str.strip, self.config.controller_addr.split(";")) if each]

    def tick(self, steady_ms: int) -> None:
        """Sends signs of life, and asks what is to be known next."""
        if self._is_enrolled:
            self.beat()
        if steady_ms - self._found_ms >= self.config.sync_controller_metadata_period:
            self._leader = None
        self._go_on(steady_ms)

    def notified(self, steady_ms: int) -> None:
        """Hears that the master may be another one: asks at once, or with the next tick if it was
        told so just before, so that nobody can have it ask all the time.
        """
        self._looked_ms = -(1 << 40)
        if steady_ms - self._notified_ms >= NOTIFIED_MS:
            self._notified_ms = steady_ms
            self._go_on(steady_ms)

    def lives_at(self, address: str) -> None:
        """Hears where clients reach the broker, which the controllers are told."""
        if address != self.address:
            self.address, self._is_enrolled = address, False

    def beat(self) -> None:
        """Tells all controllers that this broker lives, and how far its log is."""
        config, state = self.config, self.log_state()
        header = BrokerHeartbeatRequestHeader(
            cluster_name=config.broker_cluster_name,
            broker_addr=self.address,
            broker_name=config.broker_name,
            broker_id=self.identity.broker_id,
            epoch=state.epoch,
            max_offset=state.end,
            confirm_offset=state.confirmed,
            heartbeat_timeout_mills=config.controller_heart_beat_timeout_mills,
            election_priority=config.broker_election_priority,
        )
        for address in self.controllers:
            self.asks.invoke_oneway(address, route.BROKER_HEARTBEAT, header)

    def _go_on(self, steady_ms: int) -> None:
        """Asks the next question, unless one is open."""
        if self._is_asking:
            return
        if self._leader is None:
            self._find_leader(self.controllers, steady_ms)
        elif self.identity.broker_id is None:
            self._take_id(steady_ms)
        elif not self._is_enrolled:
            self._enrol(steady_ms)
        elif self.term is None:
            self._elect(steady_ms)
        elif steady_ms - self._looked_ms >= self.config.sync_broker_metadata_period:
            self._looked_ms = steady_ms
            self._look(steady_ms)

    def _ask(
        self,
        address: str,
        call: Any,
        header: Any,
        then: Callable[[Reply[Any]], object],
        failed: Callable[[str], object] | None = None,
    ) -> None:
        """Asks a controller; `then` gets any answer that is not about its being no leader."""
        self._is_asking = True

        def answered(outcome: Reply[Any] | Exception) -> None:
            self._is_asking = False
            if isinstance(outcome, Reply) and outcome.code != ResponseCode.CONTROLLER_NOT_LEADER:
                try:
                    then(outcome)
                except (HeaderError, OSError) as error:
                    self._failed(str(error))
                return
            why = f"{address} does not answer {call.name}: {outcome!s}"
            if isinstance(outcome, Reply):
                why = f"{address} is not the leader"
            (failed or self._failed)(why)

        self.asks.invoke(address, call, header, timeout_ms=TIMEOUT_MS).then(answered)

    def _failed(self, why: str) -> None:
        """Hears what went wrong: it is tried again in the next second."""
        self._leader = None
        if why != self._why:
            self._why = why
            notices.controller_failed(why)

    def _goes_well(self) -> None:
        self._why = ""

    # --- who leads, and who this broker is ---

    def _find_leader(self, left: Iterable[str], steady_ms: int) -> None:
        """Asks the controllers, one after another, which of them is the leader."""
        address, *others = left

        def failed(why: str) -> None:
            if others:
                self._find_leader(others, steady_ms)
            else:
                self._failed(why)

        def then(reply: Reply[Any]) -> None:
            leader = reply.header.controller_leader_address if reply.header is not None else None
            if not leader or not is_host_and_port(leader):
                failed(f"{address} does not say which controller is the leader")
                return
            self._leader, self._found_ms = leader, steady_ms
            self._go_on(steady_ms)

        self._ask(address, ha.CONTROLLER_GET_METADATA_INFO, NoHeader(), then, failed)

    def _take_id(self, steady_ms: int) -> None:
        """Gets an id, which is applied for and granted."""
        config, applied = self.config, self.identity.applied
        named = {"cluster_name": config.broker_cluster_name, "broker_name": config.broker_name}
        if applied is None:
            asked = ha.GetNextBrokerIdRequestHeader(**named)

            def found(reply: Reply[Any]) -> None:
                number = None if reply.header is None else reply.header.next_broker_id
                if reply.code != ResponseCode.SUCCESS or number is None or number < 1:
                    self._refused("a number for this broker", reply)
                    return
                code = f"{self.address};{self.now_ms()}{random.randrange(1000):03}"
                self.identity.apply(number, code)
                self._go_on(steady_ms)

            self._ask(self._known_leader, ha.CONTROLLER_GET_NEXT_BROKER_ID, asked, found)
            return
        header = ha.ApplyBrokerIdRequestHeader(
            **named, applied_broker_id=applied.broker_id, register_check_code=applied.code
        )

        def then(reply: Reply[Any]) -> None:
            if reply.code == ResponseCode.SUCCESS:
                self.identity.granted()
                self._go_on(steady_ms)
            elif reply.code == ResponseCode.CONTROLLER_BROKER_ID_INVALID:
                self.identity.refused()
            else:
                self._refused("a number for this broker", reply)

        self._ask(self._known_leader, ha.CONTROLLER_APPLY_BROKER_ID, header, then)

    @property
    def _known_leader(self) -> str:
        return self._leader or ""

    def _refused(self, what: str, reply: Reply[Any]) -> None:
        self._failed(
            f"{self._leader} refuses {what}: {reply.remark or ''!s:.200} (code {reply.code})"
        )

    def _enrol(self, steady_ms: int) -> None:
        """Says where this broker is."""
        config = self.config
        header = ha.RegisterBrokerToControllerRequestHeader(
            cluster_name=config.broker_cluster_name,
            broker_name=config.broker_name,
            broker_id=self.identity.broker_id,
            broker_address=self.address,
            invoke_time=self.now_ms(),
        )

        def then(reply: Reply[Any]) -> None:
            if reply.code != ResponseCode.SUCCESS:
                self._refused("this broker", reply)
                return
            self._is_enrolled = True
            self.beat()
            self._heard(reply)
            self._go_on(steady_ms)

        self._ask(self._known_leader, ha.CONTROLLER_REGISTER_BROKER, header, then)

    # --- who is master ---

    def _elect(self, steady_ms: int) -> None:
        """Has a master chosen, if there is none."""
        config = self.config
        header = ha.ElectMasterRequestHeader(
            cluster_name=config.broker_cluster_name,
            broker_name=config.broker_name,
            broker_id=self.identity.broker_id or -1,
            invoke_time=self.now_ms(),
        )

        def then(reply: Reply[Any]) -> None:
            if reply.code in _MASTER_KNOWN:
                self._heard(reply)
            elif reply.code == ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED:
                self._is_enrolled = False
            else:
                self._refused("to choose a master", reply)

        self._ask(self._known_leader, ha.CONTROLLER_ELECT_MASTER, header, then)

    def _look(self, steady_ms: int) -> None:
        """Asks who is master."""
        header = ha.GetReplicaInfoRequestHeader(broker_name=self.config.broker_name)

        def then(reply: Reply[Any]) -> None:
            if reply.code == ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST:
                self._is_enrolled = False
            elif reply.code != ResponseCode.SUCCESS:
                self._refused("to say who is master", reply)
            elif reply.header is not None and not reply.header.master_address:
                self._elect(steady_ms)
            else:
                self._heard(reply)

        self._ask(self._known_leader, ha.CONTROLLER_GET_REPLICA_INFO, header, then)

    def _heard(self, reply: Reply[Any]) -> None:
        """Hears who is master, and who is in sync with it; raises HeaderError."""
        header, broker_id = reply.header, self.identity.broker_id
        if header is None or broker_id is None or header.master_broker_id is None:
            return
        if header.master_epoch is None or not is_host_and_port(header.master_address or ""):
            return
        self._goes_well()
        term = Term(header.master_epoch, header.master_broker_id, header.master_address, broker_id)
        body = SyncStateSet.decode(reply.body_bytes) if reply.body_bytes else None
        if body is None and term.is_master:
            return  # a master has to know who is in sync
        version = getattr(header, "sync_state_set_epoch", None)
        known = self.term
        is_newer = known is None or term.epoch > known.epoch
        if is_newer:
            self.in_sync = InSync(frozenset(), -1)
        elif known is not None and term == known._replace(master_address=term.master_address):
            is_newer = term != known and not term.is_master  # the master has moved
        if is_newer:
            self.term = term
        if self.term == term and body is not None and term.is_master:
            version = body.sync_state_set_epoch if version is None else version
            self._found_in_sync(InSync(body.sync_state_set | {broker_id}, version))
        if is_newer:
            self.on_term(term)

    def _found_in_sync(self, found: InSync) -> None:
        if found.version > self.in_sync.version:
            self.in_sync = found
            self.on_in_sync(found)

    # --- who is in sync ---

    def propose(self, ids: frozenset[int], then: Callable[[], object]) -> None:
        """As master, has the controller take another set of brokers in sync.

        `then` is called when it has answered, or has not.
        """
        term = self.term
        if term is None or not term.is_master or self._leader is None:
            then()
            return
        header = ha.AlterSyncStateSetRequestHeader(
            broker_name=self.config.broker_name,
            master_broker_id=term.broker_id,
            master_epoch=term.epoch,
            invoke_time=self.now_ms(),
        )
        body = SyncStateSet(
            sync_state_set=frozenset(ids), sync_state_set_epoch=self.in_sync.version
        ).encode()
        self.asks.invoke(
            self._leader,
            ha.CONTROLLER_ALTER_SYNC_STATE_SET,
            header,
            body,
            timeout_ms=TIMEOUT_MS,
        ).then(partial(self._altered, then))

    def _altered(self, then: Callable[[], object], outcome: Reply[Any] | Exception) -> None:
        if isinstance(outcome, Exception) or outcome.code == ResponseCode.CONTROLLER_NOT_LEADER:
            self._leader = None
        elif outcome.code == ResponseCode.SUCCESS:
            try:
                body = SyncStateSet.decode(outcome.body_bytes)
            except HeaderError as error:
                self._failed(str(error))
            else:
                self._found_in_sync(InSync(body.sync_state_set, body.sync_state_set_epoch))
        else:
            self._looked_ms = -(1 << 40)  # this broker may be master no more
        then()
