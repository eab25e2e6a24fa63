# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses

import pytest

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.settings.original_keys import BROKER_KEYS
from txrocketmq.remoting.settings.config_file import (
    ConfigError,
    Configuration,
    as_properties,
    ignored_keys,
    load,
    read_properties,
)

SHIPPED = """
# broker.conf as the original ships it
brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = ASYNC_FLUSH
"""
OF_THE_STORE = {"deleteWhen", "fileReservedTime", "brokerRole", "flushDiskType"}


def test_the_original_s_file_is_read() -> None:
    config, unknown = load(BrokerConfig, read_properties(SHIPPED))
    assert (config.broker_name, config.broker_id) == ("broker-a", 0)
    assert {key.key for key in unknown} == OF_THE_STORE


def test_keys_are_spelt_as_in_java() -> None:
    keys = set(as_properties(BrokerConfig()))
    assert {"brokerIP1", "brokerIP2", "namesrvAddr", "shortPollingTimeMills", "listenPort"} <= keys


def test_a_misspelt_key_is_told_with_the_one_that_was_meant() -> None:
    _, (unknown,) = load(BrokerConfig, {"brokerNmae": "x"})
    assert str(unknown) == "unknown key brokerNmae (did you mean brokerName?)"


def test_a_value_that_cannot_be_names_its_key() -> None:
    with pytest.raises(ConfigError, match="brokerPermission must be a whole number"):
        load(BrokerConfig, {"brokerPermission": "rw"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("brokerName", ""),
        ("brokerClusterName", " "),
        ("listenPort", "2"),
        ("listenPort", "65535"),
        ("advertisedPort", "2"),
        ("advertisedPort", "65536"),
        ("namesrvAddr", ";;;"),
        ("namesrvAddr", " ; "),
        ("namesrvAddr", "a:0;b:1"),
    ],
)
def test_a_broker_that_nobody_could_reach_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{key} (must be|is empty)"):
        load(BrokerConfig, {key: value})
    assert load(BrokerConfig, {"listenPort": "0"})[0].listen_port == 0


def test_keys_without_effect_are_known_and_have_no_field() -> None:
    values = {"sendMessageThreadPoolNums": "4", "brokerName": "b"}
    _, unknown = load(BrokerConfig, values)
    assert unknown == []
    assert ignored_keys(BrokerConfig, values) == ["sendMessageThreadPoolNums"]
    assert not BROKER_KEYS.keys() & set(as_properties(BrokerConfig()))


def test_only_live_settings_change_while_running() -> None:
    config = BrokerConfig()
    configuration = Configuration([config], {})
    configuration.update({"brokerPermission": "4"})
    with pytest.raises(ConfigError, match="brokerName cannot change while the server runs"):
        configuration.update({"brokerPermission": "2", "brokerName": "other"})
    assert (config.broker_permission, config.broker_name) == (4, "DEFAULT_BROKER")


def test_settings_change_in_no_other_way() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        BrokerConfig().broker_permission = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"aclEnable": "true", "authenticationEnabled": "true"}, "two kinds of access control"),
        ({"aclEnable": "true", "rocketmqHome": ""}, "aclEnable=true needs rocketmqHome"),
    ],
)
def test_accounts_that_cannot_be_used_are_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load(BrokerConfig, {"rocketmqHome": "/opt/rocketmq", **given})


def test_the_file_for_accounts_may_be_a_system_property(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_OPT", raising=False)
    assert BrokerConfig().acl_plain_file == "conf/plain_acl.yml"
    monkeypatch.setenv("JAVA_OPT", "-Drocketmq.acl.plain.file=conf/other.yml")
    assert BrokerConfig().acl_plain_file == "conf/other.yml"
