# SPDX-License-Identifier: Apache-2.0
"""Offsets of members of broadcasting groups that pull through a proxy, as proxies of 5.x ask."""

import time
from typing import Any

import pytest

from compat_tests import probe
from compat_tests.java_client import message
from compat_tests.peers import Origin
from compat_tests.scene import Scene, poll

PULL_MESSAGE, QUERY_CONSUMER_OFFSET = 11, 14
SUCCESS, PULL_NOT_FOUND, PULL_OFFSET_MOVED = 0, 19, 21
_BY_PROXY_FOR_BROADCAST = "1"


class Proxy:
    """Pulls one queue on behalf of clients."""

    def __init__(self, scene: Scene, topic: str, group: str) -> None:
        self._port, self._topic, self._group = scene.broker.port, topic, group

    def pull(self, client: str, offset: int) -> tuple[int, int]:
        """The code of the answer, and where to go on."""
        answer = self._ask(
            PULL_MESSAGE,
            queueOffset=str(offset), maxMsgNums="32", sysFlag="4", commitOffset="0",
            suspendTimeoutMillis="0", subscription="*", subVersion="0", expressionType="TAG",
            requestSource=_BY_PROXY_FOR_BROADCAST, proxyFrowardClientId=client,
        )  # fmt: skip
        return answer["code"], int(answer["extFields"]["nextBeginOffset"])

    def kept(self) -> int | None:
        """What the broker keeps of the group with its offsets."""
        answer = self._ask(QUERY_CONSUMER_OFFSET, group=f"{self._group}@broadcast",
                           setZeroIfNotFound="false")  # fmt: skip
        return int(answer["extFields"]["offset"]) if answer["code"] == SUCCESS else None

    def _ask(self, code: int, group: str | None = None, **fields: str) -> dict[str, Any]:
        fields = {
            "consumerGroup": group or self._group, "topic": self._topic, "queueId": "0", **fields,
        }  # fmt: skip
        return probe.request(self._port, code, fields)[0]


def test_a_proxy_is_told_where_its_clients_go_on(scene: Scene, origin: Origin) -> None:
    if origin.behaves_as == "4.9.7":
        pytest.skip("4.9 knows no proxies")
    topic, group = scene.topic(queues=1), scene.unique("group")
    scene.producer().send([message(topic, f"m{n}") for n in range(5)])
    scene.read(topic, 5)
    proxy = Proxy(scene, topic, group)

    def begins() -> tuple[int, int]:
        return proxy.pull("client-a", -1)

    assert begins() == (PULL_OFFSET_MOVED, 0)  # nobody knows it: from the first message
    assert proxy.pull("client-a", 0) == (SUCCESS, 5)
    assert begins() == (PULL_OFFSET_MOVED, 0)  # it may not have had what was sent
    assert proxy.pull("client-a", 5) == (PULL_NOT_FOUND, 5)
    assert begins() == (PULL_OFFSET_MOVED, 5)
    assert proxy.pull("client-b", 3) == (SUCCESS, 5)
    poll(lambda: proxy.kept() == 3, "where the slowest is, is kept with the offsets", 30)
    time.sleep(0.1)
    assert proxy.pull("client-c", -1) == (PULL_OFFSET_MOVED, 3)
    assert begins() == (PULL_OFFSET_MOVED, 5)
