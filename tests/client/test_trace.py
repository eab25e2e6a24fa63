# SPDX-License-Identifier: Apache-2.0
"""Records of traces, as TraceDataEncoder writes and splits them."""

from __future__ import annotations

from txrocketmq.client.trace import EndTransaction, MessageType, Pub, Recall, SubAfter, SubBefore


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
