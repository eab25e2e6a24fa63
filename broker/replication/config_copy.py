# SPDX-License-Identifier: Apache-2.0
"""The configuration of a slave: tables that it copies from its master again and again.

Messages come with the log; what is known of topics and groups comes here, by requests to the port
of the master for clients. Every ten seconds these are topics (21), offsets of groups (43), progress
of delay levels (45), groups (201), modes of groups (402) and counts of timers (61), and every three
seconds the progress of timers (60).

- A table is replaced when the master's has another version, which then is the version here as well.
  (Slaves of 5.4 count it up, so that they copy everything in each round.)
- Topics and groups come in pages, from masters that send pages; if the version changes in between,
  the copy begins anew.
- The queues of topics that are gone go, too (new_topics.py).
- Offsets are taken as they come, since their version says little. What only the slave has stays,
  unless its topic or group does not exist any more.
- All of it is read, and told to listeners, in turns with everything else (walks.py): a master with
  very many topics does not hold up those who read here. One round is under way at a time.
- A master that answers nonsense changes nothing; each kind of copy that begins to fail is logged.
- What a master does not serve, as 4.9 has no modes, is asked for again after ten minutes only.

Filters of consumers are not copied, as in the original: consumers tell them to slaves, too.

Java: SlaveSynchronize.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from txrocketmq.broker.delays.delay_offsets import DelayOffsets
from txrocketmq.broker.replication.copied_progress import (
    OFFSETS,
    read_delay_offsets,
    read_offsets,
)
from txrocketmq.broker.replication.copied_table import (
    WRONG,
    Ask,
    CopiedTable,
    CopyError,
    update,
)
from txrocketmq.broker.replication.new_topics import NewTopics
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.timers.timer_check import TimerProgress
from txrocketmq.broker.tables.message_request_mode import MessageRequestModes
from txrocketmq.broker.tables.offset import BROADCAST, ConsumerOffsets
from txrocketmq.broker.tables.subscription import HeldGroups, SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.timer.timers import Timers
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import SECOND_MS, Life, WalkBeat
from txrocketmq.remoting.call import Call, PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import Header, NoHeader
from txrocketmq.remoting.message.topics import MAX_QUEUES
from txrocketmq.remoting.primitives.listeners import tell_all
from txrocketmq.remoting.protocol import offset as offset_calls
from txrocketmq.remoting.protocol import pull as pull_calls
from txrocketmq.remoting.protocol import topic as topic_calls
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.topic import (
    GetAllSubscriptionGroupRequestHeader,
    GetAllTopicConfigRequestHeader,
)

PERIOD_MS: Final = 10_000
TIMER_PERIOD_MS: Final = 3_000
REQUEST_MS: Final = 30_000
"""How long a master may take for an answer, in ms."""
ASK_AGAIN_MS: Final = 600_000
"""After how long, in ms, something is asked for again that the master does not serve."""
PAGE: Final = 2_000
"""How many topics or groups are asked for at once."""
_BECAUSE: Final = "the copy of the configuration of its master"


class Invoke(Protocol):
    """Sends a request to an address (Connections.invoke)."""

    def __call__(
        self, address: str, call: Call[Any, Any], header: Header, *, timeout_ms: int
    ) -> PendingReply: ...


@dataclass(frozen=True, slots=True)
class Tables:
    """What is copied."""

    topics: Topics
    groups: SubscriptionGroups
    offsets: ConsumerOffsets
    delay_offsets: DelayOffsets
    modes: MessageRequestModes
    timers: Timers
    new_topics: NewTopics


class _NotServed(Exception):
    """The master does not serve a request."""


class _Task:
    """Something that is copied: `copy` gets what asks the master, and may tell how many it has."""

    def __init__(self, what: str, copy: Callable[[Ask], Steps[int | None]]) -> None:
        self.what = what
        self.copy = copy
        self.on_end: list[Callable[[Exception | None], None]] = []
        self.not_served: tuple[str, int] = "", 0
        """The master that does not serve it, and until when it is not asked, by the steady clock.
        """


class _Rounds:
    """Tasks that are done one after another, again after a period or from another master."""

    def __init__(self, tasks: list[_Task], period_ms: int) -> None:
        self.tasks = tasks
        self._period_ms = period_ms
        self._master = ""
        self._next_ms = 0
        self._is_under_way = False

    def begins(self, master: str, steady_ms: int) -> bool:
        """Whether a round is due, which then has begun."""
        if self._is_under_way or (master == self._master and steady_ms < self._next_ms):
            return False
        self._master, self._next_ms = master, steady_ms + self._period_ms
        self._is_under_way = True
        return True

    def ended(self) -> None:
        """Notes that the round has ended."""
        self._is_under_way = False


class ConfigCopy:
    """Copies tables, from `begin` on.

    `master_address` returns the address of the master whose log is followed now, "host:port"; None
    without one, as a master with another log should not take away what is known here.
    """

    def __init__(
        self,
        tables: Tables,
        master_address: Callable[[], str | None],
        steady_clock: Callable[[], int],
    ) -> None:
        self._tables = tables
        self._master_address = master_address
        self._steady_ms = steady_clock
        self._invoke: Invoke | None = None
        topics, groups, modes, counts = self._copied()
        self._all = _Rounds(
            [
                _Task(topics.what, partial(self._copy_topics, topics)),
                _Task("offsets", self._copy_offsets),
                _Task("progress of delay levels", self._copy_delay_offsets),
                _Task(groups.what, groups.copy),
                _Task(modes.what, modes.copy),
                _Task(counts.what, counts.copy),
            ],
            PERIOD_MS,
        )
        self._timers = _Rounds(
            [_Task("progress of timers", self._copy_timer_progress)], TIMER_PERIOD_MS
        )

    def _copied(self) -> tuple[CopiedTable[Any], ...]:
        tables = self._tables
        return (
            CopiedTable(
                what="topics",
                table=tables.topics,
                call=topic_calls.GET_ALL_TOPIC_CONFIG,
                field="topicConfigTable",
                header=lambda first, version: GetAllTopicConfigRequestHeader(
                    topic_seq=first, data_version=version, max_topic_num=PAGE
                ),
                total=lambda header: header.total_topic_num,
                add=_add_topics,
            ),
            CopiedTable(
                what="groups",
                table=tables.groups,
                call=topic_calls.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
                field="subscriptionGroupTable",
                beside=("forbiddenTable",),
                header=lambda first, version: GetAllSubscriptionGroupRequestHeader(
                    group_seq=first, data_version=version, max_group_num=PAGE
                ),
                total=lambda header: header.total_group_num,
                add=_add_groups,
            ),
            CopiedTable(
                what="modes of groups",
                table=tables.modes,
                call=pull_calls.GET_ALL_MESSAGE_REQUEST_MODE,
                field="messageRequestModeMap",
                add=update,
                is_same=lambda held: held == dict(tables.modes.entries()),
            ),
            CopiedTable(
                what="counts of timers",
                table=tables.timers.metrics,
                call=admin.GET_TIMER_METRICS,
                field="timingCount",
                add=update,
            ),
        )

    def life(self) -> Life:
        """It is looked every second whether a round is due, so that a new master comes at once."""
        tasks = (*self._all.tasks, *self._timers.tasks)
        return Life(
            "copy of the configuration",
            troubles={f"copying the {each.what} of the master": each.on_end for each in tasks},
            beats=[
                WalkBeat(
                    SECOND_MS,
                    "copying the configuration of the master",
                    lambda _, steady_ms, rounds=rounds: self._round(rounds, steady_ms),  # type: ignore[misc]
                    because=_BECAUSE,
                )
                for rounds in (self._all, self._timers)
            ],
        )

    def begin(self, invoke: Invoke) -> None:
        """Begins to copy; requests are sent by this."""
        self._invoke = invoke

    def _round(self, rounds: _Rounds, steady_ms: int) -> Steps[None] | None:
        master = self._master_address()
        if self._invoke is None or not master or not rounds.begins(master, steady_ms):
            return None
        return self._copy_all(rounds, self._invoke, master)

    def _copy_all(self, rounds: _Rounds, invoke: Invoke, master: str) -> Steps[None]:
        try:
            for task in rounds.tasks:
                if self._master_address() == master:
                    yield from self._try(task, _Asking(invoke, master).ask, master)
        finally:
            rounds.ended()

    def _try(self, task: _Task, ask: Ask, master: str) -> Steps[None]:
        address, until_ms = task.not_served
        if address == master and self._steady_ms() < until_ms:
            return
        error: Exception | None = None
        try:
            count = yield from task.copy(ask)
        except _NotServed:
            task.not_served = master, self._steady_ms() + ASK_AGAIN_MS
            if address != master:
                notices.not_copied(task.what, master)
            return
        except CopyError as failure:
            error = CopyError(f"the master {master}: {failure}")
        except WRONG as failure:
            error = CopyError(
                f"the master {master}: its answer is not what it should be: {failure!s:.200}"
            )
        else:
            if count is not None:
                notices.copied(task.what, count, master)
        tell_all(task.on_end, error)

    # ----------------------------------------------------------- what is not simply replaced

    def _copy_topics(self, topics: CopiedTable[Any], ask: Ask) -> Steps[int | None]:
        self._tables.new_topics.asked()
        count = yield from topics.copy(ask)
        self._tables.new_topics.copied(are_others=count is not None)
        yield from self._tables.new_topics.remove()
        return count

    def _copy_offsets(self, ask: Ask) -> Steps[int | None]:
        reply = yield from ask(offset_calls.GET_ALL_CONSUMER_OFFSET, NoHeader())
        offsets = self._tables.offsets
        held, version = yield from read_offsets(reply, offsets)
        for key, queues in held.items():
            offsets.merge(key, queues)
            yield
        for key, _ in offsets.entries():
            topic, _, group = key.partition("@")
            if key not in held and not self._exist(topic, group.removesuffix(BROADCAST)):
                offsets.remove(group, topic)
            yield
        offsets.merged(version)
        return None

    def _exist(self, topic: str, group: str) -> bool:
        tables = self._tables
        return tables.topics.get(topic) is not None and tables.groups.get(group) is not None

    def _copy_delay_offsets(self, ask: Ask) -> Steps[int | None]:
        reply = yield from ask(offset_calls.GET_ALL_DELAY_OFFSET, NoHeader())
        table = self._tables.delay_offsets
        held, content = read_delay_offsets(reply, table)
        if held != table.table()[OFFSETS]:
            yield from table.replace(held, content)
            table.saving.begin()
        return None

    def _copy_timer_progress(self, ask: Ask) -> Steps[int | None]:
        if self._tables.timers.is_open:
            reply = yield from ask(admin.GET_TIMER_CHECK_POINT, NoHeader())
            progress = TimerProgress.decode(reply.body_bytes)
            if progress is not None:
                self._tables.timers.follow(progress)
            elif not reply.body_bytes:
                raise CopyError("its answer is empty")
        return None


class _Asking:
    """Asks a master, and waits for its answers."""

    def __init__(self, invoke: Invoke, master: str) -> None:
        self._invoke = invoke
        self._master = master

    def ask(self, call: Call[Any, Any], header: Header) -> Steps[Reply[Any]]:
        """Returns the answer of the master. Raises CopyError, and _NotServed."""
        pending = self._invoke(self._master, call, header, timeout_ms=REQUEST_MS)
        if not pending.done:
            yield lambda _, then: pending.then(lambda _: then())
        outcome = pending.outcome
        if not isinstance(outcome, Reply):
            raise CopyError(f"it does not answer: {outcome}")
        if outcome.code == ResponseCode.SUCCESS:
            return outcome
        has_no_timers = call in _OF_TIMERS and outcome.code == ResponseCode.SYSTEM_ERROR
        if outcome.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED or has_no_timers:
            raise _NotServed
        raise CopyError(f"it answers with code {outcome.code}: {outcome.remark or ''!s:.200}")


_OF_TIMERS: Final = (admin.GET_TIMER_METRICS, admin.GET_TIMER_CHECK_POINT)
"""Masters without timers answer these with SYSTEM_ERROR."""


def _add_topics(held: dict[str, TopicConfig], more: dict[str, TopicConfig]) -> None:
    for name, topic in more.items():
        if topic.topic_name != name:
            raise ValueError(f"the topic {name!r:.80} is called {topic.topic_name!r:.80}")
        for count in (topic.read_queue_nums, topic.write_queue_nums):
            if not 0 <= count <= MAX_QUEUES:
                raise ValueError(f"{name}: {count} queues; 0 to {MAX_QUEUES} are possible")
    held.update(more)


def _add_groups(held: HeldGroups, more: HeldGroups) -> None:
    for name, group in more.groups.items():
        if group.group_name != name:
            raise ValueError(f"the group {name!r:.80} is called {group.group_name!r:.80}")
    held.groups.update(more.groups)
    held.forbidden.update(more.forbidden)
