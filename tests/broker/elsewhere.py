# SPDX-License-Identifier: Apache-2.0
"""Another master, to which a slave that acts as master sends what it cannot deliver itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from txrocketmq.broker.store.formats.put_message import PutMessage


class Elsewhere:
    """Says later what it has taken; `asked` has the bodies of each batch and whom to tell."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[bytes], Callable[[list[bool]], None]]] = []
        self.sent: list[PutMessage] = []
        """The messages of all batches."""

    def put(self, messages: Sequence[PutMessage], then: Callable[[list[bool]], None]) -> None:
        self.sent += messages
        self.asked.append(([each.body for each in messages], then))
