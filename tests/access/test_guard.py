# SPDX-License-Identifier: Apache-2.0
"""The guard asks an authority, and says what that says."""

from __future__ import annotations

import pytest

from tests.fakes import FakePeer
from txrocketmq.access.audit import Audit
from txrocketmq.access.authority import Refusal
from txrocketmq.access.guard import AccessGuard
from txrocketmq.access.known import KnownRequests
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.frame.signer import Signer


class Strict:
    code = 16

    def __init__(self) -> None:
        self.hosts: list[str] = []
        self.known = KnownRequests(lambda _: ("topic",))

    def refusal(self, command: RemotingCommand, host: str) -> Refusal | None:
        self.hosts.append(host)
        return None if command.code == 10 else Refusal("no", "because", "me")


def test_what_is_refused_is_told() -> None:
    told: list[str] = []
    authority, peer = Strict(), FakePeer()
    guard = AccessGuard(authority, Audit(told.append, told.append, lambda: 0))
    guard(peer, RemotingCommand(10))
    assert told == []
    with pytest.raises(ResponseError) as refused:
        guard(peer, RemotingCommand(11))
    assert (refused.value.code, refused.value.remark) == (16, "no")
    assert told == ["refused PULL_MESSAGE of the account me at 127.0.0.1: because"]
    assert authority.hosts == ["127.0.0.1"] * 2


def test_what_is_known_is_not_asked_about() -> None:
    authority = Strict()
    guard = AccessGuard(authority, Audit(print, print, lambda: 0))
    fields = {"AccessKey": "me", "topic": "T"}
    signer = Signer("secret")
    fields["Signature"] = signer.signature(fields, b"")
    command = RemotingCommand(11, fields)
    assert guard.passed(FakePeer(), [command], 0, 1) == 0
    authority.known.learn(command, "127.0.0.1", signer)
    assert guard.passed(FakePeer(), [command], 0, 1) == 1
    assert not authority.hosts
    assert guard.known is authority.known
    assert guard.origin(FakePeer(1)) == guard.origin(FakePeer(2)) > 0
