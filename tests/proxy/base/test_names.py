# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.proxy.base.names import group_of, has_controls, topic_of
from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.messages import message_type

RESOURCE = message_type("Resource")


def test_only_the_name_of_a_resource_counts() -> None:
    assert topic_of(RESOURCE(resource_namespace="N", name="A%B")) == "A%B"
    assert group_of(RESOURCE(name="%RETRY%G")) == "%RETRY%G"


@pytest.mark.parametrize("name", ["", " ", "a b", "a.b", "x" * 128, "TBW102", "rmq_sys_x"])
def test_topics_that_cannot_be(name: str) -> None:
    with pytest.raises(Refused) as refused:
        topic_of(RESOURCE(name=name))
    assert refused.value.code is Code.ILLEGAL_TOPIC


@pytest.mark.parametrize("name", ["", "a b", "x" * 121, "CID_RMQ_SYS_TRANS"])
def test_groups_that_cannot_be(name: str) -> None:
    with pytest.raises(Refused) as refused:
        group_of(RESOURCE(name=name))
    assert refused.value.code is Code.ILLEGAL_CONSUMER_GROUP


def test_control_characters_are_those_of_java() -> None:
    every = {chr(code) for code in range(0x100) if has_controls(f"a{chr(code)}b")}
    assert every == {chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)]}
