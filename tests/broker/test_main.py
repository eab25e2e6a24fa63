# SPDX-License-Identifier: Apache-2.0
"""The command: flags, the configuration file, what is said of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from txrocketmq.broker.__main__ import (
    IMPORTANT,
    configure,
    for_term,
    identity_file,
    main,
    parse_arguments,
)
from txrocketmq.broker.controller.session import Term
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.remoting.settings.config_file import as_properties, known_keys, read_properties
from txrocketmq.remoting.settings.tls import TlsConfig


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)


def test_the_flags_of_the_original() -> None:
    options = parse_arguments(["-c", "broker.conf", "-n", "a:1;b:2", "-p", "-m"])
    assert (options.configFile, options.namesrvAddr) == ("broker.conf", "a:1;b:2")
    assert options.printConfigItem
    assert options.printImportantConfig


def test_without_a_file_everything_is_default() -> None:
    config, store_config, tls, given = configure(None, None)
    assert config == BrokerConfig()
    assert store_config == StoreConfig(ha_listen_port=10912)
    assert tls == TlsConfig()
    assert given == {}


def test_a_file_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(
        "brokerName = a\nfileReservedTime=48\nbrokerNmae=b\nsendMessageThreadPoolNums=4\nmyOwn=1\n"
    )
    config, store_config, _, given = configure(str(path), None)
    assert (config.broker_name, config.broker_config_path) == ("a", str(path))
    assert store_config.file_reserved_time == 48
    assert given["myOwn"] == "1"
    assert capsys.readouterr().err.splitlines() == [
        f"mqbroker: {path}: unknown key brokerNmae (did you mean brokerName?)",
        f"mqbroker: {path}: unknown key myOwn",
        f"mqbroker: {path}: accepted, without effect here: sendMessageThreadPoolNums",
    ]


def test_a_master_has_id_0_whatever_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("brokerId=3\nbrokerRole=ASYNC_MASTER\n")
    assert configure(str(path), None)[0].broker_id == 0


def test_a_master_is_told_that_its_id_is_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("brokerId=3\nbrokerRole=ASYNC_MASTER\n")
    configure(str(path), None)
    assert "brokerId=3 is not used: a master has the id 0" in capsys.readouterr().err


def test_a_slave_keeps_its_id(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("brokerId=3\nbrokerRole=SLAVE\n")
    config, store_config, _, _ = configure(str(path), None)
    assert (config.broker_id, store_config.is_slave) == (3, True)


def test_name_servers_of_the_flag_before_the_file_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("namesrvAddr=file:1\n")
    monkeypatch.setenv("NAMESRV_ADDR", "environment:1")
    assert configure(str(path), "flag:1")[0].namesrv_addr == "flag:1"
    assert configure(str(path), None)[0].namesrv_addr == "file:1"
    assert configure(None, None)[0].namesrv_addr == "environment:1"


ROLE, ACTING = "brokerRole=SYNC_MASTER", "enableSlaveActingMaster=true"
AUTO, LEAST = "enableAutoInSyncReplicas=true", "minInSyncReplicas=2"


@pytest.mark.parametrize(
    ("given", "unused"),
    [
        ([AUTO], [f"{AUTO} is not used: it needs {ROLE} and {ACTING}"]),
        ([ROLE, LEAST], [f"{LEAST} is not used: it needs {ACTING} and {AUTO}"]),
        (
            [ROLE, AUTO, LEAST],
            [f"{each} is not used: it needs {ACTING}" for each in (AUTO, LEAST)],
        ),
        ([ROLE, ACTING, AUTO, LEAST], []),
        (["minInSyncReplicas=1", "enableAutoInSyncReplicas=false"], []),
    ],
)
def test_numbers_of_brokers_that_are_not_used_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], unused: list[str]
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("\n".join(given))
    configure(str(path), None)
    assert capsys.readouterr().err.splitlines() == [f"mqbroker: {path}: {each}" for each in unused]


def test_with_a_controller_the_file_has_no_role(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(
        "enableControllerMode=true\ncontrollerAddr=a:1;\nbrokerId=3\nbrokerRole=SLAVE\n"
        "haMasterAddress=b:2\ninSyncReplicas=2\nminInSyncReplicas=2\nallAckInSyncStateSet=true\n"
        f"storePathRootDir={tmp_path}\n"
    )
    config, store_config, _, given = configure(str(path), None)
    assert (config.broker_id, store_config.broker_role) == (0, "SYNC_MASTER")
    assert (store_config.ha_master_address, given["brokerRole"]) == ("", "SLAVE")
    assert capsys.readouterr().err == ""
    identity = identity_file(config, store_config)
    session: Any = SimpleNamespace(term=None, identity=identity)
    assert for_term(config, store_config, session)[1].is_slave
    identity.broker_id, session.term = 4, Term(1, 9, "c:3", 4)
    slave, slave_store = for_term(config, store_config, session)
    assert (slave.broker_id, slave_store.broker_role) == (4, "SLAVE")
    session.term = Term(2, 4, "d:4", 4)
    assert for_term(config, store_config, session) == (config, store_config)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("brokerId=x", "brokerId must be a whole number, not 'x'"),
        ("brokerId=1", "brokerId=1 without brokerRole would be a second master of its name"),
        ("inSyncReplicas=2", "inSyncReplicas=2 has an effect only with brokerRole=SYNC_MASTER"),
        ("allAckInSyncStateSet=true", "allAckInSyncStateSet=true needs enableControllerMode=true"),
        ("enableControllerMode=true", "enableControllerMode=true needs controllerAddr, the addr"),
        ("enableControllerMode=true\ncontrollerAddr=a:1;b", "192.168.0.1:9878, not 'a:1;b'"),
        (
            "enableControllerMode=true\ncontrollerAddr=a:1\nenableSlaveActingMaster=true",
            "are two ways to go on without a master",
        ),
        (
            "enableControllerMode=true\ncontrollerAddr=a:1\nlistenPort=0",
            "enableControllerMode=true needs a listenPort that stays the same",
        ),
        ("namesrvAddr=localhost", "namesrvAddr must be addresses like 127.0.0.1:9876"),
        ("namesrvAddr=a:1;b:70000", "not 'b:70000'"),
        ("flushDiskType=NEVER", "flushDiskType must be ASYNC_FLUSH or SYNC_FLUSH"),
        (
            "brokerRole=SLAVE",
            "Slave's brokerId must be > 0, not 0: write brokerId=1, or a number that no other",
        ),
        (
            "lockInStrictMode=true\ntotalReplicas=2",
            "lockInStrictMode=true with totalReplicas=2 needs enableSlaveActingMaster=true",
        ),
        ("haMasterAddress=a", "haMasterAddress must be an address like 192.168.0.1:10912, not 'a'"),
        ("tls.server.mode=strict", "tls.server.mode must be one of disabled, permissive, enforc"),
        ("tls.test.mode.enable=false", "needs tls.server.certPath and tls.server.keyPath"),
        ("a=\\u1", "must be followed by 4 hex digits"),
        (None, "No such file or directory"),
    ],
)
def test_settings_that_cannot_be_used_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, why: str
) -> None:
    path = tmp_path / "broker.conf"
    if text is not None:
        path.write_text(text)
    assert main(["-c", str(path), "-p"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("mqbroker: ")
    assert said.err.count("\n") == 1
    assert why in said.err
    assert str(path) in said.err


def test_name_servers_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-n", "nowhere", "-p"]) == 1
    assert "not 'nowhere'" in capsys.readouterr().err


def test_all_settings_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-n", "127.0.0.1:9876", "-p"]) == 0
    printed = read_properties(capsys.readouterr().out)
    assert printed["namesrvAddr"] == "127.0.0.1:9876"
    assert set(printed) == {**as_properties(BrokerConfig()), **as_properties(StoreConfig())}.keys()


def test_the_port_for_replication_is_printed_as_it_will_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("listenPort=12000")
    assert main(["-c", str(path), "-p"]) == 0
    assert read_properties(capsys.readouterr().out)["haListenPort"] == "12001"


def test_important_settings_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m"]) == 0
    printed = read_properties(capsys.readouterr().out)
    assert {"brokerName", "listenPort", "storePathRootDir", "flushDiskType"} <= set(printed)
    assert set(printed) <= IMPORTANT
    assert known_keys(BrokerConfig) | known_keys(StoreConfig) >= IMPORTANT


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["-h"])
    assert ended.value.code == 0
    assert "mqbroker" in capsys.readouterr().out


def test_tls_is_demanded_of_java_and_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(
        "brokerName=a\ntls.test.mode.enable=false\ntls.server.certPath=c\ntls.server.keyPath=k\n"
        "tls.server.keyPassword=secret\n"
    )
    monkeypatch.setenv("JAVA_OPT_EXT", "-Dtls.server.mode=enforcing")
    config, _, tls, given = configure(str(path), None)
    assert (tls.server_mode, tls.server_key_password, config.use_tls) == (
        "enforcing", "secret", True,
    )  # fmt: skip
    assert given == {"brokerName": "a", "useTLS": "true"}
    assert main(["-c", str(path), "-p"]) == 0
    said = capsys.readouterr()
    assert read_properties(said.out)["useTLS"] == "true"
    assert "secret" not in said.out + said.err


def test_java_options_that_do_not_exist_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_OPT", "-Dtls.server.mode=strict")
    assert main(["-p"]) == 1
    said = capsys.readouterr().err
    assert said == (
        "mqbroker: tls.server.mode must be one of disabled, permissive, enforcing, not 'strict'\n"
    )


def test_a_kernel_that_cannot_be_had_ends_it_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TXROCKETMQ_KERNEL", "on")
    path = tmp_path / "broker.conf"
    path.write_text(f"storePathRootDir={tmp_path}\n")
    assert main(["-c", str(path)]) == 1
    assert "TXROCKETMQ_KERNEL is 'on', but it can only be off or require" in capsys.readouterr().err
