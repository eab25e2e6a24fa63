# SPDX-License-Identifier: Apache-2.0
"""Telemetry: the stream over which a client says its settings, and can be asked something.

The first command of a client are its settings; it may send them again. They are answered with the
merged ones. Without publishing or subscription, or with a name that cannot be, the stream ends with
INVALID_ARGUMENT, as the original's does. Answers to commands that the proxy never gives are passed
over: in front of a cluster, no broker can ask for the stack or the processing of a gRPC client.

Java: ClientActivity.telemetry, ContextStreamObserver, GrpcClientChannel.
"""

from __future__ import annotations

from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from txrocketmq.proxy.base.names import group_of, topic_of
from txrocketmq.proxy.base.rights import Names, consumer_names, producer_names, stating
from txrocketmq.proxy.base.statuses import Refused, set_status, told
from txrocketmq.proxy.cluster.groups import Groups
from txrocketmq.proxy.cluster.topics import Topics
from txrocketmq.proxy.config import MessagingConfig
from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.service import Conversation, Kind, rpc
from txrocketmq.proxy.grpc.status import GrpcError, GrpcStatus
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import ClientType
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.proxy.sessions.client_settings import (
    check_client_properties,
    for_consumer,
    for_producer,
)
from txrocketmq.proxy.sessions.clients import (
    CONSUMERS,
    DEFAULT_TIMEOUT_MS,
    MAX_TOPICS,
    PRODUCERS,
    Clients,
    kind_name,
)
from txrocketmq.proxy.sessions.metadata import client_id_of

MAX_SETTINGS_BYTES: Final = 256 * 1024
_COMMAND: Final = message_type("TelemetryCommand")
_CLIENT_ERRORS: Final = range(Code.BAD_REQUEST, Code.INTERNAL_ERROR)


def _names(command: Any) -> Names:
    """What a client says it does; other commands say nothing, and are passed over."""
    if command.WhichOneof("command") != "settings":
        return ()
    its = command.settings
    which = its.WhichOneof("pub_sub")
    if which == "publishing":
        return producer_names(each.name for each in its.publishing.topics)
    if which == "subscription":
        group = its.subscription.group.name
        return consumer_names(group, (each.topic.name for each in its.subscription.subscriptions))
    return ()


class Telemetry:
    """Serves the streams of telemetry."""

    def __init__(
        self, clients: Clients, topics: Topics, groups: Groups, config: MessagingConfig
    ) -> None:
        self.clients = clients
        self._topics = topics
        self._groups = groups
        self._config = config

    @rpc(
        "Telemetry",
        request_name="TelemetryCommand",
        kind=Kind.CONVERSATION,
        rights=stating(_names),
    )
    def telemetry(self, call: Call) -> Conversation:
        """Opens the stream of a client."""
        return TelemetryStream(self, call)

    async def settle(self, stream: TelemetryStream, settings: Any) -> Any:
        """Registers a client, and returns the settings that it is told. Raises Refused."""
        call = stream.call
        client_id = client_id_of(call)
        if settings.ByteSize() > MAX_SETTINGS_BYTES:
            raise Refused(Code.BAD_REQUEST, f"settings have at most {MAX_SETTINGS_BYTES} bytes")
        check_client_properties(settings)
        which = settings.WhichOneof("pub_sub")
        if which is None:
            raise Refused(
                Code.BAD_REQUEST, "there is no publishing or subscription data in settings"
            )
        if which == "publishing":
            topics = [topic_of(each) for each in settings.publishing.topics]
            if len(topics) > MAX_TOPICS:
                raise Refused(Code.BAD_REQUEST, f"a client has at most {MAX_TOPICS} topics")
            _check_kind(settings, PRODUCERS)
            client = self.clients.register(client_id, call.peer, ClientType.PRODUCER)
            self.clients.publishes(client, topics)
            answer = for_producer(settings, self._config)
        else:
            group = group_of(settings.subscription.group)
            for each in settings.subscription.subscriptions:
                topic_of(each.topic)
            _check_kind(settings, CONSUMERS)
            group_config = await self._groups.config(group)
            kind = settings.client_type or ClientType.PUSH_CONSUMER
            client = self.clients.register(client_id, call.peer, kind, group)
            answer = for_consumer(settings, self._config, group_config)
        if settings.HasField("request_timeout"):
            client.request_timeout_ms = max(settings.request_timeout.ToMilliseconds(), 0)
        else:
            client.request_timeout_ms = DEFAULT_TIMEOUT_MS
        if not call.is_over:
            stream.client_id = client_id
            self.clients.attach(client, stream)
        return answer


class TelemetryStream:
    """The stream of one client."""

    def __init__(self, telemetry: Telemetry, call: Call) -> None:
        self.call = call
        self.client_id = ""
        self._telemetry = telemetry

    def received(self, message: Any) -> Deferred[None] | None:
        """Takes a command of the client."""
        if message.WhichOneof("command") != "settings":
            return None
        settled = Deferred.fromCoroutine(self._telemetry.settle(self, message.settings))
        return settled.addCallbacks(self._answer, self._refuse)

    def ended(self, reason: str) -> None:
        """The client has ended the stream, or is gone."""
        self._telemetry.clients.detach(self.client_id, self)

    def tell(self, command: Any) -> None:
        """Sends a command to the client."""
        self.call.write(command)

    def close(self, why: str) -> None:
        """Ends the stream."""
        self.call.end(GrpcError(GrpcStatus.ABORTED, why))

    def _answer(self, settings: Any) -> None:
        command = set_status(_COMMAND(), Code.OK)
        command.settings.CopyFrom(settings)
        self.call.write(command)

    def _refuse(self, failure: Failure) -> Failure | None:
        status = told(failure.value)
        if status is None:
            return failure
        code, text = status
        grpc = GrpcStatus.INVALID_ARGUMENT if code in _CLIENT_ERRORS else GrpcStatus.INTERNAL
        if code == Code.TOO_MANY_REQUESTS:
            grpc = GrpcStatus.RESOURCE_EXHAUSTED
        self._telemetry.clients.detach(self.client_id, self)
        self.call.end(GrpcError(grpc, f"process client telemetryCommand failed. {text}"))
        return None


def _check_kind(settings: Any, kinds: frozenset[ClientType]) -> None:
    """Raises Refused if the type of a client is none that is served; none at all is a usual one."""
    kind = settings.client_type
    if kind and kind not in kinds:
        raise Refused(
            Code.UNRECOGNIZED_CLIENT_TYPE,
            f"clients of type {kind_name(kind)} are not served with these settings; served"
            f" are {', '.join(each.name for each in sorted(PRODUCERS | CONSUMERS))}",
        )
