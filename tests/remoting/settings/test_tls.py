# SPDX-License-Identifier: Apache-2.0
"""Settings about TLS from their places, and what `ssl` makes of them."""

from __future__ import annotations

import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import PASSWORD, apart, both_ends, certified, with_password
from txrocketmq.remoting.settings import tls
from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.tls import (
    TLS_KEYS,
    TlsConfig,
    client_context,
    load_tls,
    own_client_context,
    server_context,
)


@pytest.fixture(autouse=True)
def default_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file that is read unless another one is given; it is not there yet."""
    path = tmp_path / "etc" / "tls.properties"
    monkeypatch.setattr(tls, "DEFAULT_FILE", str(path))
    path.parent.mkdir()
    return path


def java(**options: str) -> dict[str, str]:
    """An environment as for the original's start scripts; underscores stand for dots."""
    words = [f"-Dtls.{name.replace('_', '.')}={value}" for name, value in options.items()]
    return {"JAVA_OPT": " ".join(["-server", "-Xmx1g", *words])}


# ------------------------------------------------------------------------------- the places


def test_by_default_clients_may_encrypt_and_no_certificate_is_needed() -> None:
    config, others = load_tls({}, {"listenPort": "1"})
    assert config == TlsConfig()
    assert (config.server_mode, config.test_mode) == ("permissive", True)
    assert others == {"listenPort": "1"}


def test_of_the_environment_the_file_and_the_file_about_tls_the_last_counts(tmp_path: Path) -> None:
    environment = java(client_certPath="1", client_keyPath="1", server_certPath="1", enable="true")
    given = {"tls.server.certPath": "2", "tls.server.keyPath": "2", "tls.enable": "false"}
    given["tls.test.mode.enable"] = "false"
    about_tls = tmp_path / "own.properties"
    about_tls.write_text("tls.server.keyPath=3\nother=3\n")
    config, _ = load_tls(environment, given)
    assert (config.client_cert_path, config.server_cert_path, config.server_key_path) == (
        "1", "2", "2",
    )  # fmt: skip
    assert (config.enable, config.test_mode) == (False, False)
    for told in (
        load_tls(environment, {**given, "tls.config.file": str(about_tls)}),
        load_tls({"JAVA_TOOL_OPTIONS": f"-Dtls.config.file={about_tls}"}, given),
    ):
        config, _ = told
        assert (config.server_cert_path, config.server_key_path) == ("2", "3")


@pytest.mark.parametrize("key", ["tls.server.mode", "tls.enable", "tls.config.file"])
def test_what_the_file_about_tls_may_not_say(tmp_path: Path, key: str) -> None:
    about_tls = tmp_path / "own.properties"
    about_tls.write_text(f"tls.server.authClient=true\n{key}=enforcing\n")
    with pytest.raises(ConfigError, match=f"^{about_tls}: {key} has no effect in this file; "):
        load_tls({}, {"tls.config.file": str(about_tls)})


def test_a_misspelt_setting_is_an_error_wherever_it_is(tmp_path: Path) -> None:
    wrong = "tls.server.mod"
    about_tls = tmp_path / "own.properties"
    about_tls.write_text(f"{wrong}=enforcing\n")
    for source, environment, given in (
        (r"\$JAVA_OPT: -D", {"JAVA_OPT": f"-D{wrong}=enforcing"}, {}),
        ("", {}, {wrong: "enforcing"}),
        (f"{about_tls}: ", {}, {"tls.config.file": str(about_tls)}),
    ):
        why = rf"^{source}unknown key {wrong} \(did you mean tls.server.mode\?\)$"
        with pytest.raises(ConfigError, match=why):
            load_tls(environment, given)


def test_the_file_about_tls_is_read_without_being_asked_for_if_it_is_there(
    default_file: Path,
) -> None:
    default_file.write_text("tls.test.mode.enable=false\n")
    off = {"tls.server.mode": "disabled"}
    assert load_tls({}, off)[0].test_mode is False
    assert load_tls({}, {**off, "tls.config.file": ""})[0].test_mode is True


