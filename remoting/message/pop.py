# SPDX-License-Identifier: Apache-2.0
"""Texts of POP: receipt handles, the offsets in answers, and the names of its topics.

All of them are words between blanks. Java: ExtraInfoUtil, KeyBuilder, PopAckConstants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.topics import RETRY_PREFIX

ORDER_REVIVE_QUEUE: Final = 999
"""Stands for the revive queue where messages are popped in order, which leaves no records."""
REVIVE_GROUP: Final = "CID_RMQ_SYS_REVIVE_GROUP"
"""Under its name the broker keeps how far it has read the revive topic."""
REVIVE_PREFIX: Final = "rmq_sys_REVIVE_LOG_"
_SEPARATOR_V1: Final = "_"
_SEPARATOR_V2: Final = "+"
_LEAST_WORDS: Final = 6
_LONG_MAX: Final = 2**63 - 1
_INT_MAX: Final = 2**31 - 1
_SURELY_INT: Final = 9
_SURELY_LONG: Final = 18
"""So many digits are within these limits."""


class ReceiptHandleError(RemotingError, ValueError):
    """A text that is no receipt handle; it says which part of it is missing or wrong."""


class ReceiptHandle(NamedTuple):
    """What a consumer holds for a message that it has popped. Times in ms.

    `start_offset` and `pop_time` name the check point that the message belongs to, and
    `revive_queue_id` where its records are.
    """

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_queue_id: int
    retry: str
    broker_name: str
    queue_id: int = -1
    queue_offset: int = -1

    @classmethod
    def parse(cls, text: str) -> ReceiptHandle:
        """Of its text; raises ReceiptHandleError. The last two words may be missing."""
        words = text.split(" ")
        if len(words) < _LEAST_WORDS:
            raise ReceiptHandleError(
                f"getBrokerName fail, extraInfoStrs length {len(words)}: a receipt handle has"
                f" {_LEAST_WORDS} words at least"
            )
        longs = [_number(word, _LONG_MAX, _SURELY_LONG) for word in words[:3]]
        revive_queue_id = _number(words[3], _INT_MAX, _SURELY_INT)
        queue_id = _number(words[6], _INT_MAX, _SURELY_INT) if len(words) > _LEAST_WORDS else -1
        queue_offset = (
            _number(words[7], _LONG_MAX, _SURELY_LONG) if len(words) > _LEAST_WORDS + 1 else -1
        )
        return cls(
            longs[0], longs[1], longs[2], revive_queue_id, words[4], words[5], queue_id,
            queue_offset,
        )  # fmt: skip

    def __str__(self) -> str:
        return " ".join(map(str, self))


def _number(word: str, most: int, surely: int) -> int:
    if word.isdigit() and len(word) <= surely and word.isascii():
        return int(word)
    digits = word.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= len(str(most)):
        value = int(word)
        if -most - 1 <= value <= most:
            return value
    raise ReceiptHandleError(f'For input string: "{word:.40}"')


def retry_topic_v1(topic: str, group: str) -> str:
    """Where messages of a topic that a group has not acknowledged come back, by its older name."""
    return RETRY_PREFIX + group + _SEPARATOR_V1 + topic


def retry_topic_v2(topic: str, group: str) -> str:
    """The same by the newer name, from which topic and group can be told."""
    return RETRY_PREFIX + group + _SEPARATOR_V2 + topic


def retry_topic(topic: str, group: str, *, v2: bool) -> str:
    """The retry topic, by the name that the broker is configured for."""
    return retry_topic_v2(topic, group) if v2 else retry_topic_v1(topic, group)


def normal_topic(topic: str, group: str) -> str:
    """The topic that a retry topic of the group belongs to; any other topic is its own."""
    if not topic.startswith(RETRY_PREFIX):
        return topic
    prefix = RETRY_PREFIX + group
    return topic[len(prefix) + 1 :]


def retry_flag(topic: str) -> str:
    """How handles and answers name the kind of a topic: "0", or "1" or "2" for a retry topic."""
    if not topic.startswith(RETRY_PREFIX):
        return "0"
    return "2" if _SEPARATOR_V2 in topic else "1"


def real_topic(topic: str, group: str, retry: str) -> str:
    """The topic that a flag means; raises ReceiptHandleError for a flag that there is not."""
    if retry == "0":
        return topic
    if retry == "1":
        return retry_topic_v1(topic, group)
    if retry == "2":
        return retry_topic_v2(topic, group)
    raise ReceiptHandleError("getRetry fail, format is wrong: it is 0, 1 or 2")


def start_offset_info(topic: str, queue_id: int, offset: int) -> str:
    """From which offset on messages of a queue were popped."""
    return f"{retry_flag(topic)} {queue_id} {offset}"


def msg_offset_info(topic: str, queue_id: int, offsets: Sequence[int]) -> str:
    """The offsets of the messages that were popped from a queue."""
    return f"{retry_flag(topic)} {queue_id} {','.join(map(str, offsets))}"


def order_count_info(topic: str, queue_id: int, count: int) -> str:
    """How often all messages of a queue were popped before, as older clients ask."""
    return f"{retry_flag(topic)} {queue_id} {count}"


def offset_order_count_info(topic: str, queue_id: int, offset: int, count: int) -> str:
    """How often one message of a queue was popped before."""
    return f"{retry_flag(topic)} qo{queue_id}%{offset} {count}"
