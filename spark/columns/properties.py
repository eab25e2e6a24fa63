# SPDX-License-Identifier: Apache-2.0
r"""The properties of messages, parsed for all rows with a few steps of numpy.

A text is `name \x01 value \x02` repeated, the last \x02 being absent from records of 4.9. All texts
are gathered end to end, each after the byte before it, which is made a \x02, and without a last
\x02. Then separators alternate, \x02 before each name and \x01 before each value, wherever texts
are as they should be. Those that are not are read as `decode_properties` reads them, one by one,
and take part with a text made anew.

Java: MessageDecoder.string2messageProperties.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.spark.arrow import arrays
from txrocketmq.spark.arrow.gather import POOL, Bytes, gather, utf8
from txrocketmq.spark.arrow.walk import Positions
from txrocketmq.spark.columns.spans import Spans

_BEFORE_VALUE: Final = ord(names.NAME_VALUE_SEPARATOR)
_BEFORE_NAME: Final = ord(names.PROPERTY_SEPARATOR)
_WORD_BYTES: Final = 8
_WORD_MASKS: Final = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)
_PIECES: Final = 4
"""Pieces of text in a pair: name, separator, value, separator."""
_NAME: Final = 0
_VALUE: Final = 2
_MAX_PAIRS: Final = 64
"""A message with more pairs is parsed by itself, and its names are not compared with numpy."""


class _Pairs(NamedTuple):
    """Names and values in the order of the rows; the positions are offsets in `data`."""

    data: Bytes
    """The texts, followed by some zeros."""
    first: Positions
    """The number of each row's first pair; the last element is the number of all pairs."""
    name_at: Positions
    name_length: Positions
    value_at: Positions
    value_length: Positions
    words: NDArray[np.uint64]
    """The first eight bytes of each name."""

    rows: NDArray[np.int32]
    """The row of each pair."""

    pieces: pa.BinaryArray
    """Of each pair the name, a separator, the value and a separator. They lie end to end, so none
    is copied, and Arrow takes elements from such an array faster than it gathers them from
    anywhere.
    """

    def names(self) -> pa.BinaryArray:
        """All names."""
        return self._taken(np.arange(_NAME, len(self.pieces), _PIECES, dtype=np.int32))

    def values(self) -> pa.BinaryArray:
        """All values."""
        return self._taken(np.arange(_VALUE, len(self.pieces), _PIECES, dtype=np.int32))

    def values_of(self, pairs: NDArray[np.int64]) -> pa.BinaryArray:
        """Returns the values of these pairs."""
        return self._taken(_PIECES * pairs + _VALUE)

    def values_or_null(self, pairs: NDArray[np.int64]) -> pa.BinaryArray:
        """Returns the values of these pairs; null where the number of the pair is negative."""
        return self._taken(_PIECES * pairs + _VALUE, pairs >= 0)

    def _taken(
        self, numbers: NDArray[Any], valid: NDArray[np.bool_] | None = None
    ) -> pa.BinaryArray:
        chosen = arrays.of_numbers(numbers, valid=valid)
        return pc.take(self.pieces, chosen, boundscheck=False, memory_pool=POOL)


