# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.access.acl.permissions import PUB, SUB
from txrocketmq.access.acl.plain_needs import PLAIN_NEEDS
from txrocketmq.access.request_needs import NEEDS
from txrocketmq.remoting.codes import RequestCode as C


@pytest.mark.parametrize(
    ("code", "fields", "expected"),
    [
        (C.SEND_MESSAGE, {"topic": "t", "group": "g"}, {"t": PUB}),
        (C.SEND_MESSAGE_V2, {"b": "%RETRY%x", "a": "g"}, {"%RETRY%x": SUB}),
        (C.SEND_BATCH_MESSAGE, {"b": "t"}, {"t": PUB}),
        (C.CONSUMER_SEND_MSG_BACK, {"group": "g"}, {"%RETRY%g": SUB}),
        (C.PULL_MESSAGE, {"topic": "t", "consumerGroup": "g"}, {"t": SUB, "%RETRY%g": SUB}),
        (
            C.PULL_MESSAGE,
            {"topic": "%RETRY%x", "consumerGroup": "g"},
            {"%RETRY%x": SUB, "%RETRY%g": SUB},
        ),
        (C.QUERY_MESSAGE, {"topic": "t"}, {"t": SUB}),
        (C.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "g"}, {"%RETRY%g": SUB}),
        (C.QUERY_CONSUMER_OFFSET, {"topic": "t", "consumerGroup": "g"}, {}),
        (C.POP_MESSAGE, {"topic": "t", "consumerGroup": "g"}, {"t": SUB, "%RETRY%g": SUB}),
        (C.LITE_PULL_MESSAGE, {"topic": "t", "consumerGroup": "g"}, {"t": SUB, "%RETRY%g": SUB}),
        (
            C.INVOKE_BROKER_TO_RESET_OFFSET,
            {"topic": "t", "group": "g"},
            {"t": SUB, "%RETRY%g": SUB},
        ),
        (C.GET_ROUTEINFO_BY_TOPIC, {"topic": "t"}, {}),
        (C.GET_MAX_OFFSET, {"topic": "t"}, {}),
    ],
)
def test_needs_are_in_the_words_of_acl_1(
    code: int, fields: dict[str, str], expected: dict[str, int]
) -> None:
    assert dict(PLAIN_NEEDS[code].of(fields, b"")) == expected


def test_the_five_requests_of_the_original_are_for_administrators() -> None:
    assert all(PLAIN_NEEDS[code].is_admin for code in (17, 25, 200, 207, 215))
    assert not PLAIN_NEEDS[C.GET_BROKER_CLUSTER_ACL_INFO].is_admin
    assert PLAIN_NEEDS[C.GET_BROKER_CLUSTER_ACL_INFO].is_free


def test_every_request_of_the_cluster_is_for_administrators() -> None:
    of_cluster = {code for code, needs in NEEDS.items() if needs.is_for_operators}
    others = {code for code in of_cluster if not PLAIN_NEEDS[code].is_admin}
    assert others == {C.GET_BROKER_CLUSTER_ACL_INFO}
