# SPDX-License-Identifier: Apache-2.0
"""Half messages: what a producer has sent in a transaction that has not ended yet.

They wait in the half topic, to which `broker/intake/transforms/transaction.py` has sent them, and
their properties say where they are to go. Each function here makes the message that is put at one
stage of a half message's life. The flag of the message and its number of attempts are kept, which
the original loses when it puts one back.

Java: TransactionalMessageBridge, EndTransactionProcessor.endMessageTransaction,
DefaultTransactionalMessageCheckListener.toMessageExtBrokerInner.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.broker.intake.inner_message import InnerMessage, Way, packed
from txrocketmq.broker.intake.transform import Transforms
from txrocketmq.broker.intake.usual_record import UsualRecord, destination, is_plain_place
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.message.topics import TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC
from txrocketmq.remoting.primitives.java_numbers import NumberFormatError, long

_TRANSACTION_BITS: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


Half = MessageExt | UsualRecord
"""A half message in either form in which it is read."""


def committed_as_it_is(half: UsualRecord, transforms: Transforms) -> PutMessage | None:
    """Does what `committed` and the intake do, unless a transform touches the message."""
    properties = half.properties
    place = destination(properties)
    sys_flag = committed_flag(half.sys_flag)
    if (
        place is None
        or not transforms.properties(Way.COMMIT).isdisjoint(properties)
        or not is_plain_place(transforms, Way.COMMIT, place[0], sys_flag)
    ):
        return None
    get = properties.get
    encoded, queue_id = half.encoded, get("REAL_QID")
    # As InnerMessage.park leaves them; or else in any other places.
    together = f"\x02REAL_TOPIC\x01{place[0]}\x02REAL_QID\x01{queue_id}\x02".encode()
    if together in encoded:
        encoded = encoded.replace(together, b"\x02")
    else:
        encoded = b"\x02" + encoded
        for pair in (f"\x02REAL_TOPIC\x01{place[0]}\x02", f"\x02REAL_QID\x01{queue_id}\x02"):
            encoded = encoded.replace(pair.encode(), b"\x02")
        encoded = encoded[1:]
    tags = get("TAGS")
    return tuple.__new__(PutMessage, (
        *place, half.body, encoded, tags_code(tags) if tags else 0, half.born_timestamp,
        half.born_host, half.store_host, get("UNIQ_KEY"), get("KEYS"), tags, half.flag, sys_flag,
        half.reconsume_times, half.commit_log_offset,
    ))  # fmt: skip


def committed_flag(sys_flag: int) -> int:
    """The system flag of a message whose half message has this one."""
    return sys_flag & ~_TRANSACTION_BITS | MessageSysFlag.TRANSACTION_COMMIT_TYPE


def committed(half: MessageExt) -> InnerMessage | None:
    """The message for the queue that it was sent to; None when its properties name no queue."""
    place = destination(half.properties)
    if place is None:
        return None
    message = _copy(half, *place, Way.COMMIT)
    for name in (names.REAL_TOPIC, names.REAL_QID):
        del message.properties[name]
    message.sys_flag |= MessageSysFlag.TRANSACTION_COMMIT_TYPE
    message.prepared_transaction_offset = half.commit_log_offset
    return message


def asked_once_more(half: MessageExt) -> InnerMessage:
    """The half message for the end of its queue, before its producer is asked."""
    message = _copy(half, half.topic, half.queue_id)
    message.properties[names.TRANSACTION_CHECK_TIMES] = str(times_asked(half) + 1)
    return message


def left_alone(half: MessageExt) -> InnerMessage:
    """The half message for the end of its queue, since its producer is not to be asked yet.

    This does not count as a question. In the original it does, so that it gives up messages whose
    first question is due late.
    """
    message = _copy(half, half.topic, half.queue_id)
    message.properties.setdefault(names.TRAN_PREPARED_QUEUE_OFFSET, str(half.queue_offset))
    return message


def sent_elsewhere(half: MessageExt) -> InnerMessage | None:
    """The half message as its producer sent it, for another broker, whose half message it becomes;
    None when its properties do not name a topic.

    Java: TransactionalMessageUtil.buildTransactionalMessageFromHalfMessage.
    """
    topic = half.properties.get(names.REAL_TOPIC)
    if not topic:
        return None
    message = _copy(half, topic, 0)
    message.properties[names.TRAN_MSG] = "true"
    message.properties.pop(names.TRAN_PREPARED_QUEUE_OFFSET, None)
    message.sys_flag |= MessageSysFlag.TRANSACTION_PREPARED_TYPE
    return message


def given_up(half: MessageExt) -> InnerMessage:
    """The half message for the topic of those whose producers were asked in vain."""
    return _copy(half, TRANS_CHECK_MAX_TIME_TOPIC, 0)


def resumed(given_up: MessageExt) -> InnerMessage:
    """A message that was given up, for the half topic, as if it was never asked about."""
    message = _copy(given_up, TRANS_HALF_TOPIC, 0)
    message.properties[names.TRANSACTION_CHECK_TIMES] = "0"
    return message


def _copy(half: MessageExt, topic: str, queue_id: int, way: Way = Way.COMMIT) -> InnerMessage:
    message = InnerMessage.of_stored(half, topic, queue_id, packed(half.store_host), way)
    message.sys_flag &= ~_TRANSACTION_BITS
    return message


def times_asked(half: MessageExt) -> int:
    """How often its producer was asked; a text that is not a number counts as -1, as in Java."""
    text = half.properties.get(names.TRANSACTION_CHECK_TIMES)
    return 0 if text is None else number_of(text)


def immunity_ms(half: Half) -> int | None:
    """The age in ms before which the producer is not to be asked; None if it did not say.

    -1 for a text that is not a number.
    """
    text = half.properties.get(names.CHECK_IMMUNITY_TIME_IN_SECONDS)
    if not text:
        return None
    seconds = number_of(text)
    return -1 if seconds == -1 else seconds * 1000


def prepared_offset(half: MessageExt, known: int) -> int:
    """The queue offset at which it was first put, which its producer has.

    `known` is the first offset that is known otherwise, for messages that do not say it.
    """
    text = half.properties.get(names.TRAN_PREPARED_QUEUE_OFFSET)
    offset = -1 if text is None else number_of(text)
    return known if offset < 0 else offset


def number_of(text: str) -> int:
    """A number as Java's Long.parseLong reads it; -1 for anything else."""
    try:
        return long(text)
    except NumberFormatError:
        return -1
