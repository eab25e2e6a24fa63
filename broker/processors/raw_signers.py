# SPDX-License-Identifier: Apache-2.0
"""Who signs the requests that a kernel takes from bytes.

The guard decides about each kind of request, from each address, before a kernel learns it
(access/known.py); what a kernel has learned ends when accounts or policies change.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from txrocketmq.access.guard import AccessGuard
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.signer import ACCESS_KEY, SIGNATURE, Signer


class SignedBy(NamedTuple):
    """From where a request comes, as the guard numbers addresses, and who has signed it.

    Without a guard, the number is 0, and nobody has.
    """

    origin: int
    key: str = ""
    signer: Signer | None = None


NOBODY = SignedBy(0)


def signed_by(
    guard: AccessGuard | None, peer: Peer, command: RemotingCommand, origin: int
) -> SignedBy | None:
    """Returns who has signed a request; None if a kernel may not learn it: if it has a signature
    that nobody checks, or is not known to the guard, or is not signed as it should be.
    """
    fields = command.ext_fields or {}
    if not origin or guard is None:
        return NOBODY if not origin and SIGNATURE not in fields else None
    signer = guard.known.signer_of(peer, command)
    return None if signer is None else SignedBy(origin, fields[ACCESS_KEY], signer)


class TableAccounts:
    """The accounts of a table, by the numbers that it has given them."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self._numbers: dict[str, int] = {}

    def number(self, by: SignedBy) -> int | None:
        """Returns the number of who has signed; None for nobody."""
        if by.signer is None:
            return None
        number = self._numbers.get(by.key)
        if number is None:
            number = self._numbers[by.key] = self._table.add_account(by.signer.key)
        return number
