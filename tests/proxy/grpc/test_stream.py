# SPDX-License-Identifier: Apache-2.0
"""One call: requests, conversations, and answers for which there is no room."""

from __future__ import annotations

import gzip

import pytest

from tests.proxy.grpc.clients import Client
from tests.proxy.grpc.texts import Text
from txrocketmq.proxy.grpc.framing import framed
from txrocketmq.proxy.grpc.status import GrpcStatus


@pytest.fixture
def client() -> Client:
    return Client()


def test_a_long_request_may_come_in_many_frames(client: Client) -> None:
    text = "y" * 3_000_000
    number = client.open("Echo")
    client.pour(number, framed(text.encode()))
    client.exchange(600)
    assert len(client.answers[number].data) == 3_000_005
    assert client.answers[number].status == 0


def test_the_rest_of_a_request_may_look_like_a_whole_one(client: Client) -> None:
    number, inner = client.open("Echo"), framed(b"x")
    client.h2.send_data(number, framed(inner)[: -len(inner)])
    client.exchange()
    client.h2.send_data(number, inner, end_stream=True)
    client.exchange()
    assert client.answers[number].data == framed(inner)


@pytest.mark.parametrize(
    ("data", "status", "why"),
    [
        (b"", 13, "no whole request"),
        (framed(b"half")[:-1], 13, "no whole request"),
        (framed(b"one") + framed(b"two"), 13, "no whole request"),
        (framed(b"\xff"), 13, "is no WaitRequest of protobuf"),
        (framed(bytes(1 << 20 | 1))[:9], 8, "has 1048577 bytes, but at most 1048576"),
    ],
)
def test_requests_that_are_none(client: Client, data: bytes, status: int, why: str) -> None:
    number = client.open("Wait")
    client.h2.send_data(number, data, end_stream=True)
    client.exchange()
    assert client.answers[number].status == status
    assert why in client.answers[number].message
    assert not client.methods.waiting


def test_two_requests_in_two_frames(client: Client) -> None:
    number = client.open("Wait")
    client.say(number, "one")
    client.say(number, "two")
    assert client.answers[number].status == 13
    assert "more than one request" in client.answers[number].message


@pytest.mark.parametrize(("text", "status"), [("\n\0" * 600_000, 8), ("\n\0" * 6_000, 0), ("", 0)])
def test_a_long_request_of_tiny_fields_is_not_decoded(
    client: Client, text: str, status: int
) -> None:
    number = client.open("Bulk")
    client.pour(number, framed(text.encode()))
    client.exchange(200)
    assert client.answers[number].status == status


# ------------------------------------------------------------------------------- conversations


def test_a_conversation(client: Client) -> None:
    number = client.open("Talk")
    client.say(number, "a")
    client.say(number, "b")
    answer = client.answers[number]
    assert (answer.data, answer.is_over) == (framed(b"aa") + framed(b"bb"), False)
    client.h2.end_stream(number)
    client.exchange()
    assert (answer.status, client.methods.ended) == (0, [""])


def test_the_server_may_end_it(client: Client) -> None:
    number = client.open("Talk")
    client.say(number, "end")
    answer = client.answers[number]
    assert (answer.status, answer.message) == (10, "as you like")
    assert client.methods.ended == ["as you like"]
    assert not client.peer.streams


def test_a_message_that_fails_ends_it(client: Client) -> None:
    number = client.open("Talk")
    client.say(number, "fail")
    assert client.answers[number].status == 13
    assert len(client.methods.ended) == 1


def test_the_next_message_waits_for_the_one_before(client: Client) -> None:
    number = client.open("Talk")
    client.say(number, "wait")
    client.say(number, "after")
    client.h2.end_stream(number)
    client.exchange()
    answer = client.answers[number]
    assert not answer.data
    client.methods.waiting[0].callback(None)
    client.exchange()
    assert (answer.data, answer.status) == (framed(b"afterafter"), 0)


def test_only_some_messages_are_taken_in_a_turn(client: Client) -> None:
    number = client.open("Talk")
    client.h2.send_data(number, framed(b"x") * 150)
    client.peer.dataReceived(client.h2.data_to_send())
    counts = client.service.counts.of("Talk")
    assert counts.received == 64
    client.exchange(5)
    assert counts.received == 150


# ---------------------------------------------------------------------------------- slow readers


def test_a_slow_reader_gets_all_and_holds_little() -> None:
    client = Client(window_bytes=1_000)
    answer = client.call("Many", "20 50000")
    number = client.h2.highest_outbound_stream_id
    client.exchange()
    assert len(answer.data) == 1_000
    assert client.methods.left == [19]
    assert client.peer._parked_bytes < 100_000
    while not answer.is_over:
        client.h2.increment_flow_control_window(20_000, number)
        client.h2.increment_flow_control_window(20_000)
        client.exchange()
    assert len(answer.data) == 20 * 50_005
    assert (answer.status, answer.is_over) == (0, True)


