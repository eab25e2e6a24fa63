# SPDX-License-Identifier: Apache-2.0
"""The signature of a call, in its headers: who says to call, and what proves it.

`authorization` is `MQv2-HMAC-SHA1 Credential=NAME, SignedHeaders=x-mq-date-time, Signature=HEX`,
where what is signed is the text of `x-mq-date-time`, and nothing else. Neither the words before
Credential nor SignedHeaders decide about anything, and the time is not compared with ours, since
clients write the one of their own zone. Texts of refusals are the original's, which tools know.
Counterpart of DefaultAuthenticationContextBuilder.
"""

from __future__ import annotations

from binascii import b2a_base64, unhexlify
from typing import Final, NamedTuple

from txrocketmq.proxy.grpc.call import Texts

AUTHORIZATION: Final = "authorization"
DATE_TIME: Final = "x-mq-date-time"


class UnreadableSignature(ValueError):
    """The headers are none that a client writes; the text is for whoever has sent them."""


class CallSignature(NamedTuple):
    """What the headers of a call say: the user, what is signed, and the signature in Base64."""

    user: str
    content: bytes
    signature: str

    @classmethod
    def read(cls, headers: Texts) -> CallSignature:
        """Returns the signature of a call; that of nobody if it has none.

        Raises UnreadableSignature.
        """
        authorization = headers.get(AUTHORIZATION, "")
        if not authorization:
            return cls("", b"", "")
        date_time = headers.get(DATE_TIME, "")
        if not date_time:
            raise UnreadableSignature("datetime is null.")
        _, space, text = authorization.partition(" ")
        if not space:
            raise UnreadableSignature("authentication header is incorrect.")
        user = signature = ""
        for item in _split(text, ","):
            name, equal, value = item.strip().partition("=")
            if not equal:
                raise UnreadableSignature(
                    "authentication keyValues length is incorrect, actual length=1."
                )
            if name == "Credential":
                words = _split(value, "/")
                if not words:
                    raise UnreadableSignature(
                        "authentication credential length is incorrect, actual length=0."
                    )
                user = words[0]
            elif name == "Signature":
                signature = _base64(value)
        return cls(user, date_time.encode("utf-8", "replace"), signature)


def _split(text: str, separator: str) -> list[str]:
    """Returns the parts of a text as Java splits it, which leaves out empty ones at the end."""
    if not text:
        return [""]
    parts = text.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def _base64(text: str) -> str:
    try:
        return b2a_base64(unhexlify(text), newline=False).decode("ascii")
    except ValueError:
        raise UnreadableSignature("create authentication context error.") from None
