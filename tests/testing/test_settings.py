# SPDX-License-Identifier: Apache-2.0
"""Settings for test servers are settings that the broker knows."""

from __future__ import annotations

from txrocketmq.cli.servers.standalone import configure
from txrocketmq.testing.settings import broker_settings, credentials_of


def test_the_broker_knows_them_all() -> None:
    (config, store_config), unknown = configure(broker_settings("/tmp/s", {}))
    assert unknown == []
    assert store_config.store_path_root_dir == "/tmp/s"
    assert config.listen_port == 0


def test_what_a_test_wants_counts() -> None:
    wanted = {"autoCreateTopicEnable": False, "maxMessageSize": 100, "listenPort": "10001"}
    (config, store_config), _ = configure(broker_settings("/tmp/s", wanted))
    assert config.auto_create_topic_enable is False
    assert store_config.max_message_size == 100
    assert config.listen_port == 10001


def test_accounts_stand_for_settings() -> None:
    settings = broker_settings("/s", {"accounts": True, "brokerName": "b"})
    assert settings["authenticationEnabled"] == settings["authorizationEnabled"] == "true"
    assert "accounts" not in settings
    assert credentials_of(settings) == {"access_key": "root", "secret_key": "root-secret"}
    plain = broker_settings("/s", {"accounts": False})
    assert plain == broker_settings("/s", {})
    assert credentials_of(plain) == {}
