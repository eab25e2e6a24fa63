# SPDX-License-Identifier: Apache-2.0
"""Encryption: the settings of servers about TLS, and what Python's `ssl` is told because of them.

The settings have the original's names. They are given in the configuration file of a server; as
Java system properties in the environment (`JAVA_OPT=-Dtls.server.mode=enforcing`), as for the
original; or in a file of their own, `tls.config.file`. If a setting is given in several of these
places, the last of them counts. Counterpart of TlsSystemConfig and TlsHelper.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from txrocketmq.remoting.process.java_options import system_properties
from txrocketmq.remoting.process.operating_system import private_file
from txrocketmq.remoting.settings import cipher_suites
from txrocketmq.remoting.settings.config_file import (
    ConfigError,
    known_keys,
    load,
    read_file,
    setting,
)

if TYPE_CHECKING:
    import ssl

DISABLED: Final = "disabled"
PERMISSIVE: Final = "permissive"
ENFORCING: Final = "enforcing"
_MODES: Final = (DISABLED, PERMISSIVE, ENFORCING)
_CLIENT_AUTH: Final = ("none", "optional", "require")
_NOT_IN_FILE: Final = frozenset({"tls.server.mode", "tls.enable", "tls.config.file"})
"""What the original takes from system properties only."""
_IN_TEST_MODE: Final = frozenset(
    {"server_mode", "enable", "test_mode", "config_file", "ciphers", "protocols"}
)
"""The fields that count in test mode, too."""
DEFAULT_FILE: Final = "/etc/rocketmq/tls.properties"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """The settings of a server about TLS, for those who connect to it and for its own connections.

    Raises ConfigError for values that do not exist, or that do not fit together.
    """

    server_mode: str = setting(PERMISSIVE, java="tls.server.mode")
    """Whether connections to this server may be encrypted (`permissive`), have to be (`enforcing`)
    or must not be (`disabled`)."""
    enable: bool = setting(False, java="tls.enable")
    """Whether the server encrypts connections that it opens itself, to name servers and brokers. It
    does so in any case if `tls.server.mode` is `enforcing`, unless `useTLS` is `false`."""
    test_mode: bool = setting(True, java="tls.test.mode.enable")
    """Whether the server makes a certificate for itself at each start, and checks nobody's. The
    settings below about certificates, keys and trust can be given only if this is `false`."""
    config_file: str = setting(DEFAULT_FILE, java="tls.config.file")
    """A file with these settings, except `tls.server.mode` and `tls.enable`. By default there need
    not be one."""
    server_cert_path: str = setting("", java="tls.server.certPath")
    """The file of the server's certificate in PEM, followed by those that vouch for it."""
    server_key_path: str = setting("", java="tls.server.keyPath")
    """The file of the private key of that certificate in PEM."""
    server_key_password: str = setting("", java="tls.server.keyPassword")
    """The password of that key, if it is encrypted."""
    server_client_auth: str = setting("none", java="tls.server.need.client.auth")
    """Whether clients are asked for a certificate: `none`, `optional` or `require`."""
    server_auth_client: bool = setting(False, java="tls.server.authClient")
    """Whether the certificates of clients are checked."""
    server_trust_cert_path: str = setting("", java="tls.server.trustCertPath")
    """The file of certificates in PEM by which those of clients are checked; if it is empty, those
    of the system."""
    client_cert_path: str = setting("", java="tls.client.certPath")
    """The file of the certificate in PEM that the server shows where it connects to."""
    client_key_path: str = setting("", java="tls.client.keyPath")
    """The file of the private key of that certificate in PEM."""
    client_key_password: str = setting("", java="tls.client.keyPassword")
    """The password of that key, if it is encrypted."""
    client_auth_server: bool = setting(False, java="tls.client.authServer")
    """Whether the certificates of servers that it connects to are checked."""
    client_trust_cert_path: str = setting("", java="tls.client.trustCertPath")
    """The file of certificates in PEM by which those of servers are checked; if it is empty, those
    of the system."""
    client_check_name: bool = setting(False, java="tls.client.checkName")
    """Whether the certificates of servers that it connects to must also be for the name or address
    to which it connects; this needs `tls.client.authServer`. The original has no such setting."""
    ciphers: str = setting("", java="tls.ciphers")
    """The cipher suites of the connections that it accepts and of those that it opens, separated by
    commas: Java's names or OpenSSL's. If it is empty, OpenSSL decides. Of the suites of TLS 1.3 all
    or none can be named. A version of which no suite is named is not spoken."""
    protocols: str = setting("", java="tls.protocols")
    """The versions of TLS that are spoken, `TLSv1.2`, `TLSv1.3` or both, separated by a comma; if
    it is empty, both. Older ones are never spoken."""

    def __post_init__(self) -> None:
        _check("tls.server.mode", self.server_mode, _MODES)
        _check("tls.server.need.client.auth", self.server_client_auth, _CLIENT_AUTH)
        cipher_suites.check(self.ciphers, self.protocols)
        if self.test_mode:
            self._check_that_files_count()
            return
        if self.server_mode != DISABLED and not (self.server_cert_path and self.server_key_path):
            raise ConfigError(
                "tls.test.mode.enable=false needs tls.server.certPath and tls.server.keyPath, or"
                " tls.server.mode=disabled"
            )
        if bool(self.client_cert_path) != bool(self.client_key_path):
            raise ConfigError("tls.client.certPath and tls.client.keyPath belong together")
        if self.server_client_auth == "require" and not self.server_auth_client:
            raise ConfigError(
                "tls.server.need.client.auth=require: asking for certificates without checking them"
                " is not served; write tls.server.authClient=true, with tls.server.trustCertPath"
            )

        if self.client_check_name and not self.client_auth_server:
            raise ConfigError(
                "tls.client.checkName=true: the name in a certificate says nothing unless the"
                " certificate is checked; write tls.client.authServer=true as well"
            )

    @property
    def keeps_strangers_out(self) -> bool:
        """Whether only those come in who have a certificate that is trusted."""
        asks = self.server_auth_client and self.server_client_auth == "require"
        return asks and not self.test_mode and self.server_mode == ENFORCING

    @property
    def server_paths(self) -> tuple[str, ...]:
        """The files that `server_context` reads; some may be empty."""
        return self.server_cert_path, self.server_key_path, self.server_trust_cert_path

    @property
    def client_paths(self) -> tuple[str, ...]:
        """The files that `own_client_context` reads; some may be empty."""
        return self.client_cert_path, self.client_key_path, self.client_trust_cert_path

    def _check_that_files_count(self) -> None:
        """The original takes these settings in test mode as well, and does not do what they say."""
        for field in dataclasses.fields(self):
            if field.name not in _IN_TEST_MODE and getattr(self, field.name) != field.default:
                raise ConfigError(
                    f"{field.metadata['java']} has no effect while tls.test.mode.enable is true,"
                    " as it is by default; write tls.test.mode.enable=false or leave the key out"
                )


