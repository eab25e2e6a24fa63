# SPDX-License-Identifier: Apache-2.0
"""The numbers that everything rests on."""

from __future__ import annotations

import pytest

from txrocketmq.remoting.codes import (
    SERVED_VERSION,
    LanguageCode,
    MQVersion,
    RequestCode,
    ResponseCode,
    SerializeType,
)


@pytest.mark.parametrize(
    ("code", "number"),
    [
        (RequestCode.SEND_MESSAGE, 10),
        (RequestCode.PULL_MESSAGE, 11),
        (RequestCode.HEART_BEAT, 34),
        (RequestCode.REGISTER_BROKER, 103),
        (RequestCode.GET_ROUTEINFO_BY_TOPIC, 105),
        (RequestCode.SEND_MESSAGE_V2, 310),
        (RequestCode.SEND_BATCH_MESSAGE, 320),
        (RequestCode.LITE_PULL_MESSAGE, 361),
        (RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, 50),
        (RequestCode.POP_MESSAGE, 200050),
        (ResponseCode.SYSTEM_ERROR, 1),
        (ResponseCode.FLUSH_DISK_TIMEOUT, 10),
        (ResponseCode.PULL_NOT_FOUND, 19),
        (ResponseCode.QUERY_NOT_FOUND, 22),
        (ResponseCode.INVALID_PARAMETER, 29),
        (ResponseCode.GO_AWAY, 1500),
        (LanguageCode.JAVA, 0),
        (LanguageCode.PYTHON, 3),
        (LanguageCode.GO, 9),
        (SerializeType.ROCKETMQ, 1),
        (MQVersion.V4_9_7, 407),
        (MQVersion.V5_4_0, 493),
    ],
)
def test_numbers_are_the_originals(code: int, number: int) -> None:
    assert code == number


def test_no_number_has_two_names() -> None:
    for kind in (RequestCode, ResponseCode, LanguageCode, MQVersion):
        assert len(kind) == len(kind.__members__), kind


def test_the_version_told_is_one_whose_features_are_served() -> None:
    assert SERVED_VERSION is MQVersion.V4_9_7  # V5_4_0 promises POP and timer messages
