# SPDX-License-Identifier: Apache-2.0
"""Encrypted connections: what Python's `ssl` needs of the certificates in a client's settings.

Servers are checked if there are certificates to check them by, or if their names are to be checked.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from txrocketmq.client.base.config import ClientConfig
from txrocketmq.remoting.settings.tls import client_context
from txrocketmq.remoting.transport.tls.renewed_context import RenewedContext

if TYPE_CHECKING:
    import ssl


def contexts_of(config: ClientConfig) -> Callable[[], ssl.SSLContext] | None:
    """Returns what gives each of the client's connections what it needs to be encrypted; None if
    they are not. Certificates may be renewed meanwhile.

    Raises ValueError if a file cannot be read or holds no certificate.
    """
    if not config.use_tls:
        return None
    if bool(config.tls_cert_path) != bool(config.tls_key_path):
        raise ValueError("tls_cert_path and tls_key_path belong together, but one is not given")
    trust = os.fspath(config.tls_trust_cert_path)
    certificate, key = os.fspath(config.tls_cert_path), os.fspath(config.tls_key_path)
    make = partial(
        client_context,
        trust=("tls_trust_cert_path", trust),
        certificate=("tls_cert_path", certificate),
        key=("tls_key_path", key),
        password=config.tls_key_password,
        checks=bool(trust) or config.tls_check_name,
        checks_name=config.tls_check_name,
    )
    contexts = RenewedContext(make, (trust, certificate, key))
    contexts.prepare()
    return contexts.current
