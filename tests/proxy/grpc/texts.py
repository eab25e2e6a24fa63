# SPDX-License-Identifier: Apache-2.0
"""Messages that are texts, in place of those of protobuf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass
class Text:
    """A message that is a text."""

    text: str

    @classmethod
    def FromString(cls, data: bytes) -> Self:  # noqa: N802 - protobuf's name
        """Returns the message of bytes. Raises UnicodeDecodeError."""
        return cls(data.decode())

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """Returns the message as bytes."""
        return self.text.encode()
