# SPDX-License-Identifier: Apache-2.0
"""Whatever a peer sends, it gets a clear answer or a clean end, and others are served.

Nothing of it may be logged as a failure of ours: a peer's doing is not our bug.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.properties.served import (
    LONGEST_WAIT_S,
    Peer,
    Served,
    ServedBroker,
    ServedNames,
    bytes_of,
    frame_of,
    no_failures,
)
from txrocketmq.remoting import protocol
from txrocketmq.remoting.call import CALLS, Call
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.frame.frame import MAX_FRAME_BYTES
from txrocketmq.remoting.header import HeaderField
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.offset import GetMaxOffsetRequestHeader

assert protocol.__all__  # importing it declares all calls

SERVERS = [ServedBroker, ServedNames]
GOOD = {"str": "T", "int": "1", "long": "1", "bool": "true", "double": "1.5"}
NUMBERS = ["-1", "0", str(2**31 - 1), str(-(2**31)), str(2**63 - 1), str(2**70), "x", "", "1e3"]
TEXTS = ["", "T", "x" * 300, "../../etc", "\x00", "\u4e2d", "%RETRY%g", "a\x01b\x02", "{}"]
BODIES = [
    b"",
    b"x",
    b"{",
    b"{}",
    b"[]",
    b"[1]",
    b"null",
    b"1",
    b'"x"',
    b"\xff\xfe",
    b"{" * 200,
    b"[" * 100_000,
    b'{"a":1',
    b'{"topicConfigTable":1,"groupName":[],"topic":{},"mqSet":1,"clientID":2}',
    b'{"topicConfigSerializeWrapper":{"topicConfigTable":[1],"dataVersion":"x"}}',
    b'{"clientID":"c","consumerDataSet":[{}],"producerDataSet":[1]}',
    b'{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":1}]}]}',
    b'{"consumerGroup":"g","clientId":"c","mqSet":[{"topic":"T","queueId":"x"}]}',
    b'{"consumerGroup":null,"clientId":null,"mqSet":[null]}',
    b'{"groupName":"g","retryMaxTimes":"x"}',
    b"key\\u00zz=1",
    b"=\n=\n\\",
    bytes(range(256)),
]


@pytest.fixture(scope="module", params=SERVERS, ids=["broker", "namesrv"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One server for all: what some have sent must not harm the others."""
    return request.param(tmp_path_factory.mktemp("served"))


def answered(served: Served, peer: Peer, data: bytes) -> list[RemotingCommand]:
    """The answers to these bytes, also those that come later."""
    answers = peer.tell(data)
    waited_s = 0
    while not answers and not peer.is_closed and waited_s < LONGEST_WAIT_S:
        served.reactor.advance(1)
        waited_s += 1
        answers = peer.heard()
    return answers


def requests_of(call: Call[Any, Any]) -> Iterator[RemotingCommand]:
    """Requests of a call with one thing wrong with each."""
    good = {field.wire: GOOD[field.kind] for field in call.request.fields}
    yield RemotingCommand(call.code)
    yield RemotingCommand(call.code, {})
    for field in call.request.fields:
        yield RemotingCommand(call.code, {k: v for k, v in good.items() if k != field.wire})
        for wrong in wrong_values(field):
            yield RemotingCommand(call.code, {**good, field.wire: wrong})
    for body in BODIES:
        yield RemotingCommand(call.code, good, body)


def wrong_values(field: HeaderField) -> list[str]:
    return TEXTS if field.kind == "str" else NUMBERS


@pytest.mark.parametrize("call", CALLS.values(), ids=lambda call: call.name)
def test_requests_with_something_wrong_are_answered(served: Any, call: Call[Any, Any]) -> None:
    with no_failures():
        for opaque, command in enumerate(requests_of(call), 1):
            command.opaque = opaque
            peer = served.connect()
            answers = answered(served, peer, bytes_of(command))
            assert not peer.is_closed
            ends = (command.ext_fields or {}).get("commitOrRollback")
            if ends == "0" and len(answers) == 0:
                continue  # a transaction that is not to end yet
            assert [answer.opaque for answer in answers if answer.is_response] == [opaque], command
            refusal = answers[-1]
            assert refusal.code == ResponseCode.SUCCESS or refusal.remark, command
            peer.leave()
        served.assert_serves()


