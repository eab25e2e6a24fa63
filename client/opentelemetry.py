# SPDX-License-Identifier: Apache-2.0
"""Spans and metrics of OpenTelemetry for producers and consumers; needs `opentelemetry-api`.

    from txrocketmq.client.opentelemetry import instrument

    with instrument(Producer("orders", namesrv_addr=...)) as producer: ...

Names and attributes are those of the semantic conventions for messaging. A send has a span of kind
PRODUCER, from the call until its result, whose context goes with the message as `traceparent`. Each
call of a listener has a span of kind CONSUMER, which is current in the listener; its parent is the
span that has sent the message, or it has links to those spans if there are several messages.

Java: SendMessageOpenTracingHookImpl, ConsumeMessageOpenTracingHookImpl.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, Final, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from txrocketmq.client.consumer.listening.hooks import ConsumeHookContext
from txrocketmq.client.core.trace import MessageType
from txrocketmq.client.producer.hooks import SendContext
from txrocketmq.client.producer.new_message import new_message
from txrocketmq.client.producer.send_result import SendResult, TransactionSendResult
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import Message, MessageExt
from txrocketmq.remoting.transport.client import parse_address

try:
    from opentelemetry import context as contexts
    from opentelemetry import metrics, propagate, trace
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "txrocketmq.client.opentelemetry needs the OpenTelemetry API:"
        " pip install 'txrocketmq[opentelemetry]'"
    ) from error

NAME: Final = "txrocketmq.client"
"""The name of the instrumentation."""
SCHEMA: Final = "https://opentelemetry.io/schemas/1.30.0"
_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_TYPES: Final = {
    MessageType.NORMAL: "normal",
    MessageType.ORDER: "fifo",
    MessageType.DELAY: "delay",
    MessageType.TRANS_HALF: "transaction",
    MessageType.TRANS_COMMIT: "transaction",
}
_SENDS: Final = (
    "send", "send_async", "send_batch", "send_oneway", "send_in_transaction", "request",
)  # fmt: skip

C = TypeVar("C")


def instrument(
    client: C,
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> C:
    """Gives a producer or a consumer, of any form, spans and metrics; returns the same object.

    Call it before the start. The providers are the global ones by default. Raises TypeError for
    other objects.
    """
    tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider, schema_url=SCHEMA)
    meter = metrics.get_meter(NAME, meter_provider=meter_provider, schema_url=SCHEMA)
    its: Any = client
    if hasattr(its, "add_send_hook"):
        sends = Sends(tracer, meter, its.group)
        its.add_send_hook(sends)
        for name in _SENDS:
            if hasattr(its, name):
                setattr(its, name, sends.around(getattr(its, name)))
    elif hasattr(its, "add_consume_hook"):
        is_polled = hasattr(its, "poll")
        its.add_consume_hook(Consumptions(tracer, meter, is_polled=is_polled))
    else:
        raise TypeError(f"this is neither a producer nor a consumer: {client!r:.80}")
    return client


class _Figures:
    """The metrics that sends and consumption have in common."""

    def __init__(self, meter: metrics.Meter) -> None:
        self.duration = meter.create_histogram(
            "messaging.client.operation.duration",
            unit="s",
            description="Duration of operations of the client, such as a send.",
            explicit_bucket_boundaries_advisory=_BUCKETS_S,
        )


class Sends:
    """The spans and metrics of one producer; as a hook it sees each attempt to send."""

    def __init__(self, tracer: trace.Tracer, meter: metrics.Meter, group: str) -> None:
        self._tracer = tracer
        self._group = group
        self._figures = _Figures(meter)
        self._sent = meter.create_counter(
            "messaging.client.sent.messages",
            unit="{message}",
            description="Number of messages that the producer tried to send.",
        )
        self._spans: dict[int, trace.Span] = {}
        """The spans of sends that have not ended, by the identity of their (first) message."""

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a method that does the same within a span."""

        @wraps(method)
        def send(*arguments: Any, **named: Any) -> Any:
            if arguments and isinstance(arguments[0], str):  # a topic and a body
                topic, *rest = arguments
                body = rest.pop(0) if rest else named.pop("body", None)
                if isinstance(body, (str, bytes)):
                    arguments = (new_message(topic, body), *rest)
            given = arguments[0] if arguments else named.get("message", named.get("messages"))
            messages = [given] if isinstance(given, Message) else given
            if not isinstance(messages, (list, tuple)) or not messages:
                return method(*arguments, **named)  # which says what is wrong
            ending = self._begin(messages)
            try:
                answer = method(*arguments, **named)
            except BaseException as error:
                ending.fail(error)
                raise
            return ending.follow(answer)

        return send

    def _begin(self, messages: Sequence[Message]) -> _Ending:
        message = messages[0]
        attributes: dict[str, Any] = {
            **_common(message.topic, "send"),
            "messaging.rocketmq.client_group": self._group,
            "messaging.message.body.size": sum(len(each.body) for each in messages),
            **_about(message),
        }
        if len(messages) > 1:
            attributes["messaging.batch.message_count"] = len(messages)
        span = self._tracer.start_span(
            f"send {message.topic}", kind=trace.SpanKind.PRODUCER, attributes=attributes
        )
        here = trace.set_span_in_context(span)
        for each in messages:
            propagate.inject(each.properties, context=here)
        self._spans[id(message)] = span
        return _Ending(self, span, message, len(messages))

    def ended(self, ending: _Ending, error: BaseException | None) -> None:
        """Counts a send that has ended."""
        self._spans.pop(id(ending.message), None)
        figures = {
            "messaging.system": "rocketmq",
            "messaging.operation.name": "send",
            "messaging.destination.name": ending.message.topic,
        }
        if error is not None:
            figures["error.type"] = type(error).__qualname__
        self._sent.add(ending.count, figures)
        self._figures.duration.record(time.monotonic() - ending.began_s, figures)

    def before_send(self, context: SendContext) -> None:
        """Notes where an attempt goes."""
        span = self._spans.get(id(context.message))
        if span is None or not span.is_recording():
            return
        host, port = parse_address(context.broker_address)
        span.set_attributes({
            "server.address": host,
            "server.port": port,
            "messaging.destination.partition.id": str(context.queue.queue_id),
            "messaging.rocketmq.message.type": _TYPES[context.message_type],
        })  # fmt: skip

    def after_send(self, context: SendContext) -> None:
        """Notes an attempt that failed."""
        span = self._spans.get(id(context.message))
        if span is not None and context.error is not None:
            span.add_event(
                "attempt failed",
                {"server.address": context.broker_address, "exception.message": str(context.error)},
            )


