# SPDX-License-Identifier: Apache-2.0
"""Spans and metrics: what they are called, what they tell, how they belong together.

Programs that are instrumented run in tests/process/test_client_opentelemetry.py.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from twisted.internet.defer import Deferred

from tests.client.fakes import result_of
from txrocketmq.client.consumer.listening.hooks import ConsumeHooks
from txrocketmq.client.consumer.listening.listener import ConsumeStatus
from txrocketmq.client.core.trace import MessageType
from txrocketmq.client.opentelemetry import instrument
from txrocketmq.client.producer.hooks import SendContext
from txrocketmq.client.producer.send_result import SendResult, SendStatus
from txrocketmq.remoting.errors import RequestTimeout
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import Message, MessageExt, MessageQueue

QUEUE = MessageQueue("T", "broker-a", 3)
RESULT = SendResult(SendStatus.SEND_OK, "ID", "OFFSET", QUEUE, 7)


class Telemetry:
    """Providers that keep what they are given."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._metrics = InMemoryMetricReader()
        self.tracer_provider = TracerProvider(shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self.meter_provider = MeterProvider([self._metrics], shutdown_on_exit=False)

    def instrument(self, client: Any) -> Any:
        return instrument(
            client, tracer_provider=self.tracer_provider, meter_provider=self.meter_provider
        )

    def spans(self) -> list[ReadableSpan]:
        return list(self._spans.get_finished_spans())

    def points(self) -> dict[str, list[Any]]:
        data: Any = self._metrics.get_metrics_data()
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


class FakeProducer:
    """A producer that answers as it is told, after an attempt that hooks see."""

    group = "g"

    def __init__(self, answer: Callable[[], Any], error: Exception | None = None) -> None:
        self._answer = answer
        self._error = error
        self._hooks: list[Any] = []
        self.sent: list[Any] = []

    def add_send_hook(self, hook: Any) -> None:
        self._hooks.append(hook)

    def send(self, message: Message, *, queue: Any = None) -> Any:
        context = SendContext(
            "g", message, QUEUE, "10.0.0.1:10911", MessageType.NORMAL, 0, error=self._error
        )
        for hook in self._hooks:
            hook.before_send(context)
            hook.after_send(context)
        self.sent.append(message)
        return self._answer()

    def send_batch(self, messages: list[Message]) -> Any:
        self.sent += messages
        return self._answer()


def test_a_send_has_a_span_whose_context_goes_with_the_message(telemetry: Telemetry) -> None:
    producer = telemetry.instrument(FakeProducer(lambda: RESULT))
    message = Message("T", b"body", properties={"TAGS": "a", "KEYS": "k1 k2", "DELAY": "3"})
    tracer = telemetry.tracer_provider.get_tracer("test")
    with tracer.start_as_current_span("request") as outer:
        assert producer.send(message) is RESULT
    span, _ = telemetry.spans()
    assert (span.name, span.kind) == ("send T", SpanKind.PRODUCER)
    assert span.parent == outer.get_span_context()
    own = span.get_span_context()
    assert own is not None
    assert message.properties["traceparent"].startswith(
        f"00-{own.trace_id:032x}-{own.span_id:016x}-"
    )
    assert dict(span.attributes or {}) == {
        "messaging.system": "rocketmq",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "T",
        "messaging.destination.partition.id": "3",
        "messaging.message.id": "ID",
        "messaging.message.body.size": 4,
        "messaging.rocketmq.client_group": "g",
        "messaging.rocketmq.message.tag": "a",
        "messaging.rocketmq.message.keys": ("k1", "k2"),
        "messaging.rocketmq.message.delay_time_level": 3,
        "messaging.rocketmq.message.type": "normal",
        "messaging.rocketmq.send_status": "SEND_OK",
        "server.address": "10.0.0.1",
        "server.port": 10_911,
    }
    points = telemetry.points()
    (sent,) = points["messaging.client.sent.messages"]
    assert (sent.value, sent.attributes["messaging.destination.name"]) == (1, "T")
    assert points["messaging.client.operation.duration"][0].count == 1


def test_a_topic_and_a_body_are_a_message(telemetry: Telemetry) -> None:
    producer = telemetry.instrument(FakeProducer(lambda: RESULT))
    producer.send("T", "one")
    producer.send("T", body=b"two", queue=None)
    assert [each.body for each in producer.sent] == [b"one", b"two"]
    assert [span.name for span in telemetry.spans()] == ["send T"] * 2


def test_a_send_that_fails_says_so(telemetry: Telemetry) -> None:
    def fail() -> None:
        raise RequestTimeout("no answer")

    producer = telemetry.instrument(FakeProducer(fail, RequestTimeout("no answer")))
    with pytest.raises(RequestTimeout):
        producer.send(message=Message("T", b"x"))
    (span,) = telemetry.spans()
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "RequestTimeout"
    assert [event.name for event in span.events] == ["attempt failed", "exception"]
    (sent,) = telemetry.points()["messaging.client.sent.messages"]
    assert sent.attributes["error.type"] == "RequestTimeout"


def test_a_batch_is_one_send(telemetry: Telemetry) -> None:
    producer = telemetry.instrument(FakeProducer(lambda: RESULT))
    producer.send_batch([Message("T", b"xy"), Message("T", b"z")])
    (span,) = telemetry.spans()
    assert (span.attributes or {})["messaging.batch.message_count"] == 2
    assert (span.attributes or {})["messaging.message.body.size"] == 3
    assert len({each.properties["traceparent"] for each in producer.sent}) == 1
    (sent,) = telemetry.points()["messaging.client.sent.messages"]
    assert sent.value == 2


def test_a_span_ends_when_the_result_is_there_in_any_form(telemetry: Telemetry) -> None:
    future: Future[SendResult] = Future()
    deferred: Deferred[SendResult] = Deferred()
    for answer in (future, deferred):
        producer = telemetry.instrument(FakeProducer(lambda answer=answer: answer))  # type: ignore[misc]
        assert producer.send(Message("T", b"x")) is answer
    assert telemetry.spans() == []
    future.set_result(RESULT)
    deferred.callback(RESULT)
    assert result_of(deferred) is RESULT
    assert len(telemetry.spans()) == 2

    async def wait() -> SendResult:
        await asyncio.sleep(0)
        return RESULT

    async def begin() -> Any:
        return asyncio.ensure_future(wait())

    async def both() -> None:
        assert await telemetry.instrument(FakeProducer(wait)).send(Message("T", b"x")) is RESULT
        later = await telemetry.instrument(FakeProducer(begin)).send(Message("T", b"x"))
        assert len(telemetry.spans()) == 3
        assert await later is RESULT
        await asyncio.sleep(0)

    asyncio.run(both())
    assert len(telemetry.spans()) == 4
    assert {span.status.status_code for span in telemetry.spans()} == {StatusCode.UNSET}


def test_errors_come_in_any_form(telemetry: Telemetry) -> None:
    failed: Future[SendResult] = Future()
    cancelled: Future[SendResult] = Future()
    deferred: Deferred[SendResult] = Deferred()
    for answer in (failed, cancelled, deferred):
        telemetry.instrument(FakeProducer(lambda answer=answer: answer)).send(Message("T", b"x"))  # type: ignore[misc]
    failed.set_exception(ValueError("no"))
    cancelled.cancel()
    deferred.errback(ValueError("no"))
    deferred.addErrback(lambda failure: failure.trap(ValueError))

    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(telemetry.instrument(FakeProducer(fail)).send(Message("T", b"x")))
    assert [span.status.status_code for span in telemetry.spans()] == [StatusCode.ERROR] * 4


def test_what_is_no_message_is_left_to_the_producer(telemetry: Telemetry) -> None:
    class Refuses:
        group = "g"

        def add_send_hook(self, hook: Any) -> None:
            """Takes the hook."""

        def send(self, message: Any = None) -> None:
            raise TypeError("no message")

    producer = telemetry.instrument(Refuses())
    nothing: list[tuple[Any, ...]] = [(), (None,), ([],)]
    for arguments in nothing:
        with pytest.raises(TypeError, match="no message"):
            producer.send(*arguments)
    assert telemetry.spans() == []


class FakeConsumer:
    """A consumer whose hooks see what the test consumes."""

    def __init__(self) -> None:
        self.hooks = ConsumeHooks(Clock(), "g")

    def add_consume_hook(self, hook: Any) -> None:
        self.hooks.add(hook)


class FakePuller(FakeConsumer):
    """A consumer that is polled."""

    def poll(self) -> None:
        """Gives what has arrived."""


def received(number: int = 0, **properties: str) -> MessageExt:
    own = {"UNIQ_KEY": f"M{number}", **properties}
    return MessageExt("T", b"x", properties=own, reconsume_times=1)


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_listener_runs_in_a_span_that_follows_the_send(telemetry: Telemetry) -> None:
    consumer = telemetry.instrument(FakeConsumer())
    message = received(traceparent=PARENT, TAGS="a")
    seen: list[Any] = []
    answer = consumer.hooks.around(
        lambda: seen.append(trace.get_current_span().get_span_context()), [message], QUEUE
    )
    assert answer is None
    (span,) = telemetry.spans()
    assert (span.name, span.kind) == ("process T", SpanKind.CONSUMER)
    assert seen == [span.get_span_context()]
    assert span.parent is not None
    assert f"{span.parent.span_id:x}" == "b7ad6b7169203331"
    assert [f"{link.context.span_id:x}" for link in span.links] == ["b7ad6b7169203331"]
    assert dict(span.attributes or {}) == {
        "messaging.system": "rocketmq",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "T",
        "messaging.destination.partition.id": "3",
        "messaging.consumer.group.name": "g",
        "messaging.message.id": "M0",
        "messaging.message.body.size": 1,
        "messaging.rocketmq.delivery_attempt": 2,
        "messaging.rocketmq.message.tag": "a",
    }
    assert not trace.get_current_span().get_span_context().is_valid, "only in the listener"
    points = telemetry.points()
    assert points["messaging.client.consumed.messages"][0].value == 1
    assert points["messaging.process.duration"][0].count == 1


def test_several_messages_are_linked_to(telemetry: Telemetry) -> None:
    consumer = telemetry.instrument(FakeConsumer())
    messages = [received(0, traceparent=PARENT), received(1), received(2, traceparent=PARENT)]
    consumer.hooks.around(lambda: None, messages, QUEUE)
    (span,) = telemetry.spans()
    assert span.parent is None
    linked = [dict(link.attributes or {})["messaging.message.id"] for link in span.links]
    assert linked == ["M0", "M2"]
    assert (span.attributes or {})["messaging.batch.message_count"] == 3


def test_coroutines_run_in_their_span_to_the_end(telemetry: Telemetry) -> None:
    consumer = telemetry.instrument(FakeConsumer())
    waiting: Deferred[None] = Deferred()
    seen: list[Any] = []

    async def listen() -> None:
        await waiting
        seen.append(trace.get_current_span().get_span_context())

    answer = Deferred.fromCoroutine(consumer.hooks.around(listen, [received()], QUEUE))
    assert telemetry.spans() == []
    waiting.callback(None)
    result_of(answer)
    assert seen == [telemetry.spans()[0].get_span_context()]


@pytest.mark.parametrize("answer", [ConsumeStatus.RECONSUME_LATER, ValueError("no")])
def test_what_was_not_consumed_is_an_error(telemetry: Telemetry, answer: Any) -> None:
    consumer = telemetry.instrument(FakeConsumer())

    def listen() -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    try:
        consumer.hooks.around(listen, [received()], QUEUE)
    except ValueError:
        assert answer.args == ("no",)
    (span,) = telemetry.spans()
    assert span.status.status_code is StatusCode.ERROR
    expected = "ValueError" if isinstance(answer, Exception) else "RECONSUME_LATER"
    assert (span.attributes or {})["error.type"] == expected


def test_what_is_polled_is_received(telemetry: Telemetry) -> None:
    consumer = telemetry.instrument(FakePuller())
    consuming = consumer.hooks.begin([received(traceparent=PARENT)], QUEUE)
    consumer.hooks.end(consuming, ConsumeStatus.CONSUME_SUCCESS)
    (span,) = telemetry.spans()
    assert (span.name, span.kind, span.parent) == ("receive T", SpanKind.CLIENT, None)
    assert len(span.links) == 1


def test_other_objects_are_refused(telemetry: Telemetry) -> None:
    with pytest.raises(TypeError, match="neither a producer nor a consumer: 5"):
        telemetry.instrument(5)


def test_without_the_api_it_is_said_what_to_install() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None; import txrocketmq.client.opentelemetry"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr.splitlines()[-1].endswith("pip install 'txrocketmq[opentelemetry]'")
