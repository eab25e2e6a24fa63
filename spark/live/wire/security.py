# SPDX-License-Identifier: Apache-2.0
"""The access to a secured cluster: the account that signs requests, and encryption.

It is made on the driver, from options or the environment, and sent to the tasks; it is never shown.
Servers are checked if there are certificates to check them by, and as in the original without their
host names, since certificates seldom have the addresses of a route. Certificate files have to be
the same on the driver and on every worker. Java: AclClientRPCHook, TlsHelper.
"""

from __future__ import annotations

import os
import socket
import ssl
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from txrocketmq.remoting.frame.connection import Seal
from txrocketmq.remoting.frame.credentials import seal_of
from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.tls import client_context
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.options import SourceOptions

NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
"""What a socket raises when it has nothing to read, or no room to write, for the moment."""


@dataclass(frozen=True, slots=True)
class Security:
    """The account and the encryption; fields are empty for what is not wanted."""

    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    security_token: str = field(default="", repr=False)
    use_tls: bool = False
    trust_cert_path: str = ""
    """The PEM file of certificates that servers are checked by; empty: they are not checked."""
    cert_path: str = ""
    """The PEM file of our own certificate, for servers that ask for one."""
    key_path: str = ""

    @classmethod
    def of(cls, options: SourceOptions) -> Security:
        """Takes the options; keys that they do not give come from this process's environment.

        Raises OptionError when half of a pair is missing, or when a file cannot be used.
        """
        made = cls(
            options.access_key or os.environ.get("ROCKETMQ_ACCESS_KEY", ""),
            options.secret_key or os.environ.get("ROCKETMQ_SECRET_KEY", ""),
            options.security_token or "",
            options.use_tls,
            options.tls_trust_cert_path or "",
            options.tls_cert_path or "",
            options.tls_key_path or "",
        )
        if bool(made.access_key) != bool(made.secret_key):
            missing = "secretKey" if made.access_key else "accessKey"
            raise OptionError(
                f"options accessKey and secretKey belong together, but {missing} is not given (nor"
                f" {'ROCKETMQ_SECRET_KEY' if made.access_key else 'ROCKETMQ_ACCESS_KEY'} in the"
                " environment of the driver)"
            )
        if bool(made.cert_path) != bool(made.key_path):
            raise OptionError("options tlsCertPath and tlsKeyPath belong together; give both")
        if (made.trust_cert_path or made.cert_path) and not made.use_tls:
            raise OptionError("certificates are given, but option useTls is not true")
        if made.use_tls:
            _context(made)
        return made

    def seal(self) -> Seal | None:
        """Returns what signs each request; None if there is no account."""
        return seal_of(self.access_key, self.secret_key, self.security_token)

    def wrapped(self, connected: socket.socket) -> socket.socket:
        """Returns the socket, encrypted if that is wanted. Raises OSError if TLS fails."""
        if not self.use_tls:
            return connected
        try:
            return _context(self).wrap_socket(connected)
        except OSError:
            connected.close()
            raise


OPEN: Final = Security()
"""No account and no encryption."""


@lru_cache(maxsize=8)
def _context(security: Security) -> ssl.SSLContext:
    try:
        return client_context(
            trust=("tlsTrustCertPath", security.trust_cert_path),
            certificate=("tlsCertPath", security.cert_path),
            key=("tlsKeyPath", security.key_path),
            checks=bool(security.trust_cert_path),
        )
    except ConfigError as error:
        raise OptionError(f"option {error}; each worker needs the file, too") from error
