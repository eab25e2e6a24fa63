# SPDX-License-Identifier: Apache-2.0
"""SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE: takes messages from producers.

The messages of one read share one write, also with other requests that write (writes.py). Checked
in the original's order: broker and topic permission, topic name, forbidden topics, topic existence,
queue id, start time; a topic that is missing is created when a message for it has been stored
(drafts.py). Then each message goes through the intake, whose transforms do the rest. Added are:
UNIQ_KEY where there is none, MSG_REGION, TRACE_ON, CLUSTER; nothing to the messages of a batch, as
in 5.4 (4.9 adds the batch's properties). The answer to a timer message has the handle by which it
can be withdrawn (recall_message.py). Codes: 0, 1, 2, 10, 11, 12, 13, 14, 16, 17, 26, 29. Not done:
static topics.

A message whose header was seen before, and that no transform touches, is stored without being
decoded (plain_sends.py); any other becomes an InnerMessage. Both end in the same run.

Java: SendMessageProcessor, AbstractSendMessageProcessor.msgCheck.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Container, Sequence
from typing import Final

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.transform import NotTaken
from txrocketmq.broker.intake.transforms.own_properties import own_properties
from txrocketmq.broker.processors.send.batches import Batches
from txrocketmq.broker.processors.send.plain_sends import ALL, NEW, PlainSends
from txrocketmq.broker.processors.send.send_answers import BATCH_KEY, RECALL_HANDLE, SendAnswers
from txrocketmq.broker.processors.send.send_checks import SendChecks, sys_flag_of
from txrocketmq.broker.processors.send.send_places import Place
from txrocketmq.broker.processors.send.writes import MOST_WORK, Outcome, ends_runs, writes
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.codes import MQVersion
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Run
from txrocketmq.remoting.errors import HeaderError, ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import UniqueKeys
from txrocketmq.remoting.message.properties import decode_properties, encode_properties
from txrocketmq.remoting.message.recall_handle import RecallHandle
from txrocketmq.remoting.message.topics import RETRY_PREFIX, TIMER_TOPIC
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.body.route import DataVersion, TopicConfig
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader
from txrocketmq.remoting.settings.config_file import Configuration

_WRITTEN: Final = frozenset({"regionId", "traceOn"})  # settings that messages and answers show
_WORK_OF_A_PLACE: Final = 8
"""How much work a new place is, since its topic and its queue may be new as well; any message that
is not plain is 1."""


class SendMessageProcessor:
    """Serves sends; `store_host` is the broker's advertised address, packed as in records.

    `answers` are those that it prepares anew when settings change which they contain.
    """

    def __init__(
        self,
        configuration: Configuration,
        checks: SendChecks,
        intake: Intake,
        answers: SendAnswers,
        batches: Batches,
        store_host: bytes,
        unique_keys: UniqueKeys,
    ) -> None:
        self._checks = checks
        self._topics = checks.topics
        self._intake = intake
        self._answers = answers
        self._batches = batches
        self._store_host = store_host
        self._unique_keys = unique_keys
        self._config = configuration.get(BrokerConfig)
        self._plain = PlainSends(intake.transforms.plain(Way.SEND).of, store_host)
        self._prepare()
        configuration.on_change.append(self._reconfigured)
        self._known_of: DataVersion | None = None
        self._known_permission = -1

    def _prepare(self) -> None:
        """Prepares what contains the values of settings: properties of messages, and answers."""
        own = self._own = own_properties(self._config)
        self._plain.add_to_all(encode_properties(own).encode())
        self._answers.prepare({name: own[name] for name in (names.MSG_REGION, names.TRACE_ON)})

    def _reconfigured(self, keys: Collection[str]) -> None:
        if not _WRITTEN.isdisjoint(keys):
            self._prepare()

    @writes(send.SEND_MESSAGE, send.SEND_MESSAGE_V2)
    def read_sends(
        self,
        run: Run,
        commands: Sequence[RemotingCommand],
        messages: list[PutMessage],
        outcomes: list[Outcome],
    ) -> int:
        """Reads all plain messages up to one that is not, and that one."""
        config, known_of = self._config, self._topics.data_version
        if known_of is not self._known_of or config.broker_permission != self._known_permission:
            self._known_of, self._known_permission = known_of, config.broker_permission
            self._plain.shapes.forget_places()
        if run.now_ms < config.start_accept_send_request_time_stamp:
            self._general(run, commands[0], messages, outcomes)
            return 1
        plain, born_host = self._plain, run.peer.remote_host
        taken, place = plain.take(commands, born_host, messages, outcomes)
        if place is ALL:
            return taken
        command = commands[taken]
        if place is NEW:
            place = self._learn(run, command)
            if place is not None:
                alone = commands[taken : taken + 1]
                if plain.take(alone, born_host, messages, outcomes, place)[0]:
                    return taken + 1
        known = self._known(run.peer, command, place) if place is not None else None
        self._general(run, command, messages, outcomes, known)
        return taken + 1

    @writes(send.SEND_BATCH_MESSAGE)
    def read_batch(
        self,
        run: Run,
        commands: Sequence[RemotingCommand],
        messages: list[PutMessage],
        outcomes: list[Outcome],
    ) -> int:
        """Reads one batch."""
        self._general(run, commands[0], messages, outcomes)
        return 1

    @ends_runs(*send.SENDS)
    def end_run(self, refused: Container[int] | None, _: int) -> None:
        """Makes the topics and groups that messages needed, as far as these were stored, and begins
        with long batches.
        """
        drafts = self._topics.drafts
        if drafts.makers or drafts.topics:
            if refused is None:
                drafts.clear()
            else:
                drafts.make(refused)
        if self._batches.waiting:
            self._batches.begin()

    def _learn(self, run: Run, command: RemotingCommand) -> Place | None:
        """Finds the place for a header that may be new; None if it has to be decoded each time."""
        run.work += _WORK_OF_A_PLACE
        place = None
        try:
            header = SendMessageRequestHeader.decode(command.ext_fields)
            topic = self._checks.topic_of(header, run.peer)
        except (HeaderError, ResponseError):
            return None  # it may be otherwise next time
        if header.topic in self._topics.drafts.topics:
            return None
        sys_flag = sys_flag_of(header, topic)
        if not (
            header.queue_id < 0
            or self._is_batch(command, header)
            or not self._checks.is_storable(header.topic)
            or self._intake.transforms.touches_topic(Way.SEND, header.topic, sys_flag)
        ):
            place = Place(
                header.topic,
                header.queue_id,
                b"%d" % header.queue_id,
                header.flag,
                sys_flag,
                header.reconsume_times or 0,
                header.max_reconsume_times,
            )
        shape = self._plain.shape
        shape.keep("\0".join(shape.rest(command.ext_fields or {})), place)
        return place

    def _known(self, peer: Peer, command: RemotingCommand, place: Place) -> InnerMessage | None:
        """Makes the message for a header whose place is known; None if it has to be decoded."""
        varying = self._plain.varying(command)
        if varying is None:
            return None
        born_ms, text = varying
        topic, queue_id, _, flag, sys_flag, reconsume_times, limit = place
        return InnerMessage(
            topic,
            queue_id,
            command.body,
            born_ms,
            peer.remote_host,
            self._store_host,
            decode_properties(text),
            flag,
            sys_flag,
            reconsume_times,
            max_reconsume_times=limit if command.version >= MQVersion.V3_4_9 else None,
        )

    # ------------------------------------------------------------------ any message

    def _general(
        self,
        run: Run,
        command: RemotingCommand,
        messages: list[PutMessage],
        outcomes: list[Outcome],
        message: InnerMessage | None = None,
    ) -> None:
        """Adds a command's messages, or its error; `message` is given if already decoded."""
        drafts = self._topics.drafts
        run.work += 1
        if drafts.wanted:
            drafts.begin()
        try:
            is_batch = False
            if message is None:
                header = SendMessageRequestHeader.decode(command.ext_fields)
                self._checks.check_time(run.now_ms)
                topic = self._checks.topic_of(header, run.peer)
                message = self._message(run.peer, command, header, topic)
                is_batch = self._is_batch(command, header)
            if is_batch:
                made, transaction_id = self._batches.messages_of(run, command, header, message)
                if not made:  # it is a long one, before which nothing else of the peer is served
                    run.work += MOST_WORK
                    return
            else:
                made = [self._single(message, run.now_ms)]
                transaction_id = message.properties[names.UNIQ_KEY]
        except NotTaken as reason:
            outcomes.append(Outcome(command, 0, 0, instead=self._checks.refusal_of(reason.status)))
        except Exception as error:  # noqa: BLE001 - one bad request must not harm the others
            outcomes.append(Outcome(command, 0, 0, instead=error))
        else:
            queue_id = b"%d" % message.real_queue_id
            extra = self._extra(message)
            at, count, waits = len(messages), len(made), message.waits
            outcomes.append(
                Outcome(command, at, count, queue_id, transaction_id, waits, None, extra)
            )
            messages += made
            if drafts.wanted:
                drafts.end(at, count)

    def _extra(self, message: InnerMessage) -> tuple[str, str] | None:
        """The answer's extra field: the key of an inner batch, or a timer message's recall handle.

        Java: SendMessageProcessor.sendBatchMessage, attachRecallHandle.
        """
        properties = message.properties
        if message.sys_flag & MessageSysFlag.INNER_BATCH and names.UNIQ_KEY in properties:
            return BATCH_KEY, properties[names.UNIQ_KEY]
        topic = properties.get(names.REAL_TOPIC, "")
        if message.topic != TIMER_TOPIC or not message.is_parked or topic.startswith(RETRY_PREFIX):
            return None
        time = str(int(properties[names.TIMER_OUT_MS]) + 1)  # it was floored
        name = self._config.broker_name
        return RECALL_HANDLE, RecallHandle(topic, name, time, properties[names.UNIQ_KEY]).encode()

    def _is_batch(self, command: RemotingCommand, header: SendMessageRequestHeader) -> bool:
        return bool(header.batch) or command.code == send.SEND_BATCH_MESSAGE.code

    def _message(
        self,
        peer: Peer,
        command: RemotingCommand,
        header: SendMessageRequestHeader,
        topic: TopicConfig,
    ) -> InnerMessage:
        queue_id = header.queue_id
        if queue_id < 0:
            queue_id = random.randrange(topic.write_queue_nums or 1)
        limit = header.max_reconsume_times if command.version >= MQVersion.V3_4_9 else None
        return InnerMessage(
            header.topic,
            queue_id,
            command.body,
            header.born_timestamp,
            peer.remote_host,
            self._store_host,
            decode_properties(header.properties or ""),
            header.flag,
            sys_flag_of(header, topic),
            header.reconsume_times or 0,
            max_reconsume_times=limit,
        )

    def _single(self, message: InnerMessage, now_ms: int) -> PutMessage:
        if not message.properties.get(names.UNIQ_KEY):
            message.properties[names.UNIQ_KEY] = self._unique_keys.create(now_ms)
        self._intake.admit(message, now_ms)
        message.properties.update(self._own)
        return message.to_put()
