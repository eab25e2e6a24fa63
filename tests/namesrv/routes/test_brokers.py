# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses

import pytest

from txrocketmq.namesrv.routes.brokers import Broker
from txrocketmq.remoting.protocol.body.route import BrokerData


def test_a_broker_is_sent_with_its_addresses_or_others() -> None:
    broker = Broker("c", "b", {0: "one", 1: "other"}, zone="north", acting_master=True)
    sent = BrokerData(
        cluster="c", broker_name="b", broker_addrs={0: "one", 1: "other"}, zone_name="north",
        enable_acting_master=True,
    )  # fmt: skip
    assert broker.data() == sent
    assert broker.data({2: "third"}).broker_addrs == {2: "third"}


@pytest.mark.parametrize(
    ("broker_id", "acts", "lacks"), [(0, True, False), (1, True, True), (1, False, False)]
)
def test_a_slave_stands_in_only_where_that_is_wanted(
    broker_id: int, acts: bool, lacks: bool
) -> None:
    assert Broker("c", "b", {broker_id: "a"}, acting_master=acts).lacks_master is lacks


def test_what_was_looked_at_once_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Broker("c", "b").zone = "south"  # type: ignore[misc]
