# SPDX-License-Identifier: Apache-2.0
"""Prepared answers to sends that were stored, which differ in a few places only.

A header is encoded once, with marks where answers differ, in the form that the server writes; an
answer is that header with the marks replaced. Errors are answered in the ordinary way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import orjson

from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting import formats
from txrocketmq.remoting.codes import ResponseCode, SerializeType
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.remoting.primitives.packing import fixed

_OPAQUE: Final = 1_234_567_890
_MARKS: Final = {"msgId": "@0@", "queueId": "@1@", "queueOffset": "@2@", "transactionId": "@3@"}
_EXTRA_MARK: Final = "@4@"
RECALL_HANDLE: Final = "recallHandle"
"""The field of an answer to a timer message."""
BATCH_KEY: Final = "batchUniqId"
"""The field of an answer by which a producer sees that its batch is stored as one record."""
_PREFIX: Final = fixed(formats.FRAME_PREFIX).struct
_INT: Final = fixed(formats.BINARY_VALUE_LENGTH).struct
_pack_name_length: Final = fixed(formats.BINARY_NAME_LENGTH).struct.pack
CODES: Final = {
    PutStatus.PUT_OK: ResponseCode.SUCCESS,
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}
"""The response codes of the statuses of stored messages."""


class Stored(NamedTuple):
    """The variable parts of an answer: message id, queue, queue offset, transaction id and opaque.

    `physical_offset` is where the message lies, or the first of a batch; `more_offsets` are those
    of the others, or their ids as `message_ids` makes them. `extra` is a further field:
    RECALL_HANDLE or BATCH_KEY, and its value. A plain tuple will do, too.
    """

    physical_offset: int
    queue_id: bytes
    queue_offset: int
    transaction_id: str | None
    opaque: int
    more_offsets: Sequence[int] | bytes = ()
    extra: tuple[str, str] | None = None


class JsonAnswers:
    """Answers with JSON headers; `ext_fields` are those that all answers have besides their own."""

    def __init__(self, code: int, ext_fields: dict[str, str], store_host: bytes) -> None:
        self.host = store_host.hex().upper().encode()
        with_id = _json_template(code, {**ext_fields, **_MARKS})
        marks = {name: mark for name, mark in _MARKS.items() if name != "transactionId"}
        without_id = _json_template(code, {**ext_fields, **marks})
        self._with_extra: dict[str, bytes] = {}
        for name in (RECALL_HANDLE, BATCH_KEY):
            template = _json_template(code, {**ext_fields, **_MARKS, name: _EXTRA_MARK})
            self._with_extra[name] = template.replace(b"@0@", self.host + b"%016X")
        self._single = with_id.replace(b"@0@", self.host + b"%016X")
        self._batch = with_id.replace(b"@0@", b"%b")
        self._batch_without_id = without_id.replace(b"@0@", b"%b")
        self.pieces = _pieces(self._batch), _pieces(self._batch_without_id)
        """What is between the variable parts of an answer, with a transaction id and without one,
        for those who put answers together elsewhere."""

    # Every message passes here, so no call is made that can be avoided.
    def frames(self, stored: Iterable[Stored]) -> bytes:
        """Encodes the answers, one after the other."""
        out: list[bytes] = []
        pack, single = _PREFIX.pack, self._single
        for physical_offset, queue_id, queue_offset, key, opaque, more, extra in stored:
            if extra is not None and key is not None:
                name, value = extra
                header = self._with_extra[name] % (
                    physical_offset, queue_id, queue_offset, _quoted(key), _quoted(value), opaque
                )  # fmt: skip
            elif more or key is None:
                ids = _all_ids(self.host, physical_offset, more)
                header = self._of_batch(ids, queue_id, queue_offset, key, opaque)
            else:
                text = key.encode("utf-8", "replace")
                if not text.isalnum():  # of bytes it asks for ASCII, and does so quickly
                    text = _quoted(key)
                header = single % (physical_offset, queue_id, queue_offset, text, opaque)
            size = len(header)
            out += (pack(size + 4, size), header)
        return b"".join(out)

    def _of_batch(
        self, ids: bytes, queue_id: bytes, queue_offset: int, key: str | None, opaque: int
    ) -> bytes:
        if key is None:
            return self._batch_without_id % (ids, queue_id, queue_offset, opaque)
        return self._batch % (ids, queue_id, queue_offset, _quoted(key), opaque)


def _pieces(template: bytes) -> list[bytes]:
    pieces = re.split(rb"%[bd]", template.replace(b"%%", b"\0"))
    return [piece.replace(b"\0", b"%") for piece in pieces]


def message_ids(host: bytes, offsets: Sequence[int]) -> bytes:
    """Offset message ids, separated by commas: host and offset in upper-case hexadecimal."""
    form = host + b"%016X"
    return b",".join([form] * len(offsets)) % tuple(offsets)


def _all_ids(host: bytes, first: int, more: Sequence[int] | bytes) -> bytes:
    if not isinstance(more, bytes):
        return message_ids(host, (first, *more))
    return b"%b,%b" % (message_ids(host, (first,)), more)


def _quoted(text: str) -> bytes:
    """Escapes a text for use between the quotation marks of JSON."""
    return orjson.dumps(text.encode("utf-8", "replace").decode())[1:-1]


def _json_template(code: int, ext_fields: dict[str, str]) -> bytes:
    answer = RemotingCommand(code, ext_fields, flag=RESPONSE_FLAG, opaque=_OPAQUE)
    text = b"".join(encode_frame(answer))[_PREFIX.size :].replace(b"%", b"%%")
    text = text.replace(b":%d," % _OPAQUE, b":%d,")
    for mark, form in ((b"@1@", b"%b"), (b"@2@", b"%d"), (b"@3@", b"%b"), (b"@4@", b"%b")):
        text = text.replace(mark, form)
    return text


class BinaryAnswers:
    """Answers with binary headers; otherwise as JsonAnswers."""

    def __init__(self, code: int, ext_fields: dict[str, str], store_host: bytes) -> None:
        self.host = store_host.hex().upper().encode()
        answer = RemotingCommand(
            code, ext_fields, flag=RESPONSE_FLAG, opaque=_OPAQUE,
            serialize_type=SerializeType.ROCKETMQ,
        )  # fmt: skip
        header = b"".join(encode_frame(answer))[_PREFIX.size :]
        self._before, _, after = header.partition(_INT.pack(_OPAQUE))
        self._fields = packed_fields(ext_fields)
        self._between = after[: len(after) - len(self._fields) - _INT.size]
        self._names = [packed_name(name) for name in _MARKS]
        self.pieces = [self._before, self._between, self._fields, *self._names], list[bytes]()
        """The parts of an answer that are the same in all: see JsonAnswers."""

    def frames(self, stored: Iterable[Stored]) -> bytes:
        """Encodes the answers, one after the other."""
        out: list[bytes] = []
        for physical_offset, queue_id, queue_offset, key, opaque, more, extra in stored:
            values = [
                _all_ids(self.host, physical_offset, more), queue_id, b"%d" % queue_offset,
            ]  # fmt: skip
            if key is not None:
                values.append(key.encode("utf-8", "replace"))
            pairs = [*zip(self._names, values, strict=False)]
            if extra is not None:
                pairs.append((packed_name(extra[0]), extra[1].encode("utf-8", "replace")))
            fields = self._fields + b"".join(
                [name + _INT.pack(len(value)) + value for name, value in pairs]
            )
            header = b"".join(
                (self._before, _INT.pack(opaque), self._between, _INT.pack(len(fields)), fields)
            )
            mark = SerializeType.ROCKETMQ << 24 | len(header)
            out += (_PREFIX.pack(len(header) + 4, mark), header)
        return b"".join(out)


def packed_name(name: str) -> bytes:
    """Returns a name of a field as binary headers have it."""
    return _pack_name_length(len(name)) + name.encode()


def packed_fields(ext_fields: dict[str, str]) -> bytes:
    """Returns fields as binary headers have them."""
    return b"".join(
        packed_name(name) + _INT.pack(len(value.encode())) + value.encode()
        for name, value in ext_fields.items()
    )


def prepared_answers(
    ext_fields: dict[str, str], store_host: bytes, serialize_type: int
) -> dict[PutStatus, JsonAnswers | BinaryAnswers]:
    """Prepares the answers for each status of a stored message, in the server's form of headers."""
    form = BinaryAnswers if serialize_type == SerializeType.ROCKETMQ else JsonAnswers
    return {status: form(code, ext_fields, store_host) for status, code in CODES.items()}


class SendAnswers:
    """The prepared answers of a broker: `of` each status, and those to what was `stored`."""

    def __init__(self, store_host: bytes, serialize_type: int = SerializeType.JSON) -> None:
        self._store_host = store_host
        self._serialize_type = serialize_type
        self.prepare({})

    def prepare(self, ext_fields: dict[str, str]) -> None:
        """Prepares them anew, with other fields that all answers have."""
        self.of = prepared_answers(ext_fields, self._store_host, self._serialize_type)
        self.stored = self.of[PutStatus.PUT_OK]
