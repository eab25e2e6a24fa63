# SPDX-License-Identifier: Apache-2.0
"""Request and reply between official clients, of either release and of both."""

import pytest

from compat_tests.java_client import ClientJvm, JavaError, body, message, text
from compat_tests.peers import Broker
from compat_tests.scene import Scene, poll
from compat_tests.transactions import Asker, Replier


def asker_of(scene: Scene) -> Asker:
    made = Asker(scene.jvm, scene.unique("asker"), scene.namesrv)
    scene._clients.append(made)
    return made


def replier_of(scene: Scene, topic: str, delay_ms: int = 0, **settings: int) -> Replier:
    made = Replier(
        scene.jvm,
        scene.unique("replier"),
        scene.namesrv,
        topic=topic,
        group=scene.unique("repliers"),
        delay_ms=delay_ms,
        **settings,
    )
    scene._clients.append(made)
    return made


def wait_for_reply(scene: Scene, said: str) -> None:
    """Until a reply is stored, in the topic that all tests share.

    Others may be there as they were compressed: the original loses the flag that tells so.
    """

    def is_stored() -> bool:
        stored = scene.read("DefaultCluster_REPLY_TOPIC", 1)
        return said.encode() in [body(item) for item in stored if item["body_bytes"] < 99]

    poll(is_stored, f"{said} is stored")


@pytest.mark.both_releases
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_request_is_replied_to(scene: Scene, mode: str) -> None:
    topic = scene.topic(queues=1)
    replier = replier_of(scene, topic)
    asker = asker_of(scene)
    for n in range(3):
        reply = asker.request(message(topic, f"{topic} {n}", tags="a"), mode=mode)
        assert text(reply) == f"re: {topic} {n}"
        assert (reply["topic"], reply["flag"]) == ("DefaultCluster_REPLY_TOPIC", 7)
        assert reply["properties"]["MSG_TYPE"] == "reply"
        assert reply["properties"]["REPLY_TO_CLIENT"] == asker.client_id
        assert int(reply["properties"]["PUSH_REPLY_TIME"]) > 0
    outcomes = replier.wait_for(3)
    assert [each["result"]["status"] for each in outcomes] == ["SEND_OK"] * 3
    wait_for_reply(scene, f"re: {topic} 2")


def test_a_large_reply_comes_compressed(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    replier = replier_of(scene, topic, compress_over_bytes=1_000)
    reply = asker_of(scene).request(message(topic, "x" * 3_000))
    assert text(reply) == "re: " + "x" * 3_000
    assert replier.wait_for(1)[0]["result"]["status"] == "SEND_OK"


def test_a_requester_that_has_gone(scene: Scene) -> None:
    """The replier is told, and the reply is stored all the same."""
    topic = scene.topic(queues=1)
    replier = replier_of(scene, topic, delay_ms=6_000)
    asker = asker_of(scene)
    with pytest.raises(JavaError):
        asker.request(message(topic, topic), timeout_s=3)
    scene.stopped(asker)
    (outcome,) = replier.wait_for(1)
    assert outcome["error"]["code"] == 1
    assert "not found" in outcome["error"]["cause"]["message"]
    wait_for_reply(scene, f"re: {topic}")


def test_both_releases_together(jvms: dict[str, ClientJvm], broker: Broker) -> None:
    scenes = [Scene(jvm, broker) for jvm in jvms.values()]
    for one, other in (scenes, scenes[::-1]):
        topic = one.topic(queues=1)
        replier = replier_of(other, topic)
        reply = asker_of(one).request(message(topic, "from the other release"))
        assert text(reply) == "re: from the other release"
        assert replier.wait_for(1)[0]["result"]["status"] == "SEND_OK"
    for scene in scenes:
        scene.close()
