# SPDX-License-Identifier: Apache-2.0
"""Name servers that an HTTP server tells."""

from __future__ import annotations

import pytest
from twisted.internet.testing import MemoryReactorClock, StringTransport

from tests.client.fakes import result_of, started
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.base.errors import NoNameServer
from txrocketmq.client.core.top_addressing import _Page, fetch, first_line, host_and_path
from txrocketmq.remoting.host.clock import Clock


def test_where_it_is_asked() -> None:
    config = ClientConfig(namesrv_domain="here:8080")
    assert host_and_path(config) == ("here", 8080, "/rocketmq/nsaddr")
    config = ClientConfig(namesrv_domain="here", namesrv_domain_subgroup="sub", unit_name="blue")
    assert host_and_path(config) == ("here", 80, "/rocketmq/sub-blue?nofix=1")


def test_the_first_line_counts() -> None:
    answer = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n 10.0.0.1:9876;10.0.0.2:9876\r\nmore\n"
    assert first_line(answer, "u") == "10.0.0.1:9876;10.0.0.2:9876"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.0 404 Not Found\r\n\r\nx", "404 Not Found"),
        (b"HTTP/1.0 200 OK\r\n\r\n \n", "its answer is empty"),
        (b"", "it answered"),
    ],
)
def test_what_is_no_answer(answer: bytes, why: str) -> None:
    with pytest.raises(NoNameServer, match=why):
        first_line(answer, "u")


def test_one_request_until_the_server_closes() -> None:
    page = _Page(b"GET\r\n\r\n")
    transport = StringTransport()
    page.makeConnection(transport)  # type: ignore[no-untyped-call]
    assert transport.value() == b"GET\r\n\r\n"
    page.dataReceived(b"HTTP/1.0 200 OK\r\n\r\n")
    page.dataReceived(b"a:1")
    assert not page.done.called
    page.connectionLost()
    assert result_of(page.done) == b"HTTP/1.0 200 OK\r\n\r\na:1"


def test_nobody_there_is_said_with_the_address() -> None:
    reactor = MemoryReactorClock()
    asking = started(fetch(ClientConfig(namesrv_domain="127.0.0.1:1"), Clock(reactor)))
    for _ in range(50):
        reactor.advance(0.1)
    with pytest.raises(NoNameServer, match="http://127.0.0.1:1/rocketmq/nsaddr, which is to tell"):
        result_of(asking)
