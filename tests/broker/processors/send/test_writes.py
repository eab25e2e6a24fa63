# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import STORE_HOST, Parts
from tests.broker.processors.sends import Sending
from tests.fakes import FakePeer
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.processors.send.send_answers import SendAnswers
from txrocketmq.broker.processors.send.send_checks import SendChecks
from txrocketmq.broker.processors.send.writes import (
    MOST_WORK,
    GoOn,
    Later,
    Outcome,
    Writes,
    ends_runs,
    writes,
)
from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus
from txrocketmq.remoting.call import Buffer, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Registry, Run
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.protocol import pop, send, transaction

FIRST, SECOND = transaction.END_TRANSACTION, pop.ACK_MESSAGE


class Settled:
    """Remembers how the message of a request was stored."""

    def __init__(self) -> None:
        self.statuses: list[PutStatus] = []

    def settled(self, status: PutStatus) -> Reply[Any] | Exception:
        self.statuses.append(status)
        return Reply(remark=status.name)


class MadeUp:
    """A processor whose requests write what their bodies say."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.settlement = Settled()
        self.waiting: list[GoOn] = []
        self.ends: list[Any] = []
        self.work = 1

    @ends_runs(FIRST, SECOND)
    def end_run(self, refused: Any, now_ms: int) -> None:
        self.ends.append((None if refused is None else sorted(refused), now_ms))

    @writes(FIRST, SECOND)
    def read_one(
        self,
        run: Run,
        commands: Sequence[RemotingCommand],
        messages: list[PutMessage],
        outcomes: list[Outcome],
    ) -> int:
        command, text = commands[0], commands[0].body.decode()
        self.read.append(text)
        run.work += self.work
        if text == "later" and len(self.waiting) < 1:
            outcomes.append(Outcome(command, 0, 0, instead=Later(self.waiting.append)))
        elif text == "busy":
            outcomes.append(Outcome(command, 0, 0, instead=Later(self.refuse)))
        elif text == "wrong":
            error = ResponseError(ResponseCode.MESSAGE_ILLEGAL, "wrong")
            outcomes.append(Outcome(command, 0, 0, instead=error))
        elif text == "broken":
            raise ZeroDivisionError
        else:
            body = bytes(5_000_000) if text == "long" else command.body
            put = InnerMessage("T", 0, body, 1, STORE_HOST, STORE_HOST).to_put()
            outcomes.append(Outcome(command, len(messages), 1, instead=self.settlement))
            messages.append(put)
        return 1

    def refuse(self, go_on: GoOn) -> None:
        go_on(0, ResponseError(ResponseCode.SYSTEM_BUSY, "busy"))


class Rig:
    """Serves runs, and remembers the answers and how often something was put."""

    def __init__(self, parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parts = parts
        self.made_up = MadeUp()
        checks = SendChecks(parts.config, parts.topics, parts.store)
        self.writes = Writes(parts.intake, checks, SendAnswers(STORE_HOST), self.made_up)
        self.puts: list[int] = []
        self.answers: list[str] = []
        self.peer = FakePeer()
        put = parts.intake.put

        def counted(messages: Sequence[PutMessage], now_ms: int) -> Any:
            self.puts.append(len(messages))
            return put(messages, now_ms)

        monkeypatch.setattr(parts.intake, "put", counted)

    def run(self, *texts: str) -> Run:
        commands = [
            RemotingCommand((FIRST, SECOND)[at % 2].code, body=text.encode())
            for at, text in enumerate(texts)
        ]

        def answer(_: Any, __: Any, outcome: Reply[Any] | Exception) -> list[Buffer]:
            error = outcome if isinstance(outcome, Exception) else outcome.remark
            self.answers.append(str(error))
            return [b"answer"]

        return Run(self.peer, commands, self.parts.now_ms, answer)


@pytest.fixture
def rig(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> Rig:
    parts.topic("T")
    return Rig(parts, monkeypatch)


def test_requests_of_all_kinds_share_one_write_and_are_answered_in_order(rig: Rig) -> None:
    out = rig.writes.serve(rig.run("a", "wrong", "b"))
    assert len(out) == 3
    assert rig.puts == [2]
    assert ["wrong" in text for text in rig.answers] == [False, True, False]
    assert rig.made_up.ends == [([], rig.parts.now_ms)]


def test_what_the_store_refuses_is_told_to_those_whose_message_it_was(rig: Rig) -> None:
    rig.writes.serve(rig.run("a", "long", "b"))
    ok = PutStatus.PUT_OK
    assert rig.made_up.settlement.statuses == [ok, PutStatus.MESSAGE_ILLEGAL, ok]
    assert rig.made_up.ends == [([1], rig.parts.now_ms)]


def test_a_run_ends_when_there_was_enough_to_do(rig: Rig) -> None:
    rig.made_up.work = MOST_WORK // 2
    run = rig.run("a", "b", "c")
    rig.writes.serve(run)
    assert rig.made_up.read == ["a", "b"]
    assert len(run.commands) == 2


def test_what_costs_nothing_ends_no_run_and_is_told_to_nobody(rig: Rig) -> None:
    rig.made_up.work = 0
    rig.writes.serve(rig.run(*["a"] * (2 * MOST_WORK)))
    assert rig.puts == [2 * MOST_WORK]
    assert rig.made_up.ends == []


def test_a_run_that_fails_is_over_as_well(rig: Rig) -> None:
    with pytest.raises(ZeroDivisionError):
        rig.writes.serve(rig.run("a", "broken"))
    assert rig.puts == []
    assert rig.made_up.ends == [(None, rig.parts.now_ms)]


def test_a_request_that_has_to_wait_is_served_alone_afterwards(rig: Rig) -> None:
    assert len(rig.writes.serve(rig.run("a", "later", "b"))) == 2
    (go_on,) = rig.made_up.waiting
    go_on(rig.parts.now_ms + 5, None)
    assert rig.puts == [2, 1]
    assert rig.peer.written == [b"answer"]
    assert rig.made_up.ends[-1] == ([], rig.parts.now_ms + 5)


def test_a_request_that_waited_in_vain_is_told_why(rig: Rig) -> None:
    rig.writes.serve(rig.run("later"))
    rig.made_up.waiting[0](rig.parts.now_ms, ResponseError(ResponseCode.SYSTEM_ERROR, "no disk"))
    assert "no disk" in rig.answers[0]
    assert rig.puts == []


def test_a_request_that_may_not_wait_is_refused_at_once(rig: Rig) -> None:
    assert rig.writes.serve(rig.run("busy", "a")) == [b"answer"]
    assert ["busy" in text for text in rig.answers] == [True, False]
    assert rig.peer.written == [b"answer"]


def test_every_code_that_writes_in_runs_has_the_same_handler(parts: Parts) -> None:
    registry = Registry(*all_processors(parts))
    wanted: list[Any] = [
        send.SEND_MESSAGE, send.SEND_MESSAGE_V2, send.SEND_BATCH_MESSAGE,
        transaction.END_TRANSACTION, pop.ACK_MESSAGE,
    ]  # fmt: skip
    handlers: dict[int, Callable[..., Any]] = registry.runs()
    assert sorted(handlers) == sorted(call.code for call in wanted)
    assert len({id(handler) for handler in handlers.values()}) == 1


def send_of(body: bytes, topic: str = "T", **properties: str) -> RemotingCommand:
    fields = {
        "a": "p", "b": topic, "c": "TBW102", "d": "4", "e": "1", "f": "0", "g": "1", "h": "0",
        "i": encode_properties({"UNIQ_KEY": "K1", **properties}),
    }  # fmt: skip
    return RemotingCommand(send.SEND_MESSAGE_V2.code, fields, body)


def test_nothing_is_stored_for_who_would_wait_for_too_few_brokers(tmp_path: Path) -> None:
    sending = Sending(tmp_path, broker_role="SYNC_MASTER", in_sync_replicas=2)
    sending.parts.topic("T")
    sending.parts.store.commit.members = 1
    waiting = send_of(b"1")
    others = send_of(b"2", WAIT="false"), send_of(b"4", WAIT="false")
    answers = sending.serve([waiting, others[0], send_of(b"3", "New"), others[1]])
    refused = ResponseCode.SYSTEM_ERROR, "in-sync replicas not enough"
    stored = ResponseCode.SUCCESS, None
    assert [(each.code, each.remark) for each in answers] == [refused, stored, refused, stored]
    assert [each.body for each in sending.stored()] == [b"2", b"4"]
    assert sending.parts.topics.get("New") is None, "what is refused leaves nothing"
    assert (answers[3].ext_fields or {})["queueOffset"] == "1"

    sending.parts.store.commit.members = None
    sending.serve([waiting])
    assert len(sending.stored()) == 3
    sending.close()
