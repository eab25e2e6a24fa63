# SPDX-License-Identifier: Apache-2.0
"""The guard asks an authority, and says what that says."""

from __future__ import annotations

import pytest

from tests.fakes import FakePeer
from txrocketmq.access.audit import Audit
from txrocketmq.access.authority import Refusal
from txrocketmq.access.guard import AccessGuard, host_of
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError


class Strict:
    code = 16

    def __init__(self) -> None:
        self.hosts: list[str] = []

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


def test_hosts_that_come_and_go_do_not_fill_the_memory() -> None:
    authority = Strict()
    guard = AccessGuard(authority, Audit(print, print, lambda: 0))
    for port in range(10_000):
        guard(FakePeer(port), RemotingCommand(10))
    assert len(guard._hosts) <= 4_096
    assert set(authority.hosts) == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.1.2.3:50000", "10.1.2.3"),
        ("[2001:db8::1]:50000", "2001:db8::1"),
        ("[fe80::1%eth0]:1", "fe80::1"),
        ("", ""),
    ],
)
def test_the_host_of_an_address(address: str, host: str) -> None:
    assert host_of(address) == host
