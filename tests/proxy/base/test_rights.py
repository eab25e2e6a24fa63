# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.scene import ProxyScene
from txrocketmq.access.needs import Action, Need, ResourceType, UnclearNeed
from txrocketmq.proxy.base.rights import Rights, consumer_names, producer_names
from txrocketmq.proxy.schema.messages import message_type

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
PUB, SUB = (Action.PUB,), (Action.SUB,)
T = {"topic": {"name": "T"}}
BOTH = {**T, "group": {"name": "G"}}
CONSUMES = [Need(GROUP, "G", SUB), Need(TOPIC, "T", SUB)]
PUSH, PRODUCER = 2, 1


def rights_of(scene: ProxyScene, method: str) -> tuple[Rights, str]:
    (its,) = [each.rpc for each in scene.messaging.rpcs if each.rpc.name == method]
    return its.rights, its.request_name


def needs(scene: ProxyScene, method: str, request: dict[str, Any]) -> list[Need]:
    rights, name = rights_of(scene, method)
    return list(rights.needs(rights.names(message_type(name)(**request))))


def test_every_method_says_what_it_needs(scene: ProxyScene) -> None:
    """What is forgotten would be for accounts that may do everything."""
    assert [its.rpc.name for its in scene.messaging.rpcs if its.rpc.rights is None] == []
    assert len(list(scene.messaging.rpcs)) == len(EXPECTED)


SUBSCRIBES = {
    "subscription": {
        "group": {"name": "G"},
        "subscriptions": [{"topic": {"name": "T"}}, {"topic": {"name": "%RETRY%H"}}],
    }
}
EXPECTED: dict[str, list[tuple[dict[str, Any], list[Need]]]] = {
    "SendMessage": [
        ({"messages": [T]}, [Need(TOPIC, "T", PUB)]),
        ({"messages": [{"topic": {"name": "%RETRY%G"}}]}, [Need(GROUP, "G", SUB)]),
    ],
    "RecallMessage": [(T, [Need(TOPIC, "T", PUB)])],
    "EndTransaction": [(T, [Need(TOPIC, "T", PUB)])],
    "ReceiveMessage": [({"group": {"name": "G"}, "message_queue": T}, CONSUMES)],
    "AckMessage": [(BOTH, CONSUMES)],
    "ChangeInvisibleDuration": [(BOTH, CONSUMES)],
    "ForwardMessageToDeadLetterQueue": [(BOTH, CONSUMES)],
    "QueryAssignment": [(BOTH, CONSUMES)],
    "QueryRoute": [(T, [Need(TOPIC, "T", (Action.PUB, Action.SUB, Action.GET))])],
    "Heartbeat": [
        ({"client_type": PUSH, "group": {"name": "G"}}, [Need(GROUP, "G", SUB)]),
        ({"client_type": PRODUCER}, []),
    ],
    "NotifyClientTermination": [({"group": {"name": "G"}}, [Need(GROUP, "G", SUB)]), ({}, [])],
    "Telemetry": [
        (
            {"settings": {"publishing": {"topics": [{"name": "T"}, {"name": "U"}]}}},
            [Need(TOPIC, "T", PUB), Need(TOPIC, "U", PUB)],
        ),
        ({"settings": SUBSCRIBES}, [*CONSUMES, Need(GROUP, "H", SUB)]),
        ({"settings": {}}, []),
        ({"thread_stack_trace": {"nonce": "n"}}, []),
    ],
}


@pytest.mark.parametrize("method", sorted(EXPECTED))
def test_what_methods_need(scene: ProxyScene, method: str) -> None:
    for request, expected in EXPECTED[method]:
        assert needs(scene, method, request) == expected


@pytest.mark.parametrize(
    ("method", "request_of_it", "why"),
    [
        ("SendMessage", {}, "message is null."),
        ("SendMessage", {"messages": [{}]}, "topic is null."),
        ("ReceiveMessage", {"group": {"name": "G"}}, "messageQueue is null."),
        ("AckMessage", T, "group is null."),
        ("QueryRoute", {"topic": {"name": " "}}, "topic is null."),
        ("Heartbeat", {"client_type": PUSH}, "group is null."),
        ("Telemetry", {"settings": {"subscription": {}}}, "group is null."),
    ],
)
def test_what_is_missing_is_said(
    scene: ProxyScene, method: str, request_of_it: dict[str, Any], why: str
) -> None:
    with pytest.raises(UnclearNeed) as error:
        needs(scene, method, request_of_it)
    assert str(error.value) == why


def test_a_request_names_so_many_at_most(scene: ProxyScene) -> None:
    rights, _ = rights_of(scene, "Telemetry")
    for names in (producer_names(["T"] * 1_000), consumer_names("G", ["T"] * 1_000)):
        with pytest.raises(UnclearNeed, match="a request may name 1000"):
            list(rights.needs(names))
