# SPDX-License-Identifier: Apache-2.0
"""SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE, END_TRANSACTION: one write for each read.

Ends of transactions come between sends (`end_transaction.py` explains them) and share their writes:
if each kind was put by itself, every message of a transactional producer would be written alone.
Checked in the original's order: broker and topic permission, topic name, forbidden topics, topic
existence, queue id, start time; a topic that is missing is created when a message for it has been
stored (drafts.py). Then each message goes through the intake, whose transforms do the rest. Added
are: UNIQ_KEY where there is none, MSG_REGION, TRACE_ON, CLUSTER; nothing to the messages of a
batch, as in 5.4 (4.9 adds the batch's properties). The answer to a timer message has the handle by
which it can be withdrawn (recall_message.py). Codes: 0, 1, 2, 10, 11, 12, 13, 14, 16, 17, 26, 29.
Not done: static topics.

A message whose header was seen before, and that no transform touches, is stored without being
decoded (`_collect`); any other becomes an InnerMessage. Both end in the same run.

Java: SendMessageProcessor, AbstractSendMessageProcessor.msgCheck.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.transform import NotTaken
from txrocketmq.broker.intake.transforms.own_properties import own_properties
from txrocketmq.broker.processors.send.batches import Batches
from txrocketmq.broker.processors.send.end_transaction import End, EndTransactionProcessor
from txrocketmq.broker.processors.send.send_answers import (
    BATCH_KEY,
    CODES,
    RECALL_HANDLE,
    Stored,
    prepared_answers,
)
from txrocketmq.broker.processors.send.send_checks import SendChecks, sys_flag_of
from txrocketmq.broker.processors.send.send_places import NO_SHAPE, Place, Shape, Shapes
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.in_memory import ColdRead
from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.message_store import Batch, PutMessage, PutStatus
from txrocketmq.broker.work.patience import attempt
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.call import WAITING_BYTES, Buffer, Peer, Reply
from txrocketmq.remoting.codes import MQVersion, SerializeType
from txrocketmq.remoting.command import ONEWAY_FLAG, RemotingCommand
from txrocketmq.remoting.dispatch import Run, serves_run
from txrocketmq.remoting.errors import HeaderError, ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import UniqueKeys
from txrocketmq.remoting.message.properties import decode_properties, encode_properties
from txrocketmq.remoting.message.recall_handle import RecallHandle
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.message.topics import RETRY_PREFIX, TIMER_TOPIC
from txrocketmq.remoting.protocol import send, transaction
from txrocketmq.remoting.protocol.body.route import DataVersion, TopicConfig
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader
from txrocketmq.remoting.settings.config_file import Configuration

_PUT_OK: Final = PutStatus.PUT_OK
_MISSING: Final[Any] = object()
_END: Final = transaction.END_TRANSACTION.code
_SINGLE: Final = frozenset({send.SEND_MESSAGE.code, send.SEND_MESSAGE_V2.code})
_WRITTEN: Final = frozenset({"regionId", "traceOn"})  # settings that messages and answers show
_MOST_WORK: Final = 64
"""How many messages that are not plain are served in one run; others then have their turn."""
_WORK_OF_A_PLACE: Final = 8
"""For how many of these a new place counts, since its topic and its queue may be new as well."""
_MAX_DIGITS: Final = 18  # a number of so many digits certainly fits into a long


class Sent(NamedTuple):
    """The result of one command: it added `number` messages to the run, from index `first` on.

    `queue_id` and `transaction_id` are for the answer; `waits` tells whether the answer waits until
    the messages are confirmed. For a command without messages, `instead` is the error to answer;
    for one that ends a transaction it is the End, with or without a message. A plain tuple will do,
    too.
    """

    command: RemotingCommand
    first: int
    number: int
    queue_id: bytes = b""
    transaction_id: str | None = None
    waits: bool = False
    instead: Exception | End | None = None
    extra: tuple[str, str] | None = None
    """A field that only this answer has: name and value."""


class SendMessageProcessor:
    """Serves sends; `store_host` is the broker's advertised address, packed as in records."""

    def __init__(
        self,
        configuration: Configuration,
        checks: SendChecks,
        intake: Intake,
        ends: EndTransactionProcessor,
        store_host: bytes,
        unique_keys: UniqueKeys,
        walks: Walks,
        clock: Callable[[], int],
        serialize_type: int = SerializeType.JSON,
    ) -> None:
        self._checks = checks
        self._topics = checks.topics
        self._intake = intake
        self._ends = ends
        self._store_host = store_host
        self._unique_keys = unique_keys
        self._config = configuration.get(BrokerConfig)
        self._serialize_type = serialize_type
        self._prepare()
        cluster = self._own[names.CLUSTER]
        self._batches = Batches(checks, intake, walks, lambda: self._answers, cluster, clock)
        configuration.on_change.append(self._reconfigured)
        self._plain = intake.transforms.plain(Way.SEND)
        self._shapes = Shapes()
        self._shape = NO_SHAPE
        self._known_of: DataVersion | None = None
        self._known_permission = -1

    def _prepare(self) -> None:
        """Prepares what contains the values of settings: properties of messages, and answers."""
        own = self._own = own_properties(self._config)
        self._own_text = encode_properties(own).encode()
        told = {name: own[name] for name in (names.MSG_REGION, names.TRACE_ON)}
        self._answers = prepared_answers(told, self._store_host, self._serialize_type)
        self._stored = self._answers[_PUT_OK]

    def _reconfigured(self, keys: Collection[str]) -> None:
        if not _WRITTEN.isdisjoint(keys):
            self._prepare()

    @serves_run(
        send.SEND_MESSAGE,
        send.SEND_MESSAGE_V2,
        send.SEND_BATCH_MESSAGE,
        transaction.END_TRANSACTION,
    )
    def send(self, run: Run) -> list[Buffer]:
        """Stores the messages of a run; returns the answers to those who want one."""
        config, known_of = self._config, self._topics.data_version
        if known_of is not self._known_of or config.broker_permission != self._known_permission:
            self._known_of, self._known_permission = known_of, config.broker_permission
            self._shapes.forget_places()
        messages: list[PutMessage] = []
        sent: list[Sent] = []
        if run.now_ms >= config.start_accept_send_request_time_stamp:
            self._collect(run, messages, sent)
        else:
            for command in run.commands:
                self._general(run, command, messages, sent)
        batch = None
        if messages:
            batch = self._intake.put(messages, run.now_ms)
            if run.work:
                self._topics.drafts.make(batch.refused)
        if run.work:
            self._batches.go_on()
        ended: list[End] = []
        out = self._answered(run, batch, sent, ended)
        if ended:
            self._ends.close(ended, run.now_ms)
        return out

    def _count(self, run: Run, work: int) -> None:
        """Counts work in a run; the first is followed by what may need drafts."""
        if not run.work:
            self._ends.begin()
            self._topics.drafts.clear()
        run.work += work

    # Every plain message passes here, so no call is made that can be avoided.
    def _collect(self, run: Run, messages: list[PutMessage], sent: list[Sent]) -> None:
        """Collects the messages of the commands, or their errors, in order."""
        shape, plain = self._shape, self._plain.of
        own, own_behind = self._own_text, b"\x02" + self._own_text
        born_name, text_name, rest_of, places, size = shape.parts
        # Most messages in a run are born at the same time.
        born_host, store_host, last_born, born_ms = run.peer.remote_host, self._store_host, None, 0
        for command in run.commands:
            if run.work >= _MOST_WORK:
                run.end_before(command)
                break
            if command.code not in _SINGLE:
                self._general(run, command, messages, sent)
                continue
            ext: Any = command.ext_fields
            body = command.body
            place: Any = None
            try:
                if len(ext) != size:
                    raise KeyError  # noqa: TRY301 - as if a name were missing
                key = "\0".join(rest_of(ext))
            except (KeyError, TypeError):
                shape = self._shape = self._shapes.of(ext) or NO_SHAPE
                born_name, text_name, rest_of, places, size = shape.parts
                key = "\0".join(rest_of(ext))
            try:
                place = places.get(key, _MISSING)
                if place is _MISSING:
                    place = self._learn(run, command, shape, key)
                born, text = ext[born_name], ext[text_name]
                found: Any = plain(text)
                uniq_key, keys, tags, wait = found
                topic, queue_id, queue_text, flag, sys_flag, reconsume_times, _ = place
                if uniq_key is None or not body:
                    raise ValueError  # noqa: TRY301 - as for what is wrong with the text
                if born != last_born:
                    if not born.isdecimal() or len(born) > _MAX_DIGITS:
                        raise ValueError  # noqa: TRY301
                    last_born, born_ms = born, int(born)
                encoded = text.encode() + (own if text[-1] == "\x02" else own_behind)
                put: Any = (
                    topic, queue_id, body, encoded,
                    tags_code(tags) if tags else 0, born_ms, born_host, store_host, uniq_key,
                    keys, tags, flag, sys_flag, reconsume_times, 0,
                )  # fmt: skip
            except (ValueError, KeyError, TypeError):
                known = None
                if place is not None:
                    known = self._known(
                        run.peer, command, ext.get(born_name), ext.get(text_name), place
                    )
                self._general(run, command, messages, sent, known)
                continue
            waits = wait is None or wait == "true" or wait.lower() == "true"
            one: Any = command, len(messages), 1, queue_text, uniq_key, waits, None, None
            sent.append(one)
            messages.append(put)

    def _learn(self, run: Run, command: RemotingCommand, shape: Shape, key: str) -> Place | None:
        """Finds the place for a header that may be new; None if it has to be decoded each time."""
        self._count(run, _WORK_OF_A_PLACE)
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
        shape.keep(key, place)
        return place

    def _known(
        self, peer: Peer, command: RemotingCommand, born: Any, text: Any, place: Place
    ) -> InnerMessage | None:
        """Makes the message for a header whose place is known; None if it has to be decoded."""
        if not (isinstance(born, str) and isinstance(text, str)):
            return None
        if not born.isdecimal() or len(born) > _MAX_DIGITS:
            return None
        topic, queue_id, _, flag, sys_flag, reconsume_times, limit = place
        return InnerMessage(
            topic,
            queue_id,
            command.body,
            int(born),
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
        sent: list[Sent],
        message: InnerMessage | None = None,
    ) -> None:
        """Adds a command's messages, or its error; `message` is given if already decoded."""
        drafts = self._topics.drafts
        self._count(run, 1)
        drafts.begin()
        try:
            if command.code == _END:
                # What was read before counts, too: an end that is refused may have had much to do.
                run.work = max(run.work, self._ends.work)
                end = attempt(partial(self._ends.read, command, run.now_ms))
                if isinstance(end, ColdRead):
                    self._wait(run, command, end)
                elif end is not None:
                    made = [end.message] if end.message is not None else []
                    sent.append(Sent(command, len(messages), len(made), instead=end))
                    messages += made
                return
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
                    run.work += _MOST_WORK
                    return
            else:
                made = [self._single(message, run.now_ms)]
                transaction_id = message.properties[names.UNIQ_KEY]
        except NotTaken as reason:
            sent.append(Sent(command, 0, 0, instead=self._checks.refusal_of(reason.status)))
        except Exception as error:  # noqa: BLE001 - one bad request must not harm the others
            sent.append(Sent(command, 0, 0, instead=error))
        else:
            queue_id = b"%d" % message.real_queue_id
            extra = self._extra(message)
            at, count, waits = len(messages), len(made), message.waits
            sent.append(Sent(command, at, count, queue_id, transaction_id, waits, None, extra))
            messages += made
            drafts.end(at, count)

    def _wait(self, run: Run, command: RemotingCommand, read: ColdRead) -> None:
        """Ends a transaction as soon as its old half message has been read from the disk, even if
        its producer has disconnected.
        """

        def go_on(now_ms: int, error: ResponseError | None) -> None:
            messages: list[PutMessage] = []
            its: list[Sent] = []
            ended: list[End] = []
            alone = run.alone(command, now_ms)
            if error is not None:
                its.append(Sent(command, 0, 0, instead=error))
            else:
                self._general(alone, command, messages, its)
            batch = self._intake.put(messages, now_ms) if messages else None
            out = self._answered(alone, batch, its, ended)
            if ended:
                self._ends.close(ended, now_ms)
            alone.write_later(out)

        self._ends.wait(read, go_on)

    def _extra(self, message: InnerMessage) -> tuple[str, str] | None:
        """The extra field of the answer: the key of an inner batch, or a timer message's recall
        handle.

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

    # --------------------------------------------------------------------- answers

    # Every message passes here, so no call is made that can be avoided.
    def _answered(
        self, run: Run, batch: Batch | None, sent: Sequence[Sent], ended: list[End]
    ) -> list[Buffer]:
        """Returns the answers that are ready, in order; answers that wait for confirmation come
        later.

        Adds to `ended` the ends of transactions that took effect.
        """
        out: list[Buffer] = []
        ready: list[Stored] = []
        late: list[Stored] = []
        outcome: PutStatus | Ticket | None = None
        places, refused = (batch.places, batch.refused) if batch is not None else ([], {})
        for command, first, number, queue_id, transaction_id, waits, instead, extra in sent:
            if refused:
                instead = self._why_refused(refused, first, number) or instead  # noqa: PLW2901
            if instead is not None:
                if ready:
                    out.append(self._stored.frames(ready))
                    ready = []
                if isinstance(instead, End):
                    ended.append(instead)
                    out += run.answer(command, Reply())
                else:
                    out += run.answer(command, instead)
                continue
            if waits and outcome is None and batch is not None:
                outcome = self._intake.store.commit.outcome(batch.end_offset)
            if command.flag & ONEWAY_FLAG:
                continue
            offset, _, queue_offset = places[first]
            more: Sequence[int] = ()
            if number > 1:
                more = [place[0] for place in places[first + 1 : first + number]]
            stored: Any = (
                offset, queue_id, queue_offset, transaction_id, command.opaque, more, extra,
            )  # fmt: skip
            (late if waits and outcome is not _PUT_OK else ready).append(stored)
        if ready:
            out.append(self._stored.frames(ready))
        if late and outcome is not None:
            out += self._late(run, outcome, late)
        return out

    def _late(
        self,
        run: Run,
        outcome: PutStatus | Ticket,
        late: Sequence[Stored],
    ) -> Sequence[Buffer]:
        """Answers senders that wait for confirmation: at once if the outcome is known already."""
        if not isinstance(outcome, Ticket):
            return [self._answers[outcome].frames(late)]
        if run.is_timed:
            opaques = {each[4] for each in late}
            run.later = [each for each in run.commands if each.opaque in opaques]
        waiting_bytes = len(late) * WAITING_BYTES
        run.peer.begin_wait(waiting_bytes)

        def answer(status: PutStatus) -> None:
            run.peer.end_wait(waiting_bytes)
            run.write_later([self._answers[status].frames(late)], CODES[status])

        outcome.then(answer)
        return ()

    def _why_refused(
        self, refused: dict[int, PutStatus], first: int, number: int
    ) -> Exception | None:
        """Returns the error if the store refused a message of a command; None if it took all."""
        places = range(first, first + number)
        status = next((refused[at] for at in places if at in refused), None)
        return None if status is None else self._checks.refusal_of(status)
