# SPDX-License-Identifier: Apache-2.0
"""Records of traces, as TraceDataEncoder writes and splits them."""

from __future__ import annotations

import pytest

from txrocketmq.client.core.trace import (
    EndTransaction,
    MessageType,
    Pub,
    Recall,
    SubAfter,
    SubBefore,
    decode_records,
)


def fields(text: str) -> list[str]:
    assert text.endswith("\x02")
    return text[:-1].split("\x01")


def test_pub() -> None:
    record = Pub(
        timestamp_ms=1, region="R", group="g", topic="T", msg_id="M", tags=None, keys="k1 k2",
        store_host="h:1", body_bytes=5, cost_ms=2, message_type=MessageType.DELAY,
        offset_msg_id="O", success=True,
    )  # fmt: skip
    assert fields(record.data) == [
        "Pub", "1", "R", "g", "T", "M", "null", "k1 k2", "h:1", "5", "2", "3", "O", "true",
    ]  # fmt: skip
    assert record.found_by == {"M", "k1", "k2"}


def test_end_transaction() -> None:
    record = EndTransaction(
        timestamp_ms=1, region="R", group="g", topic="T", msg_id="M", tags="t", keys=None,
        store_host="h:1", transaction_id="X", state="COMMIT_MESSAGE", from_check=False,
    )  # fmt: skip
    assert fields(record.data) == [
        "EndTransaction", "1", "R", "g", "T", "M", "t", "null", "h:1", "2", "X", "COMMIT_MESSAGE",
        "false",
    ]  # fmt: skip


def test_recall() -> None:
    record = Recall(timestamp_ms=1, region="R", group="g", topic="T", msg_id="M", success=False)
    assert fields(record.data) == ["Recall", "1", "R", "g", "T", "M", "false"]


def test_what_consumers_write() -> None:
    before = SubBefore(
        timestamp_ms=1, region=None, group="g", request_id="Q", msg_id="M", retry_times=2, keys="k"
    )
    assert fields(before.data) == ["SubBefore", "1", "null", "g", "Q", "M", "2", "k"]
    after = SubAfter(
        request_id="Q", msg_id="M", cost_ms=3, success=True, keys="k", context_code=0,
        timestamp_ms=9, group="g",
    )  # fmt: skip
    assert fields(after.data) == ["SubAfter", "Q", "M", "3", "true", "k", "0", "9", "g"]


RECORDS = [
    Pub(
        timestamp_ms=1, region="R", group="g", topic="T", msg_id="M", tags=None, keys="k1 k2",
        store_host="h:1", body_bytes=5, cost_ms=2, message_type=MessageType.DELAY,
        offset_msg_id=None, success=True,
    ),
    EndTransaction(
        timestamp_ms=1, region="R", group="g", topic="T", msg_id="M", tags="t", keys=None,
        store_host="h:1", transaction_id="X", state="COMMIT_MESSAGE", from_check=False,
    ),
    Recall(timestamp_ms=1, region="R", group="g", topic="T", msg_id="M", success=False),
    SubBefore(
        timestamp_ms=1, region=None, group="g", request_id="Q", msg_id="M", retry_times=2, keys="k"
    ),
    SubAfter(
        request_id="Q", msg_id="M", cost_ms=3, success=True, keys="k", context_code=0,
        timestamp_ms=9, group="g",
    ),
]  # fmt: skip


def test_what_is_written_is_read() -> None:
    assert decode_records("".join(record.data for record in RECORDS)) == RECORDS


def test_fields_that_an_older_client_does_not_write_are_unknown() -> None:
    text = "SubAfter\x01Q\x01M\x013\x01true\x01k\x010\x02"
    (record,) = decode_records(text)
    assert isinstance(record, SubAfter)
    assert (record.cost_ms, record.timestamp_ms, record.group) == (3, 0, "")


def test_fields_of_a_newer_client_are_left_out() -> None:
    assert decode_records(RECORDS[2].data.replace("\x02", "\x01new\x02")) == [RECORDS[2]]


@pytest.mark.parametrize("text", ["", "\x02", "Sub\x01x\x02", "Recall\x01no number\x02"])
def test_what_is_no_record_is_left_out(text: str) -> None:
    assert decode_records(text) == []
