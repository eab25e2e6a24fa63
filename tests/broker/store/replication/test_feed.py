# SPDX-License-Identifier: Apache-2.0
"""What a master makes of what slaves report, and what it sends them."""

from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.replication.feed import MOST_FRAMES, Feed
from txrocketmq.broker.store.replication.frames import (
    REPORT_CODEC,
    HaPeerError,
    TransferDecoder,
)

FILE_BYTES = 4096


class Log:
    """A log of bytes in files of FILE_BYTES."""

    def __init__(self, start: int = 0, end: int = 10_000) -> None:
        self.min_physical_offset = start
        self.max_physical_offset = end
        self.content = bytes(each % 251 for each in range(1 << 17))
        self.reads = 0

    def read_raw(self, offset: int, max_bytes: int) -> memoryview | None:
        self.reads += 1
        end = min(
            offset + max_bytes, self.max_physical_offset, (offset // FILE_BYTES + 1) * FILE_BYTES
        )
        if not self.min_physical_offset <= offset < end:
            return None
        return memoryview(self.content)[offset:end]


def feed(log: Log, **settings: Any) -> Feed:
    config = StoreConfig(mapped_file_size_commit_log=FILE_BYTES, **settings)
    return Feed(log, config, "10.0.0.1:5", 0)


def report(offset: int) -> bytes:
    return REPORT_CODEC.pack(offset)


def taken(feed: Feed, most: int, steady_ms: int = 0, max_bytes: int = 1 << 20) -> bytes:
    """Has the socket take so many bytes of what it is given."""
    data = b"".join(feed.pieces(max_bytes, steady_ms))[:most]
    feed.sent(len(data), steady_ms)
    return data


def test_nothing_is_sent_before_the_first_report() -> None:
    one = feed(Log())
    assert (one.pieces(1 << 20, 99_000), one.has_more(), one.acknowledged) == ([], False, -1)
    assert not one.reported(report(7)[:5], 0)
    assert one.reported(report(7)[5:], 0)
    assert (one.next_offset, one.acknowledged, one.has_more()) == (7, 7, True)


@pytest.mark.parametrize(("last_only", "start"), [(False, 4096), (True, 8192)])
def test_an_empty_slave_gets_all_or_what_is_in_the_last_file(last_only: bool, start: int) -> None:
    one = feed(Log(start=4096), sync_from_last_file=last_only)
    one.reported(report(0), 0)
    assert (one.next_offset, one.acknowledged) == (start, 0)


@pytest.mark.parametrize("offset", [-1, 4095, 10_001, 99_000_000, -(1 << 63)])
def test_a_first_report_outside_the_log_ends_the_connection(offset: int) -> None:
    one = feed(Log(start=4096))
    with pytest.raises(HaPeerError, match="not between 4096 and 10000"):
        one.reported(report(offset), 0)
    assert one.acknowledged == -1


@pytest.mark.parametrize("offset", [-1, 9_001, 10_000])
def test_nobody_acknowledges_what_he_was_not_sent(offset: int) -> None:
    one = feed(Log(end=9_000))
    one.reported(report(8_900), 0)
    assert len(taken(one, 999)) == 112
    one._log.max_physical_offset = 10_000  # type: ignore[misc]
    with pytest.raises(HaPeerError, match="sent bytes up to 9000 only"):
        one.reported(report(offset), 0)
    assert one.acknowledged == 8_900


def test_a_report_that_is_the_same_changes_nothing() -> None:
    one = feed(Log())
    assert one.reported(report(100), 0)
    assert not one.reported(report(100), 1)


@pytest.mark.parametrize("at_once", [1, 5, 11, 12, 13, 100, 333, 1 << 20])
def test_frames_leave_as_the_socket_takes_them(at_once: int) -> None:
    log = Log()
    one = feed(log, ha_transfer_batch_size=1000)
    one.reported(report(0), 0)
    decoder, got = TransferDecoder(), []
    while one.has_more():
        got += [(at, bytes(data)) for at, data in decoder.frames(taken(one, at_once))]
    assert [at for at, _ in got] == [0, 1000, 2000, 3000, 4000, 4096, 5096, 6096, 7096, 8096,
                                     8192, 9192]  # fmt: skip
    assert b"".join(data for _, data in got) == log.content[:10_000]


def test_what_the_socket_does_not_take_is_asked_for_again() -> None:
    one = feed(Log())
    one.reported(report(9_990), 0)
    first = one.pieces(1 << 20, 0)
    one.sent(0, 0)
    one._log.max_physical_offset = 10_010  # type: ignore[misc]
    assert b"".join(first)[:8] == b"".join(one.pieces(1 << 20, 0))[:8]
    assert len(b"".join(one.pieces(1 << 20, 0))) == 12 + 20


def test_no_more_is_given_out_at_once_than_is_asked_for() -> None:
    one = feed(Log(), ha_transfer_batch_size=100)
    one.reported(report(0), 0)
    assert len(one.pieces(250, 0)) == 6
    assert len(one.pieces(1 << 20, 0)) == 2 * MOST_FRAMES


def test_each_frame_is_read_once() -> None:
    log = Log()
    one = feed(log, ha_transfer_batch_size=1_000)
    one.reported(report(4_096), 0)
    log.reads = 0
    assert len(one.pieces(1 << 20, 0)) == 2 * 7
    assert log.reads == 7


def test_heartbeats_tell_where_it_goes_on() -> None:
    one = feed(Log(), ha_send_heartbeat_interval=5000)
    one.reported(report(9_999), 0)
    taken(one, 99, 1000)
    assert taken(one, 99, 5_999) == b""
    beat = taken(one, 99, 6_000)
    assert list(TransferDecoder().frames(beat)) == [(10_000, b"")]
    assert taken(one, 99, 10_999) == b""


def test_a_heartbeat_may_be_cut_as_well() -> None:
    one = feed(Log())
    one.reported(report(10_000), 0)
    beat = taken(one, 5, 5_000)
    one._log.max_physical_offset = 10_001  # type: ignore[misc]
    beat += taken(one, 999, 5_001)
    assert [(at, len(data)) for at, data in TransferDecoder().frames(beat)] == [
        (10_000, 0), (10_000, 1)]  # fmt: skip


def test_a_slave_that_is_silent_counts_as_dead() -> None:
    one = feed(Log(), ha_housekeeping_interval=20_000)
    assert not one.is_silent(20_000)
    one.reported(b"1", 10_000)
    assert not one.is_silent(30_000)
    assert one.is_silent(30_001)


def test_what_has_expired_cannot_be_sent() -> None:
    one = feed(Log())
    one.reported(report(10), 0)
    one._log.min_physical_offset = 4096  # type: ignore[misc]
    with pytest.raises(HaPeerError, match="needs the log from 10 on, which has expired"):
        one.pieces(1 << 20, 0)


def test_a_frame_whose_file_is_gone_cannot_be_finished() -> None:
    one = feed(Log())
    one.reported(report(10), 0)
    taken(one, 100)
    one._log.min_physical_offset = 4096  # type: ignore[misc]
    with pytest.raises(HaPeerError, match="no bytes at 10 any more"):
        one.pieces(1 << 20, 0)


def test_bytes_in_a_second_are_counted_and_limited() -> None:
    one = feed(
        Log(), ha_flow_control_enable=True, max_ha_transfer_byte_in_second=3_000,
        ha_transfer_batch_size=1_000,
    )  # fmt: skip
    one.reported(report(0), 0)
    assert len(taken(one, 9_999, 10)) == 3_036
    assert taken(one, 9_999, 999) == b""
    assert one.bytes_in_second(999) == 0
    assert len(taken(one, 9_999, 1_000)) == 3_000 + 12 * 4
    assert one.bytes_in_second(1_999) == 3_036
    assert one.bytes_in_second(9_999) == 0
