# SPDX-License-Identifier: Apache-2.0
"""Ends of transactions that a kernel takes from bytes, in one run with the sends around them.

The kernel finds a header again by its bytes, the half message in the last file of the log, and
where that is to go. It takes only half messages that are in no way unusual: END_TRANSACTION would
store the same message, and answer nothing, since the request is one-way. What it cannot see is
asked here for each run: whether one of them has ended before, and whether there is room for op
messages. With accounts, it learns no ends: the topic of the half message decides who may end it,
and the request need not name that.

Java has no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from txrocketmq.broker.intake.inner_message import Way
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.usual_record import destination
from txrocketmq.broker.processors.send.end_transaction import EndTransactionProcessor
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH
from txrocketmq.broker.store.log.encode import IPV6_FLAGS
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.topics import TRANS_HALF_TOPIC
from txrocketmq.remoting.protocol import transaction
from txrocketmq.remoting.protocol.transaction import EndTransactionRequestHeader

END_CODE: Final = transaction.END_TRANSACTION.code
_MOST_TARGETS: Final = 4_096
"""How many places half messages can be for; further ones go the way of all requests."""
_UNUSUAL: Final = IPV6_FLAGS | MessageSysFlag.INNER_BATCH | MULTI_DISPATCH
_COMMIT: Final = MessageSysFlag.TRANSACTION_COMMIT_TYPE
_HALF_TOPIC: Final = bytes([len(TRANS_HALF_TOPIC)]) + TRANS_HALF_TOPIC.encode()


class RawEnds:
    """What a kernel's table is taught about ends, and what they cause.

    `queue` returns the number in the table of a queue; None if that is not plain.
    """

    def __init__(
        self,
        processor: EndTransactionProcessor,
        intake: Intake,
        queue: Callable[[str, int], int | None],
    ) -> None:
        self._processor = processor
        self._transforms = intake.transforms
        self.log = intake.store.last_file
        """Where the kernel finds half messages."""
        self._queue = queue
        self._table: Any = None
        self.targets: dict[tuple[str, int, int], int] = {}
        """By topic, queue and system flag: the number in the table."""
        self._topics: list[str] = []

    def begin(self, table: Any) -> None:
        """Begins with a table that has learned nothing."""
        touched = {*self._transforms.properties(Way.COMMIT), names.CHECK_IMMUNITY_TIME_IN_SECONDS}
        table.expect_ends(_HALF_TOPIC, [name.encode() for name in sorted(touched)])
        self._table = table
        self.targets = {}
        self._topics = []

    def may_end(self, ended: Sequence[tuple[int, int, int, int, bool]]) -> bool:
        """Whether what a run ends can end now."""
        return self._processor.have_not_ended([each[:2] for each in ended])

    def take_effect(self, ended: Sequence[tuple[int, int, int, int, bool]], now_ms: int) -> None:
        """Does what follows from ends whose messages are stored."""
        topics = self._topics
        halves: Any = [
            (queue_id, queue_offset, topics[target], born_ms, is_commit)
            for queue_id, queue_offset, born_ms, target, is_commit in ended
        ]
        self._processor.take_effect(halves, now_ms)

    def learn(self, kind: int, data: bytes, command: RemotingCommand) -> bool:
        """Has the kernel learn the header of an end, and where its half message is to go; returns
        whether it may be taken now. Raises HeaderError.
        """
        if not command.is_oneway:
            return False
        header = EndTransactionRequestHeader.decode(command.ext_fields)
        half = self._processor.learnable(header)
        if half is None or half.sys_flag & _UNUSUAL:
            return False
        place = destination(half.properties)
        if place is None or not self._knows_target(*place, half.sys_flag):
            return False
        is_commit = header.commit_or_rollback == _COMMIT
        group = header.producer_group.encode("utf-8", "replace")
        return bool(
            self._table.learn_end(kind, data, group, is_commit, True, command.code)  # noqa: FBT003 - as in the compiled form
        )

    def _knows_target(self, topic: str, queue_id: int, sys_flag: int) -> bool:
        """Tells the kernel where half messages for a queue go; returns False without room."""
        target = topic, queue_id, sys_flag
        if target not in self.targets:
            queue = self._queue(topic, queue_id) if len(self.targets) < _MOST_TARGETS else None
            if queue is None:
                return False
            real = encode_properties({names.REAL_TOPIC: topic, names.REAL_QID: str(queue_id)})
            self.targets[target] = self._table.add_target(
                queue, real.rstrip("\x02").encode("utf-8", "replace"), sys_flag
            )
            self._topics.append(topic)
        return True
