# SPDX-License-Identifier: Apache-2.0
"""What tests do with a server, asked of a stand-in; a real server is asked in tests/process."""

from __future__ import annotations

import asyncio
import base64
import inspect
from typing import Any

import pytest

from txrocketmq.client import ConsumeFrom, ConsumeOrderlyStatus, ConsumeStatus, orderly
from txrocketmq.client.consumer.listening.listener import is_orderly
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.testing import calls
from txrocketmq.testing.calls import ListenerErrors, ServerCalls, WrongAnswer


class Asked(ServerCalls):
    """Gives prepared answers, and notes what was asked."""

    def __init__(self, **answers: Any) -> None:
        super().__init__()
        self.namesrv_addr = "n:1"
        self.answers = answers
        self.asked: list[tuple[Any, ...]] = []

    def ask(self, name: str, *arguments: Any) -> Any:
        self.asked.append((name, *arguments))
        answer = self.answers.get(name)
        if isinstance(answer, Exception):
            raise answer
        return answer(*arguments) if callable(answer) else answer

    def advance(self, ms: int) -> None:
        raise NotImplementedError

    kill = pause = reset = restart = resume = lambda _: None  # type: ignore[assignment]


LAG = {"T": [[0, 3, 5], [1, 2, 2]], "U": [[0, 0, 4]]}


def test_lag_is_what_is_left_of_a_topic_or_of_all() -> None:
    it = Asked(lag=LAG)
    assert it.lag("g") == 6
    assert it.lag("g", "T") == 2
    with pytest.raises(ValueError, match="group g does not consume V, but T, U"):
        it.lag("g", "V")


def test_waiting_ends_when_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    answers = iter([LAG, LAG, {"T": [[0, 5, 5]]}])
    Asked(lag=lambda _: next(answers)).wait_consumed("g")
    assert slept == [calls.LOOK_S] * 2


def test_waiting_says_what_is_left() -> None:
    with pytest.raises(
        TimeoutError,
        match="after 0 s group g has not consumed all: T queue 0 at 3 of 5; U queue 0 at 0 of 4$",
    ):
        Asked(lag=LAG).wait_consumed("g", timeout_s=0)
    with pytest.raises(TimeoutError, match="after 0 s group g consumes no topic yet"):
        Asked(lag=ValueError("group g consumes no topic yet")).wait_consumed("g", timeout_s=0)
    many = {"T": [[n, 0, 1] for n in range(11)]}
    with pytest.raises(TimeoutError, match="queue 7 at 0 of 1 and 3 queues more$"):
        Asked(lag=many).wait_consumed("g", timeout_s=0)


@pytest.mark.parametrize("lag", [LAG, {"T": [[0, 5, 5]]}, ValueError("nothing yet")])
def test_waiting_ends_with_the_error_of_a_listener(lag: Any) -> None:
    """Whatever else is to be said: a message whose listener fails counts as consumed."""
    it = Asked(lag=lag)

    def fail() -> None:
        with pytest.raises(ZeroDivisionError):
            it.listener_errors.watched("g", lambda *_: 1 / 0)()

    fail()
    with pytest.raises(ZeroDivisionError):
        it.wait_consumed("g")
    fail()
    it.answers["lag"] = {"T": [[0, 5, 5]]}
    it.wait_consumed("g", ignore_errors=True)
    it.wait_consumed("g")


def record(body: bytes, place: int) -> bytes:
    message = MessageExt("T", body, commit_log_offset=place)
    return encode_message(message)


def test_messages_are_read_in_pages_and_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {
        (0, 0): (record(b"a", 0) + record(b"d", 300), 2),
        (0, 2): (record(b"e", 400), 3),
        (1, 0): (record(b"b", 100) + record(b"c", 200), 2),
    }

    def records(_: str, queue_id: int, offset: int) -> dict[str, Any]:
        data, following = pages.get((queue_id, offset), (b"", offset))
        return {"records": base64.b64encode(data).decode(), "next": following}

    it = Asked(queue_ids=[0, 1], records=records)
    assert [message.body for message in it.messages("T")] == [b"a", b"b", b"c", b"d", b"e"]
    monkeypatch.setattr(calls, "MAX_MESSAGES", 4)
    with pytest.raises(ValueError, match="topic T has more than 4 messages"):
        it.messages("T")


def test_a_fault_stands_until_its_end() -> None:
    it = Asked(refuse=3, delay=4, count=2, drop_connections=5)
    with it.refuse("FLOW_CONTROL", of="pull", topic="T", times=2, remark="no") as fault:
        assert fault.count == 2
    it.delay_ms(20).end()
    assert it.drop_connections() == 5
    assert it.asked == [
        ("refuse", "FLOW_CONTROL", "pull", "T", 2, "no"),
        ("count", 3),
        ("end", 3),
        ("delay", 20),
        ("end", 4),
        ("drop_connections",),
    ]


