# SPDX-License-Identifier: Apache-2.0
"""Receives messages: pops them of the broker that the client names, waits for them, writes them.

What the group says decides about order and attempts, so a client that has not sent its settings, or
was forgotten, can receive: it is waited for its settings for a moment, and then it is known by what
it asks for. Messages of a broker that answers after the call has ended are given back, and so are
those that could not be written.

The stream is a status, the messages, and the time; nothing at all is never answered OK.

Java: ReceiveMessageActivity, ReceiveMessageResponseStreamWriter, PopMessageResultFilterImpl.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.access.needs import UnclearNeed
from txrocketmq.client.base.errors import MQClientError
from txrocketmq.proxy.base.names import group_of, topic_of
from txrocketmq.proxy.base.rights import consuming
from txrocketmq.proxy.base.statuses import Refused, code_of_broker, set_status, told
from txrocketmq.proxy.cluster.cluster import Cluster
from txrocketmq.proxy.cluster.groups import Groups
from txrocketmq.proxy.cluster.topics import Topics
from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.service import Kind, rpc
from txrocketmq.proxy.receives.filters import filter_of
from txrocketmq.proxy.receives.handles import Handle
from txrocketmq.proxy.receives.message_out import received_message, set_ms
from txrocketmq.proxy.receives.popped import plain_body, popped_in_turns
from txrocketmq.proxy.receives.renewals import Hidden, Renewals
from txrocketmq.proxy.receives.settlements import Settlements
from txrocketmq.proxy.routes.queues import ANY_QUEUE, readable_brokers
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import ClientType
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.proxy.sessions.client_settings import max_attempts
from txrocketmq.proxy.sessions.clients import DEFAULT_TIMEOUT_MS, Client, Clients
from txrocketmq.proxy.sessions.metadata import client_id_of, left_ms, version_of
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.pop import ReceiptHandle
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol import pop
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.pop import PopMessageRequestHeader

SETTINGS_MS: Final = 1_000
"""For how long it is waited for the settings of a client that is not known."""
ANSWER_MS: Final = 300
"""How long before the deadline of a call the broker has to answer it."""
TURN_BYTES: Final = 512 * 1024
"""After how many bytes of messages others have their turn."""
_FROM_LAST: Final = 1
_POLLING_TIME_SINCE: Final = "5.0.3"
_ANSWER: Final = message_type("ReceiveMessageResponse")
_NOTHING: Final = frozenset({ResponseCode.POLLING_TIMEOUT, ResponseCode.PULL_NOT_FOUND})

log = Logger()


def _received_topic(request: Any) -> str:
    if not request.HasField("message_queue"):
        raise UnclearNeed("messageQueue is null.")
    return str(request.message_queue.topic.name)


class Reception:
    """One receive: whose, of what, and how."""

    __slots__ = (
        "attempt_id", "broker_name", "call", "client", "config", "count", "group", "invisible_ms",
        "is_renewed", "poll_ms", "subscription", "timeout_ms", "topic",
    )  # fmt: skip

    call: Call
    client: Client
    group: str
    topic: str
    broker_name: str
    subscription: SubscriptionData
    config: SubscriptionGroupConfig
    count: int
    invisible_ms: int
    poll_ms: int
    timeout_ms: int
    attempt_id: str | None
    is_renewed: bool

    def header(self, now_ms: int) -> PopMessageRequestHeader:
        """Returns the request to the broker."""
        return PopMessageRequestHeader(
            consumer_group=self.group,
            topic=self.topic,
            queue_id=ANY_QUEUE,
            max_msg_nums=self.count,
            invisible_time=self.invisible_ms,
            poll_time=self.poll_ms,
            born_time=now_ms,
            init_mode=_FROM_LAST,
            exp_type=self.subscription.expression_type,
            exp=self.subscription.sub_string,
            order=self.config.consume_message_orderly,
            attempt_id=self.attempt_id,
            bname=self.broker_name,
        )


class Receives:
    """Serves ReceiveMessage."""

    def __init__(
        self,
        cluster: Cluster,
        topics: Topics,
        groups: Groups,
        clients: Clients,
        settlements: Settlements,
        renewals: Renewals,
    ) -> None:
        self._cluster = cluster
        self._clock = cluster.clock
        self._config = cluster.config
        self._topics = topics
        self._groups = groups
        self._clients = clients
        self._settlements = settlements
        self._renewals = renewals
        self._arriving = 0
        """How many answers of brokers are being written, or given back."""
        self._settled: list[Deferred[None]] = []

    def settled(self) -> Deferred[None]:
        """Fires when all that has come from brokers is written, or given back."""
        settled: Deferred[None] = Deferred()
        self._settled.append(settled)
        self._tell_settled()
        return settled

    def _tell_settled(self) -> None:
        if not self._arriving:
            settled, self._settled = self._settled, []
            for each in settled:
                if not each.called:  # otherwise nobody waits any more
                    each.callback(None)

    @rpc("ReceiveMessage", kind=Kind.STREAM, rights=consuming(_received_topic))
    def receive_message(self, call: Call, request: Any) -> Deferred[None]:
        """Writes messages, or why there are none."""
        begun = Deferred.fromCoroutine(self._receive(call, request))
        return begun.addErrback(lambda failure: self._refuse(failure, call))

    async def _receive(self, call: Call, request: Any) -> None:
        its = await self._reception(call, request)
        address = await self._cluster.address(its.broker_name, its.topic)
        if address is None:
            raise Refused(Code.PROXY_TIMEOUT, f"broker {its.broker_name} is not there at present")
        header = its.header(self._clock.now_ms())
        over: Deferred[None] = Deferred()

        def answered(outcome: Reply[Any] | Exception) -> None:
            # The call may have ended: what came all the same is given back.
            self._arriving += 1
            arrived = Deferred.fromCoroutine(self._arrived(its, outcome))
            arrived.addErrback(lambda failure: self._refuse(failure, call))
            arrived.addBoth(over.callback)
            arrived.addBoth(self._has_arrived)

        self._cluster.invoke(address, pop.POP_MESSAGE, header, b"", its.timeout_ms).then(answered)
        await over

    def _has_arrived(self, _: object) -> None:
        self._arriving -= 1
        self._tell_settled()

    async def _reception(self, call: Call, request: Any) -> Reception:
        its = Reception()
        its.call = call
        client_id = client_id_of(call)
        its.topic, its.group = topic_of(request.message_queue.topic), group_of(request.group)
        its.is_renewed = request.auto_renew and self._config.enable_proxy_auto_renew
        its.invisible_ms = self._invisible_ms(request, is_renewed=its.is_renewed)
        its.subscription = filter_of(its.topic, request.filter_expression)
        most = self._config.grpc_client_consumer_long_polling_batch_size
        its.count = min(max(request.batch_size, 1), most)
        its.attempt_id = request.attempt_id if request.HasField("attempt_id") else None
        its.config = self._groups.known(its.group) or await self._groups.config(its.group)
        route = self._cluster.routes.known(its.topic) or await self._topics.route(its.topic, call)
        readable = readable_brokers(route)
        if not readable:
            raise Refused(Code.FORBIDDEN, f"no readable queue: topic {its.topic}")
        name = request.message_queue.broker.name
        its.broker_name = name if name in readable else random.choice(readable)
        client = self._clients.get(client_id)
        if client is None:
            left = left_ms(call)
            wait_ms = SETTINGS_MS if left is None else min(SETTINGS_MS, left // 4)
            client = await self._clients.wait(client_id, wait_ms)
        if client is None:
            kind = ClientType.PUSH_CONSUMER if request.auto_renew else ClientType.SIMPLE_CONSUMER
            client = self._clients.register(client_id, call.peer, kind, its.group)
        its.client = client
        its.poll_ms, its.timeout_ms = self._times(call, request, client)
        return its

    def _invisible_ms(self, request: Any, *, is_renewed: bool) -> int:
        config = self._config
        if is_renewed:
            return config.default_invisible_time_mills
        return checked_invisible_ms(
            request.invisible_duration,
            config.min_invisible_time_mills_for_recv,
            config.max_invisible_time_mills,
        )

    def _times(self, call: Call, request: Any, client: Client) -> tuple[int, int]:
        """Returns how long the broker may wait for messages, and until when it has to answer."""
        config = self._config
        least_ms = config.grpc_client_consumer_min_long_polling_timeout_millis
        most_ms = config.grpc_client_consumer_max_long_polling_timeout_millis
        left = left_ms(call)
        if left is None:
            left = most_ms + DEFAULT_TIMEOUT_MS
        if request.HasField("long_polling_timeout"):
            poll_ms = _duration_ms(request.long_polling_timeout)
        else:
            poll_ms = left - client.request_timeout_ms // 2
        poll_ms = min(max(poll_ms, least_ms), most_ms)
        if poll_ms > left and left < least_ms:
            is_new = version_of(call) >= _POLLING_TIME_SINCE
            raise Refused(
                Code.ILLEGAL_POLLING_TIME if is_new else Code.BAD_REQUEST,
                "The deadline time remaining is not enough for polling, please check network"
                f" condition: {left} ms are left, and {least_ms} are needed",
            )
        return min(poll_ms, left - ANSWER_MS), left

    # ---------------------------------------------------------------- what has come

    async def _arrived(self, its: Reception, outcome: Reply[Any] | Exception) -> None:
        if isinstance(outcome, Exception):
            self._cluster.ask_again(its.topic)
            raise outcome
        if outcome.code == ResponseCode.POLLING_FULL:
            raise Refused(Code.TOO_MANY_REQUESTS, "polling full")
        if outcome.code in _NOTHING:
            raise Refused(Code.MESSAGE_NOT_FOUND, "no new message")
        if outcome.code != ResponseCode.SUCCESS or outcome.header is None:
            raise Refused(code_of_broker(outcome.code), outcome.remark or "the broker refuses it")
        its.call.hold(len(outcome.body_bytes))
        popped = await popped_in_turns(
            self._clock,
            outcome.header,
            outcome.body_bytes,
            its.broker_name,
            its.subscription,
            is_orderly=its.config.consume_message_orderly,
        )
        for message in popped.unwanted:
            self._quietly(its, message, self._ack(its, message))
        attempts = max_attempts(its.config)
        dead = [each for each in popped.wanted if each.reconsume_times >= attempts]
        for message in dead:
            self._quietly(its, message, self._bury(its, message))
        alive = [each for each in popped.wanted if each.reconsume_times < attempts]
        if not alive:
            raise Refused(Code.MESSAGE_NOT_FOUND, "no match message")
        await self._write(its, alive)

    async def _write(self, its: Reception, messages: Sequence[MessageExt]) -> None:
        call, clock = its.call, self._clock
        room: list[Deferred[None]] = []

        def wake() -> None:
            if room:
                room.pop().callback(None)

        call.on_room = wake
        call.on_cancel.append(wake)
        call.write(set_status(_ANSWER(), Code.OK))
        done_bytes = 0
        for number, message in enumerate(messages):
            if call.is_over:
                await self._give_back(its, messages[max(number - 1, 0) :])
                return
            own = message.properties
            own[names.POP_CK] = f"{own[names.POP_CK]} {message.commit_log_offset}"
            if its.is_renewed:
                self._keep_hidden(its, message)
            plain: bytes | None = message.body
            if message.sys_flag & MessageSysFlag.COMPRESSED:
                plain = await plain_body(clock, message)
            answer = received_message(message, its.topic, clock.now_ms(), plain)
            data = answer.SerializeToString()
            done_bytes += len(data)
            has_room = call.send(data)
            # It may be long, and there may be no room for it for a while.
            plain = answer = data = None
            if not has_room and not call.is_over:
                room.append(Deferred())
                await room[0]
            elif done_bytes > TURN_BYTES:
                done_bytes = 0
                await clock.pause(0)
        if call.is_over:
            await self._give_back(its, messages[-1:])
            return
        self._end(call)

    def _keep_hidden(self, its: Reception, message: MessageExt) -> None:
        key = its.group, message.properties[names.POP_CK]
        is_orderly = its.config.consume_message_orderly
        self._renewals.add(
            Hidden(
                its.client.id,
                key,
                its.topic,
                _handle(message),
                is_orderly=is_orderly,
                times=message.reconsume_times,
            )
        )

    async def _give_back(self, its: Reception, messages: Iterable[MessageExt]) -> None:
        """Makes messages visible again soon, which does not count as an attempt."""
        invisible_ms = self._config.invisible_time_millis_when_clear
        for message in messages:
            handle = _handle(message)
            hidden = await self._renewals.find(its.client.id, its.group, str(handle))
            self._renewals.forget(hidden)
            try:
                await self._settlements.hide(
                    its.group, its.topic, handle, invisible_ms, suspend=True
                )
            except (MQClientError, RemotingError, Refused) as error:
                log.warn("a message comes again later: {error}", error=str(error))

    async def _ack(self, its: Reception, message: MessageExt) -> None:
        await self._settlements.ack(its.group, its.topic, _handle(message))

    async def _bury(self, its: Reception, message: MessageExt) -> None:
        handle = _handle(message)
        await self._settlements.bury(its.group, its.topic, message.msg_id, handle)

    def _quietly(self, its: Reception, message: MessageExt, work: Any) -> None:
        def failed(failure: Failure) -> None:
            log.warn(
                "message {id} comes to group {group} again: {error}",
                id=message.msg_id,
                group=its.group,
                error=failure.getErrorMessage(),
            )

        Deferred.fromCoroutine(work).addErrback(failed)

    def _refuse(self, failure: Failure, call: Call) -> Any:
        status = told(failure.value)
        if status is None:
            return failure
        call.write(set_status(_ANSWER(), *status))
        self._end(call)
        return None

    def _end(self, call: Call) -> None:
        answer = _ANSWER()
        set_ms(answer.delivery_timestamp, self._clock.now_ms())
        call.write(answer)


def checked_invisible_ms(duration: Any, least_ms: int, most_ms: int) -> int:
    """Returns for how long a message is to be hidden. Raises Refused."""
    wanted_ms = _duration_ms(duration)
    if wanted_ms < least_ms:
        raise Refused(
            Code.ILLEGAL_INVISIBLE_TIME, f"the invisibleTime is too small. min is {least_ms}"
        )
    if 0 < most_ms < wanted_ms:
        raise Refused(
            Code.ILLEGAL_INVISIBLE_TIME, f"the invisibleTime is too large. max is {most_ms}"
        )
    return wanted_ms


def _duration_ms(duration: Any) -> int:
    return int(duration.seconds * 1_000 + duration.nanos // 1_000_000)


def _handle(message: MessageExt) -> Handle:
    return Handle(ReceiptHandle.parse(message.properties[names.POP_CK]), message.commit_log_offset)
