# SPDX-License-Identifier: Apache-2.0
"""Addresses as text, and the message ids made of them.

The same few hosts come in every record, so only distinct ones are formatted.

Java: MessageDecoder.createMessageId.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.ids import Host, encode_message_id, host_of
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.spark.arrow import arrays
from txrocketmq.spark.arrow.gather import POOL
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.arrow.walk import Positions
from txrocketmq.spark.arrow.words import words
from txrocketmq.spark.columns.numbers import chosen_texts, constant, texts_of_size

BORN: Final = "born_host"
STORE: Final = "store_host"

_IPV6_BIT: Final = {BORN: record.BORN_HOST_IPV6, STORE: record.STORE_HOST_IPV6}
_PORT_BYTES: Final = 4
_IPV6_HOST_BYTES: Final = fixed(record.IPV6_HOST).size
_HOST_AT: Final = {
    which: fixed(record.RECORD_FIXED).offset_of(f"{which}_ip") for which in _IPV6_BIT
}
_STORE_AFTER_IPV6: Final = fixed(record.RECORD_FIXED_BORN_IPV6).offset_of(f"{STORE}_ip")
"""Offset of the store host in a record whose born host is an IPv6 address."""
_PLACE_AT: Final = fixed(record.RECORD_FIXED).offset_of("physical_offset")
_HEX: Final = np.frombuffer("".join(f"{byte:02X}" for byte in range(256)).encode(), np.uint16)
_ID_CHARS: Final = 32
"""The length of a message id whose store host has an IPv4 address."""


def hosts(records: Records, which: str) -> pa.StringArray:
    """The host `which`, BORN or STORE, as `address:port`; an IPv6 address in brackets."""
    each = _words_at(records, _HOST_AT[which])
    rows, packed = _ipv6_hosts(records, which)
    if len(each) and not len(rows) and (each == each[0]).all():
        return constant(_text_of_word(int(each[0])), len(each))
    found = pc.dictionary_encode(arrays.of_numbers(each), memory_pool=POOL)
    texts = list(map(_text_of_word, found.dictionary.to_pylist()))
    codes = arrays.numbers_of(found.indices)
    if len(rows):
        ipv6 = list(map(_text, packed))
        code_of = {text: len(texts) + code for code, text in enumerate(dict.fromkeys(ipv6))}
        texts += code_of
        codes = codes.copy()
        codes[rows] = [code_of[text] for text in ipv6]
    return chosen_texts(texts, codes)


def message_ids(records: Records) -> pa.StringArray:
    """The offset message ids: store host and physical offset in hexadecimal."""
    count = len(records)
    packed = np.empty((count, 2), np.uint64)
    packed[:, 0] = _words_at(records, _HOST_AT[STORE])
    packed[:, 1] = _words_at(records, _PLACE_AT)
    data = _HEX[packed.view(np.uint8)]
    ids = texts_of_size(data, _ID_CHARS, count)
    rows, hosts_there = _ipv6_hosts(records, STORE)
    if len(rows):
        texts = ids.to_pylist()
        places = records.physical_offset
        for row, host in zip(rows.tolist(), hosts_there, strict=True):
            texts[row] = encode_message_id(_host(host), int(places[row]))
        ids = arrays.of_texts(texts)
    return ids


def _words_at(records: Records, at: int) -> NDArray[np.uint64]:
    """Returns the eight bytes at offset `at` of each head, in the byte order of the buffer."""
    heads = np.ascontiguousarray(records.heads)
    word = np.dtype(
        {"names": ["word"], "formats": [np.uint64], "offsets": [at], "itemsize": heads.itemsize}
    )
    each: NDArray[np.uint64] = heads.view(word)["word"].copy()
    return each


def _ipv6_hosts(records: Records, which: str) -> tuple[Positions, list[bytes]]:
    """Returns the rows whose host is IPv6, and for each of them the packed address and port."""
    flags = records.sys_flag
    rows = np.flatnonzero(flags & _IPV6_BIT[which])
    if not len(rows):
        return rows, []
    at = records.starts[rows] + _HOST_AT[which]
    if which == STORE:
        at += np.where(flags[rows] & record.BORN_HOST_IPV6, _STORE_AFTER_IPV6 - _HOST_AT[which], 0)
    return rows, words(records.buffer, at, _IPV6_HOST_BYTES).tolist()


def _host(packed: bytes) -> Host:
    return host_of(packed[:-_PORT_BYTES], int.from_bytes(packed[-_PORT_BYTES:], "big", signed=True))


@lru_cache(maxsize=1 << 16)
def _text(packed: bytes) -> str:
    """Formats a packed address and port."""
    return str(_host(packed))


@lru_cache(maxsize=1 << 16)
def _text_of_word(word: int) -> str:
    """Formats an IPv4 host whose eight bytes were read as one word of native byte order."""
    return _text(word.to_bytes(8, sys.byteorder))