class Properties:
    """The properties of messages, parsed from the spans of their texts.

    A byte precedes each text in its buffer, as the length of the properties does in a record.
    """

    def __init__(self, spans: Spans) -> None:
        self._spans = spans
        self._kept: _Pairs | None = None

    def __len__(self) -> int:
        return len(self._spans.at)

    @property
    def _pairs(self) -> _Pairs:
        if self._kept is None:
            self._kept = _parsed(self._spans)
        return self._kept

    def value(self, name: str) -> pa.StringArray:
        """Returns the property with this name for each message; null for messages without it."""
        pairs = self._pairs
        encoded = name.encode()
        word = np.uint64(int.from_bytes(encoded[:_WORD_BYTES], "little"))
        found = np.flatnonzero((pairs.words == word) & (pairs.name_length == len(encoded)))
        if len(encoded) > _WORD_BYTES:
            texts = gather([pairs.data], pairs.name_at[found], pairs.name_length[found])
            found = found[arrays.numbers_of(pc.is_in(texts, value_set=arrays.of_bytes([encoded])))]
        if len(found) == len(self):
            return utf8(pairs.values_of(found))
        of_row = np.full(len(self), -1, np.int64)
        of_row[pairs.rows[found]] = found
        return utf8(pairs.values_or_null(of_row))

    def map(self) -> pa.MapArray:
        """All properties of each message."""
        pairs = self._pairs
        return pa.MapArray.from_arrays(
            arrays.of_numbers(pairs.first.astype(np.int32)),
            utf8(pairs.names()),
            utf8(pairs.values()),
        )

    def json(self) -> pa.StringArray:
        """All properties of each message, as a JSON object."""
        texts = self._texts().to_pylist()
        return arrays.of_texts(orjson.dumps(decode_properties(text)).decode() for text in texts)

    def raw(self) -> pa.StringArray:
        """The texts as they are stored."""
        return self._texts()

    def _texts(self) -> pa.StringArray:
        return utf8(self._spans.gather())


def _parsed(spans: Spans) -> _Pairs:
    rewritten = np.zeros(len(spans.at), np.bool_)
    while True:
        # This happens at most once for each oddity, since a rewritten text no longer has it.
        pairs, odd = _pairs_of(spans, rewritten)
        if pairs is not None:
            return pairs
        rewritten[odd] = True
        spans = spans.replaced(odd, [_rewritten(spans.bytes_of(row)) for row in odd.tolist()])


def _rewritten(text: bytes) -> bytes:
    """Rewrites the properties in their regular form."""
    pairs = decode_properties(text.decode("utf-8", "replace")).items()
    return "\x02".join([f"{name}\x01{value}" for name, value in pairs]).encode()


def _pairs_of(spans: Spans, rewritten: NDArray[np.bool_]) -> tuple[_Pairs | None, Positions]:
    """Returns the pairs; or None, and the rows whose texts are not in the regular form."""
    data, offsets = _joined(spans)
    size = int(offsets[-1])
    if _has_bad_utf8(data, offsets):
        return None, _rows_of_bad_utf8(spans)
    separators = np.flatnonzero((data[:size] - np.uint8(1)) < 2)
    is_value = data[separators] == _BEFORE_VALUE
    if not _alternate(is_value):
        # The first \x01 in a pair separates name and value; a pair without any does not count.
        keep = ~(is_value & np.append(False, is_value[:-1]))
        separators, is_value = separators[keep], is_value[keep]
        if not _alternate(is_value):
            is_lonely = ~is_value & np.append(~is_value[1:], True)
            rows = np.searchsorted(offsets, separators[is_lonely], "right") - 1
            return None, np.unique(rows)
    name_at = separators[0::2] + 1
    value_at = separators[1::2] + 1
    name_length = value_at - name_at - 1
    value_length = np.append(separators[2::2], size) - value_at
    if len(separators) == 0:
        value_length = value_at
    words = np.ndarray((size + 1,), np.uint64, data, strides=(1,))[name_at]
    words &= _WORD_MASKS[np.minimum(name_length, _WORD_BYTES)]
    first = np.searchsorted(name_at, offsets, "right")
    rows = np.repeat(np.arange(len(first) - 1, dtype=np.int32), np.diff(first))
    pieces = _pieces(data, name_at, name_length, value_at, value_length)
    pairs = _Pairs(data, first, name_at, name_length, value_at, value_length, words, rows, pieces)
    odd = _rows_with_odd_pairs(pairs, rewritten)
    return (None, odd) if len(odd) else (pairs, odd)


def _pieces(
    data: Bytes,
    name_at: Positions,
    name_length: Positions,
    value_at: Positions,
    value_length: Positions,
) -> pa.BinaryArray:
    """Returns one array of all names, values and separators, cut at each end of a name or value."""
    ends = np.zeros(_PIECES * len(name_at) + 1, np.int32)
    ends[_NAME:-1:_PIECES] = name_at
    np.add(name_at, name_length, out=ends[_NAME + 1 :: _PIECES], casting="unsafe")
    ends[_VALUE::_PIECES] = value_at
    np.add(value_at, value_length, out=ends[_VALUE + 1 :: _PIECES], casting="unsafe")
    ends[-1] = ends[max(len(ends) - 2, 0)]
    return pa.Array.from_buffers(
        pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(data)]
    )


