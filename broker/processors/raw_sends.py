# SPDX-License-Identifier: Apache-2.0
"""Sends that a kernel takes from the bytes of a read, before commands are made of them.

The kernel has places: headers that were decoded and checked here, with all rules for topics,
permissions and flags, which it then finds again by their bytes. What depends on more than that is
never learned: topics and flags on which a transform acts, queues of batches, light queues, and
those with ext units. When topics, permissions, settings, accounts or the set of queues change, all
that was learned is forgotten. With accounts, only signed sends are learned, and the kernel computes
the signature of each. Whatever is not taken or cannot be put as a run goes the way of all requests
(writes.py), which stores it or says why not; so the kernel refuses nothing itself.

Half messages are learned, if their headers have the flag of such: the kernel writes them into the
half queue, with the properties that transforms/transaction.py adds. So are ends of transactions,
which come between them (raw_ends.py).

Java has no counterpart.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from typing import Any, Final

from txrocketmq.access.guard import AccessGuard
from txrocketmq.broker.intake.inner_message import Way
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.transforms.own_properties import own_properties
from txrocketmq.broker.kernel.chosen import Kernel
from txrocketmq.broker.processors.raw_ends import END_CODE, RawEnds
from txrocketmq.broker.processors.raw_signers import SignedBy, TableAccounts, signed_by
from txrocketmq.broker.processors.send.end_transaction import EndTransactionProcessor
from txrocketmq.broker.processors.send.send_answers import CODES, SendAnswers
from txrocketmq.broker.processors.send.send_checks import SendChecks, sys_flag_of
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.packed import SendRun
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH, PutStatus
from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.log.encode import IPV4_HOST_BYTES, IPV6_FLAGS
from txrocketmq.broker.store.log.visibility import DECIDING
from txrocketmq.remoting import formats
from txrocketmq.remoting.call import WAITING_BYTES, Peer
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.errors import FrameError, HeaderError, ResponseError
from txrocketmq.remoting.frame.frame import decode_header, first_code
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import MAX_TOPIC_BYTES_V1
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.topics import RETRY_PREFIX, TRANS_HALF_TOPIC
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.body.route import DataVersion
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader
from txrocketmq.remoting.rpc_times import RpcTimes
from txrocketmq.remoting.settings.config_file import Configuration

MOST_LEARNED: Final = 4_096
"""How many places and queues are known at once; then all are forgotten."""
_CODES: Final = frozenset(call.code for call in send.SENDS)
_UNUSUAL: Final = IPV6_FLAGS | MessageSysFlag.INNER_BATCH | MULTI_DISPATCH
_PREPARED: Final = MessageSysFlag.TRANSACTION_PREPARED_TYPE
_HALF_QUEUE: Final = (TRANS_HALF_TOPIC, 0)
_ADDED_TO_HALVES: Final = frozenset({names.TRANSACTION_ID, names.REAL_TOPIC, names.REAL_QID})
_BOTH_IPV4_BYTES: Final = 2 * IPV4_HOST_BYTES
_ONLY_ROLLBACKS: Final[Any] = object()
"""Stands for what was put for ends of which none has a message."""
_PUT_OK: Final = PutStatus.PUT_OK
_PREFIX: Final = fixed(formats.FRAME_PREFIX).struct
_HEADER_MASK: Final = 0xFFFFFF


class RawSends:
    """Serves sends from their bytes; `store_host` is the broker's own address, as in records."""

    request_codes = _CODES | {END_CODE}
    guard: AccessGuard | None = None

    def __init__(
        self,
        kernel: Kernel,
        configuration: Configuration,
        checks: SendChecks,
        intake: Intake,
        answers: SendAnswers,
        store_host: bytes,
        clock: Callable[[], int],
        steady_clock: Callable[[], int],
        ends: EndTransactionProcessor,
    ) -> None:
        self._kernel = kernel
        self._config = configuration.get(BrokerConfig)
        self._checks = checks
        self._topics = checks.topics
        self._intake = intake
        self._store = intake.store
        self._answers = answers
        self._store_host = store_host
        self._born_bytes = _BOTH_IPV4_BYTES - len(store_host)
        """How many bytes the address of a sender has whose sends are taken."""
        self._clock = clock
        self._steady_clock = steady_clock
        self._opened = ends.metrics.add
        self.taken = 0
        """How many requests were taken since the start."""
        self._known_of: DataVersion | None = None
        self._known_permission = self._known_queues = -1
        self._table: Any = None
        self._ends = RawEnds(ends, intake, self._queue)
        self._log = self._ends.log
        self._forget()
        configuration.on_change.append(self._reconfigured)

    def with_guard(self, guard: AccessGuard) -> None:
        """Serves only sends that the guard knows, where that is asked about requests."""
        self.guard = guard
        guard.known.on_clear.append(self._forget)

    def _forget(self) -> None:
        """Forgets all places: begins with another table, as runs of this one may be under way."""
        if self._table is not None:
            self._table.wipe()
        transforms = self._intake.transforms
        touched = transforms.properties(Way.SEND) | transforms.properties(Way.BATCH)
        self._table = self._kernel.new_table(
            _encoded(touched),
            _encoded(transforms.properties(Way.ENTRY)),
            _encoded((touched | _ADDED_TO_HALVES) - {names.TRAN_MSG}),
            encode_properties(own_properties(self._config)).encode(),
        )
        self._ends.begin(self._table)
        self._accounts = TableAccounts(self._table)
        self._queues: dict[tuple[str, int], int] = {}
        self._halves: dict[tuple[str, int], int] = {}
        """By topic and queue: the number of the half messages that are for it."""
        self._half_topics: list[str] = []
        self._learned = 0

    def _reconfigured(self, _: Collection[str]) -> None:
        self._forget()

    def _note(self) -> None:
        """Forgets what depended on topics, permission and queues, and notes how these are now."""
        self._known_of = self._topics.data_version
        self._known_permission = self._config.broker_permission
        self._known_queues = self._store.queues_given_up
        self._forget()

    # Every read of sends passes here, so no call is made that can be avoided.
    def serve(self, peer: Peer, data: bytes, times: RpcTimes | None, origin: int) -> int:
        """Serves the sends with which the bytes begin; returns how many bytes they have."""
        config, store = self._config, self._store
        if (
            self._topics.data_version is not self._known_of
            or config.broker_permission != self._known_permission
            or store.queues_given_up != self._known_queues
        ):
            self._note()
            return 0
        table, half_topics = self._table, self._half_topics
        knows_ends = self._ends.targets
        run: SendRun | None = (
            table.take(data, origin, self._log) if knows_ends else table.take(data, origin)
        )
        if run is None:
            return 0
        ended = run.ends() if knows_ends else ()
        now_ms, born, host = self._clock(), peer.remote_host, self._store_host
        if (
            len(born) != self._born_bytes
            or now_ms < config.start_accept_send_request_time_stamp
            or (run.waits and store.commit.lacks_brokers)
            or (ended and not self._ends.may_end(ended))
        ):
            return 0
        started_ms = 0 if times is None else self._steady_clock()
        packed = (
            self._intake.put_run(run, table, born, host, now_ms)
            if not ended or run.messages
            else _ONLY_ROLLBACKS
        )
        if packed is None:
            return 0
        self.taken += run.commands
        if half_topics:
            for number, count in run.halves():
                self._opened(half_topics[number], count)
        if ended:
            self._ends.take_effect(ended, now_ms)
        outcome: PutStatus | Ticket = _PUT_OK
        if run.answered:
            if run.waits:
                outcome = store.commit.outcome(packed.end_offset)
            if outcome is _PUT_OK:
                answers = self._answers.stored
                peer.write([run.answers(table, *answers.pieces, answers.host)])
            else:
                self._answer_otherwise(peer, table, run, outcome, times, started_ms)
        if times is not None:
            self._count(times, run, started_ms, outcome)
        return run.at

    def _answer_otherwise(
        self, peer: Peer, table: Any, run: SendRun, outcome: PutStatus | Ticket,
        times: RpcTimes | None, started_ms: int,
    ) -> None:  # fmt: skip
        """Answers those who wait for confirmation, or wait in vain."""
        if isinstance(outcome, Ticket):
            self._answer_later(peer, table, run, outcome, times, started_ms)
        else:
            peer.write([self._frames(table, run, outcome)])

    def _frames(self, table: Any, run: SendRun, status: PutStatus) -> bytes:
        answers = self._answers.of[status]
        return run.answers(table, *answers.pieces, answers.host)

    def _answer_later(
        self, peer: Peer, table: Any, run: SendRun, ticket: Ticket, times: RpcTimes | None,
        started_ms: int,
    ) -> None:  # fmt: skip
        """Answers when the messages are confirmed, or their time is up."""
        waiting_bytes = run.answered * WAITING_BYTES
        peer.begin_wait(waiting_bytes)

        def answer(status: PutStatus) -> None:
            peer.end_wait(waiting_bytes)
            if peer.connected:
                peer.write([self._frames(table, run, status)])
                if times is not None:
                    self._count(times, run, started_ms, status, late=True)

        ticket.then(answer)

    def _count(
        self,
        times: RpcTimes,
        run: SendRun,
        started_ms: int,
        outcome: PutStatus | Ticket,
        *,
        late: bool = False,
    ) -> None:
        """Counts how long the requests took: those that are answered later when they are."""
        elapsed_ms = self._steady_clock() - started_ms
        for code, is_oneway, number in run.kinds():
            if is_oneway and not late:
                times.add((code, ResponseCode.SUCCESS, False, True), elapsed_ms, number)
            elif not is_oneway and not isinstance(outcome, Ticket):
                times.add((code, CODES[outcome], False, False), elapsed_ms, number)

    def learn(self, peer: Peer, data: bytes, origin: int) -> bool:
        """Learns the place of the first request; returns whether it may be taken now."""
        length, mark = _PREFIX.unpack_from(data)
        header_end = _PREFIX.size + (mark & _HEADER_MASK)
        if header_end > 4 + length:
            return False
        data_header = data[_PREFIX.size : header_end]
        if origin and first_code(data) == END_CODE:
            return False
        try:
            command = decode_header(mark >> 24, data_header)
            is_end = command.code == END_CODE
            if not (is_end or command.code in _CODES) or command.flag & RESPONSE_FLAG:
                return False
            command.body = data[header_end : 4 + length]
            by = signed_by(self.guard, peer, command, origin)
            if by is None:
                return False
            if is_end:
                return not command.body and self._ends.learn(mark >> 24, data_header, command)
            header = SendMessageRequestHeader.decode(command.ext_fields)
            if self._topics.get(header.topic) is None:  # or it would be drafted
                return False
            sys_flag = sys_flag_of(header, self._checks.topic_of(header, peer))
            return self._keep(mark >> 24, data_header, command, header, sys_flag, by)
        except (FrameError, HeaderError, ResponseError, OverflowError, struct.error):
            return False  # the reference way says what is wrong

    def _keep(
        self,
        kind: int,
        data: bytes,
        command: RemotingCommand,
        header: SendMessageRequestHeader,
        sys_flag: int,
        by: SignedBy,
    ) -> bool:
        """Has the kernel learn a place that fits."""
        is_batch = bool(header.batch) or command.code == send.SEND_BATCH_MESSAGE.code
        deciding = sys_flag & DECIDING
        if (
            sys_flag & _UNUSUAL
            or (deciding and (deciding != _PREPARED or is_batch or not self._takes_halves))
            or header.queue_id < 0
            or not self._checks.is_storable(header.topic)
            or self._is_touched(header.topic, sys_flag, is_batch=is_batch)
        ):
            return False
        if self._learned >= MOST_LEARNED or len(self._queues) >= MOST_LEARNED:
            self._forget()
        place = header.topic, header.queue_id
        queue = self._queue(*(_HALF_QUEUE if deciding else place))
        self._learned += 1
        return queue is not None and bool(
            self._table.learn(
                kind, data, queue, is_batch, command.is_oneway, header.flag, sys_flag & ~DECIDING,
                header.reconsume_times or 0, command.code, self._half(*place) if deciding else None,
                by.origin, self._accounts.number(by),
            )
        )  # fmt: skip

    @property
    def _takes_halves(self) -> bool:
        """Whether half messages are stored as they are usually."""
        return not (
            self._config.reject_transaction_message or self._is_touched(TRANS_HALF_TOPIC, 0)
        )

    def _is_touched(self, topic: str, sys_flag: int, *, is_batch: bool = False) -> bool:
        touches = self._intake.transforms.touches_topic
        if not is_batch:
            return touches(Way.SEND, topic, sys_flag)
        return (
            topic.startswith(RETRY_PREFIX)
            or len(topic) > MAX_TOPIC_BYTES_V1
            or touches(Way.BATCH, topic, sys_flag)
            or touches(Way.ENTRY, topic, sys_flag)
        )

    def _queue(self, topic: str, queue_id: int) -> int | None:
        """The index of a queue in the table; None if it has no messages yet, or is not plain."""
        place = topic, queue_id
        if place not in self._queues:
            queue = self._store.packed_queue(topic, queue_id)
            if queue is None:
                return None
            of = queue.queue
            self._queues[place] = self._table.add_queue(queue, of.record_topic, of.magic, queue_id)
        return self._queues[place]

    def _half(self, topic: str, queue_id: int) -> int:
        """The number in the table of half messages that are for this queue."""
        place = topic, queue_id
        if place not in self._halves:
            real = encode_properties({names.REAL_TOPIC: topic, names.REAL_QID: str(queue_id)})
            before, behind = f"{names.TRANSACTION_ID}\x01", f"\x02{real}"
            self._halves[place] = self._table.add_half(
                queue_id, before.encode(), behind.encode("utf-8", "replace")
            )
            self._half_topics.append(topic)
        return self._halves[place]


def _encoded(texts: Collection[str]) -> list[bytes]:
    return [text.encode() for text in sorted(texts)]