def _check(key: str, value: str, valid: tuple[str, ...]) -> None:
    if value not in valid:
        raise ConfigError(f"{key} must be one of {', '.join(valid)}, not {value!r}")


TLS_KEYS: Final = frozenset(known_keys(TlsConfig))
_PREFIX: Final = "tls."
"""With what all of them begin."""


def load_tls(
    environment: Mapping[str, str], given: Mapping[str, str]
) -> tuple[TlsConfig, dict[str, str]]:
    """Returns the settings about TLS, and the others of `given`, a server's configuration file.

    These others say `useTLS` if the server is to encrypt the connections that it opens. Raises
    ConfigError, also if a file that is asked for cannot be read.
    """
    values: dict[str, str] = {}
    for key, (value, variable) in system_properties(environment).items():
        values |= _about_tls({key: value}, f"${variable}: -D")
    values |= _about_tls(given)
    path = values.get("tls.config.file", DEFAULT_FILE)
    if path and (path != DEFAULT_FILE or os.access(path, os.F_OK)):
        in_file = _about_tls(read_file(path), f"{path}: ")
        for key in _NOT_IN_FILE & in_file.keys():
            raise ConfigError(
                f"{path}: {key} has no effect in this file; set it in the file of the server, or"
                " with -D in JAVA_OPT"
            )
        values |= in_file
    config, _ = load(TlsConfig, values)
    others = {key: value for key, value in given.items() if not key.startswith(_PREFIX)}
    if config.enable or config.server_mode == ENFORCING:
        others.setdefault("useTLS", "true")
    return config, others


def _about_tls(values: Mapping[str, str], source: str = "") -> dict[str, str]:
    """Returns those of the values that are about TLS. Raises ConfigError for an unknown one.

    Where encryption is misspelt, a warning among others is too little.
    """
    found = {key: value for key, value in values.items() if key.startswith(_PREFIX)}
    for key in found.keys() - TLS_KEYS:
        _, (unknown,) = load(TlsConfig, {key: ""})
        raise ConfigError(f"{source}{unknown}")
    return found


# ---------------------------------------------------------------------------------- ssl contexts


