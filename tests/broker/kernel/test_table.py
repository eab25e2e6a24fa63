# SPDX-License-Identifier: Apache-2.0
"""The table takes what it knows, and nothing else; it never raises. See also test_raw_sends.py."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker.kernel.random_frames import Frames
from tests.broker.kernel.test_header_holes import header_of
from tests.broker.kernel.two_brokers import with_each_kernel
from txrocketmq.broker.intake.plain_properties import PlainProperties
from txrocketmq.broker.kernel import table as tables
from txrocketmq.broker.kernel.chosen import REFERENCE, Kernel
from txrocketmq.broker.kernel.table import pairs_of
from txrocketmq.remoting.message import record


def learned(kernel: Kernel, *frames: bytes) -> tuple[object, int]:
    """A table that knows the places of these frames, and how many of them there are."""
    table = kernel.new_table([b"DELAY"], [b"DELAY"], [b"DELAY"], b"OWN\1x\2")
    queue = table.add_queue("queue", b"\6orders", record.MAGIC_V1, 1)
    known = 0
    for frame in frames:
        kind, header = header_of(frame)
        known += table.learn(kind, header, queue, False, False, 0, 0, 0, 310, None, 0, None)
    return table, known


@with_each_kernel
def test_known_places_are_taken_up_to_what_is_not(kernel: Kernel) -> None:
    frames = Frames(random.Random(1))
    one, two = frames.usual(e="1"), frames.usual(e="2")
    table, known = learned(kernel, one)
    assert known == 1
    more = [frames.usual(e="1") for _ in range(3)]
    taken = table.take(b"".join((*more, two, one)), 0)  # type: ignore[attr-defined]
    assert (taken.at, taken.commands, taken.messages) == (len(b"".join(more)), 3, 3)
    assert taken.queues(table)[0][:2] == ("queue", 3)
    assert taken.most_bytes == len(b"body") + len("UNIQ_KEY\1") + 56 + len("\2WAIT\1true\2OWN\1x\2")
    assert table.take(two + one, 0) is None  # type: ignore[attr-defined]
    assert table.take(one[:-1], 0) is None  # type: ignore[attr-defined]
    assert table.take(one + one[:5], 0).at == len(one)  # type: ignore[attr-defined]
    assert table.take(b"", 0) is None  # type: ignore[attr-defined]


@with_each_kernel
def test_a_run_has_a_limit(kernel: Kernel) -> None:
    frames = Frames(random.Random(1))
    one = frames.usual(e="1")
    table, _ = learned(kernel, one)
    assert table.take(one * 300, 0).commands == tables.MOST_COMMANDS  # type: ignore[attr-defined]


@with_each_kernel
def test_a_place_that_is_known_already_is_known(kernel: Kernel) -> None:
    one = Frames(random.Random(1)).usual(e="1")
    assert learned(kernel, one, one)[1] == 2
    assert learned(kernel, b"\0\0\0\5\0\0\0\1{")[1] == 0


def test_places_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_PLACES", 2)
    frames = Frames(random.Random(1))
    some = [frames.usual(e="1", a=f"group{at}") for at in range(3)]
    table, known = learned(REFERENCE, *some)
    assert known == 3
    assert table.take(some[2], 0) is not None  # type: ignore[attr-defined]
    assert table.take(some[0], 0) is None  # type: ignore[attr-defined]


@with_each_kernel
@given(data=st.binary(max_size=60), seed=st.integers(0, 1000))
def test_no_bytes_make_it_raise(kernel: Kernel, data: bytes, seed: int) -> None:
    frames = Frames(random.Random(seed))
    one = frames.usual(e="1")
    table, _ = learned(kernel, one)
    table.take(data, 0)  # type: ignore[attr-defined]
    table.take(frames.mutated(one * 3), 0)  # type: ignore[attr-defined]
    table.learn(0, data, 0, False, False, 0, 0, 0, 310, None, 0, None)  # type: ignore[attr-defined]
    table.learn(1, data, 9, False, False, 0, 0, 0, 310, None, 0, None)  # type: ignore[attr-defined]


_TEXTS = st.lists(
    st.tuples(
        st.sampled_from(("UNIQ_KEY", "KEYS", "TAGS", "WAIT", "DELAY", "a", "")),
        st.sampled_from(("\1", "\1", "\1", "", "\1\1")),
        st.sampled_from(("v", "true", "ä", "")),
    )
).flatmap(lambda pairs: st.sampled_from(("", "\2")).map(lambda end: _joined(pairs) + end))


def _joined(pairs: list[tuple[str, str, str]]) -> str:
    return "\2".join(["".join(pair) for pair in pairs])


@given(text=_TEXTS)
def test_properties_are_read_as_those_of_all_plain_messages(text: str) -> None:
    found = pairs_of(text.encode(), frozenset({b"DELAY"}))
    expected = PlainProperties({"DELAY"}).of(text)
    if found is None:
        assert expected is None
    else:
        names = (b"UNIQ_KEY", b"KEYS", b"TAGS", b"WAIT")
        values = [found.get(name) for name in names]
        assert expected == tuple([None if each is None else each.decode() for each in values])


def test_properties_that_are_no_text_are_unusual() -> None:
    assert pairs_of(b"a\1\xff", frozenset()) is None
