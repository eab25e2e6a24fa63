# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import both_ends
from txrocketmq.remoting.settings.cipher_suites import check, limit
from txrocketmq.remoting.settings.config_file import ConfigError, load
from txrocketmq.remoting.settings.tls import (
    TlsConfig,
    client_context,
    load_tls,
    own_client_context,
    server_context,
)

WRONG = "tls.protocols must be TLSv1.2, TLSv1.3 or both, separated by a comma, not"
NEWEST = "TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256, TLS_AES_128_GCM_SHA256"


def names(context: ssl.SSLContext) -> list[str]:
    """The suites before TLS 1.3, which no setting of Python's ssl concerns."""
    return [each["name"] for each in context.get_ciphers() if not each["name"].startswith("TLS_")]


@pytest.mark.parametrize(
    ("theirs", "its"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", "ECDHE-ECDSA-AES128-CCM8"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("SSL_RSA_WITH_AES_256_CBC_SHA256", "AES256-SHA256"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_suites_have_the_names_of_java_or_of_openssl(theirs: str, its: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    limit(context, f" {theirs} ,TLS_EMPTY_RENEGOTIATION_INFO_SCSV,", "")
    assert names(context) == [its]
    assert context.maximum_version == ssl.TLSVersion.TLSv1_2, "as in Java, of 1.3 none is named"
    limit(context := ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), f"{NEWEST},{theirs}", "")
    assert names(context) == [its]
    assert context.maximum_version == ssl.TLSVersion.MAXIMUM_SUPPORTED


@pytest.mark.parametrize(
    ("protocols", "least", "most"),
    [
        ("", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.MAXIMUM_SUPPORTED),
        ("TLSv1.2", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2),
        ("TLSv1.3", ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.MAXIMUM_SUPPORTED),
        ("TLSv1.3, TLSv1.2", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.MAXIMUM_SUPPORTED),
    ],
)
def test_versions_are_a_setting_and_nothing_before_1_2_is_spoken(
    protocols: str, least: ssl.TLSVersion, most: ssl.TLSVersion
) -> None:
    for context in (
        server_context(TlsConfig(protocols=protocols)),
        own_client_context(TlsConfig(protocols=protocols)),
        client_context(protocols=protocols),
    ):
        assert (context.minimum_version, context.maximum_version) == (least, most)


@pytest.mark.parametrize(
    ("ciphers", "protocols", "why"),
    [
        ("", "TLSv1.1,TLSv1.2", f"{WRONG} 'TLSv1.1'"),
        ("", "SSLv3", f"{WRONG} 'SSLv3'"),
        ("", ", ,", "tls.protocols=, , names nothing"),
        ("HIGH:!aNULL", "", "tls.ciphers: there is no cipher suite 'HIGH:!aNULL' here; name some"),
        ("TLS_RSA_WITH_RC4_128_SHA", "", "there is no cipher suite 'TLS_RSA_WITH_RC4_128_SHA'"),
        ("AES128-SHA", "TLSv1.3", "tls.ciphers names no cipher suite of tls.protocols=TLSv1.3"),
        ("TLS_AES_128_GCM_SHA256", "", f"of TLS 1.3 all or none can be used here; name {NEWEST}, "),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(ciphers: str, protocols: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TlsConfig(ciphers=ciphers, protocols=protocols)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError):
        check(ciphers, protocols)


def test_files_and_java_properties_may_have_both(tmp_path: Path) -> None:
    config, unknown = load(TlsConfig, {"tls.ciphers": "AES128-SHA", "tls.protocols": "TLSv1.2"})
    assert (config.ciphers, config.protocols, unknown) == ("AES128-SHA", "TLSv1.2", [])
    config, _ = load_tls({"JAVA_OPT": "-Dtls.protocols=TLSv1.3"}, {"tls.config.file": ""})
    assert config.protocols == "TLSv1.3"


@pytest.mark.parametrize(
    ("server", "client", "spoken"),
    [
        ({}, {}, "TLSv1.3"),
        ({"protocols": "TLSv1.2"}, {}, "TLSv1.2"),
        ({}, {"protocols": "TLSv1.2"}, "TLSv1.2"),
        ({"protocols": "TLSv1.2"}, {"protocols": "TLSv1.3"}, ""),
        ({"ciphers": "ECDHE-RSA-AES128-GCM-SHA256"}, {}, "TLSv1.2"),  # as for a Java 8 client
        ({"ciphers": "ECDHE-ECDSA-AES128-GCM-SHA256"}, {}, "TLSv1.2"),
        ({"ciphers": "AES128-GCM-SHA256"}, {"ciphers": "AES256-GCM-SHA384"}, ""),
    ],
)
def test_both_ends_keep_to_them(
    server: dict[str, Any], client: dict[str, Any], spoken: str
) -> None:
    error = both_ends(server_context(TlsConfig(**server)), client_context(**client))
    assert (error is None) is bool(spoken)
