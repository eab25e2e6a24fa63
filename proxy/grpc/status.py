# SPDX-License-Identifier: Apache-2.0
"""The status with which a gRPC call ends, in its trailers.

RocketMQ's own codes travel in messages; a gRPC status other than OK is for what does not get that
far. The numbers are those of gRPC.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class GrpcStatus(IntEnum):
    """The statuses that a server can give, by their names in gRPC."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class GrpcError(Exception):
    """Ends a call with a status and a text for whoever made it."""

    def __init__(self, status: GrpcStatus, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


_PLAIN: Final = frozenset(range(0x20, 0x7F)) - {ord("%")}


def percent_encoded(text: str) -> str:
    """Returns a text as `grpc-message` holds it: UTF-8, of which all but ASCII is %XX."""
    data = text.encode("utf-8", "replace")
    if _PLAIN.issuperset(data):
        return text
    return "".join(chr(each) if each in _PLAIN else f"%{each:02X}" for each in data)
