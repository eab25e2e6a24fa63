# SPDX-License-Identifier: Apache-2.0
"""Servers behind load balancers, which say by the PROXY protocol whose a connection is (5.x)."""

import contextlib
import hashlib
import itertools
import json
import ssl
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from compat_tests import probe
from compat_tests.debian import NotInstalled
from compat_tests.java_client import ClientJvm, message
from compat_tests.load_balancer import SOURCE, LoadBalancer
from compat_tests.peers import Broker, NameServer, Origin, running
from compat_tests.scene import Scene, poll
from txrocketmq.client import Admin

GET_CONSUMER_CONNECTION_LIST = 203
HEART_BEAT = 34
_NUMBERS = itertools.count(1)
_V2 = b"\r\n\r\n\0\r\nQUIT\n"


def v2(command: int, family: int, content: bytes) -> bytes:
    return _V2 + struct.pack(">BBH", 0x20 | command, family, len(content)) + content


TCP4 = bytes([10, 1, 2, 3]) + bytes([10, 0, 0, 1]) + struct.pack(">HH", 4242, 10911)
AUTHORITY = b"\x02" + struct.pack(">H", 4) + b"host"
"""A value behind the addresses, as load balancers add them."""
HEADERS = {
    "v1": (b"PROXY TCP4 10.1.2.3 10.0.0.1 4242 10911\r\n", "10.1.2.3:4242"),
    "v2": (v2(1, 0x11, TCP4), "10.1.2.3:4242"),
    "v2 with more": (v2(1, 0x11, TCP4 + AUTHORITY), "10.1.2.3:4242"),
    "nobody, v1": (b"PROXY UNKNOWN\r\n", "127.0.0.1:"),
    "nobody, v2": (v2(0, 0, b""), "127.0.0.1:"),
}


@pytest.fixture(autouse=True)
def only_5x(origin: Origin) -> None:
    if origin.behaves_as == "4.9.7":
        pytest.skip("4.9.7 does not know the protocol")


@pytest.fixture(scope="module")
def broker(origin: Origin, name_server: NameServer, work_folder: Path) -> Iterator[Broker]:
    """A broker that believes load balancers on this machine; the original believes everybody."""
    settings = {"proxyProtocolFrom": "127.0.0.0/8"}
    folder = work_folder / "balanced-broker"
    server = Broker(origin, folder, name_server, "broker-balanced", settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def ask(connection: Any, code: int, fields: Mapping[str, str], body: Any = None) -> Any:
    """Sends a request over a connection; returns the header and the body of its answer."""
    header = {
        "code": code, "language": "JAVA", "version": 407, "opaque": next(_NUMBERS), "flag": 0,
        "extFields": dict(fields), "serializeTypeCurrentRPC": "JSON",
    }  # fmt: skip
    probe.send_frame(connection, header, b"" if body is None else json.dumps(body).encode())
    answer: Mapping[str, Any] = {}
    while answer.get("opaque") != header["opaque"]:  # brokers tell members of a group at any time
        answer, said = probe.read_frame(connection)
    assert answer["code"] == 0, answer
    return json.loads(said) if said else None


def known_address(connection: Any) -> str:
    """Joins a group over a connection; returns under which address the broker knows the member."""
    group = f"behind-{next(_NUMBERS)}"
    consumer = {
        "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": [],
        "unitMode": False,
    }  # fmt: skip
    heartbeat = {"clientID": group, "producerDataSet": [], "consumerDataSet": [consumer]}
    ask(connection, HEART_BEAT, {}, heartbeat)
    found = ask(connection, GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group})
    (member,) = found["connectionSet"]
    return str(member["clientAddr"])


def trusting() -> ssl.SSLContext:
    made = ssl.create_default_context()
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


@pytest.mark.parametrize("encrypts", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("name", HEADERS)
def test_a_member_is_known_by_the_address_in_the_header(
    broker: Broker, name: str, encrypts: bool
) -> None:
    header, address = HEADERS[name]
    with contextlib.ExitStack() as opened:
        connection = opened.enter_context(probe.connected(broker.port))
        for at in range(0, len(header), 7):  # it need not come in one piece
            connection.sendall(header[at : at + 7])
        if encrypts:
            connection = opened.enter_context(trusting().wrap_socket(connection))
        assert known_address(connection).startswith(address)


@pytest.mark.parametrize(
    "header", [b"PROXY TCP4 10.1.2.3 nonsense 1 2\r\n", v2(1, 0x11, b"short"), _V2[:-1] + b"?"]
)
def test_a_broken_header_ends_the_connection(broker: Broker, header: bytes) -> None:
    with probe.connected(broker.port) as connection:
        connection.sendall(header)
        with pytest.raises((OSError, ValueError, AssertionError)):
            known_address(connection)
    with probe.connected(broker.port) as connection:
        assert known_address(connection).startswith("127.0.0.1:")


class Behind(Broker):
    """A broker that is reached by another port than its own."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.settings['advertisedPort']}"


@pytest.fixture(params=["send-proxy", "send-proxy-v2"])
def behind(
    origin: Origin, test_folder: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Broker, str]]:
    """A broker that clients reach through HAProxy, and the address of the name server there."""
    if origin.name != "ours":
        pytest.skip("the original's brokers cannot tell clients another port than their own")
    names = NameServer(origin, test_folder / "namesrv")
    outside = probe.free_ports([0, 1])
    settings = {"advertisedPort": str(outside), "proxyProtocolFrom": SOURCE}
    server = Behind(origin, test_folder / "broker", names, "broker-b", settings)
    ports = {outside: server.port, outside + 1: names.port}
    try:
        balancer = LoadBalancer(test_folder / "haproxy", ports, request.param, print)
    except NotInstalled as error:
        pytest.skip(str(error))
    with running(names, server):
        balancer.start()
        try:
            yield server, f"127.0.0.1:{outside + 1}"
        finally:
            balancer.close()


@pytest.mark.parametrize("encrypts", [False, True], ids=["plain", "tls"])
def test_clients_work_through_a_load_balancer(
    behind: tuple[Broker, str], jvm: ClientJvm, encrypts: bool
) -> None:
    broker, namesrv = behind
    scene = Scene(jvm, broker, tls=encrypts)
    scene.namesrv = namesrv
    try:
        group, topic = scene.unique("group"), scene.topic(queues=2)
        consumer = scene.push_consumer(topic, group)
        bodies = [b"small", b"x" * 300_000]
        scene.producer().send([message(topic, body) for body in bodies])
        received = sorted(item["body_sha256"] for item in consumer.wait_for(2))
        assert received == sorted(hashlib.sha256(body).hexdigest() for body in bodies)

        def members() -> set[str]:
            with Admin(namesrv_addr=broker.name_server.address) as admin:
                connected = admin.consumer_connections(group).connection_set
                return {str(each.client_addr).partition(":")[0] for each in connected}

        poll(lambda: members() == {"127.0.0.1"}, "the consumer is known by its own address")
    finally:
        scene.close()
