# SPDX-License-Identifier: Apache-2.0
"""The command line and the file of the proxy."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from txrocketmq.proxy import __main__ as proxy
from txrocketmq.proxy.config import MessagingConfig, ProxyConfig
from txrocketmq.remoting.settings.config_file import ConfigError


def written(folder: Path, text: str) -> str:
    """Writes a file; its path."""
    path = folder / "rmq-proxy.json"
    path.write_text(text, "utf-8")
    return str(path)


def test_file_and_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(
        tmp_path,
        json.dumps(
            {
                "rocketMQClusterName": "C",
                "grpcServerPort": 8_082,
                "enableBatchAck": True,
                "proxyProtocolFrom": ["10.0.0.1", "10.0.0.2"],
                "regionId": None,
                "grpcThreadPoolNums": 4,
                "maxMesageSize": 1,
            }
        ),
    )
    options = proxy.parse_arguments(["-pc", path, "-n", "a:1", "--grpc-port", "0"])
    configuration, _ = proxy.configure(options)
    config = configuration.get(ProxyConfig)
    assert (config.rocketmq_cluster_name, config.grpc_server_port) == ("C", 0)
    assert (config.namesrv_addr, config.proxy_protocol_from) == ("a:1", ("10.0.0.1", "10.0.0.2"))
    assert configuration.get(MessagingConfig).enable_batch_ack
    said = capsys.readouterr().err
    assert "did you mean maxMessageSize?" in said
    assert "without effect here: grpcThreadPoolNums" in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is no JSON"),
        ("[]", "must be an object of JSON"),
        ('{"namesrvAddr": {"a": 1}}', "namesrvAddr must be a text, a number, true or false"),
        ('{"grpcServerPort": "x"}', "grpcServerPort"),
    ],
)
def test_a_file_that_cannot_be_used(
    tmp_path: Path, text: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert proxy.main(["-pc", written(tmp_path, text)]) == 1
    assert why in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        proxy.read_json(str(tmp_path / "none.json"))


def test_all_settings_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert proxy.main(["-p", "-n", "a:1"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert "namesrvAddr=a:1" in printed
    assert printed == sorted(printed)


def test_name_servers_must_be_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    assert proxy.main([]) == 1
    assert "namesrvAddr is not set" in capsys.readouterr().err
    assert proxy.main(["-n", "nowhere"]) == 1
    assert 'namesrvAddr: "nowhere" is not an address' in capsys.readouterr().err


def test_a_port_that_is_not_free_is_told_with_its_setting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert proxy.main(["-n", "a:1", "--host", "127.0.0.1", "--grpc-port", port]) == 1
    said = capsys.readouterr().err
    assert "Stop it, or set another grpcServerPort in the configuration file." in said


def test_a_missing_package_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(proxy, "missing", lambda: "the proxy needs h2")
    assert proxy.main(["-n", "a:1"]) == 1
    assert capsys.readouterr().err == "txrocketmq proxy: the proxy needs h2\n"
