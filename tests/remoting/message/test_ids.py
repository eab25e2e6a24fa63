# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.zones import in_zone
from txrocketmq.remoting.message.ids import (
    Host,
    MessageId,
    MessageIdError,
    UniqueKey,
    UniqueKeys,
    decode_message_id,
    decode_unique_key,
    encode_message_id,
    host_of,
    month_start_ms,
)

HOSTS = st.builds(Host, st.ip_addresses().map(str), st.integers(0, 65535))
MINUTE_MS = 60_000
DAY_MS = 86_400_000


@pytest.fixture(params=["UTC", "Asia/Shanghai", "America/New_York"])
def zone(request: pytest.FixtureRequest) -> Iterator[str]:
    """Months begin at local midnight, so the zone matters; New York has daylight saving time."""
    with in_zone(request.param):
        yield request.param


def local_ms(*parts: int) -> int:
    return int(datetime(*parts).timestamp() * 1000)  # type: ignore[arg-type]


def test_hosts() -> None:
    assert host_of(b"\x7f\0\0\1", 10911) == Host("127.0.0.1", 10911)
    assert host_of(b"\xfd" + bytes(14) + b"\1", 5).ip == "fd00::1"
    assert str(Host("127.0.0.1", 10911)) == "127.0.0.1:10911"
    assert str(Host("fd00::1", 10911)) == "[fd00::1]:10911"
    assert (Host("127.0.0.1", 1).is_ipv6, Host("fd00::1", 1).is_ipv6) == (False, True)
    assert Host("127.0.0.1", 1).ip_bytes == b"\x7f\0\0\1"
    with pytest.raises(ValueError, match="nowhere"):
        _ = Host("nowhere", 1).ip_bytes


# Printed by MessageDecoder.createMessageId.
@pytest.mark.parametrize(
    ("host", "text"),
    [
        (Host("127.0.0.1", 10911), "7F00000100002A9F0000000000003039"),
        (Host("fd00::1", 10911), "FD00000000000000000000000000000100002A9F0000000000003039"),
    ],
)
def test_message_id_as_java(host: Host, text: str) -> None:
    assert encode_message_id(host, 12345) == text
    assert decode_message_id(text) == MessageId(host, 12345)
    assert decode_message_id(text.lower()) == MessageId(host, 12345)


@given(HOSTS, st.integers(-(1 << 63), (1 << 63) - 1))
def test_message_id_round_trip(host: Host, offset: int) -> None:
    assert decode_message_id(encode_message_id(host, offset)) == MessageId(host, offset)


@pytest.mark.parametrize(
    "text",
    ["", "7F", "7F00000100002A9F000000000000303", "7F00000100002A9F000000000000303G",
     "7F00000100002A9F00000000000030399", "7F 00000100002A9F 00000000003039", "x" * 56],
)  # fmt: skip
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(MessageIdError, match="a message id"):
        decode_message_id(text)
    with pytest.raises(MessageIdError, match="a message id"):
        decode_unique_key(text, 0)


def test_unique_key_as_java(zone: str) -> None:
    # Of the original's client, whose process had this id and address.
    key = "FD000000000000000000000000000002487E30946E0968BC4FB70000"
    del zone
    created_ms = month_start_ms(local_ms(2026, 11, 21)) + 0x68BC4FB7
    expected = UniqueKey("fd00::2", 0x487E, 0x30946E09, created_ms, 0)
    assert decode_unique_key(key, created_ms + 5) == expected
    made = UniqueKeys(b"\xfd" + bytes(14) + b"\2", 0x487E, 0x30946E09).create(created_ms)
    assert made == key


@pytest.mark.parametrize("zone", ["UTC"], indirect=True)
def test_golden_keys_tell_the_time_of_sending(
    golden_messages: Callable[[str], list[dict[str, Any]]], golden_version: str, zone: str
) -> None:
    assert zone == "UTC", "where the golden stores were written"
    keyed = [each for each in golden_messages(golden_version) if "UNIQ_KEY" in each["properties"]]
    for message in keyed:
        born_ms = message["bornTimestamp"]
        created_ms = time_of(message["properties"]["UNIQ_KEY"], born_ms)
        assert 0 <= born_ms - created_ms < 2000
    assert len(keyed) > 300


def test_keys_of_one_process_differ() -> None:
    keys = UniqueKeys(b"\x7f\0\0\1", 70_000, -1)
    made = [keys.create(1_795_228_612_067) for _ in range(65_537)]
    assert made[0][:20] == "7F0000011170FFFFFFFF"
    assert len(set(made)) == 65_536
    assert made[0].endswith("0000")
    assert made[65_535].endswith("FFFF")
    assert made[65_536] == made[0]


def test_address_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="4 or 16 bytes, not 5"):
        UniqueKeys(b"12345", 1, 2)


def time_of(key: str, now_ms: int) -> int:
    return decode_unique_key(key, now_ms).created_ms


def test_time_of_a_key_over_the_month(zone: str) -> None:
    del zone
    keys = UniqueKeys(b"\x7f\0\0\1", 1, 2)
    for sent_ms in (
        local_ms(2026, 1, 31, 23, 59, 59),
        local_ms(2026, 2, 1),
        local_ms(2026, 2, 28, 12),
        local_ms(2026, 3, 1),
        local_ms(2026, 3, 31, 23, 59),
        local_ms(2026, 12, 31, 23, 59),
        local_ms(2027, 1, 1),
    ):
        key = keys.create(sent_ms)
        assert time_of(key, sent_ms) == sent_ms
        assert time_of(key, sent_ms + MINUTE_MS) == sent_ms
        assert time_of(key, sent_ms + 27 * DAY_MS) == sent_ms


def test_31_days_do_not_fit_a_signed_int_but_the_key() -> None:
    sent_ms = local_ms(2026, 12, 31, 23)
    key = UniqueKeys(b"\x7f\0\0\1", 1, 2).create(sent_ms)
    assert int(key[20:28], 16) > 1 << 31
    assert time_of(key, sent_ms + 1) == sent_ms


def test_clock_set_back() -> None:
    start_ms = local_ms(2026, 11, 1)
    keys = UniqueKeys(b"\x7f\0\0\1", 1, 2)
    assert time_of(keys.create(start_ms + 5), start_ms + 10) == start_ms + 5
    # A little over the start of the month: as at the start.
    assert keys.create(start_ms - MINUTE_MS)[20:28] == "00000000"
    # Far: of the month before.
    long_ago_ms = start_ms - DAY_MS
    assert time_of(keys.create(long_ago_ms), long_ago_ms + 1) == long_ago_ms


def test_host_parts_of_a_key() -> None:
    key = UniqueKeys(b"\x0a\0\0\7", 123, 456).create(local_ms(2026, 11, 21, 8))
    decoded = decode_unique_key(key, local_ms(2026, 11, 21, 9))
    assert decoded == UniqueKey("10.0.0.7", 123, 456, local_ms(2026, 11, 21, 8), 0)
