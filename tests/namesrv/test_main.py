# SPDX-License-Identifier: Apache-2.0
"""The command: flags, the configuration file, what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from txrocketmq.namesrv.__main__ import configure, main
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.settings.config_file import read_properties
from txrocketmq.remoting.settings.tls import TlsConfig


def test_without_a_file_everything_is_default() -> None:
    configuration, tls = configure(None)
    assert configuration.get(NamesrvConfig) == NamesrvConfig()
    assert tls == TlsConfig()


def test_a_file_is_read_and_written_back_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_text(
        "listenPort = 19876\nlistenPrt=1\nserverWorkerThreads=4\nclusterTest=true\nmyOwn=x\n"
    )
    configuration, _ = configure(str(path))
    config = configuration.get(NamesrvConfig)
    assert (config.listen_port, config.config_store_path) == (19876, str(path))
    assert configuration.properties["myOwn"] == "x", "a key of a person's own is not lost"
    assert capsys.readouterr().err.splitlines() == [
        f"mqnamesrv: {path}: unknown key listenPrt (did you mean listenPort?)",
        f"mqnamesrv: {path}: unknown key myOwn",
        f"mqnamesrv: {path}: accepted, without effect here: serverWorkerThreads, clusterTest",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("listenPort=x", "listenPort must be a whole number, not 'x'"),
        ("orderMessageEnable=1", "orderMessageEnable must be true or false, not '1'"),
        ("tls.server.need.client.auth=maybe", "must be one of none, optional, require, not"),
        ("a=\\u1", "must be followed by 4 hex digits"),
        (None, "No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, why: str
) -> None:
    path = tmp_path / "namesrv.conf"
    if text is not None:
        path.write_text(text)
    assert main(["-c", str(path), "-p"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("mqnamesrv: ")
    assert str(path) in said.err
    assert why in said.err


def test_p_prints_all_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_text("listenPort=19876\n")
    assert main(["-c", str(path), "-p", "-n", "127.0.0.1:9876"]) == 0
    values = read_properties(capsys.readouterr().out)
    assert list(values) == sorted(values)
    assert values["listenPort"] == "19876"
    assert values["scanNotActiveBrokerInterval"] == "5000"


def test_h_tells_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["-h"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    for flag in ("-c", "--configFile", "-p", "--printConfigItem", "-n", "--namesrvAddr"):
        assert flag in said


def test_tls_is_demanded_of_java_and_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_OPT_EXT", "-Dtls.server.mode=enforcing")
    configuration, tls = configure(None)
    assert tls.server_mode == "enforcing"
    assert configuration.get(NamesrvConfig).use_tls is True
    path = tmp_path / "namesrv.conf"
    path.write_text(
        "tls.server.mode=disabled\ntls.test.mode.enable=false\ntls.client.keyPassword=secret\n"
    )
    configuration, tls = configure(str(path))
    assert (tls.server_mode, tls.client_key_password) == ("disabled", "secret")
    assert configuration.get(NamesrvConfig).use_tls is None
    assert main(["-c", str(path), "-p"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "secret" not in said.out


def test_java_options_that_do_not_exist_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_OPT", "-Dtls.server.mode=strict")
    assert main(["-p"]) == 1
    said = capsys.readouterr().err
    assert said == (
        "mqnamesrv: tls.server.mode must be one of disabled, permissive, enforcing, not 'strict'\n"
    )


def test_no_secret_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_text(
        'initAuthenticationUser={"username":"root","password":"hunter2"}\n'
        "metricsGrpcExporterHeader=Authorization:hunter2\n"
    )
    assert main(["-c", str(path), "-p"]) == 0
    said = capsys.readouterr()
    printed = read_properties(said.out)
    assert printed["initAuthenticationUser"] == printed["metricsGrpcExporterHeader"] == "***"
    assert "hunter2" not in said.out + said.err
