# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.spark.arrow.words import words


@given(data=st.binary(max_size=40), size=st.integers(1, 20), places=st.lists(st.integers(0, 40)))
def test_words_are_zero_beyond_the_end(data: bytes, size: int, places: list[int]) -> None:
    places = [place for place in places if place <= len(data)]
    found = words(np.frombuffer(data, np.uint8), np.array(places, np.int64), size)
    assert found.tolist() == [data[at : at + size].ljust(size, b"\0") for at in places]
