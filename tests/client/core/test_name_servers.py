# SPDX-License-Identifier: Apache-2.0
"""Name servers: one is asked as long as it answers."""

from __future__ import annotations

from typing import cast

import pytest

from tests.client.fakes import FakeConnections, a_route, refusal, result_of
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.base.errors import MQBrokerError, NoNameServer
from txrocketmq.client.core.name_servers import NameServers, check_addresses
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.protocol.body.base import BodyError
from txrocketmq.remoting.protocol.route import GET_ROUTEINFO_BY_TOPIC
from txrocketmq.remoting.transport.client import Connections

ROUTE = a_route({"broker-a": 4})


def servers(connections: FakeConnections, *addresses: str) -> NameServers:
    return NameServers(cast(Connections, connections), addresses, 3_000)


def asked(connections: FakeConnections) -> list[str]:
    return [address for address, _, _, _, _ in connections.asked]


def test_the_route_is_read() -> None:
    connections = FakeConnections()
    connections.on("a:1", GET_ROUTEINFO_BY_TOPIC, Reply(body=ROUTE.encode()))
    assert result_of(servers(connections, "a:1").route("T")) == ROUTE
    (_, _, header, _, timeout_ms) = connections.asked[0]
    assert (header.topic, header.accept_standard_json_only, timeout_ms) == ("T", True, 3_000)


def test_an_unknown_topic_has_no_route() -> None:
    connections = FakeConnections()
    connections.on("a:1", GET_ROUTEINFO_BY_TOPIC, refusal(17))
    assert result_of(servers(connections, "a:1").route("T")) is None


def test_a_refusal_says_who_refused() -> None:
    connections = FakeConnections()
    connections.on("a:1", GET_ROUTEINFO_BY_TOPIC, refusal(1, "broken"))
    with pytest.raises(MQBrokerError, match=r"a:1 answered SYSTEM_ERROR \(1\): broken"):
        result_of(servers(connections, "a:1").route("T"))


def test_the_address_of_a_broker_is_named_as_what_it_is() -> None:
    connections = FakeConnections()
    connections.on("a:1", GET_ROUTEINFO_BY_TOPIC, refusal(3, "request type 105 not supported"))
    with pytest.raises(NoNameServer, match="a:1 .it answers, but is not a name server") as raised:
        result_of(servers(connections, "a:1").route("T"))
    assert "older release" not in str(raised.value)


def test_another_is_asked_where_one_is_no_name_server() -> None:
    connections = FakeConnections()
    for address in ("a:1", "b:1"):
        connections.on(address, GET_ROUTEINFO_BY_TOPIC, Reply(body=ROUTE.encode()))
    name_servers = servers(connections, "a:1", "b:1")
    connections.on(name_servers.addresses[0], GET_ROUTEINFO_BY_TOPIC, refusal(3))
    assert result_of(name_servers.route("T")) == ROUTE


def test_an_answer_that_is_no_route_is_an_error() -> None:
    connections = FakeConnections()
    connections.on("a:1", GET_ROUTEINFO_BY_TOPIC, Reply(body=b'{"queueDatas":5}'))
    with pytest.raises(BodyError, match="queueDatas"):
        result_of(servers(connections, "a:1").route("T"))


def test_the_next_is_asked_when_one_is_silent_and_stays() -> None:
    connections = FakeConnections()
    name_servers = servers(connections, "a:1", "b:1", "c:1")
    first, second, _ = name_servers.addresses
    connections.on(second, GET_ROUTEINFO_BY_TOPIC, Reply(body=ROUTE.encode()))
    result_of(name_servers.route("T"))
    assert asked(connections) == [first, second]
    result_of(name_servers.route("T"))
    assert asked(connections) == [first, second, second]


def test_when_none_answers_each_is_named_with_its_failure() -> None:
    name_servers = servers(FakeConnections(), "a:1", "b:1")
    with pytest.raises(NoNameServer) as error:
        result_of(name_servers.route("T"))
    for address in ("a:1", "b:1"):
        assert f"{address} (connect to {address} failed: nobody there)" in str(error.value)


@pytest.mark.parametrize("addresses", ["", "a:1", "a:1; b:2;", " [::1]:9876 "])
def test_addresses_are_separated_by_semicolons(addresses: str) -> None:
    check_addresses(ClientConfig(namesrv_addr=addresses))


@pytest.mark.parametrize("addresses", ["a", "a:b", "a:1,b:2", "http://a:1", "a:1;b"])
def test_what_is_no_address_is_refused_at_once(addresses: str) -> None:
    with pytest.raises(ValueError, match="^namesrv_addr must be addresses of name servers") as said:
        check_addresses(ClientConfig(namesrv_addr=addresses))
    assert f"as HOST:PORT, separated by semicolons, not {addresses!r}" in str(said.value)


def test_without_any_the_text_says_how_to_give_one() -> None:
    with pytest.raises(NoNameServer, match="set namesrv_addr"):
        result_of(servers(FakeConnections()).route("T"))
