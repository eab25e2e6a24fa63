# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.filter.bloom import BloomFilter, BloomFilterData


def test_bits_are_those_of_the_original() -> None:
    bloom = BloomFilter(20, 32)
    assert (bloom.hashes, bloom.bits) == (3, 112)
    # As it wrote them into consumerFilter.json.
    assert bloom.data_of("g-few", "Filtered") == BloomFilterData((37, 20, 3), 112)
    assert bloom.data_of("g-more", "Filtered") == BloomFilterData((74, 7, 57), 112)


def test_a_bitmap_has_the_bits_of_all_that_hit() -> None:
    bloom = BloomFilter(20, 32)
    few, more = bloom.data_of("g-few", "Filtered"), bloom.data_of("g-more", "Filtered")
    assert bloom.bitmap([]) == bytes(14)
    bitmap = bloom.bitmap([few])
    assert bitmap == bytes([8, 0, 16, 0, 32, *bytes(9)])
    assert few.is_hit(bitmap)
    assert not more.is_hit(bitmap)
    assert more.is_hit(bloom.bitmap([few, more]))


def test_bits_of_another_filter_do_not_fit() -> None:
    bloom = BloomFilter(20, 32)
    assert bloom.fits(bloom.data_of("g", "T"))
    assert not bloom.fits(None)
    assert not bloom.fits(BloomFilter(20, 64).data_of("g", "T"))
    assert not bloom.fits(BloomFilterData((1, 2), 112))
    assert not bloom.fits(BloomFilterData((1, 2, 112), 112))


@pytest.mark.parametrize("settings", [(0, 32), (100, 32), (20, 0)])
def test_settings_that_make_no_filter(settings: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="must be (1 to|at least 1)"):
        BloomFilter(*settings)
