# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.errors import FileSizeError
from txrocketmq.broker.store.queues.consume_queue_ext import (
    ConsumeQueueExt,
    ExtUnit,
    is_ext_address,
)

FILE_BYTES = 64
BASE = formats.CONSUME_QUEUE_EXT_ADDRESS_BASE


def new_ext(files: Any, *, load: bool = False) -> ConsumeQueueExt:
    row = MappedFileQueue(files, "/ext", FILE_BYTES, "mappedFileSizeConsumeQueueExt")
    if load:
        row.load()
    return ConsumeQueueExt(row)


@pytest.fixture
def ext(files: Any) -> ConsumeQueueExt:
    return new_ext(files)


def test_addresses_are_no_hashes() -> None:
    assert is_ext_address(BASE)
    assert is_ext_address(-(1 << 31) - 1)
    assert not is_ext_address(-(1 << 31))
    assert not is_ext_address(0)
    assert not is_ext_address(1_700_000_000_000)


def test_units_are_found_at_their_addresses(ext: ConsumeQueueExt, files: Any) -> None:
    addresses = [ext.put(code, 1000 + code) for code in range(10)]
    # Three units of 20 bytes and the four that tell the end fill a file of 64.
    assert [address - BASE for address in addresses][:7] == [0, 20, 40, 64, 84, 104, 128]
    assert [ext.get(address) for address in addresses] == [
        ExtUnit(code, 1000 + code, b"", 20) for code in range(10)
    ]


def test_the_declaration_reads_what_is_written(ext: ConsumeQueueExt, files: Any) -> None:
    ext.put(-5, 77)
    unit = formats.CONSUME_QUEUE_EXT_UNIT.parse(files.maps["/ext/" + "0" * 20][:])
    assert (unit.size, unit.tags_code, unit.store_time, unit.bitmap) == (20, -5, 77, b"")


def test_bitmaps_of_the_original_are_read(ext: ConsumeQueueExt) -> None:
    unit = {"size": 24, "tags_code": 3, "store_time": 4, "bitmap_size": 4, "bitmap": b"\1\2\3\4"}
    ext.files.roll().append(formats.CONSUME_QUEUE_EXT_UNIT.build(unit))
    assert ext.get(BASE) == ExtUnit(3, 4, b"\1\2\3\4", 24)


def test_bitmaps_are_written(files: Any) -> None:
    ext = new_ext(files)
    addresses = [ext.put(code, code, bytes([code] * 14)) for code in range(3)]
    assert [address - BASE for address in addresses] == [0, 64, 128], "34 bytes and the end's 4"
    assert ext.get(addresses[2]) == ExtUnit(2, 2, bytes([2] * 14), 34)
    assert new_ext(files, load=True).get(addresses[1]) == ExtUnit(1, 1, bytes([1] * 14), 34)


def test_a_bitmap_that_no_file_has_room_for_is_left_out(ext: ConsumeQueueExt) -> None:
    fits, too_long = ext.put(1, 1, bytes(40)), ext.put(2, 2, bytes(41))
    assert ext.get(fits) == ExtUnit(1, 1, bytes(40), 60)
    assert ext.get(too_long) == ExtUnit(2, 2, b"", 20)


@pytest.mark.parametrize("size", [0, -1, 19, 200])
def test_damaged_units_are_none(ext: ConsumeQueueExt, size: int) -> None:
    ext.put(1, 1)
    ext.put(2, 2)
    ext.files.mapped_files[0].map()[0:2] = size.to_bytes(2, "big", signed=True)
    ext.files.mapped_files[0].map()[18:20] = (100).to_bytes(2, "big")
    assert ext.get(BASE) is None
    assert ext.get(BASE + 20) is not None
    assert ext.get(BASE + 1000) is None


def test_recovery_goes_on_after_the_last_unit_that_is_referred_to(files: Any) -> None:
    ext = new_ext(files)
    addresses = [ext.put(code, code) for code in range(10)]
    again = new_ext(files, load=True)
    again.recover(addresses[4])
    assert again.put(50, 50) == addresses[5]
    assert again.get(addresses[4]) == ExtUnit(4, 4, b"", 20)
    assert again.get(addresses[9]) is None


def test_recovery_without_an_address_goes_on_after_the_last_unit(files: Any) -> None:
    ext = new_ext(files)
    addresses = [ext.put(code, code) for code in range(5)]
    again = new_ext(files, load=True)
    again.recover(1)
    assert again.put(5, 5) == addresses[4] + 20
    new_ext(files).recover(1)


def test_files_before_the_first_address_go(files: Any) -> None:
    ext = new_ext(files)
    addresses = [ext.put(code, code) for code in range(10)]
    assert ext.take_files_before(7) == []
    assert ext.get(addresses[0]) is not None
    assert ext.take_files_before(addresses[7])
    assert ext.get(addresses[0]) is None
    assert ext.get(addresses[7]) is not None
    assert files.removed == [], "that is left to a thread"


def test_a_row_that_is_full_for_good_takes_no_more(ext: ConsumeQueueExt) -> None:
    last = (1 << 63) - (1 << 31) - 1
    ext.files.roll(last // FILE_BYTES * FILE_BYTES).wrote_bytes = FILE_BYTES - 1
    assert ext.put(9, 9) == 9


def test_an_empty_file_is_what_a_crash_left_and_refuses_nothing(files: Any) -> None:
    files.write("/ext/" + "0" * 20, b"")
    files.write("/ext/" + f"{128:020}", bytes(128))
    row = ConsumeQueueExt(MappedFileQueue(files, "/ext", 128, "mappedFileSizeConsumeQueueExt"))
    row.load()
    assert len(row.files.mapped_files) == 2
    files.write("/ext/" + "0" * 20, bytes(64))
    with pytest.raises(FileSizeError, match="has 64 bytes"):
        row.load()
