# SPDX-License-Identifier: Apache-2.0
"""A controller that is a table in the test, and the session of a broker with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fakes import NOW_MS
from txrocketmq.broker.controller.identity_file import IdentityFile
from txrocketmq.broker.controller.session import ControllerSession, InSync, LogState, Term
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.protocol.body.ha import SyncStateSet
from txrocketmq.remoting.protocol.operations import ha

ONE, TWO = "10.0.0.1:9878", "10.0.0.2:9878"
BROKER = "10.0.0.5:10911"
OTHER = "10.0.0.6:10911"


class FakeController:
    """Two controllers, of which one is the leader; what is asked is remembered."""

    def __init__(self) -> None:
        self.leader: str | None = TWO
        self.down: set[str] = set()
        self.asked: list[tuple[str, int]] = []
        self.beats: list[tuple[str, Any]] = []
        self.headers: list[Any] = []
        self.next_id = 1
        self.refuses: dict[int, int] = {}
        self.master: tuple[int, str, int] | None = None
        """The id, the address and the epoch of the master."""
        self.in_sync, self.version = frozenset({1}), 1
        self.held: list[PendingReply] | None = None
        """Questions that are not answered yet, while this is a list."""

    def codes(self) -> list[int]:
        """What was asked since this was called last."""
        found, self.asked = [code for _, code in self.asked], []
        return found

    def invoke_oneway(self, address: str, call: Any, header: Any, body: bytes = b"") -> bool:
        self.beats.append((address, header))
        return True

    def invoke(
        self, address: str, call: Any, header: Any, body: bytes = b"", *, timeout_ms: int
    ) -> PendingReply:
        self.asked.append((address, call.code))
        self.headers.append(header)
        pending = PendingReply()
        if self.held is not None:
            self.held.append(pending)
        else:
            pending.resolve(self._answer(address, call.code, header, body))
        return pending

    def _answer(self, address: str, code: int, header: Any, body: bytes) -> Reply[Any] | Exception:
        if address in self.down:
            return ConnectError("nobody listens there")
        if code == RequestCode.CONTROLLER_GET_METADATA_INFO:
            return Reply(ha.GetMetaDataResponseHeader(controller_leader_address=self.leader))
        if address != self.leader:
            return Reply(code=ResponseCode.CONTROLLER_NOT_LEADER)
        if code in self.refuses:
            return Reply(code=ResponseCode(self.refuses[code]), remark="no")
        if code == RequestCode.CONTROLLER_GET_NEXT_BROKER_ID:
            return Reply(ha.GetNextBrokerIdResponseHeader(next_broker_id=self.next_id))
        if code == RequestCode.CONTROLLER_APPLY_BROKER_ID:
            return Reply(ha.ApplyBrokerIdResponseHeader())
        if code == RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET:
            self.version += 1
            self.in_sync = SyncStateSet.decode(body).sync_state_set
            return Reply(ha.AlterSyncStateSetResponseHeader(), body=self._set())
        if code == RequestCode.CONTROLLER_ELECT_MASTER and self.master is None:
            self.master = header.broker_id, BROKER, 1
        header = {
            RequestCode.CONTROLLER_REGISTER_BROKER: ha.RegisterBrokerToControllerResponseHeader,
            RequestCode.CONTROLLER_ELECT_MASTER: ha.ElectMasterResponseHeader,
            RequestCode.CONTROLLER_GET_REPLICA_INFO: ha.GetReplicaInfoResponseHeader,
        }[RequestCode(code)]()
        if self.master is None:
            return Reply(header)
        number, where, epoch = self.master
        values = {"master_broker_id": number, "master_address": where, "master_epoch": epoch}
        return Reply(type(header)(**values), body=self._set())

    def _set(self) -> bytes:
        return SyncStateSet(sync_state_set=self.in_sync, sync_state_set_epoch=self.version).encode()


class Seat:
    """A session, and the time that passes for it."""

    def __init__(self, folder: Path, controller: FakeController) -> None:
        self.controller = controller
        self.steady_ms = 0
        self.terms: list[Term] = []
        self.sets: list[InSync] = []
        self.path = folder / "brokerIdentity"
        self.restart()

    def restart(self) -> None:
        """Begins as a process does."""
        config = BrokerConfig(
            broker_name="pair",
            broker_cluster_name="C",
            enable_controller_mode=True,
            controller_addr=f"{ONE};{TWO}",
        )
        identity = IdentityFile(self.path, "C", "pair")
        identity.load()
        self.session = ControllerSession(
            config,
            identity,
            self.controller,
            lambda: NOW_MS,
            BROKER,
            lambda: LogState(3, 700, 600),
            self.terms.append,
            self.sets.append,
        )

    def pass_s(self, seconds: int = 1) -> None:
        """Lets seconds pass."""
        for _ in range(seconds):
            self.session.tick(self.steady_ms)
            self.steady_ms += 1_000
