# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from txrocketmq.remoting.primitives.fifo_cache import FifoCache


def test_the_entry_that_came_first_makes_room() -> None:
    cache = FifoCache[str, int](2)
    for at, name in enumerate("abac"):
        cache.keep(name, at)
    assert list(cache.items()) == [("b", 1), ("c", 3)]
    assert cache.get("a") is None


@settings(max_examples=examples(100))
@given(st.integers(1, 5), st.lists(st.integers(0, 9)))
def test_it_is_a_dictionary_that_drops_its_first_key(most: int, keys: list[int]) -> None:
    cache, plain = FifoCache[int, int](most), dict[int, int]()
    for at, key in enumerate(keys):
        cache.keep(key, at)
        plain[key] = at
        if len(plain) > most:
            del plain[min(plain, key=list(plain).index)]
        assert list(cache.items()) == list(plain.items())
