# SPDX-License-Identifier: Apache-2.0
"""A fingerprint of the log before an offset, by which a stream recognizes the log.

A log may have been cut off and written anew, as when a slave with fewer messages became master. It
then has other records at the same offsets. The fingerprint is a CRC-32 of the last 64 KiB before
the offset that are in the same file: nearly always the whole last record, and many before it. Zeros
at the end of a file, after its blank, do not count.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from txrocketmq.spark.store.store import Segment, Store

WINDOW_BYTES: Final = 64 << 10


def fingerprint(store: Store, at: int) -> str:
    """Returns eight hexadecimal digits, or "" when no file has the bytes before the offset."""
    store = store.at_once()
    segment = next((s for s in store.segments() if s.first_offset < at <= s.end), None)
    if segment is None:
        return ""
    try:
        return f"{crc32(_last_bytes(store, segment, at)):08x}"
    except FileNotFoundError:  # deleted since it was listed
        return ""


def is_same_log(store: Store, at: int, expected: str) -> bool:
    """Returns whether the log before the offset is unchanged, or can no longer be compared."""
    found = fingerprint(store, at)
    return not expected or not found or found == expected


def _last_bytes(store: Store, segment: Segment, at: int) -> bytes:
    """Up to WINDOW_BYTES of the file before the offset, without zeros at their end."""
    while at > segment.first_offset:
        start = max(segment.first_offset, at - WINDOW_BYTES)
        data = store.read(start, at - start).rstrip(b"\0")
        if data:
            end = start + len(data)
            start = max(segment.first_offset, end - WINDOW_BYTES)
            return store.read(start, end - start)
        at = start
    return b""
