# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, and handshakes in memory that show whether two ends trust each other."""

from __future__ import annotations

import ssl
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from txrocketmq.remoting.settings.self_signed import self_signed

PASSWORD = "s3cret"  # noqa: S105 - of keys that tests make


@cache
def pem(name: str) -> bytes:
    """A private key and a certificate that signs itself, the same for each call with this name."""
    return self_signed(name)


def certified(folder: Path, name: str) -> str:
    """Writes key and certificate to one file, as servers and clients may be given; its path."""
    path = folder / f"{name}.pem"
    path.write_bytes(pem(name))
    return str(path)


def apart(folder: Path, name: str) -> tuple[str, str]:
    """Writes certificate and key to files of their own; their paths."""
    key, begin, certificate = pem(name).partition(b"-----BEGIN CERTIFICATE")
    paths = folder / f"{name}.cert", folder / f"{name}.key"
    paths[0].write_bytes(begin + certificate)
    paths[1].write_bytes(key)
    return str(paths[0]), str(paths[1])


def with_password(folder: Path, name: str, password: str = PASSWORD) -> str:
    """Writes the key, encrypted with a password; the path of its file."""
    key = serialization.load_pem_private_key(pem(name), None)
    path = folder / f"{name}.encrypted"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password.encode()),
        )
    )
    return str(path)


def both_ends(
    server: ssl.SSLContext, client: ssl.SSLContext, name: str | None = None
) -> ssl.SSLError | None:
    """Lets two ends shake hands and say a word each; returns the error that one of them has.

    The client checks that the server has this name, if one is given.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    heard: set[ssl.SSLObject] = set()
    for _ in range(10):
        for end in ends:
            try:
                end.do_handshake()
                end.write(b"word")
                if end.read(4) == b"word":
                    heard.add(end)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                return error
    assert len(heard) == len(ends), "neither an error nor a word"
    return None
