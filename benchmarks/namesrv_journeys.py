# SPDX-License-Identifier: Apache-2.0
"""The journeys of a name server whose operations are counted: routes and registrations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from twisted.internet.testing import MemoryReactorClock

from benchmarks import frames
from benchmarks.asked_broker import Listener, request
from benchmarks.operations import Call
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.service import NameServer
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.protocol.body.route import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)

TOPICS: Final = 16
_REGISTER, _ROUTE = 103, 105


class NamesrvJourneys:
    """A name server with one broker, which has some topics."""

    def __init__(self, folder: Path) -> None:
        reactor: Any = MemoryReactorClock()
        self._reactor = reactor
        self._reactor.advance(1_700_000_000)
        config = NamesrvConfig(kv_config_path=str(folder / "kvConfig.json"))
        self._server = NameServer(config, Clock(self._reactor))
        self._server.start()
        self._sink = Listener()
        self._peer: Any = reactor.tcpServers[0][1].buildProtocol(None)
        self._peer.makeConnection(self._sink)
        self._number = 0
        self._answered(self._registration(1))

    def route(self) -> Iterator[Call]:
        """The question for the route of a topic."""
        self._number += 1
        fields = {"topic": f"t{self._number % TOPICS}", "acceptStandardJsonOnly": "true"}
        yield partial(self._answered, request(_ROUTE, fields, self._number))

    def register(self) -> Iterator[Call]:
        """A registration with the topics of the last one, which a broker repeats every 30 s."""
        yield partial(self._answered, self._registration(1))

    def register_new(self) -> Iterator[Call]:
        """A registration after a topic has changed."""
        yield partial(self._answered, self._registration(2 + self._number))

    def _registration(self, counter: int) -> bytes:
        self._number += 1
        table = {
            f"t{n}": TopicConfig(topic_name=f"t{n}", read_queue_nums=8, write_queue_nums=8)
            for n in range(TOPICS)
        }
        version = DataVersion(timestamp=1_700_000_000_000, counter=counter)
        wrapper = TopicConfigAndMappingSerializeWrapper(
            topic_config_table=table, data_version=version
        )
        fields = {
            "brokerName": "broker-a",
            "brokerAddr": "127.0.0.1:10911",
            "clusterName": "c",
            "haServerAddr": "127.0.0.1:10912",
            "brokerId": "0",
            "compressed": "false",
            "bodyCrc32": "0",
        }
        body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper).encode()
        return request(_REGISTER, fields, self._number, body=body)

    def _answered(self, data: bytes) -> None:
        kept = self._sink.kept = bytearray()
        self._peer.dataReceived(data)
        self._reactor.advance(0)
        [(header, _)], _ = frames.split(bytes(kept))
        if header["code"]:
            raise SystemExit(f"benchmarks.namesrv_journeys: refused with {header}")
