# SPDX-License-Identifier: Apache-2.0
"""Encrypted connections: turns the certificates in a client's settings into Twisted's options.

Servers are checked when there are certificates to check them by, and as in the original without
their host names: the addresses of a route are seldom in a certificate. Counterpart of TlsHelper.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from txrocketmq.client.config import ClientConfig


def wrap_of(config: ClientConfig, reactor: Any) -> Callable[[Any], Any] | None:
    """Returns a function that wraps an endpoint of this reactor with TLS; None without TLS.

    Raises ValueError when a file cannot be read or holds no certificate, or the extra is missing.
    """
    if not config.use_tls:
        return None
    try:
        from OpenSSL import SSL  # noqa: PLC0415 - an extra
        from twisted.internet import ssl  # noqa: PLC0415 - likewise
        from twisted.protocols.tls import TLSMemoryBIOFactory  # noqa: PLC0415 - likewise
    except ImportError:
        raise ValueError(
            "use_tls needs pyOpenSSL and service-identity: pip install 'txrocketmq[tls]'"
        ) from None
    options: dict[str, Any] = {}
    if config.tls_trust_cert_path:
        trusted = _read(config.tls_trust_cert_path, "tls_trust_cert_path")
        options["trustRoot"] = ssl.trustRootFromCertificates(
            [_loaded(ssl.Certificate.loadPEM, part, config.tls_trust_cert_path)
             for part in _certificates(trusted)]
        )  # fmt: skip
    if bool(config.tls_cert_path) != bool(config.tls_key_path):
        raise ValueError("tls_cert_path and tls_key_path belong together, but one is not given")
    if config.tls_cert_path:
        pem = _read(config.tls_key_path, "tls_key_path")
        pem += _read(config.tls_cert_path, "tls_cert_path")
        own = _loaded(ssl.PrivateCertificate.loadPEM, pem, config.tls_cert_path)
        options["privateKey"] = own.privateKey.original
        options["certificate"] = own.original
    context = ssl.CertificateOptions(**options).getContext()

    class Creator:
        """Makes the connections of one context."""

        def clientConnectionForTLS(self, protocol: Any) -> Any:  # noqa: N802 - Twisted's name
            return SSL.Connection(context, None)

    creator = _provided(Creator())

    class Encrypted:
        """An endpoint as Twisted's wrapClientTLS makes one.

        That one lets what is written wait for a turn of the global reactor, which does not run
        where the client has a reactor of its own.
        """

        def __init__(self, endpoint: Any) -> None:
            self._endpoint = endpoint

        def connect(self, factory: Any) -> Any:
            connecting = self._endpoint.connect(
                TLSMemoryBIOFactory(creator, True, factory, reactor)  # noqa: FBT003 - Twisted's
            )
            return connecting.addCallback(lambda outer: outer.wrappedProtocol)

    return Encrypted


def _provided(creator: Any) -> Any:
    from twisted.internet.interfaces import IOpenSSLClientConnectionCreator  # noqa: PLC0415
    from zope.interface import directlyProvides  # noqa: PLC0415

    directlyProvides(creator, IOpenSSLClientConnectionCreator)
    return creator


def _read(path: str, setting: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"{setting} is {path}, which cannot be read: {error.strerror}") from None


def _certificates(pem: bytes) -> list[bytes]:
    end = b"-----END CERTIFICATE-----"
    return [part + end for part in pem.split(end)[:-1]] or [pem]


def _loaded(load: Callable[[bytes], Any], pem: bytes, path: str) -> Any:
    try:
        return load(pem)
    except Exception as error:  # OpenSSL's own errors; they have no text for a person
        raise ValueError(f"{path} holds no certificate or key in PEM that can be read") from error
