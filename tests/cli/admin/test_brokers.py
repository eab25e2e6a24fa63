# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq brokers` with a client among fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.administered import Administered
from tests.client.fakes import BROKER_A
from txrocketmq.cli.admin.brokers import main
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol.body.ha import HAClientRuntimeInfo, HARuntimeInfo
from txrocketmq.remoting.protocol.body.route import KVTable
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import GetBrokerConfigResponseHeader
from txrocketmq.remoting.protocol.operations.ha import GET_BROKER_HA_STATUS

SLAVE = "10.0.1.3:10911"


@pytest.fixture
def brokers(administered: Administered) -> Administered:
    on = administered.cluster.connections.on
    table = {"brokerVersionDesc": "V5_4_0", "putTps": "1.5 2.5 3.5", "getTransferredTps": ""}
    on(BROKER_A, admin.GET_BROKER_RUNTIME_INFO, Reply(body=KVTable(table=table).encode()))
    settings = Reply(GetBrokerConfigResponseHeader(version="{}"), body=b"a=1\nb=2\n")
    on(BROKER_A, admin.GET_BROKER_CONFIG, settings)
    on(BROKER_A, admin.UPDATE_BROKER_CONFIG, Reply())
    return administered


def test_one_that_does_not_answer_is_listed(brokers: Administered) -> None:
    assert brokers.run(main, "list") == 0
    assert brokers.lines[1][:8] == ["c", "broker-a", "0", BROKER_A, "V5_4_0", "1.5", "-", "master"]
    assert brokers.lines[-1][4:8] == ["-", "-", "-", "master"]


@pytest.mark.parametrize("tells", [True, False])
def test_slaves_are_listed_with_how_far_they_are(brokers: Administered, *, tells: bool) -> None:
    """Those of 4.9 do not say when they last heard from their master."""
    on = brokers.cluster.connections.on
    for address, end in ((BROKER_A, 1_000), (SLAVE, 900)):
        table = KVTable(table={"commitLogMaxOffset": str(end)})
        on(address, admin.GET_BROKER_RUNTIME_INFO, Reply(body=table.encode()))
    state = HARuntimeInfo(ha_client_runtime_info=HAClientRuntimeInfo(last_read_timestamp=5_000))
    unserved = Reply[Any](code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    on(SLAVE, GET_BROKER_HA_STATUS, Reply(body=state.encode()) if tells else unserved)
    assert brokers.run(main, "list", "--json") == 0
    rows = [json.loads(line) for line in brokers.out.splitlines()]
    found = [(each["role"], each["behindBytes"], each["heardTimestamp"]) for each in rows]
    assert found == [
        ("master", None, None), ("slave", 100, 5_000 if tells else None), ("master", None, None)
    ]  # fmt: skip
    assert brokers.run(main, "list") == 0
    words = " ".join(brokers.out.split())
    assert "slave, 100" in words
    assert ("ago" in words) is tells
    assert brokers.cluster.asked(GET_BROKER_HA_STATUS) == [SLAVE, SLAVE], "masters are not asked"


def test_how_a_broker_is(brokers: Administered) -> None:
    assert brokers.run(main, "show", "broker-a") == 0
    assert ["putTps", "1.5", "2.5", "3.5"] in brokers.lines


def test_settings(brokers: Administered) -> None:
    assert brokers.run(main, "config", "broker-a") == 0
    assert brokers.lines == [["NAME", "VALUE"], ["a", "1"], ["b", "2"]]
    assert brokers.run(main, "config", "broker-a", "--set", "b=2") == 0
    assert brokers.lines == [["NAME", "VALUE"], ["b", "2"]]
    assert brokers.cluster.asked(admin.UPDATE_BROKER_CONFIG) == [BROKER_A]


def test_a_setting_that_the_broker_ignores(brokers: Administered) -> None:
    """Brokers answer as if they had changed it."""
    assert brokers.run(main, "config", "broker-a", "--set", "aa=2") == 1
    assert "broker broker-a has no setting aa; did you mean a?" in brokers.out
