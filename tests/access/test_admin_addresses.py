# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import NOW_MS, FakePeer
from txrocketmq.access.admin_addresses import DANGEROUS, connected_from, near
from txrocketmq.remoting.call import CALLS, Reply, Request
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Binding, Registry, run_bindings
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.primitives.networks import Networks

NETWORKS = Networks(["127.0.0.0/8", "2001:db8::/32"])


def registry_of(*codes: int) -> Registry:
    registry = Registry()
    for code in codes:
        registry.bindings[code] = Binding(CALLS[code], lambda _: Reply(), vip=True)
    return registry


def ask(registry: Registry, code: int, address: bytes, **fields: str) -> Any:
    peer = FakePeer()
    peer.remote_host = address + bytes(4)
    peer.remote_address = "127.0.0.1:9"  # as a header of the PROXY protocol may say
    command = RemotingCommand(code, fields)
    handler = registry.bindings[code].handler
    assert handler is not None
    return handler(Request(NoHeader(), command, peer, NOW_MS, NOW_MS))


def test_dangerous_requests_are_served_to_these_networks_only() -> None:
    registry = near(registry_of(*DANGEROUS), NETWORKS)
    for code in DANGEROUS:
        assert isinstance(ask(registry, code, bytes([127, 0, 0, 9])), Reply)
        assert isinstance(ask(registry, code, bytes([0x20, 1, 0x0D, 0xB8, *[0] * 12])), Reply)
        with pytest.raises(ResponseError, match="adminAddresses") as raised:
            ask(registry, code, bytes([10, 0, 0, 1]))
        assert raised.value.code == ResponseCode.NO_PERMISSION
        assert "is not served to 10.0.0.1" in str(raised.value)


def test_accounts_are_changed_from_near() -> None:
    """Else a stranger could make a user before users are asked for, and come back as it."""
    changing = {
        code for code in RequestCode if code.name.startswith(("AUTH_", "UPDATE_AND_CREATE_ACL"))
    }
    changing = {code for code in changing if not code.name.startswith(("AUTH_GET", "AUTH_LIST"))}
    assert len(changing) == 7
    assert changing <= DANGEROUS


def test_others_do_not_pay_for_it() -> None:
    before = registry_of(RequestCode.GET_MAX_OFFSET, RequestCode.DELETE_TOPIC_IN_BROKER)
    after = near(before, NETWORKS)
    code = RequestCode.GET_MAX_OFFSET
    assert after.bindings[code] is before.bindings[code]
    assert near(before, Networks()) is before


def test_a_broker_may_unregister_itself() -> None:
    registry = near(registry_of(RequestCode.UNREGISTER_BROKER), NETWORKS)
    address = bytes([10, 0, 0, 1])
    code = RequestCode.UNREGISTER_BROKER
    assert isinstance(ask(registry, code, address, brokerAddr="10.0.0.1:10911"), Reply)
    with pytest.raises(ResponseError):
        ask(registry, code, address, brokerAddr="10.0.0.2:10911")
    with pytest.raises(ResponseError):
        ask(registry, code, address)


def test_what_is_served_in_runs_cannot_be_guarded_in_silence() -> None:
    registry = Registry()
    call = CALLS[RequestCode.DELETE_TOPIC_IN_BROKER]
    (registry.bindings[call.code],) = run_bindings(lambda _: [], call)
    with pytest.raises(ValueError, match="served in runs"):
        near(registry, NETWORKS)


def test_a_peer_without_an_address_is_nobody() -> None:
    peer = FakePeer()
    peer.remote_host = b""
    assert connected_from(peer) == ""
