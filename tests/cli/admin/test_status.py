# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq status`, and `txrocketmq` alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.administered import Administered
from tests.client.fakes import NAME_SERVER
from txrocketmq.cli.__main__ import main as txrocketmq
from txrocketmq.cli.admin import status
from txrocketmq.cli.admin.overview import Overview
from txrocketmq.cli.admin.status import SHOWN, as_object, main, text
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.protocol import route

BROKER = {
    "cluster": "DefaultCluster", "broker": "broker-a", "brokerId": 0, "address": "10.0.1.1:10911",
    "version": "V5_4_0", "putTps": 1.0, "getTps": 0.5, "diskRatio": 0.37, "problem": None,
}  # fmt: skip


def a_topic(n: int) -> dict[str, Any]:
    return {
        "topic": f"Topic{n:02}", "queues": 8, "perm": "rw", "messages": n, "putTps": 0.0,
        "estimatedBytes": 10, "size": "10 B", "lastUpdate": "2026-11-21 10:10:10.123",
    }  # fmt: skip


def a_group(n: int) -> dict[str, Any]:
    return {"group": f"group{n:02}", "consumers": 0, "model": None, "tps": 0.0, "lag": n,
            "inFlight": 0}  # fmt: skip


def many() -> Overview:
    return Overview(
        "10.0.0.1:9876",
        [BROKER],
        [a_topic(n) for n in range(25)] + [{"topic": "silent"}],
        [a_group(n) for n in range(25)],
        ["Something is wrong, " + "and it takes many words to say what it is. " * 5],
        more_topics=100,
    )


def test_everything_is_there_and_80_columns_wide() -> None:
    shown = text(many(), 80)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Name servers: 10.0.0.1:9876"
    assert lines[3].split()[:3] == ["broker-a", "0", "10.0.1.1:10911"]
    assert lines[3].endswith(" 37%")
    assert lines[-4].startswith("Warning: Something is wrong, and")
    assert all(line.startswith("  ") for line in lines[-3:])


def test_the_most_important_come_first_and_the_rest_is_counted() -> None:
    shown = text(many(), 80)
    assert "Topic24" in shown
    assert "Topic04" not in shown
    assert shown.index("Topic24") < shown.index("Topic23") < shown.index("group24")
    assert f"... and {26 - SHOWN + 100} more: 'txrocketmq topics list' lists all." in shown
    assert f"... and {25 - SHOWN} more: 'txrocketmq lag' lists all." in shown


def test_a_new_cluster_says_what_to_do() -> None:
    shown = text(Overview("a:1", [BROKER]), 80)
    assert "There are no topics yet: 'txrocketmq send TOPIC BODY' makes one." in shown
    assert shown.endswith("No warnings.")


def test_programs_get_one_object() -> None:
    value = as_object(many())
    assert (len(value["topics"]), value["topicsLeftOut"]) == (26, 100)


@pytest.fixture
def empty(administered: Administered, monkeypatch: pytest.MonkeyPatch) -> Administered:
    async def overview(_: Any) -> Overview:
        return Overview("a:1", [BROKER])

    monkeypatch.setattr(status, "overview", overview)
    return administered


@pytest.mark.parametrize("words", [[], ["status"], ["-n", "a:1"], ["status", "-n", "a:1"]])
def test_it_is_what_the_command_does_if_it_is_given_no_other(
    empty: Administered, words: list[str]
) -> None:
    assert empty.run(txrocketmq, *words) == 0
    assert empty.out.startswith("Name servers: a:1\n")


def test_json(empty: Administered) -> None:
    assert empty.run(main, "--json") == 0
    assert json.loads(empty.out)["nameServers"] == "a:1"


def test_where_nobody_answers_one_sentence_says_what_to_do(administered: Administered) -> None:
    administered.cluster.connections.on(
        NAME_SERVER, route.GET_BROKER_CLUSTER_INFO, ConnectError("connection refused")
    )
    assert administered.run(txrocketmq) == 1
    assert administered.out == (
        f"txrocketmq status: no name server is reachable: {NAME_SERVER} (connection refused): start"
        " servers with 'txrocketmq standalone', or name those of a cluster with --namesrv or"
        " $NAMESRV_ADDR ('txrocketmq --help' lists the commands)\n"
    )
