# SPDX-License-Identifier: Apache-2.0
"""h2's connection as a server of gRPC uses it, by names that h2 promises.

shortcuts.py does the same in fewer steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from h2.connection import H2Connection

from txrocketmq.proxy.http2.frames import Head

MAX_HEADER_LIST_BYTES: Final = 16 * 1024
"""How many bytes the headers of a call may have, each counted with 32 more, as HTTP/2 does."""
REMEMBERED_STREAMS: Final = 512
"""Of how many streams that have ended it is known how they did."""


class WholeRequest(NamedTuple):
    """The event of a request that has arrived whole, and counts as read (shortcuts.py)."""

    number: int
    headers: dict[bytes, bytes]
    """Values by their names, of which the last counts. It may be that of other calls, too."""
    data: bytes


class PlainConnection(H2Connection):
    """The server's half of a connection, which does not limit the number of streams."""

    DEFAULT_MAX_HEADER_LIST_SIZE = MAX_HEADER_LIST_BYTES
    MAX_CLOSED_STREAMS = REMEMBERED_STREAMS

    @property
    def open_inbound_streams(self) -> int:
        """Returns 0 to a new stream: h2 would close the connection of a client that opens too many,
        where the peer refuses the stream.
        """
        _ = super().open_inbound_streams  # which forgets those that have ended
        return 0

    def receive_frames(self, data: bytes, heads: Sequence[Head]) -> list[Any]:
        """Takes whole frames, which have these heads; returns events."""
        return list(self.receive_data(data))

    def send_at_once(self, number: int, data: bytes) -> bool:
        """Returns False, and does nothing: there is no shortcut for data."""
        return False

    def answer(self, number: int, data: bytes) -> bool:
        """Returns False, and does nothing: there is no shortcut for the usual answer."""
        return False
