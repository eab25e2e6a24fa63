# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq groups` with a client among fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.administered import Administered
from tests.client.admin.fake_cluster import CONNECTIONS
from txrocketmq.cli.admin.groups import main
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.protocol import topic
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.operations import admin


@pytest.fixture
def groups(administered: Administered) -> Administered:
    cluster = administered.cluster
    for name in ("g", "TOOLS_CONSUMER", "CID_RMQ_SYS_TRANS"):
        cluster.know(name)

    def keep(address: str, header: Any, body: bytes) -> Reply[Any]:
        told = SubscriptionGroupConfig.decode(body)
        cluster.groups[address][str(told.group_name)] = told
        return Reply()

    cluster.on_both(topic.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, keep)
    cluster.on_both(topic.DELETE_SUBSCRIPTIONGROUP, Reply())
    cluster.on_both(admin.GET_CONSUMER_CONNECTION_LIST, Reply(body=CONNECTIONS))
    return administered


def test_the_list_leaves_out_groups_of_the_system(groups: Administered) -> None:
    assert groups.run(main, "list") == 0
    assert groups.out == "GROUP\ng\n"
    groups.run(main, "list", "--all", "--json")
    assert len(groups.out.splitlines()) == 3


def test_settings(groups: Administered) -> None:
    words = ["--set", "retry_max_times=3", "--set", "consume_enable=false", "-b", "broker-a"]
    assert groups.run(main, "create", "n", *words) == 0
    assert groups.out == "created group n\n"
    assert groups.run(main, "update", "n", "--set", "retry_queue_nums=2") == 0
    groups.run(main, "show", "n", "--json")
    shown = json.loads(groups.out)
    assert (shown["broker"], shown["retryMaxTimes"], shown["retryQueueNums"]) == ("broker-a", 3, 2)
    assert shown["consumeEnable"] is False
    groups.run(main, "show", "n")
    assert ["consumeEnable", "no"] in groups.lines


def test_consumers(groups: Administered) -> None:
    assert groups.run(main, "consumers", "g") == 0
    assert groups.lines[1] == ["c1", "10.0.2.1:5", "JAVA", "CLUSTERING", "T", "[a]"]


def test_a_group_is_deleted_when_that_is_wanted(groups: Administered) -> None:
    assert groups.run(main, "delete", "g") == 1
    assert groups.cluster.asked(topic.DELETE_SUBSCRIPTIONGROUP) == []
    assert groups.run(main, "delete", "g", "-y", "--keep-offsets") == 0
    header: Any = groups.cluster.connections.questions(topic.DELETE_SUBSCRIPTIONGROUP)[0][1]
    assert not header.clean_offset


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["create", "n", "--set", "retry=1"], "no setting 'retry' here"),
        (["create", "n", "--set", "retry_max_times=x"], "must be a whole number, not 'x'"),
        (["create", "n", "--set", "consume_enable=1"], "must be true or false, not '1'"),
        (["update", "g"], "nothing is to be changed"),
    ],
)
def test_wrong_usage(groups: Administered, words: list[str], why: str) -> None:
    assert groups.run(main, *words) == 2
    assert why in groups.err
