# SPDX-License-Identifier: Apache-2.0
"""The handle by which a producer withdraws a timer message: its topic, broker and time in base64.

Java: common.producer.RecallMessageHandle.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, NamedTuple

from txrocketmq.remoting.primitives.java_numbers import NumberFormatError, long

_VERSION: Final = "v1"
_BASE64: Final = re.compile(r"[A-Za-z0-9_-]*={0,2}")
_GROUP: Final = 4


class RecallHandleError(ValueError):
    """A text is no recall handle."""


class RecallHandle(NamedTuple):
    """The contents of a handle. `time` is when the message is to be delivered, in ms, as text."""

    topic: str
    broker_name: str
    time: str
    message_id: str

    @property
    def time_ms(self) -> int:
        """The time as a number, or -1 if it is not a number."""
        try:
            return long(self.time)
        except NumberFormatError:
            return -1

    def encode(self) -> str:
        """Returns the handle as text, in base64."""
        return urlsafe_b64encode(" ".join((_VERSION, *self)).encode("utf-8", "replace")).decode()

    @classmethod
    def decode(cls, text: str) -> RecallHandle:
        """Returns the handle that a text means. Raises RecallHandleError if it means none."""
        if not text or not _BASE64.fullmatch(text):
            raise RecallHandleError("recall handle is invalid")
        bare = text.rstrip("=")
        if (text != bare and len(text) % _GROUP) or len(bare) % _GROUP == 1:
            raise RecallHandleError("recall handle is invalid")
        raw = urlsafe_b64decode(bare + "=" * (-len(bare) % _GROUP)).decode("utf-8", "replace")
        version, *items = raw.rstrip(" ").split(" ")
        if version != _VERSION or len(items) < len(cls._fields):
            raise RecallHandleError("recall handle is invalid")
        return cls(*items[: len(cls._fields)])
