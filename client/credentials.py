# SPDX-License-Identifier: Apache-2.0
"""What is added to every request: who asks, with a signature, and in which namespace.

The signature is an HMAC-SHA1 over the values of all fields in the order of their names, and the
body; ACL 1 and ACL 2 of the original check the same one. Counterpart of AclClientRPCHook and
NamespaceRpcHook.
"""

from __future__ import annotations

import base64
import hmac
from typing import Final

from txrocketmq.client.config import ClientConfig
from txrocketmq.remoting.connection import Seal

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"  # noqa: S105 - the name of a field
SIGNATURE: Final = "Signature"


def seal_of(config: ClientConfig) -> Seal | None:
    """What is to be done to each request; None when that is nothing.

    Raises ValueError when only one of the two keys is given.
    """
    if bool(config.access_key) != bool(config.secret_key):
        missing = "secret_key" if config.access_key else "access_key"
        raise ValueError(f"access_key and secret_key belong together, but {missing} is not given")
    if not config.access_key and not config.namespace_v2:
        return None

    def seal(ext_fields: dict[str, str], body: bytes) -> None:
        if config.namespace_v2:
            ext_fields["nsd"] = "true"
            ext_fields["ns"] = config.namespace_v2
        if config.access_key:
            ext_fields[ACCESS_KEY] = config.access_key
            if config.security_token:
                ext_fields[SECURITY_TOKEN] = config.security_token
            ext_fields[SIGNATURE] = signature(ext_fields, body, config.secret_key)

    return seal


def signature(ext_fields: dict[str, str], body: bytes, secret_key: str) -> str:
    """The signature of a request."""
    values = "".join(ext_fields[name] for name in sorted(ext_fields) if name != SIGNATURE)
    mac = hmac.new(secret_key.encode(), values.encode(), "sha1")
    mac.update(body)
    return base64.b64encode(mac.digest()).decode()