class _Ending:
    """A send that has begun; `follow` ends its span when its result is there."""

    def __init__(self, sends: Sends, span: trace.Span, message: Message, count: int) -> None:
        self._sends = sends
        self._span = span
        self.message = message
        self.count = count
        self.began_s = time.monotonic()

    def follow(self, answer: Any) -> Any:
        """Waits for what a method has returned, in any form; returns the same for the caller."""
        if inspect.iscoroutine(answer):
            return self._awaited(answer)
        if isinstance(answer, Deferred):
            return answer.addCallbacks(self.succeed, self._failed)
        if hasattr(answer, "add_done_callback"):
            answer.add_done_callback(self._done)
            return answer
        return self.succeed(answer)

    async def _awaited(self, coroutine: Any) -> Any:
        try:
            return self.follow(await coroutine)
        except BaseException as error:
            self.fail(error)
            raise

    def _done(self, future: Any) -> None:
        if future.cancelled():
            self.fail(RuntimeError("the send was cancelled"))
        elif (error := future.exception()) is not None:
            self.fail(error)
        else:
            self.succeed(future.result())

    def _failed(self, failure: Failure) -> Failure:
        self.fail(failure.value or RuntimeError("a failure without an error"))
        return failure

    def succeed(self, result: Any) -> Any:
        """Ends the span of a send that has a result, and returns the result."""
        its = result.send_result if isinstance(result, TransactionSendResult) else result
        if isinstance(its, SendResult):
            self._span.set_attribute("messaging.message.id", its.msg_id)
            self._span.set_attribute("messaging.rocketmq.send_status", its.status.name)
        self._end(None)
        return result

    def fail(self, error: BaseException) -> None:
        """Ends the span of a send that has failed."""
        if self._span.is_recording():
            _note(self._span, error)
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        self._span.end()
        self._sends.ended(self, error)


