# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.cli.servers import container
from txrocketmq.cli.servers.container import main, prepared
from txrocketmq.cli.servers.health import ports_file
from txrocketmq.remoting.settings.config_file import ConfigError, read_file


@pytest.fixture(autouse=True)
def _mounted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(container, "MOUNTED", tmp_path / "etc")
    (tmp_path / "etc").mkdir()


def settings(
    home: Path, name: str, *options: str, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What the server reads."""
    line = prepared(name, options, environment or {}, home)
    return read_file(line[line.index("-c", len(line) - 2) + 1])


def refusal(home: Path, name: str, **environment: str) -> str:
    with pytest.raises(ConfigError) as raised:
        prepared(name, [], environment, home)
    return str(raised.value)


def test_standalone_is_for_clients_of_the_machine_that_it_runs_on(tmp_path: Path) -> None:
    assert settings(tmp_path, "standalone") == {
        "brokerIP1": "127.0.0.1",
        "storePathRootDir": f"{tmp_path}/store",
        "adminAddresses": "",
    }
    assert prepared("standalone", [], {}, tmp_path)[:3] == ["--host", "0.0.0.0", "--open"]


def test_a_broker_finds_its_address_by_itself(tmp_path: Path) -> None:
    assert settings(tmp_path, "mqbroker") == {}


def test_the_name_server_keeps_its_values_in_the_volume(tmp_path: Path) -> None:
    key_values = f"{tmp_path}/store/namesrv/kvConfig.json"
    assert settings(tmp_path, "mqnamesrv") == {"kvConfigPath": key_values}


def test_the_environment_counts_before_the_file_and_that_before_defaults(tmp_path: Path) -> None:
    conf = tmp_path / "etc/broker.conf"
    conf.write_text("brokerIP1=10.0.0.1\nbrokerName=of-the-file\nflushDiskType=SYNC_FLUSH\n")
    environment = {
        "ROCKETMQ_BROKER_brokerName": "a=b c",
        "ROCKETMQ_BROKER_deleteWhen": "05",
        "PATH": "/bin",
    }
    assert settings(tmp_path, "standalone", environment=environment) == {
        "brokerIP1": "10.0.0.1",
        "brokerName": "a=b c",
        "flushDiskType": "SYNC_FLUSH",
        "deleteWhen": "05",
        "adminAddresses": "",
        "storePathRootDir": f"{tmp_path}/store",
    }


@pytest.mark.parametrize(
    ("mode", "ports"), [("enforcing", "9876 tls"), ("permissive", "9876"), ("disabled", "9876")]
)
def test_the_health_check_encrypts_where_it_has_to(tmp_path: Path, mode: str, ports: str) -> None:
    environment = {"ROCKETMQ_NAMESRV_tls.server.mode": mode}
    assert settings(tmp_path, "mqnamesrv", environment=environment)["tls.server.mode"] == mode
    assert ports_file(tmp_path).read_text("utf-8") == ports


def test_settings_about_tls_may_be_in_several_places(tmp_path: Path) -> None:
    (tmp_path / "etc/broker.conf").write_text(
        "tls.server.certPath=/own.pem\ntls.server.keyPath=/own.key\n"
    )
    environment = {"ROCKETMQ_BROKER_tls.test.mode.enable": "false"}
    assert settings(tmp_path, "mqbroker", environment=environment) == {
        "tls.server.certPath": "/own.pem",
        "tls.server.keyPath": "/own.key",
        "tls.test.mode.enable": "false",
    }


@pytest.mark.parametrize("way", ["-c", "ROCKETMQ_CONF"])
def test_another_file_may_be_named(tmp_path: Path, way: str) -> None:
    (tmp_path / "etc/broker.conf").write_text("brokerName=mounted\n")
    other = tmp_path / "other.conf"
    other.write_text("brokerName=other\n")
    given: tuple[Any, ...] = ("-c", str(other)) if way == "-c" else ()
    environment = {} if given else {way: str(other)}
    assert settings(tmp_path, "mqbroker", *given, environment=environment) == {
        "brokerName": "other"
    }


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    assert refusal(tmp_path, "mqbroker", ROCKETMQ_CONF="/no/such.conf").startswith(
        "cannot read /no/such.conf"
    )


def test_a_setting_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "mqbroker", ROCKETMQ_BROKER_brokerNmae="x") == (
        "ROCKETMQ_BROKER_brokerNmae: there is no setting brokerNmae; did you mean"
        " ROCKETMQ_BROKER_brokerName?"
    )


def test_a_value_that_cannot_be_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "standalone", ROCKETMQ_BROKER_traceTopicEnable="yes") == (
        "ROCKETMQ_BROKER_...: traceTopicEnable must be true or false, not 'yes'"
    )


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("mqnamesrv", "ROCKETMQ_BROKER_brokerName"),
        ("mqbroker", "ROCKETMQ_NAMESRV_listenPort"),
        ("standalone", "ROCKETMQ_NAMESRV_listenPort"),
        ("mqbroker", "ROCKETMQ_BROKR_brokerName"),
    ],
)
def test_a_setting_of_another_server_is_refused(tmp_path: Path, name: str, variable: str) -> None:
    told = refusal(tmp_path, name, **{variable: "1"})
    assert told.startswith(f"{variable} is not a setting of {name}: write ROCKETMQ_")


def test_standalone_registers_with_no_other_name_server(tmp_path: Path) -> None:
    assert "has a name server of its own" in refusal(tmp_path, "standalone", NAMESRV_ADDR="n:9876")
    assert settings(tmp_path, "mqbroker", environment={"NAMESRV_ADDR": "n:9876"}) == {}


def test_what_kubernetes_tells_of_services_is_no_setting(tmp_path: Path) -> None:
    told = """
        ROCKETMQ_BROKER_SERVICE_HOST ROCKETMQ_BROKER_SERVICE_PORT ROCKETMQ_BROKER_SERVICE_PORT_VIP
        ROCKETMQ_BROKER_PORT ROCKETMQ_BROKER_PORT_10911_TCP ROCKETMQ_BROKER_PORT_10911_TCP_ADDR
        ROCKETMQ_SERVICE_HOST ROCKETMQ_BROKER_A_PORT_10911_TCP_PROTO ROCKETMQ_NAMESRV_PORT
    """
    assert settings(tmp_path, "mqbroker", environment=dict.fromkeys(told.split(), "10.0.0.1")) == {}
    assert "there is no setting PORTS" in refusal(tmp_path, "mqbroker", ROCKETMQ_BROKER_PORTS="1")


def test_a_file_that_comes_later_is_waited_for_until_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "later.conf"
    file.write_text("advertisedPort=327")
    writer = threading.Timer(0.2, file.write_text, ["advertisedPort=32768\n"])
    writer.start()
    environment = {"ROCKETMQ_CONF": str(file), "ROCKETMQ_CONF_WAIT_SECONDS": "60"}
    found = settings(tmp_path, "mqbroker", environment=environment)
    writer.join()
    assert found == {"advertisedPort": "32768"}


def test_it_is_not_waited_for_without_end(tmp_path: Path) -> None:
    wait = {"ROCKETMQ_CONF": str(tmp_path / "never"), "ROCKETMQ_CONF_WAIT_SECONDS": "0"}
    assert "was not there within 0 seconds" in refusal(tmp_path, "mqbroker", **wait)
    wait["ROCKETMQ_CONF_WAIT_SECONDS"] = "1m"
    assert "must be a whole number of seconds, not '1m'" in refusal(tmp_path, "mqbroker", **wait)


def test_settings_are_for_the_owner_of_the_file(tmp_path: Path) -> None:
    """The environment has the secrets of accounts."""
    file = tmp_path / "conf" / "broker.conf"
    for _ in range(2):
        prepared("mqbroker", [], {"ROCKETMQ_BROKER_initAuthenticationUser": ""}, tmp_path)
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o644)


def test_a_home_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "conf").write_text("a file")
    assert "cannot be written to" in refusal(tmp_path, "mqbroker")


@pytest.mark.parametrize(
    ("name", "options", "ports"),
    [
        ("standalone", [], "10911 9876"),
        ("standalone", ["--broker-port", "20911", "--namesrv-port", "19876"], "20911 19876"),
        ("standalone", ["--broker-port", "0"], "9876"),
        ("mqbroker", [], "30911"),
        ("mqnamesrv", [], "9876"),
    ],
)
def test_the_ports_that_are_to_answer_are_kept(
    tmp_path: Path, name: str, options: list[str], ports: str
) -> None:
    environment = {"ROCKETMQ_BROKER_listenPort": "30911"} if name == "mqbroker" else {}
    prepared(name, options, environment, tmp_path)
    assert ports_file(tmp_path).read_text() == ports


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        ([], "txrocketmq.cli.servers.standalone"),
        (["--broker-port", "20911"], "txrocketmq.cli.servers.standalone"),
        (["standalone"], "txrocketmq.cli.servers.standalone"),
        (["mqbroker", "-n", "n:9876"], "txrocketmq.broker.__main__"),
        (["mqnamesrv"], "txrocketmq.namesrv.__main__"),
    ],
)
def test_the_first_argument_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], chosen: str
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)

    def start(line: list[str]) -> int:
        ran.append(line)
        return 7

    monkeypatch.setattr(f"{chosen}.main", start)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert main(arguments) == 7
    (line,) = ran
    given = [each for each in arguments if each not in container.SERVERS]
    assert line[-2 - len(given) : -2] == given


def test_other_commands_run_as_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tail", "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: txrocketmq tail")


def test_what_is_no_command_is_told_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sh"]) == 2
    assert "there is no 'sh'; the first argument is one of standalone, mqbroker, mqnamesrv," in (
        capsys.readouterr().err
    )


def test_a_container_that_is_stopped_while_it_starts_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(line: Sequence[str]) -> int:
        raise KeyboardInterrupt

    handlers: list[Any] = []
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("txrocketmq.broker.__main__.main", start)
    monkeypatch.setattr("signal.signal", lambda *each: handlers.append(each))
    assert main(["mqbroker"]) == 128 + 15
    assert handlers == [(signal.SIGTERM, signal.default_int_handler)]


def test_the_proxy_reads_its_own_file(tmp_path: Path) -> None:
    named = tmp_path / "mine.json"
    named.write_text('{"grpcServerPort": 8082, "enableBatchAck": true}', "utf-8")
    environment = {"NAMESRV_ADDR": "n:1", "ROCKETMQ_PROXY_maxMessageSize": "7"}
    line = prepared("proxy", ["-pc", str(named)], environment, tmp_path)
    written = tmp_path / "conf" / "rmq-proxy.json"
    assert line == ["-pc", str(named), "-pc", str(written)]
    assert json.loads(written.read_text("utf-8")) == {
        "grpcServerPort": "8082",
        "enableBatchAck": "true",
        "maxMessageSize": "7",
    }
    assert ports_file(tmp_path).read_text("utf-8") == "grpc:8082"
    prepared("proxy", ["--grpc-port", "9000"], environment, tmp_path)
    assert ports_file(tmp_path).read_text("utf-8") == "grpc:9000"
