# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ssl
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from tests.certificates import both_ends
from txrocketmq.remoting.settings.self_signed import self_signed

ROOT = Path(__file__).parents[3]


def test_key_and_certificate_belong_together_and_are_trusted_by_who_has_them(
    tmp_path: Path,
) -> None:
    own = tmp_path / "own.pem"
    own.write_bytes(self_signed("broker.example"))
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=own)
    server.load_cert_chain(own)
    assert both_ends(server, client, name="broker.example") is None
    error = both_ends(server, client, name="other.example")
    assert error is not None
    assert "Hostname mismatch" in str(error)


def test_each_is_another() -> None:
    assert self_signed() != self_signed()


def test_it_is_valid_although_clocks_differ_and_does_not_run_out() -> None:
    own = x509.load_pem_x509_certificate(self_signed())
    now = datetime.now(UTC)
    assert own.not_valid_before_utc < now - timedelta(hours=23)
    assert own.not_valid_after_utc > now + timedelta(days=30_000)
    assert own.subject == own.issuer


def test_a_key_for_suites_with_rsa_can_be_made() -> None:
    made = x509.load_pem_x509_certificate(self_signed(with_rsa=True))
    assert isinstance(made.public_key(), RSAPublicKey)


def test_a_plain_installation_can_make_one() -> None:
    """The original encrypts out of the box, and so do its clients."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert any(each.startswith("cryptography") for each in project["dependencies"])
    assert "tls" in project["optional-dependencies"], "older instructions name it"