def _joined(spans: Spans) -> tuple[Bytes, Positions]:
    """Returns the texts end to end, each after a separator, and where each of them begins."""
    length = _without_last_separator(spans)
    has_any = length > 0
    array = spans._replace(at=spans.at - has_any, length=length + has_any).gather()
    _, offset_buffer, texts = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[: len(array) + 1].astype(np.int64)
    size = int(offsets[-1])
    data = np.zeros(size + _WORD_BYTES, np.uint8)
    if size:
        data[:size] = np.frombuffer(texts, np.uint8)[:size]
    data[offsets[:-1][has_any]] = _BEFORE_NAME
    return data, offsets


def _without_last_separator(spans: Spans) -> Positions:
    r"""Returns the lengths of the texts without the \x02 at their end, if they have one."""
    length = spans.length
    last_at = spans.at + np.maximum(length - 1, 0)
    if spans.which is None:
        last = _byte_at(spans.buffers[0], last_at)
    else:
        last = np.zeros(len(length), np.uint8)
        for number, buffer in enumerate(spans.buffers):
            mine = spans.which == number
            last[mine] = _byte_at(buffer, last_at[mine])
    shorter: Positions = length - ((last == _BEFORE_NAME) & (length > 0))
    return shorter


def _byte_at(buffer: Bytes, at: Positions) -> NDArray[np.uint8]:
    return buffer[np.minimum(at, len(buffer) - 1)] if len(buffer) else np.zeros(len(at), np.uint8)


def _alternate(is_value: NDArray[np.bool_]) -> bool:
    r"""Returns whether separators alternate: \x02 before each name, \x01 before each value."""
    return not (is_value[0::2].any() or not is_value[1::2].all() or len(is_value) % 2)


def _has_bad_utf8(data: Bytes, offsets: Positions) -> bool:
    size = int(offsets[-1])
    if not size or data[:size].max() < 0x80:
        return False
    try:
        bytes(data[:size]).decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _rows_of_bad_utf8(spans: Spans) -> Positions:
    rows = []
    for row in range(len(spans.at)):
        try:
            spans.bytes_of(row).decode("utf-8")
        except UnicodeDecodeError:
            rows.append(row)
    return np.array(rows, np.int64)


def _rows_with_odd_pairs(pairs: _Pairs, rewritten: NDArray[np.bool_]) -> Positions:
    """Returns rows that have an empty name or value, the same name twice, or very many pairs."""
    counts = np.diff(pairs.first)
    odd = (counts > _MAX_PAIRS) & ~rewritten
    is_empty = (pairs.name_length == 0) | (pairs.value_length == 0)
    if is_empty.any():
        odd[pairs.rows[is_empty]] = True
    most = int(counts[~odd].max(initial=0))
    for distance in range(1, min(most, _MAX_PAIRS)):
        is_same = pairs.words[distance:] == pairs.words[:-distance]
        is_same &= pairs.rows[distance:] == pairs.rows[:-distance]
        if is_same.any():
            same = np.flatnonzero(is_same)
            same = same[_are_twice(pairs, same, same + distance)]
            odd[pairs.rows[same]] = True
    return np.flatnonzero(odd & ~rewritten)


def _are_twice(pairs: _Pairs, one: Positions, other: Positions) -> NDArray[np.bool_]:
    """Returns whether pairs whose names begin alike have equal names, judged by the last bytes."""
    length = pairs.name_length[one]
    same: NDArray[np.bool_] = length == pairs.name_length[other]
    long = np.flatnonzero(same & (length > _WORD_BYTES))
    at_byte = np.ndarray((len(pairs.data) - _WORD_BYTES + 1,), np.uint64, pairs.data, strides=(1,))
    last = length[long] - _WORD_BYTES
    same[long] = (
        at_byte[pairs.name_at[one[long]] + last] == at_byte[pairs.name_at[other[long]] + last]
    )
    return same