def test_one_that_is_there_and_cannot_be_read_is_an_error(default_file: Path) -> None:
    """Otherwise a server would go without the settings that somebody has made for it."""
    default_file.mkdir()
    with pytest.raises(ConfigError, match=f"cannot read {default_file}"):
        load_tls({}, {})


def test_a_file_that_is_asked_for_and_missing_is_an_error(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(ConfigError, match=f"cannot read {missing}: No such file"):
        load_tls({}, {"tls.config.file": missing})


def test_nothing_about_tls_is_left_for_others() -> None:
    given = {key: "none" if key == "tls.server.need.client.auth" else "" for key in TLS_KEYS}
    given |= {
        "tls.server.mode": "disabled", "tls.enable": "false", "tls.test.mode.enable": "false",
        "tls.server.authClient": "false", "tls.client.authServer": "false",
        "tls.client.checkName": "false",
        "tls.server.keyPassword": PASSWORD, "tls.client.keyPassword": PASSWORD,
    }  # fmt: skip
    config, others = load_tls({}, {**given, "brokerName": "a"})
    assert others == {"brokerName": "a"}
    assert (config.server_key_password, config.client_key_password) == (PASSWORD, PASSWORD)
    assert {key for key in TLS_KEYS if not key.startswith("tls.")} == set()


@pytest.mark.parametrize(
    ("given", "use_tls"),
    [
        ({}, None),
        ({"tls.enable": "true"}, "true"),
        ({"tls.server.mode": "enforcing"}, "true"),
        ({"tls.server.mode": "disabled"}, None),
        ({"tls.server.mode": "enforcing", "useTLS": "false"}, "false"),
        ({"tls.enable": "true", "useTLS": "false"}, "false"),
        ({"useTLS": "true"}, "true"),
    ],
)
def test_a_server_that_demands_tls_uses_it_itself_unless_told_otherwise(
    given: dict[str, str], use_tls: str | None
) -> None:
    assert load_tls({}, given)[1].get("useTLS") == use_tls
    if "useTLS" not in given:
        words = " ".join(f"-D{key}={value}" for key, value in given.items())
        assert load_tls({"JAVA_OPT": words}, {})[1].get("useTLS") == use_tls


PATHS = {"tls.server.certPath": "c", "tls.server.keyPath": "k"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"tls.server.mode": "strict"},
            "^tls.server.mode must be one of disabled, permissive, enforcing, not 'strict'$",
        ),
        (
            {"tls.server.need.client.auth": "yes"},
            "^tls.server.need.client.auth must be one of none, optional, require, not 'yes'$",
        ),
        ({"tls.enable": "1"}, "tls.enable must be true or false, not '1'"),
        (
            {"tls.test.mode.enable": "false"},
            "needs tls.server.certPath and tls.server.keyPath, or tls.server.mode=disabled$",
        ),
        (
            {"tls.test.mode.enable": "false", "tls.server.certPath": "c"},
            "^tls.test.mode.enable=false needs tls.server.certPath and tls.server.keyPath",
        ),
        (
            {"tls.test.mode.enable": "false", **PATHS, "tls.client.certPath": "c"},
            "^tls.client.certPath and tls.client.keyPath belong together$",
        ),
        (
            {"tls.test.mode.enable": "false", **PATHS, "tls.server.need.client.auth": "require"},
            "is not served; write tls.server.authClient=true, with tls.server.trustCertPath$",
        ),
        (
            {"tls.test.mode.enable": "false", **PATHS, "tls.client.checkName": "true"},
            "^tls.client.checkName=true: the name in a certificate says nothing unless",
        ),
    ],
)
def test_what_does_not_exist_or_does_not_fit_is_said(given: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        load_tls({}, given)


@pytest.mark.parametrize(
    "given",
    [
        {"tls.test.mode.enable": "false", "tls.server.mode": "disabled"},
        {"tls.test.mode.enable": "false", **PATHS, "tls.server.need.client.auth": "optional"},
    ],
)
def test_what_is_not_used_need_not_fit(given: dict[str, str]) -> None:
    assert load_tls({}, given)[1] == {}


@pytest.mark.parametrize(
    "key", sorted(TLS_KEYS - {"tls.server.mode", "tls.enable", "tls.test.mode.enable",
                              "tls.config.file", "tls.ciphers", "tls.protocols"})
)  # fmt: skip
def test_what_counts_without_test_mode_only_is_not_taken_in_silence(key: str) -> None:
    """Somebody who demands certificates of clients must not serve everybody."""
    words = {"tls.server.need.client.auth": "require"}
    value = words.get(
        key, "true" if key.rpartition(".")[2].startswith(("auth", "check")) else "/file.pem"
    )
    why = f"^{key} has no effect while tls.test.mode.enable is true"
    for given in ({key: value}, {key: value, "tls.test.mode.enable": "true"}):
        with pytest.raises(ConfigError, match=why):
            load_tls({}, given)


# ----------------------------------------------------------------------------------- contexts


def of_server(folder: Path, **more: Any) -> TlsConfig:
    certificate, key = apart(folder, "server")
    return TlsConfig(
        **{
            "test_mode": False, "server_cert_path": certificate, "server_key_path": key, **more,
        }
    )  # fmt: skip


def test_a_server_makes_a_certificate_for_itself() -> None:
    first, second = server_context(TlsConfig()), server_context(TlsConfig())
    assert both_ends(first, client_context()) is None
    shown = {_shown_by(context) for context in (first, second)}
    assert len(shown) == 2, "each start has its own"


def _shown_by(server: ssl.SSLContext) -> bytes:
    """The certificate that a client sees."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context().wrap_bio(to_client, to_server)
    end = server.wrap_bio(to_server, to_client, server_side=True)
    for each in (client, end, client):
        try:
            each.do_handshake()
        except ssl.SSLWantReadError:
            continue
    shown = client.getpeercert(binary_form=True)
    assert shown is not None
    return shown


def test_in_test_mode_everybody_is_trusted() -> None:
    config = TlsConfig()
    assert both_ends(server_context(config), own_client_context(config)) is None


def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "txrocketmq.remoting.settings.self_signed", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ConfigError) as error:
        server_context(TlsConfig())
    assert "which is missing: pip install cryptography, or " in str(error.value)
    assert "tls.test.mode.enable=false, tls.server.certPath" in str(error.value)


def test_the_certificate_of_the_files_is_shown_and_checked(tmp_path: Path) -> None:
    server = server_context(of_server(tmp_path))
    assert both_ends(server, client_context()) is None
    trusted, other = certified(tmp_path, "server"), certified(tmp_path, "other")
    assert both_ends(server, client_context(trust=("t", trusted), checks=True)) is None
    error = both_ends(server, client_context(trust=("t", other), checks=True))
    assert isinstance(error, ssl.SSLCertVerificationError)


def test_without_certificates_to_check_by_those_of_the_system_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = server_context(of_server(tmp_path))
    for name, trusted in (("other", False), ("server", True)):
        monkeypatch.setenv("SSL_CERT_FILE", certified(tmp_path, name))
        assert (both_ends(server, client_context(checks=True)) is None) is trusted


def test_a_key_with_a_password(tmp_path: Path) -> None:
    key = with_password(tmp_path, "server")
    config = of_server(tmp_path, server_key_path=key, server_key_password=PASSWORD)
    assert both_ends(server_context(config), client_context()) is None


@pytest.mark.parametrize(
    ("auth", "checked", "certificate", "refused"),
    [
        ("none", True, "", ""),
        ("none", True, "other", ""),
        ("optional", True, "", ""),
        ("optional", True, "client", ""),
        ("optional", True, "other", "certificate verify failed"),
        ("optional", False, "other", ""),
        ("require", True, "", "peer did not return a certificate"),
        ("require", True, "client", ""),
        ("require", True, "other", "certificate verify failed"),
    ],
)
def test_clients_show_certificates_to_servers_that_ask(
    tmp_path: Path, auth: str, checked: bool, certificate: str, refused: str
) -> None:
    config = of_server(
        tmp_path,
        server_client_auth=auth,
        server_auth_client=checked,
        server_trust_cert_path=certified(tmp_path, "client"),
    )
    own = apart(tmp_path, certificate) if certificate else ("", "")
    client = client_context(certificate=("c", own[0]), key=("k", own[1]))
    error = both_ends(server_context(config), client)
    assert (error is not None) is bool(refused)
    assert refused in str(error).lower().replace("_", " ")


def test_a_server_shows_a_certificate_and_checks_others_where_it_connects_to(
    tmp_path: Path,
) -> None:
    demanding = server_context(
        of_server(
            tmp_path,
            server_client_auth="require",
            server_auth_client=True,
            server_trust_cert_path=certified(tmp_path, "client"),
        )
    )
    mutual = {
        "client_cert_path": certified(tmp_path, "client"),
        "client_key_path": with_password(tmp_path, "client"),
        "client_key_password": PASSWORD,
        "client_auth_server": True,
        "client_trust_cert_path": certified(tmp_path, "server"),
    }
    assert both_ends(demanding, own_client_context(of_server(tmp_path, **mutual))) is None
    mutual["client_trust_cert_path"] = certified(tmp_path, "other")
    error = both_ends(demanding, own_client_context(of_server(tmp_path, **mutual)))
    assert isinstance(error, ssl.SSLCertVerificationError)
    mutual["client_auth_server"] = False
    assert both_ends(demanding, own_client_context(of_server(tmp_path, **mutual))) is None


def test_neither_end_may_renegotiate() -> None:
    """See also test_tls_outlet.py, where somebody tries."""
    for context in (server_context(TlsConfig()), client_context()):
        assert context.options & ssl.OP_NO_RENEGOTIATION
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"server_cert_path": "{tmp}/none.pem"},
            "^tls.server.certPath is .*/none.pem, which cannot be read: No such file",
        ),
        (
            {"server_key_path": "{tmp}"},
            "^tls.server.keyPath is .*, which cannot be read: Is a directory$",
        ),
        (
            {"server_cert_path": "{tmp}/text"},
            "^tls.server.certPath=.*/text and tls.server.keyPath=.*server.key hold no cert",
        ),
        ({"server_key_path": "{tmp}/text"}, "hold no certificate in PEM with its private key, or "),
        ({"server_key_path": "{tmp}/other.key"}, "hold no certificate in PEM with its private key"),
        (
            {"server_key_path": "{tmp}/server.encrypted", "server_key_password": "wrong"},
            "or the password of the key is wrong$",
        ),
        (
            {"server_trust_cert_path": "{tmp}/none.pem"},
            "^tls.server.trustCertPath is .*/none.pem, which cannot be read: No such file",
        ),
        (
            {"server_trust_cert_path": "{tmp}/text"},
            "^tls.server.trustCertPath is .*/text, which holds no certificate in PEM$",
        ),
        (
            {"server_key_path": "{tmp}/server.encrypted", "server_key_password": "x" * 1_024},
            "or the password of the key is wrong$",
        ),
    ],
)
def test_files_that_cannot_be_used_are_named(
    tmp_path: Path, changes: dict[str, str], why: str
) -> None:
    (tmp_path / "text").write_text("no certificate\n")
    apart(tmp_path, "other")
    with_password(tmp_path, "server")
    given = {name: value.format(tmp=tmp_path) for name, value in changes.items()}
    config = of_server(tmp_path, server_client_auth="optional", server_auth_client=True, **given)
    with pytest.raises(ConfigError, match=why) as error:
        server_context(config)
    assert "wrong" not in str(error.value).removesuffix("is wrong"), "no password is told"


def test_nobody_is_asked_for_a_password_at_the_terminal(tmp_path: Path) -> None:
    certificate, _ = apart(tmp_path, "server")
    program = f"""
from txrocketmq.remoting.settings.tls import TlsConfig, server_context
server_context(TlsConfig(test_mode=False, server_cert_path={certificate!r},
                         server_key_path={with_password(tmp_path, "server")!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, check=False, timeout=60, start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("or the password of the key is wrong")
    assert "Enter PEM" not in done.stderr, "where there is no terminal, this is where one is asked"


def test_ssl_is_imported_by_those_only_who_need_it() -> None:
    program = """
import sys
from txrocketmq.remoting.settings.tls import TlsConfig, load_tls, own_client_context
load_tls({}, {})
print("ssl" in sys.modules)
own_client_context(TlsConfig())
print("ssl" in sys.modules, "cryptography" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["False", "True False"]
