# SPDX-License-Identifier: Apache-2.0
"""Settings: name servers of a text or of the environment, and the original's defaults."""

from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.client.base.config import ClientConfig, ProducerConfig


def test_name_servers_are_separated_by_semicolons() -> None:
    assert ClientConfig(namesrv_addr=" a:1;b:2 ; ").name_servers == ("a:1", "b:2")
    assert ClientConfig(namesrv_addr="").name_servers == ()


def test_the_environment_names_them_unless_the_program_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "env:1")
    assert ClientConfig().namesrv_addr == "env:1"
    assert ClientConfig(namesrv_addr="own:1").namesrv_addr == "own:1"
    monkeypatch.delenv("NAMESRV_ADDR")
    assert ClientConfig().namesrv_addr == ""


def test_defaults_are_the_java_clients() -> None:
    producer = ProducerConfig()
    assert (producer.send_timeout_ms, producer.retry_times) == (3_000, 2)
    assert producer.max_message_bytes == 4_194_304
    assert producer.compress_body_over_bytes == 4_096
    assert (producer.create_topic_key, producer.default_topic_queue_nums) == ("TBW102", 4)
    assert producer.retry_response_codes == {17, 14, 1, 2, 16, 204, 205, 1500}
    client = ClientConfig()
    assert client.poll_name_server_interval_ms == client.heartbeat_broker_interval_ms == 30_000


def test_keys_come_from_the_environment_and_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKETMQ_ACCESS_KEY", "me")
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", "hidden")
    config = ClientConfig()
    assert (config.access_key, config.secret_key) == ("me", "hidden")
    assert "hidden" not in repr(config)


@pytest.mark.parametrize(
    ("config", "name", "value", "valid"),
    [
        (ProducerConfig, "compression_level", 10, "from 0 to 9, not 10"),
        (ProducerConfig, "retry_times", -1, "from 0 to "),
        (ProducerConfig, "send_timeout_ms", 0, "from 1 to "),
        (ClientConfig, "api_timeout_ms", 0, "from 1 to "),
    ],
)
def test_values_out_of_range_are_refused(config: Any, name: str, value: int, valid: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be {valid}"):
        config(**{name: value})
