# SPDX-License-Identifier: Apache-2.0
"""Entries become items: the same whether many are hashed together or each alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.store.index import index_rows as module
from txrocketmq.broker.store.index.index_rows import IndexEntry, positive, rows_of
from txrocketmq.remoting.message.tags import java_string_hash

TEXTS = st.one_of(st.none(), st.text(st.characters(codec="utf-8"), min_size=1, max_size=12))


def expected(entry: IndexEntry) -> list[int]:
    topic, uniq_key, keys, tags, _, _ = entry
    texts = [] if uniq_key is None else [f"{topic}#{uniq_key}"]
    texts += [f"{topic}#{word}" for word in (keys or "").split(" ") if word]
    texts += [f"{topic}#T#{tags}"] if tags else []
    return [positive(java_string_hash(text)) for text in texts]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("AB"), TEXTS, TEXTS, TEXTS, st.integers(0, 99), st.integers(0, 9)
        ),
        max_size=8,
    )
)
def test_each_key_is_an_item(entries: list[IndexEntry]) -> None:
    rows = rows_of(entries)
    hashes = [expected(entry) for entry in entries]
    assert list(rows.hashes) == [each for keys in hashes for each in keys]
    of_each = list(zip(entries, hashes, strict=True))
    assert list(rows.offsets) == [entry[4] for entry, keys in of_each for _ in keys]
    assert list(rows.times_ms) == [entry[5] for entry, keys in of_each for _ in keys]


def entries_of(keys: list[str]) -> list[IndexEntry]:
    return [(topic, key, None, None, at, 0) for at, key in enumerate(keys) for topic in "AB"]


def test_beginnings_that_come_again_are_the_same_each_time() -> None:
    entries = entries_of([f"{producer}-{n:04}" for n in range(9) for producer in "xyz"])
    wanted = [each for entry in entries for each in expected(entry)]
    for _ in range(3):
        assert list(rows_of(entries).hashes) == wanted


def test_beginnings_that_never_come_again_are_not_kept_for_long() -> None:
    entries = entries_of([f"{n}-begins-anew" for n in range(2 * module._MAX_HEADS)])
    wanted = [each for entry in entries for each in expected(entry)]
    assert list(rows_of(entries).hashes) == wanted
    assert len(module._heads) <= module._MAX_HEADS


def test_the_hash_that_has_no_positive_counterpart_is_0() -> None:
    assert positive(-(1 << 31)) == 0
    assert positive(-5) == 5
