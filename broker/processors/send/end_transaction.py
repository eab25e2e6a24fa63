# SPDX-License-Identifier: Apache-2.0
"""END_TRANSACTION and RESUME_CHECK_HALF_MESSAGE: commits, rolls back or resumes half messages.

A commit puts the message for the queue it was sent to, and the op message that ends the half one; a
rollback only the latter. Ends come between sends, in one run with them (writes.py): the messages of
one read go into one write, and the op messages into later ones, when what they end is durable.
Until then the check knows of it in memory. An undecided end (0) is not answered and changes
nothing: the check asks again. The half message is found by its offset in the log; producer group,
queue offset and log offset have to be its own. An end that is no answer to a question comes too
late when the producer itself has said when it is to be asked (604). A transaction ends once: a
second end is refused (1) while the broker remembers the first. It remembers the latest 100,000, in
memory only; after that, and in the original always, a second commit delivers the message again.

RESUME_CHECK_HALF_MESSAGE puts a message that was given up among the half messages again. Where
there are accounts, the topic that a half message is for counts, whatever topic the request names:
an end needs Pub of it, and to resume needs Update. Codes: 1; 11 on a slave; 13, 14 when the store
does not take the message; 604.

Java: EndTransactionProcessor, AdminBrokerProcessor.resumeCheckHalfMessage.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple

from txrocketmq.access.needs import Action
from txrocketmq.broker.accounts.access import CheckFound
from txrocketmq.broker.intake.after_durable import AfterDurable
from txrocketmq.broker.intake.inner_message import Way
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.transform import NotTaken
from txrocketmq.broker.intake.usual_record import (
    UsualRecord,
    destination,
    is_plain_place,
    usual_record,
)
from txrocketmq.broker.processors.send.send_checks import SendChecks
from txrocketmq.broker.processors.send.writes import GoOn, Later, Outcome, ends_runs, writes
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.in_memory import ColdRead
from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus
from txrocketmq.broker.transaction import half_message
from txrocketmq.broker.transaction.check import TransactionCheck
from txrocketmq.broker.transaction.half_message import Half, committed_flag
from txrocketmq.broker.transaction.metrics import TransactionMetrics
from txrocketmq.broker.work.patience import Patience, attempt
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Run, serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import MessageIdError, decode_message_id
from txrocketmq.remoting.message.message import MessageDecodeError, MessageExt, decode_message
from txrocketmq.remoting.message.topics import TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC
from txrocketmq.remoting.protocol import transaction
from txrocketmq.remoting.protocol.transaction import (
    COMMITTED,
    ROLLED_BACK,
    EndTransactionRequestHeader,
    ResumeCheckHalfMessageRequestHeader,
)

_COMMIT: Final = MessageSysFlag.TRANSACTION_COMMIT_TYPE
_ENDS: Final = frozenset({_COMMIT, MessageSysFlag.TRANSACTION_ROLLBACK_TYPE})
_NOT_FOUND: Final = "Find prepared transaction message failed"


_fields_of: Final[Callable[[Any], Any]] = itemgetter(
    "producerGroup", "tranStateTableOffset", "commitLogOffset", "commitOrRollback",
    "fromTransactionCheck", "msgId",
)  # fmt: skip
_FIELDS: Final = frozenset({
    "producerGroup", "tranStateTableOffset", "commitLogOffset", "commitOrRollback",
    "fromTransactionCheck", "msgId", "transactionId", "topic",
})  # fmt: skip
_KINDS: Final = {
    str(int(each)): each for each in (_COMMIT, MessageSysFlag.TRANSACTION_ROLLBACK_TYPE)
}
_WORDS: Final = {"true": True, "false": False}
_MOST_DIGITS: Final = 18
"""A number of at most this many digits certainly fits into a long."""
_DONE: Final[Reply[Any]] = Reply()
_BYTES_OF_WORK: Final = 4_096
_MAX_REMEMBERED: Final = 100_000
"""How many ends are remembered at most, with some 150 bytes each."""


class RememberedEnds:
    """How half messages have ended lately, by their queue and their offset in it.

    At least half of `most` ends are remembered, and at most all of them and those of one run. They
    are in two tables: when one is full, the other is forgotten as a whole. To delete the first key
    of a large dictionary again and again would take longer each time.
    """

    def __init__(self, most: int = _MAX_REMEMBERED) -> None:
        self._most_in_one = most // 2
        self.late: dict[tuple[int, int], bool] = {}
        """Whether each was committed."""
        self.early: dict[tuple[int, int], bool] = {}

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self.late) + len(self.early)

    def get(self, place: tuple[int, int]) -> bool | None:
        """Returns whether the half message was committed; None if its end is not remembered."""
        is_commit = self.early.get(place)
        return self.late.get(place) if is_commit is None else is_commit

    def add(self, places: Iterable[tuple[int, int]], are_commits: Iterable[bool]) -> None:
        """Remembers ends by those of their places that have none, and may forget early ones."""
        late = self.late
        for _ in map(late.setdefault, places, are_commits):
            pass
        if len(late) >= self._most_in_one:
            self.late, self.early = {}, late


class PlainEnd(NamedTuple):
    """What is read of a usual EndTransactionRequestHeader."""

    producer_group: str
    tran_state_table_offset: int
    commit_log_offset: int
    commit_or_rollback: int
    from_transaction_check: bool


class EndedHalf(NamedTuple):
    """A half message that has ended: where it is, the topic that it is for, when it was born."""

    queue_id: int
    queue_offset: int
    topic: str
    born_timestamp_ms: int
    is_committed: bool


class End:
    """A valid end: its half message, and the message to be put (None: rollback)."""

    __slots__ = ("_processor", "half", "message")

    def __init__(
        self, processor: EndTransactionProcessor, half: Half, message: PutMessage | None
    ) -> None:
        self._processor = processor
        self.half = half
        self.message = message

    def settled(self, status: PutStatus) -> Reply[Any] | Exception:
        """Takes effect if its message was stored."""
        if status is not PutStatus.PUT_OK:
            return self._processor.checks.refusal_of(status)
        half = self.half
        self._processor.ended.append(
            EndedHalf(
                half.queue_id, half.queue_offset, half.properties.get(names.REAL_TOPIC, ""),
                half.born_timestamp, self.message is not None,
            )
        )  # fmt: skip
        return _DONE


class EndTransactionProcessor:
    """Ends transactions."""

    def __init__(
        self,
        config: BrokerConfig,
        intake: Intake,
        checks: SendChecks,
        check: TransactionCheck,
        after_durable: AfterDurable,
        metrics: TransactionMetrics,
        clock: Callable[[], int],
        patience: Patience,
        found_check: Callable[[Action], CheckFound | None] = lambda _: None,
    ) -> None:
        self._config = config
        self._check_ended = found_check(Action.PUB)
        self._check_resumed = found_check(Action.UPDATE)
        self._intake = intake
        self._store = intake.store
        self.checks = checks
        self._check = check
        self._after_durable = after_durable
        self.metrics = metrics
        self._now_ms = clock
        self._patience = patience
        self._remembered = RememberedEnds()
        self._in_run: dict[tuple[int, int], bool] = {}
        """The ends of this run, which are remembered only if they take effect."""
        self.ended: list[EndedHalf] = []
        """Those of this run that have taken effect."""

    @writes(transaction.END_TRANSACTION)
    def read_end(
        self,
        run: Run,
        commands: Sequence[RemotingCommand],
        messages: list[PutMessage],
        outcomes: list[Outcome],
    ) -> int:
        """Reads one end of a transaction."""
        command = commands[0]
        run.work += 1
        try:
            end = attempt(partial(self._read, run, command))
        except NotTaken as reason:
            refusal = self.checks.refusal_of(reason.status)
            outcomes.append(Outcome(command, 0, 0, instead=refusal))
        except Exception as error:  # noqa: BLE001 - one bad request must not harm the others
            outcomes.append(Outcome(command, 0, 0, instead=error))
        else:
            if isinstance(end, ColdRead):
                later = Later(partial(self._when_in_memory, end))
                outcomes.append(Outcome(command, 0, 0, instead=later))
            elif end is not None:
                first, message = len(messages), end.message
                if message is not None:
                    messages.append(message)
                made: Any = command, first, len(messages) - first, b"", None, False, end, None
                outcomes.append(made)
        return 1

    @ends_runs(transaction.END_TRANSACTION)
    def end_run(self, _: Container[int] | None, now_ms: int) -> None:
        """Has op messages put for the ends of a run."""
        ended, self.ended = self.ended, []
        self._in_run.clear()
        if ended:
            self.take_effect(ended, now_ms)

    def take_effect(self, ended: Sequence[EndedHalf], now_ms: int) -> None:
        """Has op messages put for half messages that have ended, and remembers that."""
        halves: list[tuple[int, int]] = []
        kinds: list[bool] = []
        ages_s: dict[tuple[str, bool], list[int]] = {}
        for queue_id, queue_offset, topic, born_ms, is_committed in ended:
            halves.append((queue_id, queue_offset))
            kinds.append(is_committed)
            ages_s.setdefault((topic, is_committed), []).append(max(now_ms - born_ms, 0) // 1000)
        # Op messages are put for them once they are durable: see after_durable.py.
        copies = self._check.end(halves, now_ms)
        if not copies:
            self._remembered.add(halves, kinds)
        else:
            for at, half in enumerate(halves):
                places = copies.get(at, [half])
                self._remembered.add(places, kinds[at : at + 1] * len(places))
        for (topic, is_committed), its in ages_s.items():
            self.metrics.ended(topic, its, now_ms, is_committed=is_committed)

    def have_not_ended(self, places: Sequence[tuple[int, int]]) -> bool:
        """Whether all these half messages, by queue and offset, can end now, as none of them comes
        twice, and none is remembered as ended.
        """
        remembered, some = self._remembered, set(places)
        return (
            len(some) == len(places)
            # The other way round, all that is remembered would be gone through.
            and remembered.late.keys().isdisjoint(some)
            and remembered.early.keys().isdisjoint(some)
            and not self._after_durable.is_full
        )

    def learnable(self, header: EndTransactionRequestHeader) -> UsualRecord | None:
        """The half message that a header names, if a kernel may learn how such end: see
        raw_ends.py; None if nobody may do that without a look at each request.
        """
        if self._check_ended is not None or header.commit_or_rollback not in _ENDS:
            return None
        try:
            found = attempt(partial(self._half_record, header.commit_log_offset))
        except ResponseError:
            return None
        half = found[1] if isinstance(found, tuple) else None
        transforms = self._intake.transforms
        place = None if half is None else destination(half.properties)
        if (
            half is None
            or place is None
            or half.topic != TRANS_HALF_TOPIC
            or half.properties.get(names.PGROUP) != header.producer_group
            or not transforms.properties(Way.COMMIT).isdisjoint(half.properties)
            or not is_plain_place(transforms, Way.COMMIT, place[0], committed_flag(half.sys_flag))
        ):
            return None
        return half

    def _when_in_memory(self, read: ColdRead, go_on: GoOn) -> None:
        """Calls `go_on` with the time when a half message has been read, and the error if it could
        not be; even if the producer has disconnected.
        """
        self._patience.wait(self, read, lambda error: go_on(self._now_ms(), error))

    def _read(self, run: Run, command: RemotingCommand) -> End | None:
        """Checks an END_TRANSACTION; returns None when the producer is undecided.

        Raises ResponseError when it is refused, and NotInMemory when the half message has to be
        read from the disk.
        """
        header = _header(command.ext_fields)
        if header.commit_or_rollback == MessageSysFlag.TRANSACTION_NOT_TYPE:
            return None
        if header.commit_or_rollback not in _ENDS:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "commitOrRollback must be 8 to commit, 12 to roll back or 0 if undecided, not"
                f" {header.commit_or_rollback}",
            )
        if self._after_durable.is_full:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "too many ends of transactions wait to be durable: the disk does not keep up; the"
                " producer will be asked about this one later",
            )
        record, usual = self._half_record(header.commit_log_offset)
        if len(record) >= _BYTES_OF_WORK:  # also for an end that is refused
            run.work += len(record) // _BYTES_OF_WORK
        half: Half = usual or _decoded(record)
        if half.topic != TRANS_HALF_TOPIC:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"{_NOT_FOUND}: the message at {header.commit_log_offset} is not a half message",
            )
        if self._check_ended is not None:
            # The request may name another topic than that of the message, or none.
            self._check_ended(
                run.peer, command, half.properties.get(names.REAL_TOPIC) or half.topic
            )
        if not header.from_transaction_check and self._is_late(half, run.now_ms):
            raise ResponseError(
                ResponseCode.ILLEGAL_OPERATION,
                "the transaction is older than CHECK_IMMUNITY_TIME_IN_SECONDS: its producer"
                " will be asked about it",
            )
        _check_owner(half, header)
        place = half.queue_id, half.queue_offset
        ends = self._remembered
        if place in self._in_run or place in ends.late or place in ends.early:
            is_commit = self._in_run.get(place, ends.get(place))
            remark = COMMITTED if is_commit else ROLLED_BACK
            raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)
        message = None
        if header.commit_or_rollback == _COMMIT:
            message = self._committed(half, record, run.now_ms)
        self._in_run[place] = message is not None
        return End(self, half, message)

    def _committed(self, half: Half, record: memoryview, now_ms: int) -> PutMessage:
        """Makes the message that the half message has become; raises NotTaken or ResponseError."""
        if isinstance(half, UsualRecord):
            put = half_message.committed_as_it_is(half, self._intake.transforms)
            if put is not None:
                return put
        message = half_message.committed(_decoded(record))
        if message is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "the half message does not say which queue it is for (REAL_TOPIC, REAL_QID)",
            )
        self._intake.admit(message, now_ms)
        return message.to_put()

    def _half_record(self, offset: int) -> tuple[memoryview, UsualRecord | None]:
        """Returns the record at an offset of the log, and its parts if it is a usual one."""
        record = None
        if offset >= 0:
            record = self._store.headed_at(offset)
            usual = None if record is None else usual_record(record)
            if record is not None and usual is not None:
                return record, usual
            record = self._store.message_at(offset)
        if record is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, _NOT_FOUND)
        return record, None

    def _is_late(self, half: Half, now_ms: int) -> bool:
        immunity_ms = half_message.immunity_ms(half)
        if immunity_ms is None:
            return False
        return now_ms - half.born_timestamp > max(immunity_ms, self._config.transaction_time_out)

    @serves(transaction.RESUME_CHECK_HALF_MESSAGE)
    def resume(
        self, request: Request[ResumeCheckHalfMessageRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Puts a half message that was given up among those to be checked again."""
        try:
            offset = decode_message_id(request.header.msg_id or "").commit_log_offset
        except MessageIdError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        return self._patience.answer(request.peer, partial(self._resume, request, offset))

    def _resume(self, request: Request[Any], offset: int) -> Reply[NoHeader]:
        record = self._store.message_at(offset)
        try:
            stored = None if record is None else decode_message(record, decompress_body=False)[0]
        except MessageDecodeError:
            stored = None
        if stored is None or stored.topic != TRANS_CHECK_MAX_TIME_TOPIC:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed: the message id names no"
                f" message of {TRANS_CHECK_MAX_TIME_TOPIC}",
            )
        topic = stored.properties.get(names.REAL_TOPIC) or stored.topic
        if self._check_resumed is not None:
            self._check_resumed(request.peer, request.command, topic)
        message = half_message.resumed(stored)
        refused = self._intake.put([message.to_put()], self._now_ms()).refused
        if refused:
            raise self.checks.refusal_of(refused[0])
        self.metrics.add(stored.properties.get(names.REAL_TOPIC, ""), 1)
        return Reply()


