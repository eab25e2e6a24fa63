# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq brokers` with a client among fakes."""

from __future__ import annotations

import pytest

from tests.cli.administered import Administered
from tests.client.fakes import BROKER_A
from txrocketmq.cli.admin.brokers import main
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.protocol.body.route import KVTable
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import GetBrokerConfigResponseHeader


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
    assert brokers.lines[1] == ["c", "broker-a", "0", BROKER_A, "V5_4_0", "1.5", "-"]
    assert brokers.lines[3][4:] == ["-", "-", "-"]


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
