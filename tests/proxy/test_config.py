# SPDX-License-Identifier: Apache-2.0
"""The settings of rmq-proxy.json."""

from __future__ import annotations

import pytest

from txrocketmq.proxy.config import MessagingConfig, ProxyConfig
from txrocketmq.remoting.settings.config_file import ConfigError, ignored_keys, load_all


def test_the_keys_are_those_of_the_original() -> None:
    given = {
        "rocketMQClusterName": "C",
        "grpcServerPort": "0",
        "namesrvAddr": "a:1;b:2",
        "grpcThreadPoolNums": "3",
        "maxMessageSize": "7",
        "useEndpointPortFromRequest": "true",
    }
    (config, messaging), unknown = load_all((ProxyConfig, MessagingConfig), given)
    assert not unknown
    assert (config.rocketmq_cluster_name, config.grpc_server_port) == ("C", 0)
    assert (config.namesrv_addr, messaging.max_message_size) == ("a:1;b:2", 7)
    assert ignored_keys(ProxyConfig, given) == ["grpcThreadPoolNums"]


def test_what_nobody_knows_is_said() -> None:
    _, (unknown,) = load_all((ProxyConfig, MessagingConfig), {"grpcServerPrt": "1"})
    assert unknown.nearest == "grpcServerPort"


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("proxyMode", "LOCAL", "proxyMode=LOCAL: a broker in the process of the proxy is not"),
        ("useDelayLevel", "true", "delays by levels is not served"),
        ("grpcServerPort", "70000", "at most 65535"),
        ("proxyProtocolFrom", "here", "proxyProtocolFrom must be addresses"),
    ],
)
def test_what_is_not_served_is_refused(key: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        load_all((ProxyConfig, MessagingConfig), {key: value})


def test_name_servers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "c:3")
    assert ProxyConfig().namesrv_addr == "c:3"
