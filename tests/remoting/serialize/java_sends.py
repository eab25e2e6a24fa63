# SPDX-License-Identifier: Apache-2.0
"""Frames of SEND_MESSAGE_V2 in the form in which the Java client writes them."""

from __future__ import annotations

import json
import struct
from typing import Any

KEY = "7F00000100002A139A9E5EFB7A4F0000"
USUAL = f"UNIQ_KEY\x01{KEY}\x02WAIT\x01true"
LETTERS = {
    "a": "producers", "b": "T", "c": "TBW102", "d": "4", "e": "1", "f": "0", "g": "1700000000000",
    "h": "0", "i": USUAL, "j": "0", "k": "false", "m": "false", "n": "broker-a",
}  # fmt: skip


def header(opaque: Any = 1, **changes: Any) -> bytes:
    """A header; names of letters change fields, None leaves one out, others change members."""
    letters = {**LETTERS, **{name: text for name, text in changes.items() if len(name) == 1}}
    members = {
        "code": 310,
        "extFields": {name: letters[name] for name in sorted(letters) if letters[name] is not None},
        "flag": 0,
        "language": "JAVA",
        "opaque": opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": 407,
        **{name: value for name, value in changes.items() if len(name) > 1},
    }
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()


def frame(header: bytes, body: bytes = b"body") -> bytes:
    """The frame with this header."""
    return struct.pack(">iI", 4 + len(header) + len(body), len(header)) + header + body