class Client:
    made: list[Client] = []  # noqa: RUF012 - emptied by the fixture

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self.arguments, self.settings = arguments, settings
        self.happened: list[Any] = []
        self.made.append(self)

    def start(self) -> Client:
        self.happened.append("start")
        return self

    def send(self, message: Any) -> str:
        self.happened.append((message.topic, message.body, message.tags))
        return "sent"

    def shutdown(self) -> None:
        self.happened.append("shutdown")


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    Client.made = []
    for name in ("StartedProducer", "StartedPushConsumer", "StartedLitePullConsumer"):
        monkeypatch.setattr(calls, name, type(name, (Client,), {}))
    return Client.made


def test_clients_find_the_server_and_are_shut_down_once(clients: list[Client]) -> None:
    it = Asked()
    it.producer("p", retry_times=1)
    it.consumer("T", group="g", poll_timeout_ms=1)
    it.consumer("T", lambda messages, context: None, expression="a || b", persist_interval_ms=5)
    producer, lite, push = clients
    assert (producer.arguments, producer.settings) == (
        ("p",),
        {"namesrv_addr": "n:1", "retry_times": 1},
    )
    own = {"namesrv_addr": "n:1", "consume_from": ConsumeFrom.FIRST_OFFSET}
    assert lite.arguments == ("g", {"T": "*"})
    assert lite.settings == {**own, "persist_interval_ms": 100, "poll_timeout_ms": 1}
    assert push.arguments[:2] == ("testing", {"T": "a || b"})
    assert push.settings == {**own, "persist_interval_ms": 5}
    assert it.asked == [("ensure_topic", "T")] * 2
    assert it.has_clients
    it.shut_down_clients()
    assert not it.has_clients
    assert [each.happened for each in clients] == [["start", "shutdown"]] * 3
    it.shut_down_clients()
    assert [each.happened for each in clients] == [["start", "shutdown"]] * 3


def test_one_producer_sends_until_it_is_shut_down(clients: list[Client]) -> None:
    it = Asked()
    assert it.send("T", "one", tags="a") == "sent"
    it.send("T")
    it.shut_down_clients()
    it.send("T", b"two")
    first, second = clients
    assert first.happened == ["start", ("T", b"one", "a"), ("T", b"", None), "shutdown"]
    assert second.happened == ["start", ("T", b"two", None)]


def test_what_has_started_is_not_started_by_a_with_statement() -> None:
    for kind in (
        calls.StartedProducer,
        calls.StartedPushConsumer,
        calls.StartedLitePullConsumer,
    ):
        it: Any = object.__new__(kind)
        it._has_left = True
        assert it.__enter__() is it


def fails(messages: list[Any], context: Any) -> None:
    raise ValueError(f"not {messages}")


async def fails_later(messages: list[Any], context: Any) -> None:
    await asyncio.sleep(0)
    raise ValueError(f"not {messages}")


class Fails:
    """A listener that is an object, called as a coroutine function."""

    async def __call__(self, messages: list[Any], context: Any) -> None:
        await fails_later(messages, context)


def test_the_first_error_of_a_group_is_raised_once() -> None:
    errors = ListenerErrors()
    listener = errors.watched("g", fails)
    for number in range(2):
        with pytest.raises(ValueError, match=str(number)):
            listener([number], None)
    errors.check("other")
    with pytest.raises(ValueError, match=r"not \[0\]") as raised:
        errors.check("g")
    assert raised.value.__notes__ == ["A listener of the group g has raised this."]
    errors.check("g")
    with pytest.raises(ValueError, match="2"):
        listener([2], None)
    errors.forget("g")
    errors.check("g")


@pytest.mark.parametrize("listener", [fails_later, Fails()])
def test_coroutine_functions_are_watched_too(listener: Any) -> None:
    errors = ListenerErrors()
    watched = errors.watched("g", listener)
    assert inspect.iscoroutinefunction(watched)
    with pytest.raises(ValueError, match="5"):
        asyncio.run(watched([5], None))
    with pytest.raises(ValueError, match="5"):
        errors.check("g")


@pytest.mark.parametrize("answer", [None, *ConsumeStatus, *ConsumeOrderlyStatus])
def test_a_status_is_no_error(answer: Any) -> None:
    errors = ListenerErrors()
    assert errors.watched("g", lambda messages, context: answer)([], None) is answer
    errors.check("g")


def test_an_answer_that_is_no_status_is_an_error() -> None:
    errors = ListenerErrors()
    assert errors.watched("g", lambda messages, context: True)([], None) is True
    with pytest.raises(
        WrongAnswer, match="^the listener of group g returned True, so its mess"
    ) as it:
        errors.check("g")
    assert not hasattr(it.value, "__notes__")
    errors.check("g")


def test_the_rest_of_a_listener_stays_as_it_is() -> None:
    errors = ListenerErrors()
    listener: Any = orderly(lambda messages, context: messages[-1])
    watched = errors.watched("g", listener)
    assert is_orderly(watched)
    assert watched([1, ConsumeOrderlyStatus.SUCCESS], None) is ConsumeOrderlyStatus.SUCCESS
    assert list(inspect.signature(watched).parameters) == ["messages", "context"]
    errors.check("g")
