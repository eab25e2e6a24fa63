# SPDX-License-Identifier: Apache-2.0
"""What else 5.x keeps of a group: retry policies, attributes, and where it begins.

And where it goes on when an administrator says so, while its consumers are there.
"""

import pytest

from compat_tests import probe
from compat_tests.java_client import ClientJvm, message, text
from compat_tests.peers import ORIGINALS_OF_5, Broker, Origin
from compat_tests.scene import Scene, poll

QUERY_CONSUMER_OFFSET = 14
EXPONENTIAL = (
    '{"type":"EXPONENTIAL",'
    '"exponentialRetryPolicy":{"initial":600000,"max":7200000,"multiplier":3}}'
)
CUSTOMIZED = '{"type":"CUSTOMIZED","customizedRetryPolicy":{"next":[600000,600000]}}'


@pytest.fixture
def scene_of_5(jvms: dict[str, ClientJvm], broker: Broker, origin: Origin) -> Scene:
    if origin.behaves_as == "4.9.7":
        pytest.skip("4.9 knows neither")
    return Scene(jvms["5.4.0"], broker)


def shown(scene: Scene, group: str) -> dict[str, str]:
    """What getConsumerConfig prints of a group, by name."""
    said = scene.mqadmin(f"getConsumerConfig -g {group}")
    pairs = [line.partition("=") for line in said.splitlines() if "=" in line]
    return {name.strip(): value.strip() for name, _, value in pairs}


def test_retry_policies_and_attributes_are_kept_and_shown(scene_of_5: Scene) -> None:
    scene = scene_of_5
    group = scene.unique("group")
    update = f"updateSubGroup -b {scene.broker.address} -g {group}"
    scene.mqadmin(f"{update} -p {EXPONENTIAL} --attributes +priority.factor=100")
    first = shown(scene, group)
    policy = first["groupRetryPolicy"]
    assert "type=EXPONENTIAL" in policy
    assert "ExponentialRetryPolicy{initial=600000, max=7200000, multiplier=3}" in policy
    assert first["attributes"] == "{priority.factor=100}"
    scene.mqadmin(f"{update} -p {CUSTOMIZED} --attributes +priority.factor=100")
    second = shown(scene, group)
    assert "type=CUSTOMIZED" in second["groupRetryPolicy"]
    assert "CustomizedRetryPolicy{next=[600000, 600000]}" in second["groupRetryPolicy"]
    assert second["attributes"] == "{priority.factor=100}"
    scene.mqadmin(f"{update} --attributes +no.such=1")
    scene.mqadmin(f"{update} --attributes +priority.factor=101")
    assert shown(scene, group) == second


@pytest.mark.parametrize("policy", [EXPONENTIAL, CUSTOMIZED])
def test_what_is_sent_back_waits_by_the_delay_levels(scene_of_5: Scene, policy: str) -> None:
    """The policy is for proxies, which ask for it; the broker's own retries go by levels."""
    scene = scene_of_5
    topic, group = scene.topic(queues=1), scene.unique("group")
    scene.mqadmin(f"updateSubGroup -b {scene.broker.address} -g {group} -p {policy}")
    assert policy.split('"')[3] in shown(scene, group)["groupRetryPolicy"]
    consumer = scene.push_consumer(topic, group, times_later=1, later_level=0)
    scene.producer().send([message(topic, "again")])
    first, second = consumer.wait_for(2, timeout_s=90)
    assert (text(first), text(second)) == ("again", "again")
    assert second["reconsume_times"] == 1
    one, other = consumer.events()
    assert 9_000 <= other["at_ms"] - one["at_ms"] < 90_000
    scene.close()


@pytest.mark.parametrize(
    "begin", ["CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_TIMESTAMP"]
)
def test_a_new_group_on_an_empty_queue_gets_what_comes(
    scene: Scene, origin: Origin, begin: str
) -> None:
    if origin.name in ORIGINALS_OF_5 and begin == "CONSUME_FROM_LAST_OFFSET":
        pytest.skip("5.4.0 loses what is sent between the consumer's question and its first pull")
    topic, group = scene.topic(queues=1), scene.unique("group")
    consumer = scene.push_consumer(topic, group, **{"from": begin})
    poll(lambda: bool(consumer.assignment()), "the consumer has the queue", 60)
    scene.producer().send([message(topic, "first")])
    consumer.wait_for(1)
    assert consumer.bodies() == ["first"]


def consumed(scene: Scene, group: str, topic: str) -> int:
    """Up to which offset of the first queue the group has consumed, as the broker knows it."""
    fields = {"consumerGroup": group, "topic": topic, "queueId": "0"}
    answer, _ = probe.request(scene.broker.port, QUERY_CONSUMER_OFFSET, fields)
    return int(answer["extFields"]["offset"]) if answer["code"] == 0 else -1


@pytest.mark.both_releases
def test_a_reset_reaches_consumers_that_are_there(scene: Scene) -> None:
    """By the next pull in 5.x, by a request of the broker in 4.9."""
    topic, group = scene.topic(queues=1), scene.unique("group")
    scene.producer().send([message(topic, f"m{n}") for n in range(5)])
    consumer = scene.push_consumer(topic, group)
    consumer.wait_for(5)
    poll(lambda: consumed(scene, group, topic) == 5, "the offset is committed", 60)
    said = scene.mqadmin(f"resetOffsetByTime -g {group} -t {topic} -s 0")
    assert topic in said or "reset" in said
    consumer.wait_for(10, timeout_s=120)
    assert sorted(consumer.bodies()) == sorted([f"m{n}" for n in range(5)] * 2)
    poll(lambda: consumed(scene, group, topic) == 5, "it is at the end again", 60)
