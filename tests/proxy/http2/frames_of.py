# SPDX-License-Identifier: Apache-2.0
"""Frames of HTTP/2 as bytes, made without any library."""

from __future__ import annotations


def frame(kind: int, payload: bytes = b"", flags: int = 0, stream: int = 0) -> bytes:
    """Returns a frame."""
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return head + payload
