# SPDX-License-Identifier: Apache-2.0
"""The port for gRPC of a test server, with grpcio as the client: another engine of HTTP/2."""

from __future__ import annotations

import hmac
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import grpc
import pytest

from txrocketmq.proxy.schema.messages import SERVICE, message_type
from txrocketmq.testing.server import Server, running

TOPIC = "Endpoint"
METADATA = (
    ("x-mq-client-id", "compat@1@2@3"),
    ("x-mq-language", "PYTHON"),
    ("x-mq-client-version", "5.1.2"),
)
ANY_LENGTH = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as made:
        made.create_topic(TOPIC)
        yield made


@pytest.fixture
def channel(server: Server) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.grpc_endpoint, options=ANY_LENGTH) as made:
        yield made


def _method(channel: grpc.Channel, name: str) -> Callable[..., Any]:
    method: Callable[..., Any] = channel.unary_unary(
        f"/{SERVICE}/{name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=message_type(f"{name}Response").FromString,
    )
    return method


def _sends(body: bytes, number: int = 0) -> Any:
    message = {
        "topic": {"name": TOPIC},
        "system_properties": {"message_id": f"01{number:032X}", "message_type": 1},
        "body": body,
    }
    return message_type("SendMessageRequest")(messages=[message])


def test_calls(channel: grpc.Channel) -> None:
    answer = _method(channel, "SendMessage")(_sends(b"hello"), metadata=METADATA, timeout=10)
    assert answer.status.code == 20_000
    assert answer.entries[0].message_id == f"01{0:032X}"


def test_many_calls_at_once(channel: grpc.Channel) -> None:
    send = channel.unary_unary(
        f"/{SERVICE}/SendMessage",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=message_type("SendMessageResponse").FromString,
    )
    pending: list[Future[Any]] = [
        send.future(_sends(b"x" * 1_024, number), metadata=METADATA, timeout=30)
        for number in range(500)
    ]
    assert {each.result().status.code for each in pending} == {20_000}


def test_a_long_message(channel: grpc.Channel) -> None:
    body = b"y" * (4 * 1024 * 1024 - 1_000)
    answer = _method(channel, "SendMessage")(_sends(body), metadata=METADATA, timeout=30)
    assert answer.status.code == 20_000


def test_gzip(server: Server) -> None:
    compression = grpc.Compression.Gzip
    with grpc.insecure_channel(server.grpc_endpoint, compression=compression) as channel:
        answer = _method(channel, "SendMessage")(_sends(b"z" * 9_999), metadata=METADATA)
    assert answer.status.code == 20_000


def test_methods_that_are_not_served(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        _method(channel, "GetOffset")(
            message_type("GetOffsetRequest")(), metadata=METADATA, timeout=10
        )
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_tls_on_the_same_port(server: Server) -> None:
    host, _, port = server.grpc_endpoint.rpartition(":")
    pem = ssl.get_server_certificate((host, int(port)))
    names = ssl.create_default_context(cadata=pem).get_ca_certs()[0]["subject"]
    name = dict(pair[0] for pair in names)["commonName"]  # type: ignore[misc]
    options = [("grpc.ssl_target_name_override", name)]
    credentials = grpc.ssl_channel_credentials(pem.encode())
    with grpc.secure_channel(server.grpc_endpoint, credentials, options=options) as channel:
        answer = _method(channel, "SendMessage")(_sends(b"safe"), metadata=METADATA, timeout=10)
    assert answer.status.code == 20_000


def test_connections_that_say_nothing(channel: grpc.Channel, server: Server) -> None:
    host, _, port = server.grpc_endpoint.rpartition(":")
    others = [socket.create_connection((host, int(port))) for _ in range(300)]
    send = _method(channel, "SendMessage")
    answers = [send(_sends(b"x", n), metadata=METADATA, timeout=10) for n in range(50)]
    for each in others:
        each.close()
    assert {each.status.code for each in answers} == {20_000}


def test_clients_come_back_after_a_restart() -> None:
    with running() as server:
        server.create_topic(TOPIC)
        with grpc.insecure_channel(server.grpc_endpoint) as channel:
            send = _method(channel, "SendMessage")
            send(_sends(b"before"), metadata=METADATA, timeout=10)
            thread = threading.Thread(target=server.restart)
            thread.start()
            thread.join()
            answer = send(_sends(b"after"), metadata=METADATA, timeout=20, wait_for_ready=True)
            assert answer.status.code == 20_000


def test_the_accounts_of_the_server() -> None:
    with running(accounts=True) as server:
        server.create_topic(TOPIC)
        keys = server.access_key, server.secret_key
        with grpc.insecure_channel(server.grpc_endpoint) as channel:
            send = _method(channel, "SendMessage")
            answer = send(_sends(b"mine"), metadata=METADATA + _signed(*keys), timeout=10)
            assert answer.status.code == 20_000
            for headers in ((), _signed("nobody", "x"), _signed(keys[0], "x")):
                answer = send(_sends(b"no"), metadata=METADATA + headers, timeout=10)
                assert answer.status.code == 40_100
        assert [each.body for each in server.messages(TOPIC)] == [b"mine"]


def _signed(name: str, secret: str) -> tuple[tuple[str, str], ...]:
    date = "20261126T130000Z"
    signature = hmac.new(secret.encode(), date.encode(), "sha1").hexdigest().upper()
    text = f"MQv2-HMAC-SHA1 Credential={name}, SignedHeaders=x-mq-date-time, Signature={signature}"
    return (("x-mq-date-time", date), ("authorization", text))
