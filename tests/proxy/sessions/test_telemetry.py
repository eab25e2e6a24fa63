# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.scene import ProxyScene
from txrocketmq.proxy.grpc.status import GrpcStatus
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import ClientType
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.proxy.sessions import clients as limits
from txrocketmq.proxy.sessions.clients import MAX_TOPICS
from txrocketmq.proxy.sessions.telemetry import MAX_SETTINGS_BYTES
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig

COMMAND = message_type("TelemetryCommand")
PRODUCER: dict[str, Any] = {"client_type": 1, "publishing": {"topics": [{"name": "T"}]}}
CONSUMER: dict[str, Any] = {
    "client_type": 2,
    "subscription": {"group": {"name": "G"}, "subscriptions": [{"topic": {"name": "T"}}]},
}


def told(scene: ProxyScene, settings: dict[str, Any], **options: Any) -> Any:
    """A stream on which a client has told its settings."""
    outcome = scene.call("Telemetry", **options)
    outcome.answer.received(COMMAND(settings=settings))
    return outcome


def test_a_consumer_is_registered_and_told_its_settings(scene: ProxyScene) -> None:
    scene.groups["G"] = SubscriptionGroupConfig(group_name="G", consume_message_orderly=True)
    outcome = told(scene, {**CONSUMER, "request_timeout": {"seconds": 5}})
    (command,) = outcome.written("TelemetryCommand")
    assert command.status.code == Code.OK
    assert command.settings.subscription.fifo
    assert command.settings.backoff_policy.max_attempts == 17
    client = scene.messaging.clients.get("client-1")
    assert client is not None
    assert (client.kind, client.group, client.request_timeout_ms) == (2, "G", 5_000)
    assert client.streams == [outcome.answer]


def test_a_producer_is_registered_for_its_topics(scene: ProxyScene) -> None:
    outcome = told(scene, PRODUCER)
    (command,) = outcome.written("TelemetryCommand")
    assert command.settings.publishing.max_body_size == 4_194_304
    assert [each.kind for each in scene.messaging.clients.producers("T")] == [ClientType.PRODUCER]


def test_settings_may_be_told_again(scene: ProxyScene) -> None:
    outcome = told(scene, PRODUCER)
    outcome.answer.received(COMMAND(settings=PRODUCER))
    assert len(outcome.written("TelemetryCommand")) == 2
    assert scene.messaging.clients.streams == 1


def test_a_stream_that_has_ended_is_not_asked_any_more(scene: ProxyScene) -> None:
    outcome = told(scene, PRODUCER)
    outcome.answer.ended("")
    assert scene.messaging.clients.streams == 0
    assert scene.messaging.clients.get("client-1") is not None


def test_answers_to_what_was_not_asked_are_passed_over(scene: ProxyScene) -> None:
    outcome = told(scene, PRODUCER)
    outcome.answer.received(COMMAND(thread_stack_trace={"nonce": "1"}))
    outcome.answer.received(COMMAND(verify_message_result={"nonce": "1"}))
    outcome.answer.received(COMMAND())
    assert len(outcome.written("TelemetryCommand")) == 1
    assert not outcome.sink.is_ended


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "there is no publishing or subscription data"),
        ({**PRODUCER, "publishing": {"topics": [{"name": "a b"}]}}, "topic"),
        ({**PRODUCER, "publishing": {"topics": [{"name": "T"}] * (MAX_TOPICS + 1)}}, "at most"),
        ({**CONSUMER, "subscription": {}}, "group"),
        (
            {"subscription": {"group": {"name": "G"}, "subscriptions": [{"topic": {}}]}},
            "topic",
        ),
        ({**CONSUMER, "client_type": 5}, "LITE_PUSH_CONSUMER"),
        ({**CONSUMER, "client_type": 4}, "PULL_CONSUMER"),
        ({**PRODUCER, "client_type": 2}, "PUSH_CONSUMER"),
        ({**PRODUCER, "user_agent": {"hostname": "x" * MAX_SETTINGS_BYTES}}, "bytes"),
        ({**PRODUCER, "client_properties": {"a": "x" * 300}}, "client property"),
    ],
)
def test_settings_that_cannot_be_end_the_stream(
    scene: ProxyScene, settings: dict[str, Any], text: str
) -> None:
    error = told(scene, settings).sink.error
    assert error is not None
    assert error.status is GrpcStatus.INVALID_ARGUMENT
    assert error.text.startswith("process client telemetryCommand failed. ")
    assert text in error.text
    assert len(scene.messaging.clients) == 0


def test_a_client_without_an_id_is_refused(scene: ProxyScene) -> None:
    error = told(scene, PRODUCER, client_id="").sink.error
    assert error is not None
    assert error.status is GrpcStatus.INVALID_ARGUMENT


def test_a_client_too_many_is_refused(scene: ProxyScene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CLIENTS", 1)
    told(scene, PRODUCER)
    error = told(scene, PRODUCER, client_id="other").sink.error
    assert error is not None
    assert error.status is GrpcStatus.RESOURCE_EXHAUSTED


def test_settings_that_come_after_the_end_leave_no_stream(scene: ProxyScene) -> None:
    outcome = scene.call("Telemetry")
    outcome.call.cancel()
    outcome.answer.received(COMMAND(settings=PRODUCER))
    assert scene.messaging.clients.streams == 0


def test_the_oldest_of_too_many_streams_is_ended(scene: ProxyScene) -> None:
    first = told(scene, PRODUCER)
    for _ in range(limits.MAX_STREAMS):
        told(scene, PRODUCER)
    assert first.sink.error is not None
    assert first.sink.error.status is GrpcStatus.ABORTED
