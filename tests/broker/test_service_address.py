# SPDX-License-Identifier: Apache-2.0
"""Under which address a broker is known, to name servers and in messages: see test_service.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.test_service import Scene
from txrocketmq.remoting.protocol.route import RegisterBrokerRequestHeader


def test_the_address_that_it_found_stands_in_its_settings(tmp_path: Path) -> None:
    scene = Scene(tmp_path, broker_ip1="").start()
    ip, _, port = scene.broker.address.rpartition(":")
    assert port == "10911"
    assert scene.broker.parts.config.broker_ip1 == ip
    assert scene.broker.parts.configuration.properties["brokerIP1"] == ip


def test_its_address_may_be_a_name(tmp_path: Path) -> None:
    scene = Scene(tmp_path, broker_ip1="localhost").start()
    assert scene.broker.address == "localhost:10911"
    assert scene.broker.parts.known_as.store_host == bytes([127, 0, 0, 1]) + (10911).to_bytes(
        4, "big"
    )


def test_it_is_known_by_the_port_that_leads_to_it(tmp_path: Path) -> None:
    """To name servers, and in the ids of messages, where clients find the address, too."""
    scene = Scene(tmp_path, advertised_port=32_768).start()
    assert [port for port, *_ in scene.reactor.tcpServers] == [10_911, 10_909, 10_912]
    (asked,) = scene.connections.take()
    assert isinstance(asked.header, RegisterBrokerRequestHeader)
    assert asked.header.broker_addr == scene.broker.address == "127.0.0.1:32768"
    store_host = scene.broker.parts.known_as.store_host
    assert store_host == bytes([127, 0, 0, 1]) + (32_768).to_bytes(4, "big")


def test_a_name_that_is_none_is_told_before_the_store_is_opened(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="brokerIP1 is 'no such host', which has no address"):
        Scene(tmp_path, broker_ip1="no such host").start()
    assert not (tmp_path / "abort").exists()
