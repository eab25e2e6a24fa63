# SPDX-License-Identifier: Apache-2.0
"""Runs that write: sends, ends of transactions and acknowledgements of one read share one write.

If each kind of request was put by itself, every message of a transactional producer would be
written alone. A processor binds a method to its codes with `@writes`. The method reads requests
from the beginning of what is left of the run: it adds the messages that they need, and for each
request an `Outcome`, and returns how many requests it has read. When the run has been read, its
messages are put together, and each request is answered in its order.

A run ends early when there was enough to do, so that other peers have their turn: a reader counts
its work in `run.work`. Requests that are nearly free count for nothing.

Java has no counterpart: it serves each request by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.processors.send.send_answers import CODES, SendAnswers, Stored
from txrocketmq.broker.processors.send.send_checks import SendChecks
from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus
from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.message_store import QueueBatch
from txrocketmq.remoting.call import WAITING_BYTES, Buffer, Call, Reply
from txrocketmq.remoting.command import ONEWAY_FLAG, RemotingCommand
from txrocketmq.remoting.dispatch import Binding, Run, run_bindings
from txrocketmq.remoting.errors import ResponseError

MOST_WORK: Final = 64
"""How much work there may be in one run; others then have their turn."""
_PUT_OK: Final = PutStatus.PUT_OK
_ANSWERS: Final = (Exception, Reply)
_WRITES: Final = "_writes"
_ENDS: Final = "_ends_runs"

GoOn = Callable[[int, ResponseError | None], None]
"""Goes on with a request at a time, in ms; with an error, that is its answer."""


class Settlement(Protocol):
    """What is to be done about a request that is no send when its message has been put."""

    def settled(self, status: PutStatus) -> Reply[Any] | Exception:
        """Hears how its message was stored (PUT_OK also if it has none); returns the answer."""


class Later(NamedTuple):
    """A request that cannot be read yet: `wait` waits and calls what it gets, perhaps at once."""

    wait: Callable[[GoOn], None]


class Outcome(NamedTuple):
    """The result of one request: it added `number` messages to the run, from index `first` on.

    `queue_id`, `transaction_id` and `extra` (name and value of a field that only this answer has)
    are for the answer to a send; `waits` tells whether that waits until the messages are confirmed.
    What is not a send that was taken has `instead` of them an error, a reply, or what comes of it
    when its message has been put. A plain tuple will do, too.
    """

    command: RemotingCommand
    first: int
    number: int
    queue_id: bytes = b""
    transaction_id: str | None = None
    waits: bool = False
    instead: Exception | Reply[Any] | Settlement | Later | None = None
    extra: tuple[str, str] | None = None


Reader = Callable[[Run, Sequence[RemotingCommand], list[PutMessage], list[Outcome]], int]
"""Reads some of the commands of a run, from the first on; returns how many it has read.

