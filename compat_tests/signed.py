# SPDX-License-Identifier: Apache-2.0
"""Requests that are signed as an account, sent over plain sockets, for scenes with two servers.

It is written without the code under test, so that it can judge that code.
"""

import base64
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from compat_tests import probe
from compat_tests.java_client import JavaError, Producer, message
from compat_tests.peers import Server

_STACK = re.compile(r", [\w.$]+\([\w.$]*:?-?\d*\)$")
"""The place in the original's code at the end of a remark."""


class Ask(NamedTuple):
    """A request: its name in a scene, its code, its fields and body, and who signs it."""

    what: str
    code: int
    key: str = ""
    secret: str = ""
    fields: Mapping[str, str] = {}
    body: Any = None
    spoils: bool = False
    """Whether the signature is changed on the way."""
    is_read: bool = False
    """Whether the body of the answer is compared as well."""


class Answer(NamedTuple):
    """What of an answer is compared; the remark of success differs."""

    code: int
    remark: str | None
    body: Any = None


def signature(fields: Mapping[str, str], body: bytes, secret: str) -> str:
    """Returns the signature in Base64."""
    values = "".join(fields[name] for name in sorted(fields)).encode()
    return base64.b64encode(hmac.digest(secret.encode(), values + body, "sha1")).decode()


def answer_to(server: Server, ask: Ask, from_host: str = "") -> Answer:
    """Sends a request to a broker or a name server, if need be from another loopback address."""
    fields = dict(ask.fields)
    body = b"" if ask.body is None else ask.body
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    if ask.key:
        fields["AccessKey"] = ask.key
    if ask.secret:
        signed = signature(fields, body, ask.secret)
        fields["Signature"] = "x" + signed[1:] if ask.spoils else signed
    header, said = probe.request(server.port, ask.code, fields, body, from_host=from_host)
    code = int(header["code"])
    remark = _STACK.sub("", header.get("remark") or "") if code else None
    for name, address in (("BROKER", server.address), ("HOME", str(server.folder))):
        remark = remark and remark.replace(address, name)
    return Answer(code, remark, _sorted(said) if ask.is_read else None)


def _sorted(body: bytes) -> Any:
    found = json.loads(body) if body else None
    return sorted(found, key=json.dumps) if isinstance(found, list) else found


def error_of_send(producer: Producer, topic: str) -> str:
    """Returns what a client says that cannot send, and its causes; empty if it can.

    It does not tell of a name server that refuses.
    """
    try:
        producer.send([message(topic, "m")])
    except JavaError as error:
        texts = []
        each: JavaError | None = error
        while each is not None:
            texts.append(each.text)
            each = each.cause
        return "\n".join(texts)
    return ""
