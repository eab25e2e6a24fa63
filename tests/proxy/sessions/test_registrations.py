# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.proxy.scene import ProxyScene
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import ClientType


def test_a_heartbeat_makes_a_client_known_that_was_forgotten(scene: ProxyScene) -> None:
    assert scene.heartbeat(ClientType.SIMPLE_CONSUMER, "G").code is Code.OK
    client = scene.messaging.clients.get("client-1")
    assert client is not None
    assert (client.kind, client.group, client.host) == (3, "G", "10.1.1.1")
    assert scene.heartbeat(ClientType.PRODUCER, "", client_id="p").code is Code.OK


@pytest.mark.parametrize(
    ("kind", "group", "code"),
    [
        (ClientType.PULL_CONSUMER, "G", Code.UNRECOGNIZED_CLIENT_TYPE),
        (ClientType.LITE_PUSH_CONSUMER, "G", Code.UNRECOGNIZED_CLIENT_TYPE),
        (0, "G", Code.UNRECOGNIZED_CLIENT_TYPE),
        (99, "G", Code.UNRECOGNIZED_CLIENT_TYPE),
        (ClientType.PUSH_CONSUMER, "", Code.ILLEGAL_CONSUMER_GROUP),
    ],
)
def test_clients_that_cannot_be(scene: ProxyScene, kind: int, group: str, code: Code) -> None:
    assert scene.heartbeat(kind, group).code is code
    assert len(scene.messaging.clients) == 0


def test_a_client_that_goes_is_forgotten(scene: ProxyScene) -> None:
    scene.heartbeat()
    assert scene.call("NotifyClientTermination", {}).code is Code.OK
    assert len(scene.messaging.clients) == 0
    assert scene.call("NotifyClientTermination", {}).code is Code.UNRECOGNIZED_CLIENT_TYPE
    assert scene.call("NotifyClientTermination", {}, client_id="").code is Code.CLIENT_ID_REQUIRED
