# SPDX-License-Identifier: Apache-2.0
"""TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS: messages with a delivery time of their own.

They go to the timer topic, see `broker/timer`, and TIMER_OUT_MS says when they are due: their time,
floored to timerPrecisionMs, and one unit earlier when it is a multiple of that already. A message
whose time has come is an ordinary one. The first of the three properties counts; a delay level
counts more than any of them. What once was a timer message (TIMER_OUT_MS) is none again. A batch is
never one, and what its messages say of a time does not count. A half message becomes one when its
transaction is committed.

Java: HookUtils.handleScheduleMessage, checkIfTimerMessage, transformTimerMessage,
TimerMessageStore.isReject.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from txrocketmq.broker.intake.inner_message import TIMER_PROPERTIES, InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn, NotTaken
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.topics import TIMER_TOPIC
from txrocketmq.remoting.primitives.java_numbers import NumberFormatError, long

_MAX_LONG: Final = (1 << 63) - 1
_MAX_DIGITS: Final = 19


class Timer:
    """Sends timer messages to the timer topic, where they wait.

    `rejected` returns why no message can be taken that is due at a time, which is in ms; or None.
    """

    acts_on = ActsOn(
        properties=frozenset(TIMER_PROPERTIES),
        ways=Way.SEND | Way.BATCH | Way.SEND_BACK | Way.COMMIT | Way.REPLY,
    )

    def __init__(self, config: StoreConfig, rejected: Callable[[int], PutStatus | None]) -> None:
        self._config = config
        self._rejected = rejected

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Sends the message there if it is a timer message and its time has not come."""
        if (
            message.delay_level > 0
            or message.is_parked
            or message.topic == TIMER_TOPIC
            or names.TIMER_OUT_MS in message.properties
        ):
            return
        if not self._config.timer_wheel_enable:
            raise NotTaken(PutStatus.WHEEL_TIMER_NOT_ENABLE)
        if message.way is Way.BATCH:
            raise NotTaken(PutStatus.MESSAGE_ILLEGAL)
        deliver_ms = _deliver_ms(message, now_ms)
        if deliver_ms is None or deliver_ms - now_ms > self._config.timer_max_delay_sec * 1000:
            raise NotTaken(PutStatus.WHEEL_TIMER_MSG_ILLEGAL)
        if deliver_ms <= now_ms:
            if names.TIMER_DEL_UNIQKEY in message.properties:
                raise NotTaken(PutStatus.WHEEL_TIMER_MSG_ILLEGAL)
            return
        precision_ms = self._config.timer_precision_ms
        out_ms = (deliver_ms - 1) // precision_ms * precision_ms
        rejected = self._rejected(out_ms)
        if rejected is not None:
            raise NotTaken(rejected)
        message.properties[names.TIMER_OUT_MS] = str(out_ms)
        message.park(TIMER_TOPIC, 0)


def _deliver_ms(message: InnerMessage, now_ms: int) -> int | None:
    """Returns when the message is due, in ms; None when its property is not a number."""
    properties = message.properties
    if names.TIMER_DELAY_SEC in properties:
        delay = _long(properties[names.TIMER_DELAY_SEC])
        return None if delay is None else now_ms + delay * 1000
    if names.TIMER_DELAY_MS in properties:
        delay = _long(properties[names.TIMER_DELAY_MS])
        return None if delay is None else now_ms + delay
    return _long(properties[names.TIMER_DELIVER_MS])


def _long(text: str) -> int | None:
    try:
        return long(text)
    except NumberFormatError:
        return None