def test_the_test_would_notice_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = ServedBroker(tmp_path)
    monkeypatch.setattr(broker.service.parts.store, "max_offset", lambda *_: 1 // 0)
    with pytest.raises(AssertionError, match="ZeroDivisionError"), no_failures():
        (answer,) = broker.connect().tell(good_frame())
    assert answer.code == ResponseCode.SYSTEM_ERROR


# --------------------------------------------------------------------------------- frames


def good_frame(opaque: int = 7) -> bytes:
    header = GetMaxOffsetRequestHeader(topic="T", queue_id=0)
    return frame_of(offset.GET_MAX_OFFSET, header, b"body", opaque)


def prefix(length: int, mark: int) -> bytes:
    return struct.pack(">II", length & 0xFFFFFFFF, mark)


HEADER = b'{"code":30}'
BROKEN = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": bytes.fromhex("160301020001000001fc0303") + bytes(32),
    "zeros": bytes(64),
    "negative length": prefix(-1, 0),
    "least length": prefix(-(2**31), 0),
    "too short": prefix(3, 0),
    "too long": prefix(MAX_FRAME_BYTES, 0),
    "far too long": prefix(2**31 - 1, 0),
    "header beyond the frame": prefix(8, 9) + bytes(8),
    "unknown serialization": prefix(4 + len(HEADER), 7 << 24 | len(HEADER)) + HEADER,
    "no json": prefix(4 + 3, 3) + b"abc",
    "json that is no object": prefix(4 + 2, 2) + b"[]",
    "fields that are no object": prefix(4 + 26, 26) + b'{"code":30,"extFields":[]}',
    "code that is no number": prefix(4 + 12, 12) + b'{"code":"x"}',
    "cut binary header": prefix(4 + 5, 1 << 24 | 5) + bytes(5),
    "no utf-8": prefix(4 + 4, 4) + b"\xff\xfe\xff\xfe",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_what_is_no_frame_ends_the_connection(served: Any, data: bytes) -> None:
    with no_failures():
        peer = served.connect()
        (before,) = peer.tell(good_frame(6))
        assert before.opaque == 6
        assert peer.tell(data + good_frame()) == []
        assert peer.is_closed
        assert peer.tell(good_frame()) == []  # nothing is served after it
        peer.leave()
        served.assert_serves()


def test_what_came_before_is_answered(served: Any) -> None:
    peer = served.connect()
    (answer,) = peer.tell(good_frame(8) + BROKEN["zeros"])
    assert answer.opaque == 8
    assert peer.is_closed


def test_a_frame_cut_anywhere_is_waited_for(served: Any) -> None:
    data = good_frame()
    for size in range(len(data)):
        peer = served.connect()
        assert peer.tell(data[:size]) == []
        assert not peer.is_closed
        (answer,) = peer.tell(data[size:])
        assert answer.opaque == 7
        peer.leave()  # and one that goes in the middle harms nobody
        gone = served.connect()
        gone.tell(data[:size])
        gone.leave()
    served.assert_serves()


def test_unknown_codes_are_answered(served: Any) -> None:
    for code in (-1, 0, 9999, 2**31 - 1):
        (answer,) = served.connect().tell(bytes_of(RemotingCommand(code, opaque=3)))
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        assert answer.remark == f" request type {code} not supported"


def test_answers_nobody_waits_for_are_passed_over(served: Any) -> None:
    peer = served.connect()
    stray = RemotingCommand(0, flag=RESPONSE_FLAG, opaque=12)
    (answer,) = peer.tell(bytes_of(stray) + good_frame())
    assert answer.opaque == 7
    assert not peer.is_closed


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Frames of any calls, some bytes of them changed, dropped or doubled."""
    stream = b""
    for _ in range(draw(st.integers(1, 3))):
        call = draw(st.sampled_from(list(CALLS.values())))
        ext_fields = {
            field.wire: draw(st.sampled_from([GOOD[field.kind], *wrong_values(field)]))
            for field in call.request.fields
            if draw(st.booleans())
        }
        command = RemotingCommand(
            call.code,
            ext_fields,
            draw(st.sampled_from(BODIES)),
            flag=draw(st.sampled_from([0, 0, 0, 2, 1, 3])),
            serialize_type=draw(st.sampled_from([0, 1])) if call.code < 32_768 else 0,
        )
        stream += bytes_of(command)
    data = bytearray(stream)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data) - 1))
        kind = draw(st.sampled_from(["change", "drop", "double"]))
        if kind == "change":
            data[at] = draw(st.integers(0, 255))
        elif kind == "drop" and len(data) > 1:
            del data[at]
        else:
            data[at:at] = data[at : at + 3]
    return bytes(data)


@pytest.mark.parametrize("make", SERVERS)
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.lists(damaged() | st.binary(max_size=200), min_size=1, max_size=4))
def test_damage_of_any_kind(make: Any, data: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder, no_failures():
        served = make(Path(folder))
        peer = served.connect()
        for part in data:
            for answer in peer.tell(part):
                assert answer.code == ResponseCode.SUCCESS or answer.remark
        served.assert_serves()
        peer.leave()
        for _ in range(LONGEST_WAIT_S):
            served.reactor.advance(1)
        served.assert_serves()