def test_room_in_the_connection_is_shared_by_calls_in_turn() -> None:
    client = Client(window_bytes=1_000_000)
    first, second = client.call("Many", "1 400000"), client.call("Many", "1 400000")
    client.exchange(9)
    assert len(first.data) + len(second.data) == 65_535
    for _ in range(4):
        client.h2.increment_flow_control_window(65_536)
        client.exchange(9)
    assert abs(len(first.data) - len(second.data)) <= 65_536 + 16_384
    assert min(len(first.data), len(second.data)) > 65_536


def test_answers_without_room_are_left_alone() -> None:
    """However many wait: nothing is done in turns until there is room."""
    client = Client(window_bytes=10)
    answers = [client.call("Many", "1 100") for _ in range(90)]
    client.exchange()
    assert len(client.peer._waiting) == 90
    assert not client.peer._is_sending_on
    looked = list(client.peer.streams)
    client.h2.increment_flow_control_window(1_000, looked[50])
    client.exchange()
    assert [len(each.data) for each in answers] == [10] * 50 + [105] + [10] * 39
    assert answers[50].is_over
    assert not client.peer._is_sending_on
    for number in [each for each in looked if each != looked[50]]:
        client.h2.increment_flow_control_window(1_000, number)
    client.exchange(9)
    assert all(answer.is_over for answer in answers)
    assert not client.peer._waiting


def test_a_connection_without_room_costs_nothing_until_there_is() -> None:
    client = Client(window_bytes=1 << 20)
    answers = [client.call("Many", "1 5000") for _ in range(60)]
    client.exchange(9)
    assert sum(len(each.data) for each in answers) == 65_535
    assert not client.peer._is_sending_on
    client.h2.increment_flow_control_window(1 << 20)
    client.exchange(9)
    assert all(answer.is_over for answer in answers)


def test_what_waits_is_sent_in_slices() -> None:
    client = Client()
    client.h2.increment_flow_control_window(1 << 24)
    number = client.open("Many")
    client.h2.increment_flow_control_window(1 << 24, number)
    client.h2.send_data(number, framed(b"1 2000000"), end_stream=True)
    client.peer.dataReceived(client.h2.data_to_send())
    client.peer._send_on()
    client.peer._flush()
    sent = len(client.end.wire.value())
    assert sent < 700_000
    client.exchange(20)
    assert len(client.answers[number].data) == 2_000_005


def test_a_deadline_ends_an_answer_that_waits() -> None:
    client = Client(window_bytes=1_000)
    answer = client.call("Many", "1 50000", grpc_timeout="1S")
    client.time.advance(2)
    client.service.deadlines.tick(client.clock.steady_ms())
    client.exchange()
    assert answer.reset == 8
    assert not client.peer.streams
    assert client.service.counts.of("Many").ended == {GrpcStatus.DEADLINE_EXCEEDED: 1}
    assert client.peer._parked_bytes < 20_000


def test_nothing_is_held_for_calls_that_have_ended(client: Client) -> None:
    held = client.peer._parked_bytes
    client.call("Echo", "x" * 10_000)
    client.call("Many", "3 10000")
    client.call("Fail")
    client.exchange(9)
    assert client.peer._parked_bytes == held


def compressed(text: str) -> bytes:
    """A message that gRPC has compressed, with its prefix."""
    return b"\1" + framed(gzip.compress(text.encode()))[1:]


def test_a_compressed_request_counts_as_long_as_it_is(client: Client) -> None:
    held = client.peer._parked_bytes
    number = client.open("Wait", grpc_encoding="gzip")
    client.h2.send_data(number, compressed("x" * 500_000))
    client.exchange()
    assert client.peer._parked_bytes - held >= 500_000
    client.h2.end_stream(number)
    client.exchange()
    client.methods.waiting[0].callback(Text("done"))
    assert client.peer._parked_bytes == held


@pytest.mark.parametrize(
    "encoded", [framed(b"x" * 30_000), compressed("x" * 30_000)], ids=["plain", "gzip"]
)
def test_a_conversation_holds_nothing_of_messages_that_it_is_done_with(
    client: Client, encoded: bytes
) -> None:
    number = client.open("Talk", grpc_encoding="gzip")
    client.exchange()
    held = client.peer._parked_bytes
    for _ in range(3):
        for at in range(0, len(encoded), 16_384):
            client.h2.send_data(number, encoded[at : at + 16_384])
        client.exchange()
        assert client.peer._parked_bytes == held
    assert len(client.answers[number].data) == 3 * 60_005
