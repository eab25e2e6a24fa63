# SPDX-License-Identifier: Apache-2.0
"""Sends messages to brokers: one, or several of a topic as a batch.

A send waits for nothing but the broker, and the connection with it, if topic and route are known,
and it is no coroutine then.
Nothing is tried again here: clients do that, and choose how often.

A transaction has an id that says where its half message is, so that any proxy can end it at any
time; the original keeps this in memory for 30 seconds.

Java: SendMessageActivity, ProducerProcessor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred

from txrocketmq.access.needs import UnclearNeed
from txrocketmq.client.base.config import CREATE_TOPIC_KEY
from txrocketmq.proxy.base.names import topic_of
from txrocketmq.proxy.base.rights import publishing
from txrocketmq.proxy.base.statuses import (
    Refused,
    code_of_broker,
    refusal,
    refused,
    set_status,
    told,
)
from txrocketmq.proxy.cluster.cluster import TIMEOUT_MS, Cluster, TopicRoute
from txrocketmq.proxy.cluster.topics import DEFAULT_QUEUES, Topics
from txrocketmq.proxy.cluster.transaction_ids import TransactionId
from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.service import rpc
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import ClientType, MessageType
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.proxy.sends.broker_room import BrokerRoom
from txrocketmq.proxy.sends.message_in import MessageIn, check_type, most_plain_bytes
from txrocketmq.proxy.sends.send_places import SendPlaces
from txrocketmq.proxy.sessions.clients import Clients
from txrocketmq.proxy.sessions.metadata import client_id_of
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import STORED, ResponseCode
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.frame.form import Form
from txrocketmq.remoting.message.ids import decode_message_id
from txrocketmq.remoting.message.message import Message, MessageQueue, encode_batch
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader
from txrocketmq.remoting.transport.client import as_deferred

MAX_FORMS: Final = 4_096
"""When there are more prepared headers, all are dropped and made again when they are needed."""
MAX_BATCH: Final = 1_024
_ANSWER: Final = message_type("SendMessageResponse")
_STORED: Final[dict[int, Code]] = {
    ResponseCode.SUCCESS: Code.OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: Code.MASTER_PERSISTENCE_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: Code.SLAVE_PERSISTENCE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: Code.HA_NOT_AVAILABLE,
}
_BROKER_FAILS: Final = frozenset(
    {ResponseCode.SYSTEM_BUSY, ResponseCode.SYSTEM_ERROR, ResponseCode.SERVICE_NOT_AVAILABLE}
)


def _first_topic(request: Any) -> str:
    """The topic of all messages of a request, since those of another one are refused."""
    if not request.messages:
        raise UnclearNeed("message is null.")
    return str(request.messages[0].topic.name)


class Sends:
    """Serves SendMessage."""

    def __init__(self, cluster: Cluster, topics: Topics, clients: Clients) -> None:
        self._cluster = cluster
        self._clock = cluster.clock
        self._topics = topics
        self._clients = clients
        self._config = cluster.config
        self._places = SendPlaces(cluster.clock)
        self._forms: dict[tuple[str, str, int, bool], Form] = {}
        self._rooms: dict[str, BrokerRoom] = {}
        """By the addresses of brokers, which name servers tell."""

    @rpc("SendMessage", most_bytes=None, bodies=(1, 4), rights=publishing(_first_topic))
    def send_message(self, call: Call, request: Any) -> Any:
        """Sends messages of one topic, and answers with an entry for each."""
        try:
            client_id = client_id_of(call)
            topic, messages = self._messages(call, request)
            if messages[0].type == MessageType.TRANSACTION:
                client = self._clients.get(client_id) or self._clients.register(
                    client_id, call.peer, ClientType.PRODUCER
                )
                self._clients.add_topic(client, topic)
            route = self._cluster.routes.known(topic)
            types = self._topics.known_types(topic)
            if route is not None and types is not None:
                return self._send(call, route, messages, types)
        except (Refused, RemotingError) as error:
            return set_status(_ANSWER(), *(told(error) or (Code.INTERNAL_SERVER_ERROR, "")))
        learned = Deferred.fromCoroutine(self._learn_and_send(call, topic, messages))
        return learned.addErrback(refused, _ANSWER)

    async def _learn_and_send(self, call: Call, topic: str, messages: list[MessageIn]) -> Any:
        route = await self._topics.route(topic)
        types = await self._topics.types(topic)
        return await as_deferred(self._send(call, route, messages, types))

    def _messages(self, call: Call, request: Any) -> tuple[str, list[MessageIn]]:
        given = request.messages
        if not given:
            raise Refused(Code.MESSAGE_CORRUPTED, "no message to send")
        if len(given) > MAX_BATCH:
            raise Refused(
                Code.MESSAGE_CORRUPTED, f"at most {MAX_BATCH} messages can be sent at once"
            )
        topic = topic_of(given[0].topic)
        now_ms, config = self._clock.now_ms(), self._config
        messages: list[MessageIn] = []
        inflated_bytes, most_bytes = 0, most_plain_bytes(config)
        for each in given:
            if messages and each.topic.name != topic:
                raise Refused(Code.MESSAGE_CORRUPTED, "topic in message is not same")
            message = MessageIn(each, topic, call.peer, now_ms, config)
            messages.append(message)
            inflated_bytes += max(len(message.body) - len(each.body), 0)
            if inflated_bytes > most_bytes:
                raise Refused(
                    Code.MESSAGE_BODY_TOO_LARGE,
                    f"the bodies that are gzip have more than {most_bytes} bytes together",
                )
        if len(messages) > 1:
            _check_together(messages)
        if inflated_bytes:
            call.hold(inflated_bytes)
        return topic, messages

    def _send(
        self,
        call: Call,
        route: TopicRoute,
        messages: list[MessageIn],
        types: tuple[MessageType, ...],
    ) -> PendingReply:
        if self._config.enable_topic_message_type_check:
            for message in messages:
                check_type(message, route.topic, types)
        first = messages[0]
        is_batch = len(messages) > 1
        queue = self._places.queue(route, "" if is_batch else first.group)
        address = self._cluster.master(queue.broker_name)
        if address is None:
            raise Refused(
                Code.PROXY_TIMEOUT, f"broker {queue.broker_name} has no master at present"
            )
        if is_batch:
            body = encode_batch(
                Message(route.topic, each.body, 0, each.properties) for each in messages
            )
            properties = ""
        else:
            body, properties = first.body, encode_properties(first.properties)
        form = self._form(queue, is_batch=is_batch)
        header = form.filled(first.sys_flag, self._clock.now_ms(), properties)
        answered = PendingReply()

        def settle(outcome: Reply[Any] | Exception) -> None:
            # The call may have ended; the reply is looked at all the same, for the broker's sake.
            try:
                answer = self._answer(outcome, queue, messages)
            except Exception as error:  # noqa: BLE001 - a defect, or the status of the answer
                answer = refusal(error, _ANSWER)
            answered.resolve(answer)

        invoke = partial(self._cluster.invoke, address, form.call, header, body, TIMEOUT_MS)
        room = self._rooms.get(address)
        if room is None:
            room = self._rooms[address] = BrokerRoom(self._cluster, address)
        if room.takes_one:
            invoke().then(settle)
        else:
            self._wait(call, room, answered, lambda: invoke().then(settle))
        return answered

    @staticmethod
    def _wait(
        call: Call, room: BrokerRoom, answered: PendingReply, leave: Callable[[], None]
    ) -> None:
        """Has a send leave when the connection takes more, unless its call ends before."""
        waiting = room.wait(
            lambda failure: answered.resolve(refusal(failure.value, _ANSWER)), lambda _: leave()
        )
        call.on_cancel.append(waiting.cancel)

    def _answer(
        self, outcome: Reply[Any] | Exception, queue: MessageQueue, messages: list[MessageIn]
    ) -> Any:
        answer = _ANSWER()
        if isinstance(outcome, Exception):
            self._places.failed(queue.broker_name)
            self._cluster.ask_again(queue.topic)
            code, text = told(outcome) or (Code.INTERNAL_SERVER_ERROR, str(outcome))
            return set_status(answer, code, text)
        if outcome.code not in STORED:
            if outcome.code in _BROKER_FAILS:
                self._places.failed(queue.broker_name)
            return set_status(answer, code_of_broker(outcome.code), outcome.remark or "")
        self._places.took(queue.broker_name)
        code = _STORED[outcome.code]
        stored = outcome.header
        for number, message in enumerate(messages):
            entry = set_status(answer.entries.add(), code)
            entry.message_id = message.message_id
            entry.transaction_id = message.message_id
            if stored is not None:
                entry.offset = stored.queue_offset + number
                if stored.recall_handle:
                    entry.recall_handle = stored.recall_handle
                if message.type == MessageType.TRANSACTION:
                    entry.transaction_id = _transaction_id(stored, queue, message)
        return set_status(answer, code)

    def _form(self, queue: MessageQueue, *, is_batch: bool) -> Form:
        key = queue.topic, queue.broker_name, queue.queue_id, is_batch
        form = self._forms.get(key)
        if form is None:
            if len(self._forms) >= MAX_FORMS:
                self._forms.clear()
            header = SendMessageRequestHeader(
                producer_group=queue.topic,
                topic=queue.topic,
                default_topic=CREATE_TOPIC_KEY,
                default_topic_queue_nums=DEFAULT_QUEUES,
                queue_id=queue.queue_id,
                sys_flag=0,
                born_timestamp=0,
                flag=0,
                properties="",
                reconsume_times=0,
                unit_mode=False,
                batch=is_batch,
                bname=queue.broker_name,
            )
            call = send.SEND_BATCH_MESSAGE if is_batch else send.SEND_MESSAGE_V2
            form = Form(call, header, "sys_flag", "born_timestamp", "properties")
            self._forms[key] = form
        return form


def _check_together(messages: list[MessageIn]) -> None:
    """Raises Refused for messages that cannot be a batch, whose flags are those of all."""
    if {each.type for each in messages} - {MessageType.NORMAL, MessageType.FIFO}:
        raise Refused(Code.MESSAGE_CORRUPTED, "only normal messages can be sent together")
    if len({each.sys_flag for each in messages}) > 1:
        raise Refused(
            Code.MESSAGE_CORRUPTED,
            "messages can only be sent together if all bodies are compressed, or none is",
        )


def _transaction_id(stored: Any, queue: MessageQueue, message: MessageIn) -> str:
    offset = decode_message_id(stored.msg_id).commit_log_offset
    return str(TransactionId(message.message_id, queue.broker_name, stored.queue_offset, offset))
