# SPDX-License-Identifier: Apache-2.0
"""Signing requests with the secret of an account, and checking such signatures.

A signature is an HMAC-SHA1 over the values of all fields but itself, in the order of their names,
and the body. Every message of a signed send has another one, so nothing of it can be kept; what
does recur is done once: the two states of SHA-1 that a secret begins with, and the order of the
fields that a kind of client writes. `credentials.signature` is the same without either, and tests
compare the two. Counterpart of AclSigner and AclUtils.combineRequestContent.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha1
from hmac import compare_digest
from operator import itemgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _hashlib import HASH

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"  # noqa: S105 - the name of a field
SIGNATURE: Final = "Signature"

MAX_SHAPES: Final = 256
"""For how many sets of names the order is kept; mostly there is one for each kind of request."""
_MAX_NAMES: Final = 64
"""Headers with more fields than this are put in order each time, so that nobody fills the memory
with their names."""
_BLOCK_BYTES: Final = 64
_INNER: Final = bytes(each ^ 0x36 for each in range(256))
_OUTER: Final = bytes(each ^ 0x5C for each in range(256))

Pick = Callable[[Mapping[str, str]], Sequence[str]]
_picks: Final[dict[tuple[str, ...], Pick]] = {}


def java_order(name: str) -> bytes:
    """The key by which Java sorts texts: it compares units of UTF-16, not characters."""
    return name.encode("utf-16-be", "surrogatepass")


def signed_values(names: Iterable[str]) -> Pick:
    """Returns what picks the signed values of a header with these names, in their order."""
    signed = sorted((name for name in names if name != SIGNATURE), key=java_order)
    return itemgetter(*signed) if signed else lambda _: ()


def _pick_of(names: tuple[str, ...]) -> Pick:
    pick = signed_values(names)
    if len(names) <= _MAX_NAMES and sum(map(len, names)) <= _MAX_NAMES * _MAX_NAMES:
        if len(_picks) >= MAX_SHAPES:
            _picks.clear()
        _picks[names] = pick
    return pick


class Signer:
    """Signs, and checks signatures, with one secret. No text shows the secret again."""

    __slots__ = ("inner", "key", "outer")

    def __init__(self, secret: str) -> None:
        key = secret.encode("utf-8", "replace")  # as Java does with half a surrogate pair
        if len(key) > _BLOCK_BYTES:
            key = sha1(key).digest()  # noqa: S324 - the protocol has no other
        self.key = key = key.ljust(_BLOCK_BYTES, b"\0")
        """The secret as HMAC uses it, for whoever computes signatures by other means."""
        self.inner: Callable[[], HASH] = sha1(key.translate(_INNER)).copy  # noqa: S324
        """Returns a hash that begins with the secret: that of the values and the body."""
        self.outer: Callable[[], HASH] = sha1(key.translate(_OUTER)).copy  # noqa: S324
        """Returns a hash that begins with the secret: that of the inner hash."""

    def _signature(self, fields: Mapping[str, str], body: bytes) -> bytes:
        names = tuple(fields)
        pick = _picks.get(names) or _pick_of(names)
        # One value is a text, several are a tuple of texts; joined, both are the same.
        text = "".join(pick(fields))
        try:
            values = text.encode()
        except UnicodeEncodeError:  # half a surrogate pair; Java writes a question mark
            values = text.encode("utf-8", "replace")
        inner = self.inner()
        inner.update(values)
        if body:
            inner.update(body)
        outer = self.outer()
        outer.update(inner.digest())
        return b2a_base64(outer.digest(), newline=False)

    def signature(self, fields: Mapping[str, str], body: bytes) -> str:
        """Returns the signature of a request in Base64; one among its fields does not count."""
        return self._signature(fields, body).decode("ascii")

    def accepts(self, fields: Mapping[str, str], body: bytes, signature: str | None) -> bool:
        """Returns whether this is the request's signature, in a time that does not depend on it."""
        if not signature or not signature.isascii():
            return False
        return compare_digest(self._signature(fields, body), signature.encode())
