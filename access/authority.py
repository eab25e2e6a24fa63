# SPDX-License-Identifier: Apache-2.0
"""What accounts decide: whether a request is refused, and in which words.

ACL 1 of RocketMQ 4 and ACL 2 of RocketMQ 5 look at different things in a different order, and
refuse with different codes. For whoever asks they are the same: an authority.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from txrocketmq.access.known import KnownRequests
from txrocketmq.remoting.command import RemotingCommand


class Refusal(NamedTuple):
    """Why a request is refused: `remark` is for its sender, all else for those who watch."""

    remark: str
    reason: str
    """A few words that are the same for all refusals of a kind, such as "wrong signature"."""
    user: str = ""
    """The account that the request names, whether or not it is one."""
    resource: str = ""
    """What the account may not have, such as "Topic:orders"."""
    action: str = ""
    """What it may not do with that, such as "Pub"."""


class Authority(Protocol):
    """Decides about requests."""

    @property
    def code(self) -> int:
        """The code of answers that refuse."""

    @property
    def known(self) -> KnownRequests:
        """Requests that it allows if they are signed as they should be."""

    def refusal(self, command: RemotingCommand, host: str) -> Refusal | None:
        """Returns why this request from this address is refused, or None if it is allowed."""
