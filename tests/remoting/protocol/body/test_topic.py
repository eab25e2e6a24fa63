# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.remoting.protocol.conftest import original_bodies
from txrocketmq.remoting.protocol.body import topic
from txrocketmq.remoting.protocol.body.base import BodyError
from txrocketmq.remoting.protocol.body.topic import (
    CustomizedRetryPolicy,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
)
from txrocketmq.remoting.serialize.json import encode_pretty


def test_bodies_are_the_originals(same_bodies_as_the_original: Callable[..., None]) -> None:
    same_bodies_as_the_original(topic)


def test_configuration_file_is_as_5_4_writes_it() -> None:
    text = original_bodies("5.4.0", "pretty")["SubscriptionGroupWrapper"]
    pretty = text.replace("\\n", "\n").replace("\\t", "\t")
    wrapper = SubscriptionGroupWrapper.decode(pretty.encode())
    assert encode_pretty(wrapper).decode() == pretty


def test_a_group_of_4_9_has_the_defaults_of_5_x() -> None:
    config = SubscriptionGroupConfig.decode(b'{"groupName":"g","consumeEnable":false}')
    assert config == SubscriptionGroupConfig(group_name="g", consume_enable=False)
    assert (config.retry_max_times, config.consume_timeout_minute) == (16, 15)
    assert config.group_retry_policy.type == "CUSTOMIZED"


def test_default_delays_are_those_of_the_original() -> None:
    fresh = original_bodies("5.4.0", "fresh")["CustomizedRetryPolicy"]
    assert CustomizedRetryPolicy().encode().decode() == fresh


def test_an_error_tells_the_way_to_it() -> None:
    text = b'{"subscriptionGroupTable":{"g":{"retryMaxTimes":"many"}}}'
    with pytest.raises(BodyError) as caught:
        SubscriptionGroupWrapper.decode(text)
    assert str(caught.value) == (
        "SubscriptionGroupWrapper.subscriptionGroupTable[g].retryMaxTimes:"
        " a number is expected, not 'many'"
    )
