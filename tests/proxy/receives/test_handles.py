# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.receives.handles import Handle
from txrocketmq.proxy.schema.codes import Code

TEXT = "0 1000 60000 3 0 broker-a 7 5 817"


def test_a_handle_is_that_of_pop_with_the_offset_in_the_log() -> None:
    handle = Handle.parse(TEXT, 1_000)
    assert (handle.popped.broker_name, handle.popped.queue_id, handle.log_offset) == (
        "broker-a",
        7,
        817,
    )
    assert (str(handle), handle.visible_ms) == (TEXT, 61_000)
    assert Handle.parse(TEXT.rpartition(" ")[0], 1_000).log_offset == -1
    assert handle.topic("T", "G") == "T"
    assert Handle.parse(TEXT.replace(" 3 0 ", " 3 2 "), 0).topic("T", "G") == "%RETRY%G+T"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "0 1000 60000 3 0 broker-a 7",
        TEXT.replace("60000", "a"),
        TEXT.replace(" 3 0 ", " 3 9 "),
        TEXT + "x",
        TEXT.replace("broker-a", "b" * 2_000),
    ],
)
def test_what_is_no_handle_has_a_code_that_ends_trying(text: str) -> None:
    with pytest.raises(Refused) as refused:
        Handle.parse(text, 0)
    assert refused.value.code is Code.INVALID_RECEIPT_HANDLE


def test_a_handle_ends_when_its_message_is_visible() -> None:
    Handle.parse(TEXT, 60_999)
    with pytest.raises(Refused, match="expired"):
        Handle.parse(TEXT, 61_000)


@given(st.text("0129 -x٣", max_size=60))
def test_any_text_is_a_handle_or_refused(text: str) -> None:
    try:
        Handle.parse(text, 0)
    except Refused as error:
        assert error.code is Code.INVALID_RECEIPT_HANDLE


@pytest.mark.parametrize(
    ("offset", "expected"), [(5, True), (4_100, True), (4_101, False), (4, False)]
)
def test_distances_are_bounded(offset: int, expected: bool) -> None:
    handle = Handle.parse(f"5 1000 60000 3 0 broker-a 7 {offset} 817", 0)
    assert handle.may_be_together is expected
