# SPDX-License-Identifier: Apache-2.0
r"""Traces of messages: the fields of a record in their order, and their text form.

Each field ends with \x01 and each record with \x02; a value that is not known is the word `null`,
as the original writes it. Counterpart of TraceContext, TraceBean and TraceDataEncoder.
"""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from typing import Any, ClassVar, Final

FIELD_END: Final = "\x01"
RECORD_END: Final = "\x02"


class MessageType(enum.IntEnum):
    """The kinds of messages; the numbers are those of the text form."""

    NORMAL = 0
    TRANS_HALF = 1
    TRANS_COMMIT = 2
    DELAY = 3
    ORDER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRecord:
    """The base class of all records; their fields are written in the order of declaration.

    `word` is the first field of the text and says which kind of record it is.
    """

    word: ClassVar[str]

    @property
    def data(self) -> str:
        """The text of the record."""
        values = (getattr(self, each.name) for each in dataclasses.fields(self))
        return FIELD_END.join((self.word, *map(_text, values))) + RECORD_END

    @property
    def found_by(self) -> frozenset[str]:
        """The keys by which the record can be found: the id and the keys of its message."""
        keys = getattr(self, "keys", None) or ""
        return frozenset({getattr(self, "msg_id", ""), *keys.split()} - {""})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pub(TraceRecord):
    """The record of a send, successful or not."""

    word = "Pub"
    timestamp_ms: int
    region: str
    group: str
    topic: str
    msg_id: str
    tags: str | None
    keys: str | None
    store_host: str
    body_bytes: int
    cost_ms: int
    message_type: MessageType
    offset_msg_id: str | None
    success: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction(TraceRecord):
    """The record of a transaction that was committed or rolled back, or is not decided yet."""

    word = "EndTransaction"
    timestamp_ms: int
    region: str
    group: str
    topic: str
    msg_id: str
    tags: str | None
    keys: str | None
    store_host: str
    message_type: MessageType = MessageType.TRANS_COMMIT
    transaction_id: str | None
    state: str
    from_check: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(TraceRecord):
    """The record of a delayed message that was recalled."""

    word = "Recall"
    timestamp_ms: int
    region: str
    group: str
    topic: str
    msg_id: str
    success: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SubBefore(TraceRecord):
    """The record of a message that is about to be passed to a listener."""

    word = "SubBefore"
    timestamp_ms: int
    region: str | None
    group: str
    request_id: str
    msg_id: str
    retry_times: int
    keys: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAfter(TraceRecord):
    """The record of a message that a listener has consumed, or failed to consume."""

    word = "SubAfter"
    request_id: str
    msg_id: str
    cost_ms: int
    success: bool
    keys: str | None
    context_code: int
    timestamp_ms: int
    group: str


def decode_records(text: str) -> list[TraceRecord]:
    """Returns the records of a trace message, without those of unknown kinds and malformed ones.

    Other versions of clients write fewer fields or more: those that are missing get the values of
    unknown ones, and those beyond the known ones are ignored.
    """
    found = []
    for part in text.split(RECORD_END):
        word, *values = part.split(FIELD_END)
        kind = _KINDS.get(word)
        if kind is None:
            continue
        fields = dataclasses.fields(kind)
        padded = [*values, *[_NULL] * (len(fields) - len(values))]
        try:
            told = {
                each.name: _read(str(each.type), value)
                for each, value in zip(fields, padded, strict=False)
            }
        except ValueError:
            continue
        found.append(kind(**told))
    return found


_NULL: Final = "null"
_KINDS: Final[dict[str, Any]] = {
    kind.word: kind for kind in (Pub, EndTransaction, Recall, SubBefore, SubAfter)
}


def _read(hint: str, value: str) -> Any:
    if hint == "int":
        return 0 if value == _NULL else int(value)
    if hint == "bool":
        return value == "true"
    if hint == "MessageType":
        return MessageType(0 if value == _NULL else int(value))
    if value == _NULL:
        return None if "None" in hint else ""
    return value


def _text(value: object) -> str:
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, int) else str(value)
