# SPDX-License-Identifier: Apache-2.0
"""The check of half messages: finds transactions that have not ended in time, and handles them.

Every transactionCheckInterval the broker goes through the half queues, skipping messages that have
ended. An open message that is younger than transactionTimeOut ends the round. An older one is put
at the end of its queue again, and a producer of its group is asked for its state; the answer is an
ordinary END_TRANSACTION. After transactionCheckMax questions, or when it is older than the files of
the log are kept, it goes to TRANS_CHECK_MAX_TIME_TOPIC, from where an administrator can bring it
back. That is where the messages of a group end that has no producers left.

A round is done in slices, however many messages there are. Messages are put before progress is
saved, and progress is saved when they are durable. After a crash a question may be repeated, but
nothing is lost, and nothing is open twice: the start looks for older copies (copies.py), and a
message ends in all its copies (moves.py).

A slave that acts as master with enableRemoteEscape can put nothing and ask nobody. There a round
sends what is open, however young it is, to other masters of the cluster, whose half messages they
become and who ask the producers. What no other master takes waits, and the messages behind it go
on: the original passes it over after ten attempts, and its master never asks about it.

Java: TransactionalMessageServiceImpl.check, TransactionalMessageCheckService.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from typing import Final

from txrocketmq.broker.engines.engine import Engine, Escapes
from txrocketmq.broker.intake.after_durable import AfterDurable
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import items_in_memory
from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.transaction import half_message
from txrocketmq.broker.transaction.half_queue import HalfQueue
from txrocketmq.broker.transaction.metrics import TransactionMetrics
from txrocketmq.broker.transaction.op_message import op_messages
from txrocketmq.broker.transaction.question import Questions
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import SECOND_MS, AtStop, Hears, Life, SlicedBeat
from txrocketmq.broker.work.mishap import Mishap, MishapListener, tell
from txrocketmq.broker.work.patience import Patience
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.topics import TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC

MAX_BATCH: Final = 32
"""How many half messages are put in one write."""
MAX_BATCH_BYTES: Final = 512 * 1024
"""How many bytes of records are put in one write; a single larger message is put alone."""
_HOUR_MS: Final = 3_600_000
_NEVER: Final = frozenset({PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED})
"""The statuses with which the store refuses a message for good."""


class _Fate(Enum):
    """What is done with an open half message."""

    WAIT = auto()
    """Nothing yet, nor with any message behind it."""
    LEAVE = auto()
    """It goes to the end of the queue: its producer is to be asked later."""
    ASK = auto()
    GIVE_UP = auto()
    ESCAPE = auto()
    """Another master is to have it."""


class TransactionCheck(Engine):
    """Goes through the half queues; `tick` is to be called every second."""

    def __init__(
        self,
        config: BrokerConfig,
        intake: Intake,
        topics: Topics,
        offsets: ConsumerOffsets,
        questions: Questions,
        metrics: TransactionMetrics,
        after_durable: AfterDurable,
        store_host: Callable[[], bytes],
        patience: Patience,
    ) -> None:
        super().__init__(intake.store, patience)
        self._config = config
        self._after_durable = after_durable
        self._store_host = store_host
        self._intake = intake
        self._store = intake.store
        self._topics = topics
        self._offsets = offsets
        self._questions = questions
        self._metrics = metrics
        self._queues: dict[int, HalfQueue] = {}
        self._round: deque[HalfQueue] = deque()
        """The queues that this round has not finished."""
        self._unknown: deque[HalfQueue] = deque()
        """The queues in which copies are still to be looked for after the start."""
        self._began_ms: int | None = None
        self._escaping: HalfQueue | None = None
        """The queue of which messages are on their way to other masters."""
        self.on_not_taken: list[MishapListener] = []
        """Called when no other master takes messages, so that they wait."""
        self.on_dead_letters: list[MishapListener] = []
        """Called when messages that can never go where they should are put aside for people."""

    def end(
        self, halves: Sequence[tuple[int, int]], now_ms: int
    ) -> dict[int, list[tuple[int, int]]]:
        """Ends half messages, which are given by the queues and offsets that producers have.

        Returns the queues and offsets of all copies of those that have some, by their index.

        Op messages are put when everything before them is durable (after_durable.py); no producer
        is asked meanwhile.
        """
        copies: dict[int, list[tuple[int, int]]] = {}
        places: Sequence[tuple[int, int]] = halves
        first = halves[0][0]
        queue = self._queue(first)
        is_done = False
        for queue_id, _ in halves:
            if queue_id != first:
                break
        else:
            is_done = queue.ended_alone(halves)
        if not is_done:
            places = []
            for at, (queue_id, offset) in enumerate(halves):
                found = [(queue_id, each) for each in self._queue(queue_id).end(offset)]
                if len(found) > 1:
                    copies[at] = found
                places += found
        self._after_durable.put(op_messages(places, self._store_host(), now_ms))
        return copies

    def _queue(self, queue_id: int) -> HalfQueue:
        queue = self._queues.get(queue_id)
        if queue is None:
            is_new = self._began_ms is not None
            queue = HalfQueue(queue_id, self._store, self._offsets, is_new=is_new)
            self._queues[queue_id] = queue
        return queue

    def settle(self) -> None:
        """Saves the progress as far as everything that it depends on is durable."""
        for queue in self._queues.values():
            queue.settle()

    def work(self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool]) -> None:
        """Begins a round when it is time for one, or continues it."""
        self.settle()
        if self._escaping is not None or self.reading.is_busy(steady_ms):
            return
        if self._began_ms is None:
            self._unknown.extend(self._all_queues())
            self._began_ms = steady_ms
        if not (self._unknown or self._round or self._begin(self._began_ms, steady_ms)):
            return
        self.reading.work(lambda: self._go_on(now_ms, is_time_up), steady_ms)

    def _go_on(self, now_ms: int, is_time_up: Callable[[], bool]) -> None:
        while self._escaping is None and (self._unknown or self._round):
            if self._unknown:
                if self._look_for_copies(self._unknown[0], now_ms):
                    self._unknown.popleft()
            elif self._step(self._round[0], now_ms):
                self._round.popleft()
            if is_time_up():
                break
        self.is_behind = self._escaping is None and bool(self._unknown or self._round)

    def forget(self) -> None:
        """Forgets all queues; what other masters have taken meanwhile may be sent once more."""
        super().forget()
        self._queues.clear()
        self._round.clear()
        self._unknown.clear()
        self._began_ms = self._escaping = None

    def _all_queues(self) -> list[HalfQueue]:
        return [self._queue(each) for each in self._store.queue_ids(TRANS_HALF_TOPIC)]

    def _begin(self, began_ms: int, steady_ms: int) -> bool:
        """Begins a round, unless it is too early."""
        if steady_ms - began_ms < self._config.transaction_check_interval:
            return False
        self._began_ms = steady_ms
        for queue in self._all_queues():
            queue.begin_round()
            self._round.append(queue)
        return bool(self._round)

    def _look_for_copies(self, queue: HalfQueue, now_ms: int) -> bool:
        """Reads some messages of a queue, unless its copies are known; returns whether they are."""
        ended = queue.read_copies()
        if ended:
            places = [(queue.queue_id, each) for each in ended]
            self._after_durable.put(op_messages(places, self._store_host(), now_ms))
        return ended is not None

    def _step(self, queue: HalfQueue, now_ms: int) -> bool:
        """Continues with a queue, by some op or half messages; returns whether it is finished.

        Half messages are only examined when the op messages, which tell what has ended, were read.
        """
        if not (self._look_for_copies(queue, now_ms) and queue.read_ops()):
            return False
        queue.skip_lost()
        if self.escape is not None:
            return self._send_elsewhere(self.escape, queue)
        start = queue.next_open(queue.ended.half_offset)
        found, end, is_done = self._collect(queue, start, partial(self._fate, now_ms=now_ms))
        if not found:
            queue.ended.done_before(end)
            return is_done
        stopped_at = self._act(queue, found, now_ms)
        queue.ended.done_before(end if stopped_at is None else stopped_at)
        return is_done or stopped_at is not None

    def _send_elsewhere(self, escape: Escapes, queue: HalfQueue) -> bool:
        """Sends open messages to other masters; returns whether none is left in this round."""
        start = queue.next_open(max(queue.ended.half_offset, queue.escaped_to))
        if start >= queue.top:
            return True
        unread: list[int] = []
        found, end, _ = self._collect(queue, start, lambda _: _Fate.ESCAPE, unread)
        queue.ended.mark(unread)
        made = [(half, half_message.sent_elsewhere(half)) for half, _ in found]
        sent = [(half, message.to_put()) for half, message in made if message is not None]
        self._escaping = queue

        def answered(has: list[bool]) -> None:
            if self._escaping is not queue:
                return  # it acts no more
            self._escaping = None
            arrived = {
                half.queue_offset for (half, _), is_there in zip(sent, has, strict=True) if is_there
            }
            queue.escaped(arrived, end if arrived or not found else queue.top)
            left = [half for half, _ in found if half.queue_offset not in arrived]
            if left:
                topic = left[0].properties.get(names.REAL_TOPIC, "")
                at = left[0].queue_offset
                tell(self.on_not_taken, Mishap(len(left), queue.queue_id, at, topic))

        if sent:
            escape.put([message for _, message in sent], answered)
        else:
            answered([])
        return False

    def _collect(
        self,
        queue: HalfQueue,
        end: int,
        fate_of: Callable[[MessageExt], _Fate],
        unread: list[int] | None = None,
    ) -> tuple[list[tuple[MessageExt, _Fate]], int, bool]:
        """Returns open messages to act on, from the offset `end` on, the offset after them, and if
        the round ends there. Adds offsets of messages that cannot be read to `unread`.
        """
        found: list[tuple[MessageExt, _Fate]] = []
        size_bytes = 0
        for offset, half in items_in_memory(queue.open_messages(end, MAX_BATCH)):
            if half is None:
                tell(self.on_unreadable, Mishap(1, queue.queue_id, offset))
                if unread is not None:
                    unread.append(offset)
            else:
                fate = fate_of(half)
                if fate is _Fate.WAIT:
                    return found, offset, True
                if found and size_bytes + half.store_size > MAX_BATCH_BYTES:
                    return found, offset, False
                size_bytes += half.store_size
                half.queue_offset = offset
                found.append((half, fate))
            end = queue.next_open(offset + 1)
        return found, end, end >= queue.top

    def _fate(self, half: MessageExt, now_ms: int) -> _Fate:
        config, age_ms = self._config, now_ms - half.born_timestamp
        if half_message.times_asked(half) >= config.transaction_check_max:
            return _Fate.GIVE_UP
        if age_ms > self._store.config.file_reserved_time * _HOUR_MS:
            return _Fate.GIVE_UP
        immunity_ms = half_message.immunity_ms(half)
        if immunity_ms is None:
            is_young = 0 <= age_ms <= config.transaction_time_out
            return _Fate.WAIT if is_young else _Fate.ASK
        if immunity_ms < 0:
            immunity_ms = config.transaction_time_out
        return _Fate.LEAVE if age_ms <= immunity_ms else _Fate.ASK

    def _act(
        self, queue: HalfQueue, found: list[tuple[MessageExt, _Fate]], now_ms: int
    ) -> int | None:
        """Puts messages where they belong, and asks; returns the first refused one's offset.

        The store takes no messages then, so the round ends.
        """
        batch = self._intake.put([self._put(*each) for each in found], now_ms)
        stopped_at: int | None = None
        lost: list[MessageExt] = []
        given_up: list[MessageExt] = []
        for at, (half, fate) in enumerate(found):
            status = batch.refused.get(at)
            if status in _NEVER:
                lost.append(half)
            elif status is not None:
                stopped_at = half.queue_offset if stopped_at is None else stopped_at
            elif fate is _Fate.GIVE_UP:
                given_up.append(half)
            else:
                physical_offset, _, queue_offset = batch.places[at]
                prepared = half_message.prepared_offset(half, half.queue_offset)
                queue.moves.moved(half.queue_offset, queue_offset, prepared)
                if fate is _Fate.ASK:
                    self._ask(half, physical_offset, queue_offset, now_ms)
        if lost:  # one property more makes them too large
            self._intake.put([half_message.given_up(each).to_put() for each in lost], now_ms)
        if lost or given_up:
            self._give_up(queue, given_up + lost, now_ms)
        return stopped_at

    def _put(self, half: MessageExt, fate: _Fate) -> PutMessage:
        if fate is _Fate.ASK:
            return half_message.asked_once_more(half).to_put()
        if fate is _Fate.LEAVE:
            return half_message.left_alone(half).to_put()
        self._topics.create_in_send_back(TRANS_CHECK_MAX_TIME_TOPIC, 1)
        return half_message.given_up(half).to_put()

    def _ask(self, half: MessageExt, physical_offset: int, queue_offset: int, now_ms: int) -> None:
        times = half_message.times_asked(half) + 1
        half.properties[names.TRANSACTION_CHECK_TIMES] = str(times)
        half.commit_log_offset, half.queue_offset = physical_offset, queue_offset
        half.store_timestamp = now_ms
        self._questions.ask(half)

    def _give_up(self, queue: HalfQueue, halves: list[MessageExt], now_ms: int) -> None:
        self.end([(queue.queue_id, each.queue_offset) for each in halves], now_ms)
        for half in halves:
            self._metrics.add(half.properties.get(names.REAL_TOPIC, ""), -1)
        first = halves[0]
        topic, key = (first.properties.get(each, "") for each in (names.REAL_TOPIC, names.UNIQ_KEY))
        told = Mishap(len(halves), queue.queue_id, first.queue_offset, topic, key=key)
        tell(self.on_dead_letters, told)

    def life(self) -> Life:
        """Producers are asked about their half messages."""
        settle = AtStop("keeping the progress of transactions", lambda _: self.settle())
        return Life(
            "check of transactions",
            hears=(
                Hears(self.on_dead_letters, notices.half_messages_given_up),
                Hears(self.on_unreadable, notices.half_message_unreadable),
                Hears(self.on_not_taken, partial(notices.not_taken, "half")),
            ),
            beats=(SlicedBeat(SECOND_MS, self),),
            at_stop=(settle,),
        )