class Consumptions:
    """The spans and metrics of one consumer, as a hook."""

    def __init__(self, tracer: trace.Tracer, meter: metrics.Meter, *, is_polled: bool) -> None:
        self._tracer = tracer
        self._operation = "receive" if is_polled else "process"
        self._kind = trace.SpanKind.CLIENT if is_polled else trace.SpanKind.CONSUMER
        self._consumed = meter.create_counter(
            "messaging.client.consumed.messages",
            unit="{message}",
            description="Number of messages that were delivered to the program.",
        )
        self._duration = meter.create_histogram(
            "messaging.process.duration",
            unit="s",
            description="Duration of processing messages, from the call of the listener on.",
            explicit_bucket_boundaries_advisory=_BUCKETS_S,
        )

    def before_consume(self, context: ConsumeHookContext) -> None:
        """Begins a span, which is the current one of what is called next."""
        messages, topic = context.messages, context.messages[0].topic
        attributes: dict[str, Any] = {
            **_common(topic, self._operation),
            "messaging.consumer.group.name": context.group,
            "messaging.destination.partition.id": str(context.queue.queue_id),
        }
        if len(messages) == 1:
            attributes["messaging.message.id"] = messages[0].msg_id
            attributes["messaging.message.body.size"] = len(messages[0].body)
            attributes["messaging.rocketmq.delivery_attempt"] = messages[0].reconsume_times + 1
            attributes.update(_about(messages[0]))
        else:
            attributes["messaging.batch.message_count"] = len(messages)
        senders = [(each, propagate.extract(each.properties)) for each in messages]
        is_alone = len(messages) == 1 and self._kind is trace.SpanKind.CONSUMER
        span = self._tracer.start_span(
            f"{self._operation} {topic}",
            context=senders[0][1] if is_alone else None,
            kind=self._kind,
            attributes=attributes,
            links=list(_links(senders)),
        )
        context.state[self] = span, time.monotonic()
        contexts.attach(trace.set_span_in_context(span))

    def after_consume(self, context: ConsumeHookContext) -> None:
        """Ends the span."""
        span, began_s = context.state.pop(self)
        figures = {
            "messaging.system": "rocketmq",
            "messaging.operation.name": self._operation,
            "messaging.destination.name": context.messages[0].topic,
            "messaging.consumer.group.name": context.group,
        }
        if context.error is not None:
            _note(span, context.error)
            figures["error.type"] = type(context.error).__qualname__
        elif not context.success:
            why = getattr(context.status, "name", "not consumed")
            span.set_status(trace.StatusCode.ERROR, why)
            span.set_attribute("error.type", why)
            figures["error.type"] = why
        span.end()
        self._consumed.add(len(context.messages), figures)
        if self._kind is trace.SpanKind.CONSUMER:
            self._duration.record(time.monotonic() - began_s, figures)


def _common(topic: str, operation: str) -> dict[str, Any]:
    return {
        "messaging.system": "rocketmq",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": topic,
    }


def _about(message: Message | MessageExt) -> dict[str, Any]:
    """Returns what the conventions say of a message of RocketMQ."""
    own = message.properties
    found: dict[str, Any] = {}
    if tag := own.get(names.TAGS):
        found["messaging.rocketmq.message.tag"] = tag
    if keys := own.get(names.KEYS):
        found["messaging.rocketmq.message.keys"] = keys.split(names.KEY_SEPARATOR)
    if level := own.get(names.DELAY):
        found["messaging.rocketmq.message.delay_time_level"] = int(level)
    if due_ms := own.get(names.TIMER_DELIVER_MS):
        found["messaging.rocketmq.message.delivery_timestamp"] = int(due_ms)
    return found


def _links(senders: Sequence[tuple[MessageExt, Any]]) -> Iterator[trace.Link]:
    for message, sender in senders:
        context = trace.get_current_span(sender).get_span_context()
        if context.is_valid:
            yield trace.Link(context, {"messaging.message.id": message.msg_id})


def _note(span: trace.Span, error: BaseException) -> None:
    span.record_exception(error)
    span.set_attribute("error.type", type(error).__qualname__)
    span.set_status(trace.StatusCode.ERROR, str(error))
