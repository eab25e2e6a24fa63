# SPDX-License-Identifier: Apache-2.0
"""DELAY: sends messages with a delay level to the schedule topic; see `schedule.py`.

A level of 0 or less means no delay; one beyond the last is the last, and one that is not a number
is refused (1), as by the original. A batch cannot be delayed, and the levels of the messages in it
are ignored. A half message is delayed when its transaction is committed.

Java: HookUtils.handleScheduleMessage, transformDelayLevelMessage, CommitLog.asyncPutMessages.
"""

from __future__ import annotations

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn, NotTaken
from txrocketmq.broker.store.formats.delay_levels import DelayLevels
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.message import properties as names


class Delay:
    """Sends delayed messages to the schedule topic, where they wait."""

    acts_on = ActsOn(
        properties=frozenset({names.DELAY}),
        ways=Way.SEND | Way.BATCH | Way.SEND_BACK | Way.COMMIT | Way.REPLY,
    )

    def __init__(self, levels: DelayLevels) -> None:
        self._levels = levels

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Sends the message to the schedule topic; refuses a batch."""
        if message.delay_level <= 0 or message.is_parked:
            return
        if message.way is Way.BATCH:
            raise NotTaken(PutStatus.MESSAGE_ILLEGAL)
        level = self._levels.clamp(message.delay_level)
        message.delay(level, self._levels.deliver_ms(level, now_ms))
