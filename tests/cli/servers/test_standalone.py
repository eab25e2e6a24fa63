# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq standalone`: settings, ports, what is undone when it cannot start.

That it runs is tested in tests/process.
"""

from __future__ import annotations

import errno
import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.error import CannotListenError
from twisted.internet.testing import MemoryReactorClock

from tests.fakes import FakePeer
from tests.remoting.transport.wires import FarEnd
from txrocketmq.cli.servers import standalone
from txrocketmq.cli.servers.first_account import FirstAccount
from txrocketmq.cli.servers.standalone import (
    Options,
    Standalone,
    default_store,
    free_broker_port,
    main,
    options_of,
    own_address,
    parse_arguments,
)
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.frame.credentials import seal_of
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.settings.config_file import ConfigError


@pytest.fixture(autouse=True)
def _data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def options(*arguments: str) -> Options:
    return options_of(parse_arguments(arguments))


def test_defaults(tmp_path: Path) -> None:
    service = Standalone(options())
    assert options().namesrv_port == 9876
    assert service.config.listen_port == 10911
    assert service.config.broker_name == "broker-a"
    assert (service.config.bind_address, service.config.broker_ip1) == ("127.0.0.1", "127.0.0.1")
    assert service.store_config.store_path_root_dir == default_store()
    assert default_store() == str(tmp_path / "data" / "txrocketmq" / "standalone")


def test_the_data_folder_is_in_the_home_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_store() == str(Path.home() / ".local/share/txrocketmq/standalone")


def test_the_file_gives_way_to_the_flags(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerName=mine\nlistenPort=1111\nstorePathRootDir=/nowhere\n")
    service = Standalone(options("-c", str(conf), "--broker-port", "2222"))
    assert (service.config.broker_name, service.config.listen_port) == ("mine", 2222)
    assert service.store_config.store_path_root_dir == "/nowhere"
    service = Standalone(options("-c", str(conf), "--store", "/elsewhere"))
    assert service.config.listen_port == 1111
    assert service.store_config.store_path_root_dir == "/elsewhere"


def test_unknown_keys_are_kept_for_a_warning(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerNam=mine\n")
    (key,) = Standalone(options("-c", str(conf))).unknown_keys
    assert str(key) == "unknown key brokerNam (did you mean brokerName?)"


def test_a_host_is_listened_on_and_told() -> None:
    config = Standalone(options("--host", "10.1.2.3")).config
    assert (config.bind_address, config.broker_ip1) == ("10.1.2.3", "10.1.2.3")


def test_all_interfaces_are_told_as_the_one_that_others_see(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(standalone, "address_facing", lambda _: "10.9.9.9")
    assert own_address() == "10.9.9.9"
    config = Standalone(options("--host", "0.0.0.0")).config
    assert (config.bind_address, config.broker_ip1) == ("0.0.0.0", "10.9.9.9")


def test_what_the_file_says_of_the_address_counts(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerIP1=broker.example\nbindAddress=0.0.0.0\n")
    config = Standalone(options("-c", str(conf))).config
    assert (config.bind_address, config.broker_ip1) == ("0.0.0.0", "broker.example")


def test_a_setting_that_is_wrong_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("listenPort=many\n")
    with pytest.raises(ConfigError, match="listenPort"):
        Standalone(options("-c", str(conf)))
    assert main(["-c", str(conf)]) == 1
    assert main(["-c", str(tmp_path / "none.conf")]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"txrocketmq standalone: {conf}: listenPort")
    assert "none.conf" in second


@pytest.mark.parametrize("port", ["-1", "65536", "http", ""])
def test_wrong_usage(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_arguments([f"--broker-port={port}"])
    assert ended.value.code == 2
    assert f"{port!r} is not a port" in capsys.readouterr().err


def test_a_free_port_has_free_neighbours() -> None:
    port = free_broker_port("127.0.0.1")
    for step in (-2, 0, 1):
        with socket.socket() as held:
            held.bind(("127.0.0.1", port + step))


def test_no_free_port_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Taken(socket.socket):
        def bind(self, address: object) -> None:
            raise OSError("in use")

    monkeypatch.setattr(socket, "socket", Taken)
    with pytest.raises(OSError, match="no free port"):
        free_broker_port("127.0.0.1")


class Reactor(MemoryReactorClock):
    """Refuses to listen on some ports."""

    taken: frozenset[int] = frozenset()
    number = errno.EADDRINUSE

    def listenTCP(self, port: int, *args: object) -> object:  # noqa: N802
        if port in self.taken:
            raise CannotListenError("127.0.0.1", port, OSError(self.number, "refused"))
        listening = super().listenTCP(port, *args)  # type: ignore[no-untyped-call]
        listening._hostAddress.port = port
        return listening


@pytest.mark.parametrize(
    ("port", "flag"), [(9876, "--namesrv-port"), (10911, "--broker-port"), (10909, "--broker-port")]
)
def test_a_port_that_is_taken_is_told_with_the_flag_that_helps(
    tmp_path: Path, port: int, flag: str
) -> None:
    reactor = Reactor()  # type: ignore[no-untyped-call]
    reactor.taken = frozenset({port})
    service = Standalone(options("--store", str(tmp_path / "store")), Clock(reactor))
    with pytest.raises(OSError, match=f"on port {port}: .*Is another one running.*{flag}"):
        service.start()
    assert service.name_server is None
    assert service.broker is None
    assert not (tmp_path / "store" / "abort").exists()  # the store is closed
    assert not reactor.getDelayedCalls()


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EACCES, "on port 9876: .* refused. Choose another port with --namesrv-port."),
        (errno.EADDRNOTAVAIL, "not an address of this machine: .* Choose another one with --host."),
    ],
)
def test_a_port_that_is_not_taken_is_not_said_to_be(
    tmp_path: Path, number: int, advice: str
) -> None:
    reactor = Reactor()  # type: ignore[no-untyped-call]
    reactor.taken, reactor.number = frozenset({9876}), number
    service = Standalone(options("--store", str(tmp_path / "store")), Clock(reactor))
    with pytest.raises(OSError, match=advice) as error:
        service.start()
    assert "running" not in str(error.value)


def test_a_disk_is_judged_by_the_room_it_has_unless_a_ratio_is_set() -> None:
    service = Standalone(options())
    assert service.store_config.disk_space_min_free_bytes == 256 * 1024 * 1024
    ratio = Standalone(Options(settings={"diskSpaceWarningLevelRatio": "80"}))
    assert ratio.store_config.disk_space_min_free_bytes == 0
    floor = {"diskSpaceWarningLevelRatio": "80", "diskSpaceMinFreeBytes": "5"}
    assert Standalone(Options(settings=floor)).store_config.disk_space_min_free_bytes == 5


@pytest.mark.parametrize(
    "line",
    [
        "enableDLegerCommitLog=true",
        "storeType=defaultRocksDB",
    ],
)
def test_what_is_not_served_stops_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text(line)
    assert main(["-c", str(conf)]) == 1
    said = capsys.readouterr().err
    assert f"{line.splitlines()[0]}: " in said
    assert "is not served" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "lines",
    [
        "brokerRole=SLAVE\nbrokerId=1\n",
        "enableControllerMode=true\ncontrollerAddr=127.0.0.1:9878\n",
    ],
)
def test_it_is_one_of_no_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: str
) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text(lines)
    assert main(["-c", str(conf)]) == 1
    said = capsys.readouterr().err
    assert f"{lines.splitlines()[0]}: a broker with a name server of its own" in said


def test_it_is_a_master_whatever_the_file_says() -> None:
    assert Standalone(Options(settings={"brokerId": "1"})).config.broker_id == 0


def test_java_options_count_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_OPT_EXT", "-Dtls.server.mode=enforcing -Dtls.test.mode.enable=true")
    assert Standalone(options()).config.use_tls is True
    conf = tmp_path / "broker.conf"
    conf.write_text("tls.server.mode=disabled\n")
    service = Standalone(options("-c", str(conf)))
    assert service.config.use_tls is False
    assert not service.unknown_keys


def test_java_options_that_do_not_exist_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_OPT", "-Dtls.server.mode=strict")
    assert main([]) == 1
    assert capsys.readouterr().err == (
        "txrocketmq standalone: tls.server.mode must be one of disabled, permissive, enforcing,"
        " not 'strict'\n"
    )


def test_both_servers_encrypt(tmp_path: Path) -> None:
    reactor = Reactor()  # type: ignore[no-untyped-call]
    settings = {"storePathRootDir": str(tmp_path), "tls.server.mode": "enforcing"}
    service = Standalone(Options(settings=settings), Clock(reactor))
    service.start()
    assert service.name_server is not None
    assert service.broker is not None
    assert service.name_server.configuration.properties["useTLS"] == "true"
    factories: list[Any] = [factory for _, factory, *_ in reactor.tcpServers]
    assert len(factories) == 3
    for factory in factories:
        end = FarEnd(factory.buildProtocol(None))
        end.protocol.dataReceived(b"\0\0\0\4")
        assert end.wire.disconnecting, "neither takes a connection that is not encrypted"
    attempt: Any = reactor.tcpClients[0]
    client = FarEnd(attempt[2].buildProtocol(None))
    assert client.wire.value()[:1] == b"\x16", "the broker begins a handshake to register"
    service.stop()


# ------------------------------------------------------------------------------------------ gRPC


def test_the_port_for_grpc_is_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    def port(*arguments: str) -> tuple[int | None, bool]:
        options = standalone.options_of(standalone.parse_arguments(arguments))
        return options.grpc_port, options.grpc_is_wanted

    assert port() == (8081, False)
    assert port("--grpc-port", "0") == (0, True)
    assert port("--grpc-port", "off") == (None, True)
    monkeypatch.setattr(standalone, "missing", lambda: "the proxy needs h2")
    assert port() == (None, False)
    with pytest.raises(ConfigError, match="--grpc-port: the proxy needs h2"):
        port("--grpc-port", "8081")


def test_the_port_for_grpc_asks_for_the_accounts_of_the_broker(tmp_path: Path) -> None:
    account = FirstAccount("ops")
    given = options_of(parse_arguments(["--store", str(tmp_path / "store")]), account)
    service = Standalone(given, Clock(Reactor()))  # type: ignore[no-untyped-call]
    service.start()
    assert service.grpc_endpoint == "127.0.0.1:8081"
    assert service.broker is not None
    proxy = service._proxy()
    assert proxy.messaging.gate is not None
    seal: Any = proxy.messaging.connections._seal
    fields: dict[str, str] = {}
    seal(fields, b"body")
    user = service.broker.parts.access.accounts.users.get("ops")
    assert user is not None
    assert user.signer.accepts(fields, b"body", fields["Signature"])
    proxy.clock.stop()
    service.stop()


def test_accounts_of_4_are_none_for_grpc(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "plain_acl.yml").write_text("accounts: []\n")
    conf.write_text(f"aclEnable=true\nrocketmqHome={tmp_path}\n")
    files = ("--store", str(tmp_path / "store"), "-c", str(conf))
    with pytest.raises(ConfigError, match="--grpc-port: the accounts of RocketMQ 4"):
        options(*files, "--grpc-port", "8081")
    reactor = Reactor()  # type: ignore[no-untyped-call]
    service = Standalone(options(*files), Clock(reactor))
    service.start()
    assert service.grpc_endpoint == ""
    service.stop()
    given = replace(options("--store", str(tmp_path / "other")), grpc_port=8081)
    settings = {**given.settings, "aclEnable": "true", "rocketmqHome": str(tmp_path)}
    service = Standalone(replace(given, settings=settings), Clock(reactor))
    service.start()
    assert service.grpc_endpoint == ""
    service.stop()


def test_a_port_for_grpc_that_is_taken(tmp_path: Path) -> None:
    """It matters only if it was asked for."""
    for arguments, matters in ((("--grpc-port", "8081"), True), ((), False)):
        reactor = Reactor()  # type: ignore[no-untyped-call]
        reactor.taken = frozenset({8081})
        service = Standalone(
            options("--store", str(tmp_path / f"store{matters}"), *arguments), Clock(reactor)
        )
        if matters:
            with pytest.raises(OSError, match="on port 8081: .*--grpc-port"):
                service.start()
        else:
            service.start()
            assert service.grpc_endpoint == ""
            service.stop()


def test_the_proxy_reaches_the_broker_where_it_is(tmp_path: Path) -> None:
    config = tmp_path / "broker.conf"
    config.write_text("brokerIP1=192.0.2.7\nadvertisedPort=20911\n", "utf-8")
    reactor: Any = MemoryReactorClock()
    service = Standalone(
        options("--store", str(tmp_path / "store"), "-c", str(config)), Clock(reactor)
    )
    service.start()
    proxy = service._proxy()
    assert proxy.messaging.connections.places == {"192.0.2.7:20911": "127.0.0.1:10911"}
    assert proxy.config.namesrv_addr == "127.0.0.1:9876"
    assert service.grpc_endpoint == "127.0.0.1:8081"
    service.stop()


# -------------------------------------------------------------------------------------- accounts


def test_an_address_for_others_needs_an_account(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[Any] = []

    def run(*arguments: Any, **_: Any) -> int:
        started.append(arguments)
        return 0

    monkeypatch.setattr("txrocketmq.remoting.host.run.run_service", run)
    assert main(["--host", "0.0.0.0"]) == 1
    assert "at 0.0.0.0, everybody who reaches this machine could" in capsys.readouterr().err
    assert not started
    assert main(["--host", "0.0.0.0", "--open"]) == 0
    assert main(["--host", "0.0.0.0", "--account", "ops"]) == 0
    config = started[1][1].config
    assert config.authentication_enabled
    assert config.authorization_enabled
    assert config.first_user().name == "ops"


def test_the_name_server_asks_for_the_accounts_of_the_broker(tmp_path: Path) -> None:
    """Otherwise strangers could register a broker in the place of this one."""
    account = FirstAccount("ops")
    given = options_of(parse_arguments(["--store", str(tmp_path / "store")]), account)
    service = Standalone(given, Clock(Reactor()))  # type: ignore[no-untyped-call]
    service.start()
    assert service.name_server is not None
    (guard,) = service.name_server.guards
    secret = json.loads(account.settings()["initAuthenticationUser"])["password"]

    def may(code: int, host: str, secret: str = "") -> bool:
        peer = FakePeer()
        peer.remote_address = f"{host}:4711"
        fields: dict[str, str] = {}
        if secret:
            seal_of("ops", secret)(fields, b"")  # type: ignore[misc]
        try:
            guard(peer, RemotingCommand(code, fields))
        except ResponseError:
            return False
        return True

    for code in (
        RequestCode.REGISTER_BROKER,
        RequestCode.UNREGISTER_BROKER,
        RequestCode.REGISTER_TOPIC_IN_NAMESRV,
    ):
        assert may(code, "127.0.0.1"), "the broker registers itself"
        assert not may(code, "10.1.2.3")
        assert may(code, "10.1.2.3", secret)
    for code in (RequestCode.UPDATE_NAMESRV_CONFIG, RequestCode.WIPE_WRITE_PERM_OF_BROKER):
        assert not may(code, "127.0.0.1")
        assert may(code, "127.0.0.1", secret)
    service.stop()


def test_only_this_machine_administers_without_accounts(tmp_path: Path) -> None:
    near = ("127.0.0.0/8", "::1")
    assert Standalone(options()).config.admin_addresses == near
    assert Standalone(options("--host", "10.1.2.3")).config.admin_addresses == (*near, "10.1.2.3")
    conf = tmp_path / "broker.conf"
    conf.write_text("authenticationEnabled=true\n")
    assert Standalone(options("-c", str(conf))).config.admin_addresses == ()
    conf.write_text("adminAddresses=10.0.0.0/8\n")
    assert Standalone(options("-c", str(conf))).config.admin_addresses == ("10.0.0.0/8",)
