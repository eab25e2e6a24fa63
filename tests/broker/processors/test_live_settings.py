# SPDX-License-Identifier: Apache-2.0
"""What UPDATE_BROKER_CONFIG takes of the administration of topics counts at once.

See tests/broker/test_live_settings.py, which finds the settings that have no check.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.test_service import Client, Scene
from tests.broker.updated import update
from tests.live import Checks
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol import topic
from txrocketmq.remoting.protocol.body.route import (
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)
from txrocketmq.remoting.protocol.topic import (
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetAllTopicConfigRequestHeader,
)

check = Checks()


def topics_of_a_page(scene: Scene) -> int:
    version = scene.broker.parts.topics.data_version.encode().decode()
    header = GetAllTopicConfigRequestHeader(topic_seq=0, data_version=version, max_topic_num=5)
    body = Client(scene).ask(topic.GET_ALL_TOPIC_CONFIG, header).body
    return len(TopicConfigAndMappingSerializeWrapper.decode(body).topic_config_table)


@check
def enable_split_metadata(scene: Scene) -> None:
    assert topics_of_a_page(scene) == 5
    update(scene, enableSplitMetadata="false")
    assert topics_of_a_page(scene) == len(scene.broker.parts.topics.all())


@check
def split_metadata_size(scene: Scene) -> None:
    assert topics_of_a_page(scene) == 5
    update(scene, splitMetadataSize=2)
    assert topics_of_a_page(scene) == 2


def code_of_topic(scene: Scene, name: str, attributes: str = "") -> int:
    header = CreateTopicRequestHeader(
        topic=name, default_topic="TBW102", read_queue_nums=4, write_queue_nums=4, perm=7,
        topic_filter_type="SINGLE_TAG", attributes=attributes,
    )  # fmt: skip
    client = Client(scene)
    client.tell(topic.UPDATE_AND_CREATE_TOPIC, header)
    scene.pass_ms(1_000)
    (answer,) = client.heard()
    return answer.code


@check
def validate_system_topic_when_update_topic(scene: Scene) -> None:
    for protected, code in (
        ("true", ResponseCode.INVALID_PARAMETER),
        ("false", ResponseCode.SUCCESS),
    ):
        update(scene, validateSystemTopicWhenUpdateTopic=protected)
        assert code_of_topic(scene, "TBW102") == code


@check
def enable_mixed_message_type(scene: Scene) -> None:
    for may_be, code in (("false", ResponseCode.INVALID_PARAMETER), ("true", ResponseCode.SUCCESS)):
        update(scene, enableMixedMessageType=may_be)
        assert code_of_topic(scene, "T", "+message.type=MIXED") == code


@check
def clear_retry_topic_when_delete_topic(scene: Scene) -> None:
    retry = "%RETRY%g_T"
    for clears, is_left in (("false", True), ("true", False)):
        update(scene, clearRetryTopicWhenDeleteTopic=clears)
        for name in ("T", retry):
            scene.broker.parts.topics.update(TopicConfig(topic_name=name))
        scene.broker.parts.offsets.commit("g", "T", 0, 1)
        Client(scene).tell(topic.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader(topic="T"))
        scene.pass_ms(1_000)
        assert (scene.broker.parts.topics.get(retry) is not None) is is_left


def parts_of_a_registration(scene: Scene) -> int:
    """In how many requests the broker registers its topics."""
    while scene.registered():  # topics that were just made
        pass
    scene.broker.parts.registration.register(force=True)
    count = 0
    while found := scene.registered():
        count += len(found)
    return count


@check
def enable_split_registration(scene: Scene) -> None:
    for name in "abc":
        scene.broker.parts.topics.update(TopicConfig(topic_name=name))
    update(scene, splitRegistrationSize=1)
    assert parts_of_a_registration(scene) == 1
    update(scene, enableSplitRegistration="true")
    assert parts_of_a_registration(scene) > 3


@check
def split_registration_size(scene: Scene) -> None:
    for name in "abc":
        scene.broker.parts.topics.update(TopicConfig(topic_name=name))
    update(scene, enableSplitRegistration="true")
    assert parts_of_a_registration(scene) == 1
    update(scene, splitRegistrationSize=1)
    assert parts_of_a_registration(scene) > 3


@pytest.mark.parametrize("name", check)
def test_a_live_setting_counts_at_once(tmp_path: Path, name: str) -> None:
    check[name](Scene(tmp_path).start())
