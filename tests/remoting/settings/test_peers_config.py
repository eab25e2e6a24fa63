# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.settings.config_file import ConfigError, load
from txrocketmq.remoting.settings.peers_config import PeersConfig


@pytest.mark.parametrize("cls", [BrokerConfig, NamesrvConfig])
def test_the_load_balancers_of_a_server_are_a_setting(cls: type[PeersConfig]) -> None:
    assert cls().proxy_protocol_from == (), "nobody is believed"
    config, unknown = load(cls, {"proxyProtocolFrom": "10.0.0.5; 10.1.0.0/16;2001:db8::/32"})
    assert config.proxy_protocol_from == ("10.0.0.5", "10.1.0.0/16", "2001:db8::/32")
    assert unknown == []


@pytest.mark.parametrize("cls", [BrokerConfig, NamesrvConfig])
@pytest.mark.parametrize("key", ["proxyProtocolFrom", "adminAddresses"])
@pytest.mark.parametrize("text", ["balancer.example", "10.0.0.0/33", "10.0.0.5,10.0.0.6", "*"])
def test_what_is_no_address_is_refused_in_one_sentence(
    cls: type[PeersConfig], key: str, text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(cls, {key: f"10.0.0.1;{text}"})
    assert str(caught.value) == (
        f"{key} must be addresses and networks like 10.0.0.5;10.1.0.0/16;2001:db8::/32,"
        f" not {text!r}"
    )


@pytest.mark.parametrize("cls", [BrokerConfig, NamesrvConfig])
def test_the_settings_of_metrics_are_checked_as_well(cls: type[PeersConfig]) -> None:
    with pytest.raises(ConfigError, match="metricsLabel must be"):
        load(cls, {"metricsLabel": "no colon"})
