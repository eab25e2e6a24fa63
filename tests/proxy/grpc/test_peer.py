# SPDX-License-Identifier: Apache-2.0
"""A connection of a gRPC client: its calls, its limits, and its end."""

from __future__ import annotations

import pytest
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, PingReceived
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs, formatEvent

from tests.proxy.grpc.clients import Client
from tests.proxy.grpc.texts import Text
from tests.remoting.transport.wires import FarEnd
from txrocketmq.proxy.grpc.framing import framed
from txrocketmq.proxy.grpc.peer import MOST_TO_RESET, QUIET_MS, SILENT_MS, GrpcPeer
from txrocketmq.proxy.grpc.status import GrpcStatus
from txrocketmq.proxy.http2.floods import BUCKETS, PING
from txrocketmq.remoting.transport.peer_state import ABORTED, CLOSING, OPEN


@pytest.fixture
def client() -> Client:
    return Client()


def nothing_is_left(client: Client) -> bool:
    """Whether all calls are forgotten."""
    peer = client.peer
    return not (peer.streams or peer._waiting or client.service.deadlines._steps)


def test_a_call(client: Client) -> None:
    answer = client.call("Echo", "hello", x_mq_client_id="me")
    assert answer.headers == {":status": "200", "content-type": "application/grpc"}
    assert (answer.data, answer.status) == (framed(b"hello"), 0)
    assert answer.is_over
    (call,) = client.methods.calls
    assert call.headers.get("x-mq-client-id", "") == "me"
    assert (call.method, call.peer, call.local) == ("Echo", "127.0.0.1:50000", "127.0.0.1:10911")
    assert call.deadline_ms is None
    assert nothing_is_left(client)


def test_answers_come_in_the_order_in_which_they_are_there(client: Client) -> None:
    first, second = client.call("Wait"), client.call("Wait")
    assert not first.data
    client.methods.waiting[1].callback(Text("two"))
    client.exchange()
    assert (first.data, second.data) == (b"", framed(b"two"))
    client.methods.waiting[0].callback(Text("one"))
    client.exchange()
    assert first.data == framed(b"one")
    assert nothing_is_left(client)


def test_a_coroutine_is_waited_for(client: Client) -> None:
    answer = client.call("Async")
    client.methods.waiting[0].callback(None)
    client.exchange()
    assert answer.data == framed(b"after that")


def test_errors_are_trailers_only(client: Client) -> None:
    answer = client.call("Refuse")
    assert (answer.status, answer.message, answer.data) == (5, "n%C3%B6", b"")
    assert answer.headers[":status"] == "200"
    assert answer.is_over


def test_a_defect_is_logged_once_and_told_to_nobody(client: Client) -> None:
    with capturedLogs() as logs:
        answers = [client.call("Fail") for _ in range(20)]
    assert {each.status for each in answers} == {13}
    assert "ZeroDivision" not in answers[0].message
    failed = [each for each in logs if "log_failure" in each]
    assert 1 <= len(failed) <= 5
    assert formatEvent(failed[0]).startswith("Fail failed")


@pytest.mark.parametrize(
    ("headers", "status"),
    [({":method": "GET"}, "405"), ({"content-type": "text/html"}, "415")],
)
def test_what_is_not_grpc(client: Client, headers: dict[str, str], status: str) -> None:
    number = client.open("Echo", **headers)
    client.exchange()
    assert client.answers[number].headers[":status"] == status
    assert client.call("Echo", "still there").status == 0


def test_a_method_that_is_not_served(client: Client) -> None:
    answer = client.call("Nothing")
    assert (answer.status, answer.message) == (12, "/s/Nothing is not served")
    assert client.service.counts.of("other").ended == {GrpcStatus.UNIMPLEMENTED: 1}


@pytest.mark.parametrize(
    ("headers", "status", "why"),
    [
        ({"grpc_encoding": "zstd"}, 12, "grpc-encoding is 'zstd'"),
        ({"grpc_timeout": "soon"}, 13, "grpc-timeout is 'soon'"),
    ],
)
def test_headers_that_cannot_be_obeyed(
    client: Client, headers: dict[str, str], status: int, why: str
) -> None:
    answer = client.call("Echo", **headers)
    assert answer.status == status
    assert why in answer.message


def test_calls_beyond_the_limit_are_refused_and_the_others_go_on(client: Client) -> None:
    """A client may open many calls before it has read how many there may be."""
    client.service.most_calls = 3
    opened = [client.open("Wait") for _ in range(5)]
    client.exchange()
    refused = [client.answers[each].reset for each in opened]
    assert refused == [None] * 3 + [ErrorCodes.REFUSED_STREAM] * 2
    client.h2.reset_stream(opened[0])
    client.exchange()
    assert client.call("Echo", "there is room").status == 0


def test_a_deadline_cancels(client: Client) -> None:
    answer = client.call("Wait", grpc_timeout="2S")
    client.time.advance(1.9)
    client.service.deadlines.tick(client.clock.steady_ms())
    assert not answer.is_over
    client.time.advance(0.3)
    client.service.deadlines.tick(client.clock.steady_ms())
    client.exchange()
    assert (answer.status, client.methods.cancelled, client.methods.ended) == (4, 1, ["cancelled"])
    assert nothing_is_left(client)


def test_a_client_cancels(client: Client) -> None:
    client.call("Wait", grpc_timeout="2S")
    client.h2.reset_stream(1, 8)
    client.exchange()
    assert (client.methods.cancelled, client.methods.ended) == (1, ["cancelled"])
    assert nothing_is_left(client)


