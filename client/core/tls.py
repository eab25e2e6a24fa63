# SPDX-License-Identifier: Apache-2.0
"""Encrypted connections: what Python's `ssl` needs of the certificates in a client's settings.

Servers are checked if there are certificates to check them by.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from txrocketmq.client.base.config import ClientConfig
from txrocketmq.remoting.settings.tls import client_context

if TYPE_CHECKING:
    import ssl


def context_of(config: ClientConfig) -> ssl.SSLContext | None:
    """Returns what the client's connections need to be encrypted; None if they are not.

    Raises ValueError if a file cannot be read or holds no certificate.
    """
    if not config.use_tls:
        return None
    if bool(config.tls_cert_path) != bool(config.tls_key_path):
        raise ValueError("tls_cert_path and tls_key_path belong together, but one is not given")
    trust = os.fspath(config.tls_trust_cert_path)
    return client_context(
        trust=("tls_trust_cert_path", trust),
        certificate=("tls_cert_path", os.fspath(config.tls_cert_path)),
        key=("tls_key_path", os.fspath(config.tls_key_path)),
        checks=bool(trust),
    )
