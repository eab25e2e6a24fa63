# SPDX-License-Identifier: Apache-2.0
"""The admin client is all its parts, in all faces."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from tests.client.admin.fake_cluster import Cluster
from tests.client.fakes import result_of
from txrocketmq.client import aio, blocking, tx
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.admin.clients import Clients
from txrocketmq.client.admin.groups import Groups
from txrocketmq.client.admin.messages import Messages
from txrocketmq.client.admin.offsets import Offsets
from txrocketmq.client.admin.servers import Servers
from txrocketmq.client.admin.topics import Topics
from txrocketmq.client.faces.faces import members

WANTED = {
    "brokers", "clone_offsets", "consume_directly", "create_group", "create_topic", "delete_group",
    "delete_topic", "message", "messages_between", "messages_by_key", "progress", "reset_offsets",
    "topic_stats", "update_broker_config",
}  # fmt: skip
AMONG_PARTS = {"delete_topic_here"}
"""What one part does for another."""


@pytest.mark.parametrize("face", [blocking, aio, tx])
def test_each_face_has_every_method(face: ModuleType) -> None:
    names = {member.name for member in members(Admin)}
    assert names >= WANTED
    assert not names & {"start", "shutdown"}
    for name in names:
        assert hasattr(face.Admin, name)


@pytest.mark.parametrize("part", [Topics, Groups, Clients, Offsets, Messages, Servers])
def test_it_has_what_its_parts_have(part: type) -> None:
    for name, method in vars(part).items():
        if not name.startswith("_") and name not in AMONG_PARTS:
            its = getattr(Admin, name)
            assert its.__wrapped__ is method
            assert inspect.iscoroutinefunction(its)
            assert inspect.signature(its) == inspect.signature(method)


def test_it_asks_nothing_before_it_is_asked() -> None:
    cluster = Cluster()
    result_of(cluster.admin.start())
    result_of(cluster.admin.shutdown())
    assert cluster.connections.asked == []


def test_every_method_says_what_it_does_and_what_it_raises() -> None:
    for member in members(Admin):
        if not member.is_property:
            text = member.function.__doc__ or ""
            assert "Raises" in text or "Raise" in text, member.name
