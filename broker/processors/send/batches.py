# SPDX-License-Identifier: Apache-2.0
"""Batches: their messages, and the long ones, which are prepared in turns and stored in one step.

Clients rely on the queue offsets of a batch being consecutive, and on all of its messages being
stored or none. So only its end is done at once: everything else comes before, a few messages at a
time, while others send and pull. Long batches are prepared one after another. While one of a peer
is under way, nothing else of that peer is served, so that no later send of a producer overtakes it.
A batch whose producer has gone meanwhile is stored all the same.

Java: SendMessageProcessor.sendBatchMessage, which holds up one of several threads, and all that put
messages into the log while it appends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.transform import NotTaken
from txrocketmq.broker.intake.transforms.inner_batch import Counted
from txrocketmq.broker.processors.send.send_answers import (
    BATCH_KEY,
    CODES,
    SendAnswers,
    Stored,
    message_ids,
)
from txrocketmq.broker.processors.send.send_batch import entries_of
from txrocketmq.broker.processors.send.send_checks import SendChecks
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH, Whole
from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.log.long_run import LongRun
from txrocketmq.broker.store.message_store import PutMessage, PutStatus, QueueBatch
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Run
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader

MAX_BATCH: Final = 65_536
"""How many messages a batch may have. Clients give each a key, so that no more than 55,000 fit into
maxMessageSize; storing so many takes some 20 ms."""
MANY: Final = 512
"""A batch with more messages than this is a long one."""
MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
"""How many bytes the bodies of long batches may have that wait; a further one is refused."""
_AT_ONCE: Final = 128
"""How many messages are prepared in a step."""
_SYS_FLAG: Final = PutMessage._fields.index("sys_flag")


class LongBatch(NamedTuple):
    """A long batch: its request, and what has been read of it up to `at`.

    That is `made`, some of its messages, or `counted` for one that is to be a single record.
    """

    run: Run
    command: RemotingCommand
    header: SendMessageRequestHeader
    message: InnerMessage
    made: list[PutMessage]
    at: int
    counted: Counted | None = None


class Batches:
    """Makes the messages of short batches, and stores the long ones, which are under way.

    `cluster` is what messages say of theirs, and `now_ms` is the time.
    """

    def __init__(
        self,
        checks: SendChecks,
        intake: Intake,
        walks: Walks,
        answers: SendAnswers,
        cluster: str,
        now_ms: Callable[[], int],
    ) -> None:
        self._checks = checks
        self._intake = intake
        self._walks = walks
        self._answers = answers
        self._cluster = cluster
        self._now_ms = now_ms
        self.waiting: deque[LongBatch] = deque()
        self._waiting_bytes = 0
        self._is_under_way = False

    def messages_of(
        self,
        run: Run,
        command: RemotingCommand,
        header: SendMessageRequestHeader,
        batch: InnerMessage,
    ) -> tuple[list[PutMessage], str | None]:
        """Makes the messages of a batch; returns its own key, too, which 4.9 clients do not set.

        There are none of a long batch, and of one for light queues: `begin` begins with it, and
        the run ends before the next command. Raises ResponseError or NotTaken for one that is
        refused.
        """
        self._checks.check_batch(batch)
        batch.way = Way.BATCH
        key = batch.properties.get(names.UNIQ_KEY)
        if key and self._intake.store.has_batches(batch.topic):
            counted = Counted(batch.body)
            counted.count_on(MANY)
            if counted.is_done:
                return [self._inner(batch, counted, run.now_ms)], key
            self._take(
                LongBatch(run.alone(command, run.now_ms), command, header, batch, [], 0, counted)
            )
            return [], key
        self._intake.admit(batch, run.now_ms)
        light: list[InnerMessage] = []

        def admit(message: InnerMessage) -> None:
            self._intake.admit(message, run.now_ms)
            if message.sys_flag & MULTI_DISPATCH:
                light.append(message)

        made, at = entries_of(batch, self._intake.transforms, admit, 0, MANY)
        if light or at < len(batch.body):
            self._take(LongBatch(run.alone(command, run.now_ms), command, header, batch, made, at))
            return [], key
        return made, key

    def _inner(self, batch: InnerMessage, counted: Counted, now_ms: int) -> PutMessage:
        """Makes one record of a batch; it must have a key of its own."""
        batch.sys_flag |= MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP
        batch.properties[names.INNER_NUM] = str(counted.count)
        batch.counted = counted.count
        self._intake.admit(batch, now_ms)
        batch.properties[names.CLUSTER] = self._cluster
        return batch.to_put()

    def _take(self, batch: LongBatch) -> None:
        """Takes a long batch; raises ResponseError when too many wait."""
        size_bytes = len(batch.message.body)
        if self._waiting_bytes + size_bytes > MAX_WAITING_BYTES:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY,
                f"batches with {self._waiting_bytes} bytes wait already: try again later, or send"
                f" batches of at most {MANY} messages",
            )
        self.waiting.append(batch)
        self._waiting_bytes += size_bytes
        peer = batch.run.peer
        peer.begin_wait(size_bytes)
        peer.begin_work()
        peer.begin_work()  # with two of these, nothing else of it is served

    def begin(self) -> None:
        """Begins with what waits, after what came before it in its run has been put."""
        if not self._is_under_way:
            self._is_under_way = True
            self._walks.run(self._all(), self._failed)

    def _failed(self, error: Exception) -> None:
        self._is_under_way = False
        raise error

    def _all(self) -> Steps[None]:
        while self.waiting:
            batch = self.waiting.popleft()
            peer = batch.run.peer
            try:
                yield from self._one(batch)
            finally:
                size_bytes = len(batch.message.body)
                self._waiting_bytes -= size_bytes
                peer.end_wait(size_bytes)
                peer.end_work()
                peer.end_work()
            yield from self._intake.store.write_index()
        self._is_under_way = False

    def _one(self, batch: LongBatch) -> Steps[None]:
        """Stores and answers a batch, or says why it is refused."""
        run, command = batch.run, batch.command
        error: Exception
        try:
            if batch.counted is None:
                yield from self._taken_apart(batch)
            else:
                yield from self._one_record(batch, batch.counted)
        except NotTaken as reason:
            error = self._checks.refusal_of(reason.status)
        except Exception as reason:  # noqa: BLE001 - it is the answer
            error = reason
        else:
            return
        run.write_later(run.answer(command, error))

    def _taken_apart(self, batch: LongBatch) -> Steps[None]:
        """Stores each message of a batch by itself."""
        message, made, at = batch.message, batch.made, batch.at
        store, transforms = self._intake.store, self._intake.transforms
        if store.has_batches(message.topic):
            raise _too_many("which has no key of its own, for a topic of batches")
        admit = partial(self._intake.admit, now_ms=batch.run.now_ms)
        run: Whole | LongRun | PutStatus
        is_read = at == len(message.body)  # then it is a short one, for light queues
        run = Whole(made) if is_read else store.long_run(PutMessage(*made[0]))
        while isinstance(run, LongRun):
            for at_once in range(0, len(made), _AT_ONCE):
                some = made[at_once : at_once + _AT_ONCE]
                if any(each[_SYS_FLAG] != message.sys_flag for each in some):
                    raise _too_many("some of whose messages enter light queues")
                status = run.add(some)
                if status is not None:
                    raise NotTaken(status)
                yield
            if len(run) > MAX_BATCH:
                raise NotTaken(PutStatus.MESSAGE_ILLEGAL)
            if at == len(message.body):
                break
            made, at = entries_of(message, transforms, admit, at, _AT_ONCE)
        if isinstance(run, PutStatus):
            raise NotTaken(run)
        if isinstance(run, LongRun):
            yield from store.make_room(run)
        stored = self._put(batch, run)
        yield
        offsets = [place[0] for place in stored.places[:1]]
        more: list[bytes] = []
        answers = self._answers.stored
        for first in range(1, len(run), _AT_ONCE * 8):
            places = stored.places[first : first + _AT_ONCE * 8]
            more.append(message_ids(answers.host, [place[0] for place in places]))
            yield
        key = message.properties.get(names.UNIQ_KEY)
        self._answer(batch, stored, Stored(
            offsets[0], b"%d" % message.queue_id, stored.places[0][2], key, batch.command.opaque,
            b",".join(more) or (),
        ))  # fmt: skip

    def _one_record(self, batch: LongBatch, counted: Counted) -> Steps[None]:
        """Stores a batch as one record."""
        message = batch.message
        while not counted.is_done:
            counted.count_on(_AT_ONCE * 8)
            yield
        put = self._inner(message, counted, self._now_ms())
        yield
        stored = self._put(batch, [put])
        key = message.properties[names.UNIQ_KEY]
        offset, _, queue_offset = stored.places[0]
        self._answer(batch, stored, Stored(
            offset, b"%d" % message.queue_id, queue_offset, key, batch.command.opaque, (),
            (BATCH_KEY, key),
        ))  # fmt: skip

    def _put(self, batch: LongBatch, messages: LongRun | Sequence[PutMessage]) -> QueueBatch:
        """Puts the messages at once, for a topic that may have gone meanwhile, or be a new one."""
        drafts, now_ms = self._checks.topics.drafts, self._now_ms()
        if not self._intake.store.writeable:
            raise NotTaken(PutStatus.SERVICE_NOT_AVAILABLE)
        if batch.message.waits and self._intake.store.commit.lacks_brokers:
            raise NotTaken(PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH)
        drafts.clear()
        drafts.begin()
        self._checks.topic_of(batch.header, batch.run.peer)
        drafts.end(0, 1)
        stored = self._intake.put(messages, now_ms)
        drafts.make(stored.refused)
        if stored.refused:
            raise NotTaken(stored.refused[0])
        return stored

    def _answer(self, batch: LongBatch, stored: QueueBatch, answer: Stored) -> None:
        """Answers once the messages are confirmed, or at once if the producer does not wait."""
        run, commit = batch.run, self._intake.store.commit
        outcome: PutStatus | Ticket = PutStatus.PUT_OK
        if batch.message.waits:
            outcome = commit.outcome(stored.end_offset)
        if batch.command.is_oneway:
            return
        of = self._answers.of

        def write(status: PutStatus) -> None:
            run.write_later([of[status].frames([answer])], CODES[status])

        if isinstance(outcome, Ticket):
            outcome.then(write)
        else:
            write(outcome)


def _too_many(which: str) -> ResponseError:
    return ResponseError(
        ResponseCode.MESSAGE_ILLEGAL,
        f"a batch {which}, may have at most {MANY} messages: send several batches",
    )
