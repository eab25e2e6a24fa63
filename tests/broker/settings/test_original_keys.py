# SPDX-License-Identifier: Apache-2.0
"""What promises more than is served stops the start, whatever the start is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from tests.fakes import refused, request
from txrocketmq.broker.__main__ import main as mqbroker
from txrocketmq.broker.processors.admin.admin_config import AdminConfigProcessor
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.cli.servers import standalone
from txrocketmq.namesrv.__main__ import main as mqnamesrv
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.primitives.value_text import shown
from txrocketmq.remoting.settings.config_file import Configuration, Unserved, known_keys

GOLDEN = Path(__file__).parents[2] / "golden" / "settings"
OTHER_DEFAULTS = {
    # What is ours to choose.
    "listenPort", "brokerName", "brokerIP1", "brokerIP2", "haListenPort", "storePathRootDir",
    "inSyncReplicas",
    # Where the releases differ, 5.4.0 counts.
    "autoDeleteUnusedStats", "registerBrokerTimeoutMills", "transactionCheckInterval",
    # What a broker that runs has made of them.
    "bitMapLengthConsumeQueueExt",
    # By the cores of this machine.
    "clientCallbackExecutorThreads", "endTransactionThreadPoolNums", "heartbeatThreadPoolNums",
    "litePullMessageThreadPoolNums", "processReplyMessageThreadPoolNums",
    "pullMessageThreadPoolNums", "putMessageFutureThreadPoolNums", "queryMessageThreadPoolNums",
    "sendMessageThreadPoolNums",
}  # fmt: skip
BROKER = (*BrokerConfig.UNSERVED, *StoreConfig.UNSERVED)
SETTINGS = [(each, value) for each in BROKER for value in (*each.values, "/some/where")]
SETTINGS = [(each, value) for each, value in SETTINGS if value in each.values or not each.values]
OF_NAME_SERVERS = [
    (each, value) for each in NamesrvConfig.UNSERVED for value in each.values or ("/some/where",)
]


def original_settings(release: str, *, of_name_server: bool) -> dict[str, str]:
    """What the original answers when it is asked for its configuration."""
    settings = {}
    for line in (GOLDEN / f"{release}.txt").read_text().splitlines():
        name, _, setting = line.partition(" ")
        classes = {"NamesrvConfig", "NettyServerConfig"}
        if (name in classes) if of_name_server else name != "NamesrvConfig":
            key, _, value = setting.partition("=")
            settings[key] = value
    return settings


@pytest.mark.parametrize(("release", "count"), [("4.9.7", 174), ("5.4.0", 466)])
def test_a_broker_shows_every_key_of_the_original(release: str, count: int) -> None:
    shown = Configuration([BrokerConfig(), StoreConfig()], {}).properties
    original = original_settings(release, of_name_server=False)
    assert len(original) == count
    assert not original.keys() - shown.keys()
    differing = {key for key, value in original.items() if shown[key] != value}
    assert differing <= OTHER_DEFAULTS


@pytest.mark.parametrize("release", ["4.9.7", "5.4.0"])
def test_a_name_server_shows_every_key_of_the_original(release: str) -> None:
    shown = Configuration([NamesrvConfig()], {}).properties
    original = original_settings(release, of_name_server=True)
    assert not original.keys() - shown.keys()
    differing = {key for key, value in original.items() if shown[key] != value}
    assert differing <= {"listenPort", "kvConfigPath", "configStorePath"}


def says_one_sentence(
    capsys: pytest.CaptureFixture[str], file: Path, promise: Unserved, value: str
) -> bool:
    said, what = capsys.readouterr(), shown(promise.key, value)
    return (
        said.out == ""
        and said.err.count("\n") == 1
        and f": {file}: {promise.key}={what}: {promise.feature} is not served; " in said.err
        and said.err.endswith("leave the key out\n")
    )


@pytest.mark.parametrize(("promise", "value"), SETTINGS)
def test_neither_mqbroker_nor_standalone_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], promise: Unserved, value: str
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(f"{promise.key} = {value}\n")
    assert mqbroker(["-c", str(file)]) == 1
    assert says_one_sentence(capsys, file, promise, value)
    store = tmp_path / "store"
    assert standalone.main(["-c", str(file), "--store", str(store)]) == 1
    assert says_one_sentence(capsys, file, promise, value)
    assert not store.exists()


@pytest.mark.parametrize(("promise", "value"), OF_NAME_SERVERS)
def test_no_name_server_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], promise: Unserved, value: str
) -> None:
    file = tmp_path / "namesrv.conf"
    file.write_text(f"{promise.key} = {value}\n")
    assert mqnamesrv(["-c", str(file)]) == 1
    assert says_one_sentence(capsys, file, promise, value)


@pytest.mark.parametrize("promise", [each for each in BROKER if each.instead])
def test_what_the_sentence_advises_is_taken(tmp_path: Path, promise: Unserved) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(f"{promise.key}={promise.instead}\n")
    assert mqbroker(["-c", str(file), "-p"]) == 0


def test_a_running_broker_cannot_be_told_to_promise(parts: Parts) -> None:
    admin = AdminConfigProcessor(
        parts.config, parts.configuration, parts.topics, parts.store, parts.walks, 0
    )
    for text in (
        b"useSeparateRetryQueue=true\n",
        b"transRocksDBEnable=true\nlongPollingEnable=false\n",
    ):
        with refused(ResponseCode.SYSTEM_ERROR, "is not served"):
            admin.update_config(request(NoHeader(), text))
    assert parts.config.long_polling_enable is True


@pytest.mark.parametrize("cls", [BrokerConfig, StoreConfig, NamesrvConfig])
def test_what_is_declared_exists(cls: type) -> None:
    promises: Sequence[Unserved] = cls.UNSERVED  # type: ignore[attr-defined]
    keys = [promise.key for promise in promises]
    assert len(set(keys)) == len(keys)
    assert set(keys) <= known_keys(cls)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("authorizationEnabled=true", "authorizationEnabled needs authenticationEnabled=true"),
        ("authenticationProvider=org.example.Provider", "authenticationProvider can only be"),
        ("initAuthenticationUser=root:hunter2", "initAuthenticationUser is no JSON object"),
        ("aclEnable=true", "aclEnable=true needs rocketmqHome"),
    ],
)
def test_settings_of_accounts_are_not_taken_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, why: str
) -> None:
    """Whoever writes them believes that there are accounts."""
    file = tmp_path / "broker.conf"
    file.write_text(text)
    assert mqbroker(["-c", str(file), "-p"]) == 1
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert why in said.err
    assert "hunter2" not in said.err + said.out


def test_passwords_among_the_settings_are_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(
        'initAuthenticationUser={"username":"root","password":"hunter2"}\n'
        'innerClientAuthenticationCredentials={"accessKey":"root","secretKey":"hunter2"}\n'
    )
    assert mqbroker(["-c", str(file), "-p"]) == 0
    said = capsys.readouterr()
    assert "initAuthenticationUser=***" in said.out
    assert "hunter2" not in said.err + said.out
