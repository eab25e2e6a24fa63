# SPDX-License-Identifier: Apache-2.0
"""The reference of a kernel's signatures: who signs the headers of a place, and whether they do.

What an account may do is decided in Python, once for each place and each address from which it
asks (access/known.py). The signature is computed for each request, also here.
"""

from __future__ import annotations

import hmac
from binascii import b2a_base64
from typing import Final

from txrocketmq.broker.kernel.header_holes import SignedHeader

_KEY_BYTES: Final = 64


class SigningAccounts:
    """The accounts that sign, by number."""

    def __init__(self) -> None:
        self._keys: list[bytes] = []

    def add(self, key: bytes) -> int:
        """Adds an account by its secret, as HMAC uses it; returns its number.

        Raises ValueError if that has another length.
        """
        if len(key) != _KEY_BYTES:
            raise ValueError(f"the secret has to have {_KEY_BYTES} bytes")
        self._keys.append(key)
        return len(self._keys) - 1

    def wipe(self) -> None:
        """Forgets all of them."""
        self._keys.clear()

    def may_learn(self, signed: SignedHeader | None, origin: int, account: int | None) -> bool:
        """Whether headers can be learned that are allowed from an origin to an account."""
        if account is None:
            return signed is None and not origin
        is_known = signed is not None and signed.values is not None
        return is_known and origin > 0 and 0 <= account < len(self._keys)

    def accepts(self, signed: SignedHeader | None, account: int | None, body: bytes) -> bool:
        """Whether a header of a place that was learned is signed as it should be, with a body."""
        if account is None:
            return True
        if signed is None or signed.values is None:
            return False
        digest = hmac.digest(self._keys[account], signed.values + body, "sha1")
        return hmac.compare_digest(b2a_base64(digest, newline=False), signed.signature)
