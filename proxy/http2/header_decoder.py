# SPDX-License-Identifier: Apache-2.0
"""Headers of calls (RFC 7541), read in few steps; what they mean is what hpack makes of them.

The calls of a client are alike. A block of headers that does not change the table of the peer means
the same as long as nothing else has changed it, so blocks are remembered by their bytes. Clients
on grpcio write such blocks, but most put an id of its own into each call: then all is remembered
but that one value, which is found out by comparing two blocks. Others (Java, Go, Rust) put each id
into the table, so no two of their blocks are the same. These are read in one loop.

What is remembered for a connection is MOST_BLOCKS blocks of LONGEST_BLOCK_BYTES at most. Names of
h2 and hpack are used here that are not promised; trial.py looks at the start whether they fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import Any, Final, NamedTuple

from hpack import Decoder
from hpack.exceptions import HPACKDecodingError, InvalidTableIndex, OversizedHeaderListError
from hpack.hpack import decode_integer
from hpack.table import HeaderTable

from txrocketmq.proxy.http2 import huffman

MOST_BLOCKS: Final = 4
LONGEST_BLOCK_BYTES: Final = 640
MOST_PAIRS: Final = 32
"""How many blocks of a connection are remembered, by their lengths, how long they may be, and how
many headers they may have."""
_ENTRY_BYTES: Final = 32
_FIRST_ADDED: Final = HeaderTable.STATIC_TABLE_LENGTH + 1
_INDEXED, _ADDED, _TABLE_SIZE = 0x80, 0x40, 0x20
_LOOK_BYTES: Final = 512
"""After how many bytes of a block it is looked at how many its headers have."""
_MOST_RESIZES: Final = 16
"""How often a block may change the size of the table; RFC 7541 gives no reason for more than two,
but hpack would take as many as there are bytes."""
_LONG_TEXT: Final = 0x7F
"""The length of a text whose length goes on."""
_NUMBER_BYTES: Final = 12
"""More than a number may have."""
_run: Final = re.compile(rb"[\x81-\xfe]+").match
"""Finds headers that are numbers of one byte."""
_NUMBERS: Final = bytes(byte & 0x7F for byte in range(256))

Pair = tuple[bytes, bytes]


class Table(HeaderTable):
    """hpack's table, with the headers in a row by their numbers, and without a log."""

    def __init__(self) -> None:
        super().__init__()
        self.row: list[Pair] = [(b"", b""), *HeaderTable.STATIC_TABLE]
        """All headers, behind one for the number 0, which nobody looks up."""

    def add(self, name: bytes, value: bytes) -> None:
        """Adds a header, for which the oldest make room."""
        size = _ENTRY_BYTES + len(name) + len(value)
        entries, row, most = self.dynamic_entries, self.row, self._maxsize
        if size > most:
            entries.clear()
            del row[_FIRST_ADDED:]
            self._current_size = 0
            return
        entry = (name, value)
        entries.appendleft(entry)
        row.insert(_FIRST_ADDED, entry)
        size += self._current_size
        while size > most:
            del row[-1]
            old_name, old_value = entries.pop()
            size -= _ENTRY_BYTES + len(old_name) + len(old_value)
        self._current_size = size

    def was_resized(self) -> None:
        """Shortens the row after the size of the table was set."""
        del self.row[_FIRST_ADDED + len(self.dynamic_entries) :]


class Block(NamedTuple):
    """A block that is remembered: what is the same in those like it, and what it means."""

    begin: bytes
    end: bytes
    """What is behind the value that varies; all the rest if none does."""
    at: int
    """Which header has that value, or -1."""
    pairs: list[Pair]
    by_name: dict[bytes, bytes]
    places: list[tuple[int, int, int]]
    """The values that are written out: the number of the header, and where it begins and ends."""

    @property
    def data(self) -> bytes:
        """The bytes of it, as they came first."""
        value = b"" if self.at < 0 else self.pairs[self.at][1]
        return self.begin + value + self.end


