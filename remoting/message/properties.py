# SPDX-License-Identifier: Apache-2.0
r"""Property names, and the text codec of a message's properties.

The text is `name \x01 value \x02` repeated. 5.x ends the last pair with \x02 too, 4.9 does not;
both are read, and the form of 5.x is written. The text travels in request headers and, in UTF-8,
at the end of each record, where its length is a signed 16-bit integer.

Java: common.message.MessageConst, MessageDecoder.string2messageProperties and
messageProperties2String.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

NAME_VALUE_SEPARATOR: Final = "\x01"
PROPERTY_SEPARATOR: Final = "\x02"
MAX_PROPERTIES_BYTES: Final = 0x7FFF
"""The longest text of properties that fits into a record, in bytes of UTF-8."""

KEYS: Final = "KEYS"
"""The keys of the index, separated by KEY_SEPARATOR."""
KEY_SEPARATOR: Final = " "
TAGS: Final = "TAGS"
WAIT: Final = "WAIT"
"""If it is "false", the producer does not wait for flush and replication."""
DELAY: Final = "DELAY"
"""The delay level: 1 to 18 unless the broker is configured otherwise."""
RETRY_TOPIC: Final = "RETRY_TOPIC"
"""The original topic of a message in a %RETRY% topic."""
ORIGIN_GROUP: Final = "ORIGIN_GROUP"
REAL_TOPIC: Final = "REAL_TOPIC"
"""The original topic of a delayed, timer or half message."""
REAL_QID: Final = "REAL_QID"
BUYER_ID: Final = "BUYER_ID"
TRANSFER_FLAG: Final = "TRANSFER_FLAG"
CORRECTION_FLAG: Final = "CORRECTION_FLAG"
MQ2_FLAG: Final = "MQ2_FLAG"
INSTANCE_ID: Final = "INSTANCE_ID"
SHARDING_KEY: Final = "__SHARDINGKEY"
PRIORITY: Final = "_SYS_MSG_PRIORITY_"
"""The priority of a message (5.4 and later)."""

# Transactions.
TRAN_MSG: Final = "TRAN_MSG"
"""Is "true" in a half message."""
PGROUP: Final = "PGROUP"
"""The producer group that the broker asks about the state of a half message."""
TRANSACTION_ID: Final = "__transactionId__"
TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
CHECK_IMMUNITY_TIME_IN_SECONDS: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
TRAN_PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"
TRANS_OFFSET: Final = "TRANS_OFFSET"

# Retries and dead letters.
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
RECONSUME_TIME: Final = "RECONSUME_TIME"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
DLQ_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"
DLQ_ORIGIN_MESSAGE_ID: Final = "DLQ_ORIGIN_MESSAGE_ID"

# Set by the broker or by the client library.
UNIQ_KEY: Final = "UNIQ_KEY"
"""The message id that the producer made; see remoting.message.ids."""
EXTEND_UNIQ_INFO: Final = "EXTEND_UNIQ_INFO"
MSG_REGION: Final = "MSG_REGION"
TRACE_ON: Final = "TRACE_ON"
TRACE_CONTEXT: Final = "TRACE_CONTEXT"
CLUSTER: Final = "CLUSTER"
MIN_OFFSET: Final = "MIN_OFFSET"
"""Added by the client after a pull and never stored, like MAX_OFFSET."""
MAX_OFFSET: Final = "MAX_OFFSET"
CONSUME_START_TIME: Final = "CONSUME_START_TIME"
BORN_HOST: Final = "__BORNHOST"
BORN_TIMESTAMP: Final = "BORN_TIMESTAMP"
CRC32: Final = "__CRC32#"
"""Appended to the record by 5.x if enabledAppendPropCRC is set."""
START_DELIVER_TIME: Final = "__STARTDELIVERTIME"

# Request and reply.
CORRELATION_ID: Final = "CORRELATION_ID"
REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
TTL: Final = "TTL"
ARRIVE_TIME: Final = "ARRIVE_TIME"
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
MSG_TYPE: Final = "MSG_TYPE"

# Inner batches, light queues, POP.
INNER_NUM: Final = "INNER_NUM"
INNER_BASE: Final = "INNER_BASE"
INNER_MULTI_DISPATCH: Final = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET: Final = "INNER_MULTI_QUEUE_OFFSET"
DUP_INFO: Final = "DUP_INFO"
FORWARD_QUEUE_ID: Final = "PROPERTY_FORWARD_QUEUE_ID"
REDIRECT: Final = "REDIRECT"
POP_CK: Final = "POP_CK"
POP_CK_OFFSET: Final = "POP_CK_OFFSET"
FIRST_POP_TIME: Final = "1ST_POP_TIME"

# Timer messages (5.x).
TIMER_DELAY_SEC: Final = "TIMER_DELAY_SEC"
TIMER_DELAY_MS: Final = "TIMER_DELAY_MS"
TIMER_DELIVER_MS: Final = "TIMER_DELIVER_MS"
TIMER_ENQUEUE_MS: Final = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS: Final = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES: Final = "TIMER_ROLL_TIMES"
TIMER_OUT_MS: Final = "TIMER_OUT_MS"
TIMER_DEL_UNIQKEY: Final = "TIMER_DEL_UNIQKEY"
TIMER_ROLL_LABEL: Final = "TIMER_ROLL_LABEL"
TIMER_DELAY_LEVEL: Final = "TIMER_DELAY_LEVEL"

TRANSIENT_PREFIX: Final = "__RMQ.TRANSIENT."
"""Properties whose names start with this prefix are not stored."""
TRANSIENT_TOPIC_SYS_FLAG: Final = TRANSIENT_PREFIX + "TOPIC_SYS_FLAG"
TRANSIENT_GROUP_SYS_FLAG: Final = TRANSIENT_PREFIX + "GROUP_SYS_FLAG"

SYSTEM_PROPERTIES: Final = frozenset(
    {
        KEYS, TAGS, WAIT, DELAY, RETRY_TOPIC, ORIGIN_GROUP, REAL_TOPIC, REAL_QID, BUYER_ID,
        TRANSFER_FLAG, CORRECTION_FLAG, MQ2_FLAG, INSTANCE_ID, PRIORITY, TRAN_MSG, PGROUP,
        TRAN_PREPARED_QUEUE_OFFSET, ORIGIN_MESSAGE_ID, RECONSUME_TIME, MAX_RECONSUME_TIMES,
        DLQ_ORIGIN_TOPIC, DLQ_ORIGIN_MESSAGE_ID, UNIQ_KEY, EXTEND_UNIQ_INFO, MSG_REGION, TRACE_ON,
        CLUSTER, MIN_OFFSET, MAX_OFFSET, CONSUME_START_TIME, BORN_HOST, BORN_TIMESTAMP, CRC32,
        CORRELATION_ID, REPLY_TO_CLIENT, TTL, ARRIVE_TIME, PUSH_REPLY_TIME, MSG_TYPE,
        INNER_MULTI_QUEUE_OFFSET, DUP_INFO, POP_CK, POP_CK_OFFSET, FIRST_POP_TIME,
        TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS, TIMER_ENQUEUE_MS, TIMER_DEQUEUE_MS,
        TIMER_ROLL_TIMES, TIMER_OUT_MS, TIMER_DEL_UNIQKEY, TIMER_DELAY_LEVEL,
    }
)  # fmt: skip
"""The names that a user must not set (MessageConst.STRING_HASH_SET of 5.4)."""


def decode_properties(text: str) -> dict[str, str]:
    r"""Returns the properties of a text; never fails.

    As MessageDecoder.string2messageProperties does in 4.9 and 5.x: the value begins after the first
    \x01 and may contain more of them; a pair without \x01, with an empty name or an empty value is
    dropped; the last of several equal names counts.
    """
    pairs = text.split(PROPERTY_SEPARATOR)
    if not pairs[-1]:
        pairs.pop()
    try:
        found = dict([pair.split(NAME_VALUE_SEPARATOR) for pair in pairs])
    except ValueError:
        return _decode_odd(text)
    if "" in found or "" in found.values() or "\x01\x02" in text:
        return _decode_odd(text)
    return found


def _decode_odd(text: str) -> dict[str, str]:
    """Does what decode_properties does for any text at all, at half the speed."""
    return {
        name: value
        for name, _, value in [
            pair.partition(NAME_VALUE_SEPARATOR) for pair in text.split(PROPERTY_SEPARATOR)
        ]
        if name and value
    }


def pick_properties(text: str, names: Iterable[str]) -> dict[str, str]:
    r"""Returns what decode_properties returns, but only for these names: faster if they are few.

    No name may contain \x01 or \x02.
    """
    text = PROPERTY_SEPARATOR + text
    found: dict[str, str] = {}
    for name in names:
        mark = f"\x02{name}\x01"
        at = text.rfind(mark)
        if at >= 0:
            start = at + len(mark)
            end = text.find(PROPERTY_SEPARATOR, start)
            value = text[start:end] if end >= 0 else text[start:]
            if not value:  # an earlier pair of this name may have one
                return decode_properties(text)
            found[name] = value
    return found


def encode_properties(properties: Mapping[str, str]) -> str:
    r"""Returns the text of the properties, each pair ended by \x02 (as 5.x writes it).

    Raises TypeError for a name or a value that is no text. Otherwise they are not checked: callers
    that take them from a user do that first with `check_user_property`.
    """
    if not properties:
        return ""
    try:
        return "\x02".join(map("\x01".join, properties.items())) + "\x02"
    except TypeError:
        wrong = [pair for pair in properties.items() if not all(isinstance(x, str) for x in pair)]
        told = ", ".join(f"{name!r:.80}: {value!r:.80}" for name, value in wrong)
        raise TypeError(f"properties of a message must be str, not {{{told}}}") from None


def check_user_property(name: str, value: str) -> None:
    """Raises ValueError unless a user may set this property (Message.putUserProperty).

    The original accepts names and values with separators, which corrupt the text; here they are
    refused. Raises TypeError for what is no text.
    """
    for given in (name, value):
        if not isinstance(given, str):
            raise TypeError(f"name and value of a property must be str, not {given!r:.80}")
    if name in SYSTEM_PROPERTIES:
        raise ValueError(f"The Property<{name}> is used by system, input another please")
    if not name.strip() or not value.strip():
        raise ValueError("The name or value of property can not be null or blank string!")
    for text in (name, value):
        if NAME_VALUE_SEPARATOR in text or PROPERTY_SEPARATOR in text:
            raise ValueError(f"The Property<{name!r}> holds a separator, \\x01 or \\x02")
