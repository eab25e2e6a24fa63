# SPDX-License-Identifier: Apache-2.0
"""Requests of any content: every method answers, and nothing that it does is a defect."""

from __future__ import annotations

import random
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from tests.examples import examples
from tests.proxy.accounts.signing import ROOT, some_accounts
from tests.proxy.scene import ProxyScene, a_message
from tests.remoting.transport.wires import FarEnd
from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.proxy.accounts.sources import AccountsHere
from txrocketmq.proxy.grpc.framing import PREFIX_BYTES, framed
from txrocketmq.proxy.grpc.peer import GrpcPeer, Service
from txrocketmq.proxy.grpc.service import Kind
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.messages import SERVICE, message_type
from txrocketmq.remoting.protocol import pop

ACCOUNTS = AccountsConfig(authentication_enabled=True, authorization_enabled=True)
TEXTS = ("", " ", "T", "G", "x" * 200, "a\x02TRAN_MSG\x01true", "漢字", "%RETRY%G", "broker-a",
         "0 1000000 60000 1 0 broker-a 0 5 817", "ID broker-a 7 1000", "djEgVCBicm9rZXItYSA1IElE",
         "0 999999 99999999999999999 1 2 broker-a 2147483647 9223372036854775807 1")  # fmt: skip
NUMBERS = (0, 1, 2, 3, 30, -1, 2**31 - 1, -(2**31))
LONGS = (*NUMBERS, 2**63 - 1, -(2**63))
METHODS = sorted(
    (its.rpc.name, its.rpc.request_name)
    for its in ProxyScene().messaging.rpcs
    if its.rpc.kind is not Kind.CONVERSATION
)


def fill(message: Any, choose: random.Random, depth: int = 0) -> Any:
    """Gives the fields of a message any values."""
    for field in message.DESCRIPTOR.fields:
        if choose.random() < 0.3:
            continue
        many = choose.randrange(3) if field.is_repeated else 1
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            for _ in range(many):
                getattr(message, field.name)[choose.choice(TEXTS)] = choose.choice(TEXTS)
        elif field.message_type is not None:
            for _ in range(many if depth < 4 else 0):
                its = getattr(message, field.name)
                its = its.add() if field.is_repeated else its
                its.SetInParent()
                fill(its, choose, depth + 1)
        else:
            values = [_value(field, choose) for _ in range(many)]
            if field.is_repeated:
                getattr(message, field.name).extend(values)
            else:
                setattr(message, field.name, values[0])
    return message


def _value(field: Any, choose: random.Random) -> Any:
    if field.type == field.TYPE_STRING:
        return choose.choice(TEXTS)
    if field.type == field.TYPE_BYTES:
        return choose.choice((b"", b"body", b"\x1f\x8bno gzip"))
    if field.type == field.TYPE_BOOL:
        return choose.random() < 0.5
    if field.type == field.TYPE_FLOAT:
        return 1.5
    return choose.choice(LONGS if field.type == field.TYPE_INT64 else NUMBERS)


@pytest.mark.parametrize(("method", "request_name"), METHODS)
@given(seed=st.integers(0, 2**32), deadline_ms=st.sampled_from([None, 0, 100, 6_000, 10**15]))
@settings(max_examples=examples(60), deadline=None)
def test_any_request_is_answered(
    method: str, request_name: str, seed: int, deadline_ms: int | None
) -> None:
    scene = ProxyScene()
    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, scene.popped(a_message()))
    request = fill(message_type(request_name)(), random.Random(seed))
    served = scene.messaging.rpcs.find(f"/{SERVICE}/{method}")
    assert served is not None
    call, sink = scene.new_call(method, deadline_ms=deadline_ms)
    outcomes: list[Any] = []
    answer = served.method(call, request)
    if hasattr(answer, "addBoth"):
        answer.addBoth(outcomes.append)
        scene.advance(3_000)
    else:
        outcomes.append(answer)
    (outcome,) = outcomes
    if isinstance(outcome, Failure):
        assert outcome.check(CancelledError), outcome.getTraceback()
    elif served.rpc.kind is Kind.UNARY:
        assert Code(outcome.status.code)
        assert outcome.SerializeToString()
    else:
        assert len(sink.sent) >= 2
    scene.messaging.stop()


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(150), deadline=None)
def test_any_command_of_telemetry_is_answered_or_ends_the_stream(seed: int) -> None:
    scene = ProxyScene()
    outcome = scene.call("Telemetry")
    command = fill(message_type("TelemetryCommand")(), random.Random(seed))
    received = outcome.answer.received(command)
    if received is not None:
        received.addErrback(lambda failure: pytest.fail(failure.getTraceback()))
        assert received.called
        assert outcome.sink.sent or outcome.sink.error is not None
    outcome.answer.ended("gone")
    assert scene.messaging.clients.streams == 0
    scene.messaging.stop()


@given(
    pieces=st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from(
                [
                    b"MQv2-HMAC-SHA1 ",
                    b"Credential=root",
                    b",",
                    b"Signature=",
                    b"00" * 20,
                    b"\xff\xfe",
                ]
            ),
        ),
        max_size=6,
    ),
    date=st.binary(max_size=20),
)
@settings(max_examples=examples(100), deadline=None)
def test_any_signature_is_answered_and_harms_no_neighbour(pieces: list[bytes], date: bytes) -> None:
    """On one connection, whose calls come as bytes of HTTP/2."""
    scene = ProxyScene(ACCOUNTS, AccountsHere(some_accounts()))
    failed: list[Any] = []
    service = Service(scene.messaging.rpcs, 1 << 20, 100)
    peer = GrpcPeer(scene.clock, service, lambda _: None)
    peer.failed = lambda failure, call: failed.append(failure)  # type: ignore[method-assign]
    end = FarEnd(peer)
    client: Any = H2Connection(
        H2Configuration(
            header_encoding=None, validate_outbound_headers=False, normalize_outbound_headers=False
        )
    )
    client.initiate_connection()
    answers: dict[int, bytes] = {}

    def exchange() -> None:
        peer.dataReceived(client.data_to_send())
        scene.time.advance(0)
        for event in client.receive_data(end.wire.value()):
            if isinstance(event, DataReceived):
                answers[event.stream_id] = answers.get(event.stream_id, b"") + event.data
        end.wire.clear()

    message = {"topic": {"name": "T"}, "system_properties": {"message_id": "01" * 17}, "body": b"b"}
    request = message_type("SendMessageRequest")(messages=[message]).SerializeToString()
    strange = [(b"authorization", b"".join(pieces)), (b"x-mq-date-time", date)]
    right = [(name.encode(), text.encode()) for name, text in ROOT.items()]
    for number, headers in enumerate((right, strange, right)):
        stream = 2 * number + 1
        client.send_headers(stream, [*_CALL, *headers])
        client.send_data(stream, framed(request), end_stream=True)
    exchange()
    exchange()
    codes = [
        message_type("SendMessageResponse").FromString(answers[stream][PREFIX_BYTES:]).status.code
        for stream in (1, 3, 5)
    ]
    assert codes == [Code.OK, Code.UNAUTHORIZED, Code.OK]
    assert failed == []
    scene.messaging.stop()


_CALL = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", f"/{SERVICE}/SendMessage".encode()),
    (b":authority", b"here"),
    (b"content-type", b"application/grpc"),
    (b"x-mq-client-id", b"me"),
]
