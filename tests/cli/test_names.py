# SPDX-License-Identifier: Apache-2.0
"""Names with which a shell completes a line, asked of a server that is a thread of the test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from txrocketmq.cli import names
from txrocketmq.cli.command_line import Servers, servers_options
from txrocketmq.cli.names import FRESH_MS, Names
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.protocol.body.route import BrokerData, ClusterInfo
from txrocketmq.remoting.protocol.body.topic import (
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicList,
)
from txrocketmq.spark.live.wire.rpc import close_connections


class AServer:
    """Answers as a name server and a broker; `asked` are the codes of the requests."""

    def __init__(self) -> None:
        self.topics = ["Orders", "Other", "%RETRY%g"]
        self.asked: list[int] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):  # it may be closed already
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        decoder = FrameDecoder()
        with connection:
            while data := connection.recv(65_536):
                for asked in decoder.receive(data):
                    self.asked.append(asked.code)
                    said = RemotingCommand(
                        0, {}, opaque=asked.opaque, flag=1, body=self._body(asked)
                    )
                    connection.sendall(b"".join(map(bytes, encode_frame(said))))

    def _body(self, asked: RemotingCommand) -> bytes:
        if asked.code == RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER:
            return TopicList(topic_list=tuple(self.topics)).encode()
        if asked.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            broker = BrokerData(cluster="c", broker_name="b", broker_addrs={0: self.address})
            return ClusterInfo(
                broker_addr_table={"b": broker}, cluster_addr_table={"c": ["b"]}
            ).encode()
        table = {name: SubscriptionGroupConfig(group_name=name) for name in ("billing", "bills")}
        return SubscriptionGroupWrapper(subscription_group_table=table).encode()


@pytest.fixture
def server() -> Iterator[AServer]:
    made = AServer()
    yield made
    made.close()
    close_connections()


def offered(complete: names.Complete, incomplete: str, address: str) -> list[str]:
    @click.command()
    @click.argument("topic", shell_complete=complete)
    @servers_options
    def command(topic: str, servers: Servers) -> None:
        raise NotImplementedError

    made = command.make_context("prog", ["-n", address], resilient_parsing=True)
    return complete(made, command.params[0], incomplete)


@pytest.mark.parametrize(
    ("complete", "incomplete", "wanted"),
    [
        (names.topics, "", ["Orders", "Other"]),
        (names.topics, "Or", ["Orders"]),
        (names.topics, "%", ["%RETRY%g"]),
        (names.groups, "bill", ["billing", "bills"]),
        (names.brokers, "", ["b"]),
        (names.clusters, "", ["c"]),
    ],
)
def test_the_cluster_is_asked(
    server: AServer, complete: names.Complete, incomplete: str, wanted: list[str]
) -> None:
    assert offered(complete, incomplete, server.address) == wanted


def test_names_are_kept_for_some_seconds(server: AServer) -> None:
    now_ms = [1_000]
    known = Names(Servers(namesrv=server.address), lambda: now_ms[0])
    assert known.get("topics") == ["%RETRY%g", "Orders", "Other"]
    server.topics = ["New"]
    now_ms[0] += FRESH_MS - 1
    assert known.get("topics") == ["%RETRY%g", "Orders", "Other"]
    assert len(server.asked) == 1
    now_ms[0] += 1
    assert known.get("topics") == ["New"]


def test_each_cluster_has_its_own(server: AServer) -> None:
    assert Names(Servers(namesrv=server.address)).get("brokers") == ["b"]
    assert Names(Servers(namesrv="127.0.0.1:1")).get("brokers") == []


def test_old_names_are_better_than_none(server: AServer) -> None:
    now_ms = [1_000]
    known = Names(Servers(namesrv=server.address), lambda: now_ms[0])
    known.get("topics")
    server.close()
    close_connections()
    now_ms[0] += FRESH_MS
    assert "Orders" in known.get("topics")


def test_a_cluster_that_is_not_there_offers_nothing() -> None:
    assert offered(names.groups, "", "127.0.0.1:1") == []
    assert offered(names.topics, "", "no address") == []


def test_servers_whose_names_are_to_be_checked_are_not_asked(server: AServer) -> None:
    servers = Servers(namesrv=server.address, tls_check_name=True)
    assert Names(servers).get("topics") == []
    assert server.asked == []


@pytest.mark.parametrize("kept", [b"", b"{}", b"[1]", b'["x", []]', b"\xff"])
def test_a_cache_that_is_damaged_is_not_used(server: AServer, kept: bytes, tmp_path: Path) -> None:
    known = Names(Servers(namesrv=server.address))
    known.get("topics")
    (file,) = (tmp_path / "cache").rglob("topics")
    file.write_bytes(kept)
    assert "Orders" in known.get("topics")
    assert len(server.asked) == 2
