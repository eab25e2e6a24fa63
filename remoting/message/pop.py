# SPDX-License-Identifier: Apache-2.0
"""Texts of POP: receipt handles, the offsets in answers, and the names of its topics.

Handles and offsets are words separated by blanks. Java: ExtraInfoUtil, KeyBuilder, PopAckConstants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.primitives.java_numbers import NumberFormatError, integer, long

ORDER_REVIVE_QUEUE: Final = 999
"""Stands for the revive queue if messages are popped in order, which leaves no records there."""
REVIVE_GROUP: Final = "CID_RMQ_SYS_REVIVE_GROUP"
"""The consumer group under whose name the broker keeps how far it has read the revive topic."""
REVIVE_PREFIX: Final = "rmq_sys_REVIVE_LOG_"
_SEPARATOR_V1: Final = "_"
_SEPARATOR_V2: Final = "+"
_LEAST_WORDS: Final = 6
_SURELY_INT: Final = 9
_SURELY_LONG: Final = 18
"""Numbers of at most this many digits fit into a Java long, those of `_SURELY_INT` into an int."""


class ReceiptHandleError(RemotingError, ValueError):
    """A text is no receipt handle; the message says which part of it is missing or wrong."""


class ReceiptHandle(NamedTuple):
    """Identifies a popped message when its consumer acknowledges it. Times are in ms.

    `start_offset` and `pop_time` identify the check point that the message belongs to, and
    `revive_queue_id` is the queue of the revive topic that has its records. `retry` is a flag of
    `retry_flag`.
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
        """Returns the handle that a text means. Raises ReceiptHandleError if it means none.

        The last two words may be missing; `queue_id` and `queue_offset` are then -1.
        """
        words = text.split(" ")
        if len(words) < _LEAST_WORDS:
            raise ReceiptHandleError(
                f"getBrokerName fail, extraInfoStrs length {len(words)}: a receipt handle has"
                f" {_LEAST_WORDS} words at least"
            )
        longs = [_long(word) for word in words[:3]]
        revive_queue_id = _integer(words[3])
        queue_id = _integer(words[6]) if len(words) > _LEAST_WORDS else -1
        queue_offset = _long(words[7]) if len(words) > _LEAST_WORDS + 1 else -1
        return cls(
            longs[0], longs[1], longs[2], revive_queue_id, words[4], words[5], queue_id,
            queue_offset,
        )  # fmt: skip

    def __str__(self) -> str:
        return " ".join(map(str, self))


def _integer(word: str) -> int:
    if word.isdigit() and len(word) <= _SURELY_INT and word.isascii():
        return int(word)
    return _number(integer, word)


def _long(word: str) -> int:
    if word.isdigit() and len(word) <= _SURELY_LONG and word.isascii():
        return int(word)
    return _number(long, word)


def _number(read: Callable[[str], int], word: str) -> int:
    try:
        return read(word)
    except NumberFormatError:
        raise ReceiptHandleError(f'For input string: "{word:.40}"') from None


def retry_topic_v1(topic: str, group: str) -> str:
    """Returns the older name of the topic for messages that a group has not acknowledged."""
    return RETRY_PREFIX + group + _SEPARATOR_V1 + topic


def retry_topic_v2(topic: str, group: str) -> str:
    """Returns the newer name of the topic for messages that a group has not acknowledged.

    The topic and the group can be told from it.
    """
    return RETRY_PREFIX + group + _SEPARATOR_V2 + topic


def retry_topic(topic: str, group: str, *, v2: bool) -> str:
    """Returns the retry topic of a group, by the name that the broker is configured for."""
    return retry_topic_v2(topic, group) if v2 else retry_topic_v1(topic, group)


def normal_topic(topic: str, group: str) -> str:
    """Returns the topic that a retry topic of the group belongs to; other topics are unchanged."""
    if not topic.startswith(RETRY_PREFIX):
        return topic
    prefix = RETRY_PREFIX + group
    return topic[len(prefix) + 1 :]


def retry_flag(topic: str) -> str:
    """Returns the kind of a topic, as handles and answers write it.

    It is "1" or "2" for a retry topic with a name of that version, and "0" for any other topic.
    """
    if not topic.startswith(RETRY_PREFIX):
        return "0"
    return "2" if _SEPARATOR_V2 in topic else "1"


def real_topic(topic: str, group: str, retry: str) -> str:
    """Returns the topic whose messages were popped; `retry` is a flag of `retry_flag`.

    Raises ReceiptHandleError for an unknown flag.
    """
    if retry == "0":
        return topic
    if retry == "1":
        return retry_topic_v1(topic, group)
    if retry == "2":
        return retry_topic_v2(topic, group)
    raise ReceiptHandleError("getRetry fail, format is wrong: it is 0, 1 or 2")


def start_offset_info(topic: str, queue_id: int, offset: int) -> str:
    """Returns the text that says at which offset a pop of a queue started."""
    return f"{retry_flag(topic)} {queue_id} {offset}"


def msg_offset_info(topic: str, queue_id: int, offsets: Sequence[int]) -> str:
    """Returns the text that says which offsets of a queue were popped."""
    return f"{retry_flag(topic)} {queue_id} {','.join(map(str, offsets))}"


def order_count_info(topic: str, queue_id: int, count: int) -> str:
    """Returns the text that says how often all messages of a queue were popped before.

    Older clients read only this form.
    """
    return f"{retry_flag(topic)} {queue_id} {count}"


def offset_order_count_info(topic: str, queue_id: int, offset: int, count: int) -> str:
    """Returns the text that says how often one message of a queue was popped before."""
    return f"{retry_flag(topic)} qo{queue_id}%{offset} {count}"
