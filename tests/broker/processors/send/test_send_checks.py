# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import FakePeer, refused
from txrocketmq.broker.processors.send.send_checks import SendChecks
from txrocketmq.broker.store.message_store import PutStatus
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader


@pytest.fixture
def checks(parts: Parts) -> SendChecks:
    return SendChecks(parts.config, parts.topics, parts.store)


def header(topic: str, **fields: Any) -> SendMessageRequestHeader:
    return SendMessageRequestHeader(
        **{
            "producer_group": "p", "topic": topic, "default_topic": "TBW102",
            "default_topic_queue_nums": 4, "queue_id": 0, "sys_flag": 0, "born_timestamp": 1,
            "flag": 0, **fields,
        }
    )  # fmt: skip


def test_a_topic_is_drafted_when_it_is_sent_to(parts: Parts, checks: SendChecks) -> None:
    made = checks.topic_of(header("New"), FakePeer())
    assert parts.topics.get("New") is None
    parts.topics.drafts.end(0, 1)
    parts.topics.drafts.make(())
    assert made is parts.topics.get("New")
    with refused(ResponseCode.TOPIC_NOT_EXIST):
        checks.topic_of(header("Other", default_topic="none"), FakePeer())


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (PutStatus.MESSAGE_ILLEGAL, ResponseCode.MESSAGE_ILLEGAL),
        (PutStatus.PROPERTIES_SIZE_EXCEEDED, ResponseCode.MESSAGE_ILLEGAL),
        (PutStatus.SERVICE_NOT_AVAILABLE, ResponseCode.SERVICE_NOT_AVAILABLE),
        (PutStatus.CREATE_MAPPED_FILE_FAILED, ResponseCode.SYSTEM_ERROR),
        (PutStatus.WHEEL_TIMER_NOT_ENABLE, ResponseCode.SYSTEM_ERROR),
        (PutStatus.WHEEL_TIMER_MSG_ILLEGAL, ResponseCode.MESSAGE_ILLEGAL),
        (PutStatus.WHEEL_TIMER_FLOW_CONTROL, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_what_a_refused_message_is_answered(
    checks: SendChecks, status: PutStatus, code: ResponseCode
) -> None:
    assert checks.refusal_of(status).code == code
    assert checks.refusal_of(status).remark


def test_names_that_can_be_stored(checks: SendChecks) -> None:
    assert checks.is_storable("x" * 127)
    assert checks.is_storable("%RETRY%" + "x" * 200)
    assert not checks.is_storable("%DLQ%" + "x" * 200)
