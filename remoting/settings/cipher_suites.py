# SPDX-License-Identifier: Apache-2.0
"""Cipher suites and versions of TLS, as tls.ciphers and tls.protocols name them.

Suites have the names of Java and IANA, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, or those of
OpenSSL, such as ECDHE-RSA-AES128-GCM-SHA256. As in Java, a version of which no suite is named is
not spoken. Versions before 1.2 are not served at all. Java: TlsHelper of 5.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txrocketmq.remoting.settings.config_file import ConfigError

if TYPE_CHECKING:
    import ssl

_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
_OLD, _NEW = _VERSIONS
_CIPHERS: Final = {
    f"{name}_{bits}_{mode}": f"{name}{bits}{suffix}"
    for name in ("AES", "CAMELLIA")
    for bits in (128, 256)
    for mode, suffix in (("GCM", "-GCM"), ("CBC", ""), ("CCM_8", "-CCM8"), ("CCM", "-CCM"))
}
_NO_SUITE: Final = "_SCSV"
"""How names in Java's lists end that stand for a signal of the handshake, not for a suite."""
_CHACHA: Final = "CHACHA20_POLY1305"


def check(ciphers: str, protocols: str) -> None:
    """Raises ConfigError for names that do not exist, or that do not fit together."""
    if ciphers or protocols:
        import ssl  # noqa: PLC0415 - hardly anybody sets them

        limit(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ciphers, protocols)


def limit(context: ssl.SSLContext, ciphers: str, protocols: str) -> None:
    """Limits a context to these suites and versions, where they are named. Raises ConfigError."""
    import ssl  # noqa: PLC0415 - likewise

    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not ciphers and not protocols:
        return
    versions = set(_names("tls.protocols", protocols))
    for name in versions - set(_VERSIONS):
        raise ConfigError(
            f"tls.protocols must be TLSv1.2, TLSv1.3 or both, separated by a comma, not {name!r}"
        )
    suites = _suites(context, ciphers)
    spoken = {
        version for version, named in suites.items() if named and version in (versions or suites)
    }
    if not spoken:
        raise ConfigError(
            f"tls.ciphers names no cipher suite of tls.protocols={protocols}: name some, or leave"
            " one of the two keys out"
        )
    if _OLD not in spoken:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if _NEW not in spoken:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if ciphers and _OLD in spoken:
        context.set_ciphers(":".join(suites[_OLD]))


def _suites(context: ssl.SSLContext, ciphers: str) -> dict[str, list[str]]:
    """Returns the named suites by version, in OpenSSL's names; all if none is named."""
    own = [each["name"] for each in context.get_ciphers()]
    newest = [name for name in own if name.startswith("TLS_")]
    if not ciphers:
        return {_NEW: newest, _OLD: own}
    words = _names("tls.ciphers", ciphers)
    named = [_of_openssl(name) for name in words if not name.endswith(_NO_SUITE)]
    context.set_ciphers("ALL:!aNULL:!eNULL")
    known = {each["name"] for each in context.get_ciphers()}
    for name in named:
        if name not in known:
            raise ConfigError(
                f"tls.ciphers: there is no cipher suite {name!r} here; name some like"
                " TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or ECDHE-RSA-AES128-GCM-SHA256, separated"
                " by commas"
            )
    chosen = [name for name in newest if name in named]
    if chosen and chosen != newest:
        # Python's ssl has nothing by which they could be switched off.
        raise ConfigError(
            "tls.ciphers: of the cipher suites of TLS 1.3 all or none can be used here; name"
            f" {', '.join(newest)}, or none of them"
        )
    return {_NEW: chosen, _OLD: [name for name in named if name not in newest]}


def _names(key: str, text: str) -> list[str]:
    names = [name for each in text.split(",") if (name := each.strip())]
    if text and not names:
        raise ConfigError(f"{key}={text} names nothing: separate names by commas, or leave it out")
    return names


def _of_openssl(name: str) -> str:
    """Returns OpenSSL's name of a suite, which is IANA's for those of TLS 1.3."""
    exchange, found, cipher = name.partition("_WITH_")
    if not found or exchange[:4] not in ("TLS_", "SSL_"):
        return name
    before = exchange[4:].replace("_", "-") + "-"
    if cipher.startswith(_CHACHA):  # its hash has no place in the name
        return before + _CHACHA.replace("_", "-")
    for theirs, its in _CIPHERS.items():
        if cipher.startswith(theirs):
            hashed = cipher.removeprefix(theirs).replace("_", "-")
            return before.removeprefix("RSA-") + its + hashed
    return name