It adds to the messages and the outcomes of the run."""
M = TypeVar("M", bound=Callable[..., int])
EndRun = Callable[[Container[int] | None, int], None]
E = TypeVar("E", bound=Callable[..., None])


def writes(*calls: Call[Any, Any]) -> Callable[[M], M]:
    """Binds a reader to calls."""

    def mark(method: M) -> M:
        setattr(method, _WRITES, calls)
        return method

    return mark


def ends_runs(*calls: Call[Any, Any]) -> Callable[[E], E]:
    """Binds a method that is called after each run with work for one of these calls.

    Its arguments are the indices of the messages that were refused (None if none was put) and the
    time of the run.
    """

    def mark(method: E) -> E:
        setattr(method, _ENDS, calls)
        return method

    return mark


class Writes:
    """Serves runs; see the module docstring."""

    def __init__(
        self, intake: Intake, checks: SendChecks, answers: SendAnswers, *writers: object
    ) -> None:
        self.bindings: list[Binding] = []
        """The calls of all readers, all of them served here: see remoting.dispatch.Registry."""
        self._intake = intake
        self._commit = intake.store.commit
        self._checks = checks
        self._answers = answers
        self._readers: dict[int, Reader] = {}
        self._ends: list[EndRun] = []
        self._ends_of: dict[int, list[EndRun]] = {}
        """The same for a run of one command, by its code."""
        serve = self.serve  # one object, by which the dispatcher sees that runs go together
        for writer in writers:
            for name in dir(type(writer)):
                method = getattr(type(writer), name, None)
                calls = getattr(method, _WRITES, ())
                self.bindings += run_bindings(serve, *calls)
                self._readers |= {call.code: getattr(writer, name) for call in calls}
                if hasattr(method, _ENDS):
                    self._bind_end(getattr(writer, name), getattr(method, _ENDS))

    def _bind_end(self, end: EndRun, calls: Sequence[Call[Any, Any]]) -> None:
        self._ends.append(end)
        for call in calls:
            self._ends_of.setdefault(call.code, []).append(end)

    def serve(self, run: Run) -> list[Buffer]:
        """Reads and puts what is in a run; returns the answers to those who want one."""
        messages: list[PutMessage] = []
        outcomes: list[Outcome] = []
        commands, readers, batch = run.commands, self._readers, None
        try:
            at = readers[commands[0].code](run, commands, messages, outcomes)
            while at < len(commands):
                if run.work >= MOST_WORK:
                    run.end_at(at)
                    break
                at += readers[commands[at].code](run, commands[at:], messages, outcomes)
            if messages and self._commit.members is not None and self._commit.lacks_brokers:
                batch = self._put_unwaited(messages, outcomes, run.now_ms)
            elif messages:
                batch = self._intake.put(messages, run.now_ms)
            return self._answered(run, batch, outcomes)
        finally:
            if run.work:
                code = commands[0].code
                ends = self._ends if len(commands) > 1 else self._ends_of.get(code, ())
                for end in ends:
                    end(None if batch is None else batch.refused, run.now_ms)

    def _put_unwaited(
        self, messages: Sequence[PutMessage], outcomes: Sequence[Outcome], now_ms: int
    ) -> QueueBatch:
        """Puts what nobody waits for, and refuses the sends that would wait for slaves."""
        refused: dict[int, PutStatus] = {}
        for outcome in map(Outcome._make, outcomes):
            if outcome.waits:
                places = range(outcome.first, outcome.first + outcome.number)
                refused |= dict.fromkeys(places, PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH)
        kept = [each for at, each in enumerate(messages) if at not in refused]
        batch = self._intake.put(kept, now_ms)
        batch.refuse_besides(refused)
        return batch

    # Every message passes here, so no call is made that can be avoided.
    def _answered(
        self, run: Run, batch: QueueBatch | None, outcomes: Sequence[Outcome]
    ) -> list[Buffer]:
        """Returns the answers that are ready, in order; those that wait for confirmation follow."""
        out: list[Buffer] = []
        ready: list[Stored] = []
        late: list[Stored] = []
        confirmed: PutStatus | Ticket | None = None
        places, refused = (batch.places, batch.refused) if batch is not None else ([], {})
        for command, first, number, queue_id, transaction_id, waits, instead, extra in outcomes:
            if instead is not None or refused:
                answer = self._other(run, command, refused, range(first, first + number), instead)
                if answer is not None:
                    if ready:
                        out.append(self._answers.stored.frames(ready))
                        ready = []
                    out += answer
                    continue
            if waits and confirmed is None and batch is not None:
                confirmed = self._commit.outcome(batch.end_offset)
            if command.flag & ONEWAY_FLAG:
                continue
            offset, _, queue_offset = places[first]
            more: Sequence[int] = ()
            if number > 1:
                more = [place[0] for place in places[first + 1 : first + number]]
            stored: Any = (
                offset, queue_id, queue_offset, transaction_id, command.opaque, more, extra,
            )  # fmt: skip
            (late if waits and confirmed is not _PUT_OK else ready).append(stored)
        if ready:
            out.append(self._answers.stored.frames(ready))
        if late and confirmed is not None:
            out += self._late(run, confirmed, late)
        return out

    def _other(
        self,
        run: Run,
        command: RemotingCommand,
        refused: dict[int, PutStatus],
        places: range,
        instead: Exception | Reply[Any] | Settlement | Later | None,
    ) -> Sequence[Buffer] | None:
        """Returns the answer to what is no send, or to a send that was refused; otherwise None."""
        status = _PUT_OK
        if refused:
            status = next((refused[at] for at in places if at in refused), _PUT_OK)
        if instead is None:
            if status is _PUT_OK:
                return None
            return run.answer(command, self._checks.refusal_of(status))
        if isinstance(instead, _ANSWERS):
            return run.answer(command, instead)
        if isinstance(instead, Later):
            instead.wait(partial(self._go_on, run, command))
            return ()
        return run.answer(command, instead.settled(status))

    def _go_on(
        self, run: Run, command: RemotingCommand, now_ms: int, error: ResponseError | None
    ) -> None:
        """Serves a request that had to wait, by itself."""
        alone = run.alone(command, now_ms)
        if error is not None:
            alone.write_later(alone.answer(command, error))
        else:
            alone.write_later(self.serve(alone))

    def _late(
        self,
        run: Run,
        outcome: PutStatus | Ticket,
        late: Sequence[Stored],
    ) -> Sequence[Buffer]:
        """Answers senders that wait for confirmation: at once if the outcome is known already."""
        of = self._answers.of
        if not isinstance(outcome, Ticket):
            return [of[outcome].frames(late)]
        if run.is_timed:
            opaques = {each[4] for each in late}
            run.later = [each for each in run.commands if each.opaque in opaques]
        waiting_bytes = len(late) * WAITING_BYTES
        run.peer.begin_wait(waiting_bytes)

        def answer(status: PutStatus) -> None:
            run.peer.end_wait(waiting_bytes)
            run.write_later([of[status].frames(late)], CODES[status])

        outcome.then(answer)
        return ()