def server_context(config: TlsConfig) -> ssl.SSLContext:
    """Returns what a server needs to accept encrypted connections.

    Raises ConfigError if a file cannot be used, or no certificate can be made.
    """
    import ssl  # noqa: PLC0415 - who only reads the settings does without it

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    cipher_suites.limit(context, config.ciphers, config.protocols)
    if config.test_mode:
        _show_own(context, names_suites=bool(config.ciphers))
        return context
    _show(
        context,
        ("tls.server.certPath", config.server_cert_path),
        ("tls.server.keyPath", config.server_key_path),
        config.server_key_password,
    )
    if config.server_auth_client and config.server_client_auth != "none":
        _trust(context, ("tls.server.trustCertPath", config.server_trust_cert_path))
        required = config.server_client_auth == "require"
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return context


def own_client_context(config: TlsConfig) -> ssl.SSLContext:
    """Returns what a server needs to open encrypted connections. Raises ConfigError."""
    if config.test_mode:
        return client_context(ciphers=config.ciphers, protocols=config.protocols)
    return client_context(
        trust=("tls.client.trustCertPath", config.client_trust_cert_path),
        certificate=("tls.client.certPath", config.client_cert_path),
        key=("tls.client.keyPath", config.client_key_path),
        password=config.client_key_password,
        checks=config.client_auth_server,
        checks_name=config.client_check_name,
        ciphers=config.ciphers,
        protocols=config.protocols,
    )


NOT_GIVEN: Final = ("", "")


def client_context(
    *,
    trust: tuple[str, str] = NOT_GIVEN,
    certificate: tuple[str, str] = NOT_GIVEN,
    key: tuple[str, str] = NOT_GIVEN,
    password: str = "",
    checks: bool = False,
    checks_name: bool = False,
    ciphers: str = "",
    protocols: str = "",
) -> ssl.SSLContext:
    """Returns what a client needs to open encrypted connections.

    Files are given as the name of their setting, for errors, and their path. If `checks`, servers
    are checked by the certificates of `trust`, or by those of the system if its path is empty; if
    `checks_name` as well, also by the name or address that was connected to. The original has no
    such check, for the addresses of a route are seldom in a certificate. `ciphers` and `protocols`
    limit what is spoken. Raises ConfigError if a file cannot be used.
    """
    import ssl  # noqa: PLC0415 - likewise

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.options |= ssl.OP_NO_RENEGOTIATION  # during which nothing could be written
    cipher_suites.limit(context, ciphers, protocols)
    context.check_hostname = False  # which has to come first
    context.verify_mode = ssl.CERT_REQUIRED if checks else ssl.CERT_NONE
    context.check_hostname = checks and checks_name
    if checks:
        _trust(context, trust)
    if certificate[1]:
        _show(context, certificate, key, password)
    return context


def _trust(context: ssl.SSLContext, file: tuple[str, str]) -> None:
    setting_name, path = file
    if not path:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(_readable(setting_name, path))
    except OSError as error:
        raise ConfigError(f"{setting_name} is {path}, which holds no certificate in PEM") from error


def _show(
    context: ssl.SSLContext, certificate: tuple[str, str], key: tuple[str, str], password: str
) -> None:
    paths = _readable(*certificate), _readable(*key)
    try:
        # If none were given, OpenSSL would ask for a password at the terminal.
        context.load_cert_chain(paths[0], paths[1], password)
    except (OSError, ValueError) as error:
        names = " and ".join(f"{name}={path}" for name, path in (certificate, key))
        raise ConfigError(
            f"{names} hold no certificate in PEM with its private key, or the password of the key"
            " is wrong"
        ) from error


def _readable(setting_name: str, path: str) -> str:
    try:
        Path(path).open("rb").close()
    except OSError as error:
        raise ConfigError(
            f"{setting_name} is {path}, which cannot be read: {error.strerror}"
        ) from None
    return path


def _show_own(context: ssl.SSLContext, *, names_suites: bool) -> None:
    """Makes certificates that are used by this process alone.

    There is one for suites with RSA as well if suites are named, which may be all that are.
    """
    try:
        # Not at the top: it takes 6 MiB, which servers without encrypted connections save.
        from txrocketmq.remoting.settings.self_signed import self_signed  # noqa: PLC0415
    except ImportError:
        raise ConfigError(
            "a certificate can be made only with the package cryptography, which is missing: pip"
            " install cryptography, or give one with tls.test.mode.enable=false,"
            " tls.server.certPath and tls.server.keyPath"
        ) from None
    for made in (self_signed(), self_signed(with_rsa=True)) if names_suites else (self_signed(),):
        with private_file(made) as path:
            context.load_cert_chain(path)
