# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

from tests.proxy.scene import ProxyScene
from tests.proxy.schema.test_tables import GOLDEN
from txrocketmq.proxy.grpc.service import Kind

UNSERVED = {"PullMessage", "UpdateOffset", "GetOffset", "QueryOffset", "SyncLiteSubscription"}
"""What is UNIMPLEMENTED: the original has only the last one of these."""


def test_all_methods_are_served_but_those_of_pulling_and_lite_topics(scene: ProxyScene) -> None:
    official = json.loads(GOLDEN.read_text("utf-8"))["methods"]
    served = {its.rpc.name: its.rpc for its in scene.messaging.rpcs}
    assert set(served) == set(official) - UNSERVED
    for name, (request, is_in, _, is_out) in official.items():
        if name in served:
            kind = {(False, False): Kind.UNARY, (False, True): Kind.STREAM}
            assert served[name].kind is kind.get((is_in, is_out), Kind.CONVERSATION)
            assert served[name].request_name == request


def test_it_ends(scene: ProxyScene) -> None:
    scene.messaging.stop()
    assert scene.connections.closed
    assert scene.time.getDelayedCalls() == []