def _decoded(record: memoryview) -> MessageExt:
    try:
        return decode_message(record, decompress_body=False)[0]
    except MessageDecodeError:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, _NOT_FOUND) from None


# Every end passes here, so no call is made that can be avoided.
def _header(ext: Any) -> EndTransactionRequestHeader | PlainEnd:
    """Reads a header: usual ones by their texts, others as declared. Raises HeaderError."""
    try:
        group, queue_offset, log_offset, kind, is_answer, _ = _fields_of(ext)
        digits = queue_offset + log_offset
        if (
            digits.isdecimal()
            and digits.isascii()
            and 0 < len(queue_offset) <= _MOST_DIGITS
            and 0 < len(log_offset) <= _MOST_DIGITS
            and _FIELDS.issuperset(ext)
            and None not in ext.values()
        ):
            plain = group, int(queue_offset), int(log_offset), _KINDS[kind], _WORDS[is_answer]
            return tuple.__new__(PlainEnd, plain)
    except (KeyError, TypeError, AttributeError):
        pass
    return EndTransactionRequestHeader.decode(ext)


def _check_owner(half: Half, header: EndTransactionRequestHeader | PlainEnd) -> None:
    if half.properties.get(names.PGROUP) != header.producer_group:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
    if half.queue_offset != header.tran_state_table_offset:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
    if half.commit_log_offset != header.commit_log_offset:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, "The commit log offset wrong")
