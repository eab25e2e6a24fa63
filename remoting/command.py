# SPDX-License-Identifier: Apache-2.0
"""RemotingCommand: one request or answer, header decoded to plain values, body left as bytes.

Counterpart of org.apache.rocketmq.remoting.protocol.RemotingCommand. The extension fields stay a
mapping of strings, as on the wire; `txrocketmq.remoting.header` gives them types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from txrocketmq.remoting.codes import SERVED_VERSION, RequestCode, ResponseCode, SerializeType

RESPONSE_FLAG = 1
ONEWAY_FLAG = 2
_SECRET = re.compile("signature|secret|password|securitytoken", re.IGNORECASE)
"""In names of fields whose values no log shows."""
OWN_LANGUAGE = "PYTHON"
OWN_VERSION = int(SERVED_VERSION)


class RemotingCommand:
    """A request (`flag` bit 0 clear) or an answer (set); bit 1 says that no answer is expected.

    `ext_fields` is None when the header had none at all, which some handlers tell apart from an
    empty one. `serialize_type` is how the header came or is to be written. A plain class with
    slots: one is made for each message received.
    """

    __slots__ = (
        "body",
        "code",
        "ext_fields",
        "flag",
        "language",
        "opaque",
        "remark",
        "serialize_type",
        "version",
    )

    def __init__(
        self,
        code: int,
        ext_fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        flag: int = 0,
        opaque: int = 0,
        remark: str | None = None,
        language: str | None = OWN_LANGUAGE,
        version: int = OWN_VERSION,
        serialize_type: int = SerializeType.JSON,
    ) -> None:
        self.code = code
        self.ext_fields = ext_fields
        self.body = body
        self.flag = flag
        self.opaque = opaque
        self.remark = remark
        self.language = language
        self.version = version
        self.serialize_type = serialize_type

    @property
    def is_response(self) -> bool:
        """Whether this is an answer to a request of ours."""
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_oneway(self) -> bool:
        """Whether the sender expects no answer."""
        return bool(self.flag & ONEWAY_FLAG)

    def __str__(self) -> str:
        """One line for logs, with only the length of the body."""
        names = ResponseCode if self.is_response else RequestCode
        try:
            name = names(self.code).name
        except ValueError:
            name = "UNKNOWN"
        kind = "answer" if self.is_response else "oneway" if self.is_oneway else "request"
        text = f"{kind} {name}({self.code}) opaque={self.opaque}"
        if self.ext_fields:
            fields = (
                (k, "***" if _SECRET.search(k) else _short(v)) for k, v in self.ext_fields.items()
            )
            text += " " + " ".join(f"{k}={v}" for k, v in fields)
        if self.remark:
            text += f" remark={_short(self.remark)}"
        return f"{text} body={len(self.body)}B"

    __repr__ = __str__


def _short(value: object, limit: int = 80) -> str:
    text = str(value)
    return repr(text if len(text) <= limit else text[:limit] + "...")
