# SPDX-License-Identifier: Apache-2.0
"""The half messages of a transactional write: sent by the tasks, committed by the driver.

A task hands what it has sent to the driver, 36 bytes per message. When all tasks are done, the
driver commits each message by itself, so the messages do not become visible all at once. If a
commit fails, some messages are committed and others are not, as the error says. The first message
of each task is committed before all others: a replay can tell from it whether there are any.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.topics import DEFAULT_TOPIC
from txrocketmq.remoting.protocol.transaction import COMMITTED, ROLLED_BACK
from txrocketmq.spark.arrow.errors import ClusterError, SparkSourceError
from txrocketmq.spark.live.wire.cluster import QUESTIONS_AT_ONCE, Cluster, is_passing
from txrocketmq.spark.live.wire.rpc import Question, Refused, Unreachable
from txrocketmq.spark.live.wire.transaction import Decision, HalfMessage, start_end

MAX_HALF_MESSAGES: Final = 1 << 20
"""The most half messages of a task; spark.driver.maxResultSize limits those of all tasks."""
_KEY_BYTES: Final = 16
_SHOWN_REASONS: Final = 4


class HalfMessages:
    """The half messages of a task, in the order of its rows."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], int] = {}
        """The number of each pair of topic and broker name."""
        self._place_of = array("I")
        self._log_offsets = array("q")
        self._queue_offsets = array("q")
        self._keys = bytearray()

    def __len__(self) -> int:
        return len(self._place_of)

    def __iter__(self) -> Iterator[HalfMessage]:
        places = list(self._places)
        for number, place in enumerate(self._place_of):
            key = self._keys[_KEY_BYTES * number : _KEY_BYTES * (number + 1)]
            offsets = self._log_offsets[number], self._queue_offsets[number]
            yield HalfMessage(*places[place], *offsets, key.hex().upper())

    @property
    def topics(self) -> frozenset[str]:
        """The topics to which the messages go."""
        return frozenset(topic for topic, _ in self._places)

    def add(self, half: HalfMessage) -> None:
        """Adds a half message. Raises SparkSourceError when there are too many."""
        key = bytes.fromhex(half.unique_key)
        assert len(key) == _KEY_BYTES, half.unique_key
        place = half.topic, half.broker_name
        self._place_of.append(self._places.setdefault(place, len(self._places)))
        self._log_offsets.append(half.commit_log_offset)
        self._queue_offsets.append(half.queue_offset)
        self._keys += key
        if len(self) > MAX_HALF_MESSAGES:
            raise SparkSourceError(
                f"a task has more than {MAX_HALF_MESSAGES} rows, too many for transactional=true:"
                " the driver keeps each until it is committed; repartition the rows, or write"
                " them in several parts"
            )


def end_all(
    cluster: Cluster,
    tasks: Sequence[HalfMessages],
    decision: Decision,
    *,
    producer_group: str,
    attempts: int,
) -> None:
    """Commits or rolls back all half messages; tries each of them up to `attempts` times.

    Raises ClusterError, which says how many were ended and what has become of the others.
    """
    ended = 0
    troubles: Sequence[ClusterError] = ()
    try:
        _look_up(cluster, tasks)
        for portion in _portions(tasks):
            troubles = _end_portion(cluster, portion, decision, producer_group, attempts)
            ended += len(portion) - len(troubles)
            if troubles:
                break
    except ClusterError as error:
        troubles = (error,)
    if troubles:
        raise ClusterError(_unfinished(decision, ended, sum(map(len, tasks)), troubles))


def _look_up(cluster: Cluster, tasks: Sequence[HalfMessages]) -> None:
    """Looks up the routes of the topics, and so the addresses of the brokers."""
    for topic in sorted(frozenset[str]().union(*(task.topics for task in tasks))):
        if cluster.route(topic) is None:  # the sends made it, but not all name servers have it yet
            cluster.route(DEFAULT_TOPIC)


def _portions(tasks: Sequence[HalfMessages]) -> Iterator[list[HalfMessage]]:
    """Yields groups to end at the same time, with the first message of each task before others."""
    others = [iter(task) for task in tasks]
    firsts = [half for each in others for half in islice(each, 1)]
    for halves in (iter(firsts), chain.from_iterable(others)):
        while portion := list(islice(halves, QUESTIONS_AT_ONCE)):
            yield portion


def _end_portion(
    cluster: Cluster,
    portion: Sequence[HalfMessage],
    decision: Decision,
    producer_group: str,
    attempts: int,
) -> Sequence[ClusterError]:
    """Returns why some half messages could not be ended; nothing if all were."""
    left = list(portion)
    for attempt in range(attempts):
        if attempt:
            cluster.recover({half.topic for half in left}, attempt)
        troubles = _end(cluster, left, decision, producer_group)
        left = list(troubles)
        if not left or not all(map(_may_pass, troubles.values())):
            break
    return tuple(troubles.values())


def _end(
    cluster: Cluster, halves: Sequence[HalfMessage], decision: Decision, producer_group: str
) -> dict[HalfMessage, ClusterError]:
    """Tells the brokers the decision; returns the errors by half message."""
    questions: dict[HalfMessage, Question[NoHeader]] = {}
    troubles: dict[HalfMessage, ClusterError] = {}
    for half in halves:
        try:
            questions[half] = start_end(cluster, half, decision, producer_group=producer_group)
        except Unreachable as error:
            troubles[half] = error
    for half, question in questions.items():
        try:
            question.wait()
        except Unreachable as error:
            troubles[half] = error
        except Refused as error:
            if not _has_ended(error, decision):
                troubles[half] = error
    return troubles


def _has_ended(error: Refused, decision: Decision) -> bool:
    """Returns whether nothing is left to do, because an earlier decision has taken effect.

    Brokers of txrocketmq remember how transactions ended. What was committed cannot be taken back,
    and what was rolled back must not be taken for delivered.
    """
    return error.remark == COMMITTED or (
        error.remark == ROLLED_BACK and decision is Decision.ROLLBACK
    )


def _may_pass(error: ClusterError) -> bool:
    return is_passing(error) or (
        isinstance(error, Refused) and error.code == ResponseCode.SLAVE_NOT_AVAILABLE
    )  # another broker is becoming the master


def _unfinished(
    decision: Decision, ended: int, total: int, troubles: Sequence[ClusterError]
) -> str:
    unknown = sum(isinstance(error, Unreachable) for error in troubles)
    reasons = "; ".join(sorted(set(map(str, troubles)))[:_SHOWN_REASONS])
    if decision is Decision.ROLLBACK:
        done = f"{ended} of {total} half messages were rolled back, the others stay prepared"
        return f"{done} (consumers do not get them): {reasons}"
    perhaps = f", perhaps but for {unknown} that brokers did not answer for" if unknown else ""
    return (
        f"{ended} of {total} messages were committed and are delivered, the others are"
        f" not{perhaps}: {reasons}"
    )
