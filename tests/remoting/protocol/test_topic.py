# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

import pytest

from txrocketmq.remoting.call import Call
from txrocketmq.remoting.protocol import topic


def test_headers_are_the_originals(same_headers_as_the_original: Callable[..., None]) -> None:
    # Callers of 4.9 send no page and brokers of 4.9 tell no total; `order` is false in a new
    # object of the original, so nobody misses it.
    same_headers_as_the_original(
        topic,
        lenient="CreateTopicRequestHeader.order"
        " GetAllTopicConfigRequestHeader.topicSeq"
        " GetAllTopicConfigResponseHeader.totalTopicNum"
        " GetAllSubscriptionGroupRequestHeader.groupSeq"
        " GetAllSubscriptionGroupResponseHeader.totalGroupNum",
        ours="DeleteSubscriptionGroupRequestHeader.removeOffset",
    )


@pytest.mark.parametrize(
    "call", [topic.GET_ALL_TOPIC_CONFIG, topic.GET_ALL_SUBSCRIPTIONGROUP_CONFIG]
)
def test_old_callers_ask_for_all_and_get_no_total(
    call: Call[topic.GetAllTopicConfigRequestHeader, topic.GetAllTopicConfigResponseHeader]
    | Call[topic.GetAllSubscriptionGroupRequestHeader, topic.GetAllSubscriptionGroupResponseHeader],
) -> None:
    assert call.request.decode(None) == call.request()
    assert call.response.decode(None) == call.response()
    assert call.request().encode() == {}


def test_both_names_of_the_offsets_that_go_with_a_group() -> None:
    decode = topic.DeleteSubscriptionGroupRequestHeader.decode
    assert decode({"groupName": "g", "cleanOffset": "true"}).clean_offset
    assert decode({"groupName": "g", "removeOffset": "true"}).remove_offset
