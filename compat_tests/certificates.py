# SPDX-License-Identifier: Apache-2.0
"""Certificates and keys in PEM, in files that Java and Python can read."""

import dataclasses
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclasses.dataclass(frozen=True)
class Issued:
    """The files of a certificate and of its private key."""

    certificate: Path
    key: Path


class Authority:
    """Issues certificates, which are valid to those who trust the certificate in `file`."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._signed(self._name, self._key.public_key(), ca=True))

    def issue(self, name: str) -> Issued:
        """Makes a certificate of this name; the key is in PKCS #8, which Netty wants."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issued = Issued(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        issued.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        issued.certificate.write_bytes(self._signed(subject, key.public_key(), ca=False))
        return issued

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, ca: bool) -> bytes:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def client_context(trusts: Authority | None = None, shows: Issued | None = None) -> ssl.SSLContext:
    """Returns what a connection of Python needs; without `trusts`, it takes every certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE if trusts is None else ssl.CERT_REQUIRED
    if trusts is not None:
        context.load_verify_locations(trusts.file)
    if shows is not None:
        context.load_cert_chain(shows.certificate, shows.key)
    return context