def test_all_calls_end_with_the_connection(client: Client) -> None:
    for _ in range(3):
        client.call("Wait")
    client.open("Talk")
    client.exchange()
    client.end.leave()
    assert client.methods.cancelled == 3
    assert client.methods.ended.count("cancelled") == 3
    assert "the caller is gone" in client.methods.ended
    assert nothing_is_left(client)
    assert client.closed == [client.peer]


def test_calls_are_counted(client: Client) -> None:
    client.call("Echo", "hello")
    client.call("Wait")
    counts = client.service.counts
    assert counts.of("Echo").ended == {GrpcStatus.OK: 1}
    assert (counts.of("Echo").received, counts.of("Echo").sent) == (1, 1)
    assert (counts.of("Echo").open, counts.of("Wait").open) == (0, 1)


# ------------------------------------------------------------------------------ who is there


def test_a_quiet_client_with_calls_is_asked_and_given_up(client: Client) -> None:
    client.call("Wait")
    assert client.peer.idle_ms(10**9) == 0
    client.peer.expire(10**9)
    client.peer.expire(10**9 + QUIET_MS)
    assert not any(isinstance(each, PingReceived) for each in client.events)
    client.time.advance(0)
    assert b"txrocket" in client.end.wire.value()
    client.peer.expire(10**9 + QUIET_MS + SILENT_MS)
    assert client.peer.state is ABORTED
    assert client.methods.cancelled == 1


def test_one_that_answers_stays(client: Client) -> None:
    client.call("Wait")
    for minute in range(1, 5):
        client.peer.expire(minute * 2 * QUIET_MS)
        client.peer.expire(minute * 2 * QUIET_MS + QUIET_MS)
        client.exchange()
    assert client.peer.state is OPEN


def test_one_without_calls_is_idle(client: Client) -> None:
    assert client.peer.idle_ms(1_000) == 0
    assert client.peer.idle_ms(9_000) == 8_000


def test_floods_run_out(client: Client) -> None:
    for _ in range(5):
        for _ in range(BUCKETS[PING].each_s):
            client.h2.ping(b"12345678")
        client.exchange()
        client.peer.expire(0)
    assert not client.peer.connection.floods._levels


def test_a_flood_ends_the_connection(client: Client) -> None:
    client.call("Wait")
    client.h2.state_machine.process_input = lambda _: []  # h2 takes a GOAWAY for the end
    for _ in range(BUCKETS[PING].most + 1):
        client.h2.ping(b"12345678")
    with capturedLogs() as logs:
        client.exchange()
    assert "more PING frames" in formatEvent(logs[-1])
    assert client.peer.state is CLOSING
    (end,) = [each for each in client.events if isinstance(each, ConnectionTerminated)]
    assert end.error_code == 11
    assert client.methods.cancelled == 1


def test_a_stranger_is_told_apart() -> None:
    client = Client()
    peer = GrpcPeer(client.clock, client.service, client.closed.append)
    with capturedLogs() as logs:
        FarEnd(peer)
        peer.dataReceived(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
    assert "speaks HTTP/1 to the port for gRPC" in formatEvent(logs[-1])
    assert peer.state is CLOSING


# ------------------------------------------------------------------------------------- leaving


def test_what_may_take_for_ever_ends_at_once_when_the_server_leaves(client: Client) -> None:
    client.h2.state_machine.process_input = lambda _: []  # h2 takes a GOAWAY for the end
    waits, talks = client.call("Wait"), client.open("Talk")
    client.exchange()
    client.peer.leave()
    client.exchange()
    assert (client.answers[talks].status, waits.is_over) == (14, False)
    assert client.peer.state is OPEN
    client.methods.waiting[0].callback(Text("done"))
    client.exchange()
    assert waits.data == framed(b"done")
    assert client.peer.state is CLOSING


def reset_at(client: Client, number: int, seconds: int) -> int | None:
    """The code with which a stream is reset within so many seconds."""
    for _ in range(seconds):
        client.peer.expire(client.clock.steady_ms())
    client.exchange()
    return client.answers[number].reset


def test_a_conversation_that_has_ended_is_reset_later(client: Client) -> None:
    """The client for Rust, which has not read the end by then, would look for it for ever."""
    number = client.open("Talk")
    client.say(number, "end")
    assert client.answers[number].status == GrpcStatus.ABORTED
    assert reset_at(client, number, 1) is None
    assert reset_at(client, number, 1) == ErrorCodes.NO_ERROR


def test_one_that_its_client_has_ended_as_well_is_not_reset(client: Client) -> None:
    number = client.open("Talk")
    client.say(number, "end")
    client.h2.end_stream(number)
    client.exchange()
    assert reset_at(client, number, 3) is None
    assert client.call("Echo", "hello").status == 0


def test_of_many_that_have_ended_some_are_reset_at_once(client: Client) -> None:
    numbers = []
    for _ in range(MOST_TO_RESET + 2):
        numbers.append(client.open("Talk"))
        client.say(numbers[-1], "end")
    resets = [client.answers[each].reset for each in numbers]
    assert resets == [None] * MOST_TO_RESET + [ErrorCodes.NO_ERROR] * 2
    assert reset_at(client, numbers[0], 2) == ErrorCodes.NO_ERROR


def test_without_calls_it_leaves_at_once(client: Client) -> None:
    client.peer.leave()
    client.exchange(1)
    assert client.peer.state is CLOSING
    assert isinstance(client.events[-1], ConnectionTerminated)


def test_a_client_that_says_goodbye_is_let_go(client: Client) -> None:
    client.h2.close_connection()
    client.exchange(1)
    assert client.peer.state is CLOSING


def test_pauses_last_a_turn(client: Client) -> None:
    pause: Deferred[None] = client.peer.pause()
    assert not pause.called
    client.time.advance(0)
    assert pause.called