class HeaderDecoder(Decoder):
    """hpack's decoder, which takes the usual forms of headers in few steps."""

    def __init__(self, max_header_list_size: int) -> None:
        super().__init__(max_header_list_size)
        self.header_table: Table = Table()
        self._blocks: dict[int, Block] = {}
        """Those that are remembered, by their lengths."""

    def decode(self, data: Any, raw: bool = False) -> Iterable[Any]:  # noqa: FBT001, FBT002 - hpack's
        """Returns names and values. Raises HPACKError. Takes headers that were decoded, too."""
        if not raw:
            return super().decode(data, raw)
        if type(data) is list:
            return data
        block = self._blocks.get(len(data))
        if block is not None and block.at < 0 and block.begin == data:
            return block.pairs
        return self._read(data)

    def by_name(self, data: bytes) -> dict[bytes, bytes]:
        """Returns values by their names, of which the last counts. Raises HPACKError."""
        block = self._blocks.get(len(data))
        if block is not None:
            begin, end, at, pairs, by_name, _ = block
            if at < 0:
                if begin == data:
                    return by_name
            elif data.startswith(begin) and data.endswith(end):
                by_name = by_name.copy()
                by_name[pairs[at][0]] = data[len(begin) : len(data) - len(end)]
                return by_name
        return dict(self._read(data))

    def _read(self, data: bytes) -> list[Pair]:
        """Reads a block, and remembers it if it leaves the table as it is."""
        places: list[tuple[int, int, int]] = []
        try:
            pairs, changes = self._decoded(data, places)
        except LookupError:
            raise HPACKDecodingError("the headers are cut off, or there is no such one") from None
        if changes:
            if self._blocks:
                self._blocks = {}
        elif len(data) <= LONGEST_BLOCK_BYTES and len(pairs) <= MOST_PAIRS:
            self._remember(data, pairs, places)
        return pairs

    def _remember(self, data: bytes, pairs: list[Pair], places: list[tuple[int, int, int]]) -> None:
        blocks, length = self._blocks, len(data)
        begin, end, at = data, b"", -1
        by_name = dict(pairs)
        before = blocks.pop(length, None)
        if before is not None and before.places == places and len(by_name) == len(pairs):
            of_before = before.data
            differ = [
                place for place in places if data[slice(*place[1:])] != of_before[slice(*place[1:])]
            ]
            kept = [place for place in differ if place[0] == before.at]
            if kept or len(differ) == 1:
                at, first, last = (kept or differ)[0]
                begin, end = data[:first], data[last:]
        if len(blocks) >= MOST_BLOCKS:
            del blocks[next(iter(blocks))]
        blocks[length] = Block(begin, end, at, pairs, by_name, places)

    def _decoded(self, data: bytes, places: list[tuple[int, int, int]]) -> tuple[list[Pair], bool]:
        """Returns the headers, and whether they have changed the table; notes where values are."""
        headers: list[Pair] = []
        try:
            changes = self._collect(data, headers, places)
        except (HPACKDecodingError, LookupError):
            self._size(headers, 0, 0)  # which comes first, if it is too much
            raise
        self._assert_valid_table_size()
        return headers, changes

    def _collect(
        self, data: bytes, headers: list[Pair], places: list[tuple[int, int, int]]
    ) -> bool:
        """Reads headers; returns whether they have changed the table.

        Each byte is one header at most, so how many bytes they have together is looked at after
        some bytes; and before the table changes, since nothing may be behind the one too many.
        """
        at, end, size, seen, until = 0, len(data), 0, 0, _LOOK_BYTES
        changes, resizes = False, 0
        table = self.header_table
        row = table.row
        while at < end:
            first = data[at]
            if first > _INDEXED:
                run = _run(data, at, at + _LOOK_BYTES)
                if run is None:
                    index, at = _integer(data, at + 1, 7)
                    headers.append(table.get_by_index(index))
                else:
                    try:
                        headers += map(row.__getitem__, run[0].translate(_NUMBERS))
                    except IndexError:
                        raise InvalidTableIndex("there is no such header") from None
                    at = run.end()
                if at >= until:
                    until = at + _LOOK_BYTES
                    size, seen = self._size(headers, size, seen), len(headers)
            elif first & _ADDED:
                size, seen = self._size(headers, size, seen), len(headers)
                name, value, at, _ = self._literal(data, at + 1, first & 0x3F, 0x3F)
                table.add(name, value)
                changes = True
                headers.append((name, value))
            elif not first & (_TABLE_SIZE | _INDEXED):
                name, value, at, begin = self._literal(data, at + 1, first & 0x0F, 0x0F)
                if begin:
                    places.append((len(headers), begin, at))
                headers.append((name, value))
                if at >= until:
                    until = at + _LOOK_BYTES
                    size, seen = self._size(headers, size, seen), len(headers)
            else:
                resizes += 1
                at = self._resized(data, at, headers, resizes)
                changes = True
        self._size(headers, size, seen)
        return changes

    def _resized(self, data: bytes, at: int, headers: list[Pair], times: int) -> int:
        """Gives the table the size at a place, and returns where it ends. Raises HPACKError."""
        if data[at] == _INDEXED:
            raise InvalidTableIndex("a header has the number 0")
        if headers or times > _MOST_RESIZES:
            raise HPACKDecodingError("the size of the table changes amid headers, or too often")
        used = self._update_encoding_context(data[at : at + _NUMBER_BYTES])
        self.header_table.was_resized()
        return at + used

    def _size(self, headers: list[Pair], size: int, seen: int) -> int:
        """Returns how many bytes headers have, of which the first have been seen.

        Raises OversizedHeaderListError if that is too much.
        """
        new = headers[seen:] if seen else headers
        size += _ENTRY_BYTES * len(new) + sum(map(len, chain.from_iterable(new)))
        if size > self.max_header_list_size:
            raise OversizedHeaderListError(f"more than {self.max_header_list_size} bytes")
        return size

    def _literal(
        self, data: bytes, at: int, index: int, mask: int
    ) -> tuple[bytes, bytes, int, int]:
        """Returns name and value of a header that is written out, where it ends, and where the
        value begins, or 0 if that is in the Huffman code. Its name may be a number.
        """
        if not index:
            name, at, _ = _text(data, at)
        else:
            if index == mask:
                index, at = _integer(data, at, mask.bit_length())
            name = self.header_table.get_by_index(index)[0]
        begin = at + 1
        length = data[at]
        at = begin + length
        if length < _LONG_TEXT and at <= len(data):  # as nearly always
            return name, data[begin:at], at, begin
        value, at, begin = _text(data, begin - 1)
        return name, value, at, begin


def _integer(data: bytes, at: int, bits: int) -> tuple[int, int]:
    """Returns a number that goes on at a place, behind a byte whose last bits are all set."""
    number, used = decode_integer(data[at - 1 : at + _NUMBER_BYTES], bits)
    return number, at - 1 + used


def _text(data: bytes, at: int) -> tuple[bytes, int, int]:
    """Returns a text, where it ends, and where it begins, or 0 if it is in the Huffman code."""
    first = data[at]
    at += 1
    length = first & 0x7F
    if length == _LONG_TEXT:
        length, at = _integer(data, at, 7)
    end = at + length
    if end > len(data):
        raise HPACKDecodingError("the headers are cut off")
    if first & _INDEXED:
        return huffman.decoded(data[at:end]), end, 0
    return data[at:end], end, at
