# SPDX-License-Identifier: Apache-2.0
"""Pulls are found again by their headers; tests/kernel/test_pull_answers.py has the answers."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tests.broker.kernel.random_frames import Frames
from tests.broker.kernel.test_header_holes import header_of
from tests.broker.kernel.two_brokers import with_each_kernel
from txrocketmq.broker.kernel.chosen import Kernel
from txrocketmq.remoting.frame.frame import decode_header


@with_each_kernel
@given(seed=st.integers(0, 1 << 32))
def test_what_is_taken_is_what_is_decoded(kernel: Kernel, seed: int) -> None:
    """Also of damaged headers: they differ from the one that was learned in three values only."""
    chance = random.Random(seed)
    frames = Frames(chance)
    pulls = kernel.new_pulls()
    kind, header = header_of(frames.pull())
    number = pulls.learn(kind, header, 0, None)
    assert number in {None, 0}
    assert pulls.learn(kind, header, 0, None) == number
    first = decode_header(kind, header)
    for _ in range(10):
        data = frames.pull() if chance.randrange(2) else frames.mutated(frames.pull())
        taken = pulls.take(b"xx" + data, 2, 0)
        if taken is None:
            continue
        place, end, opaque, queue_offset, commit_offset = taken
        assert place == number
        found = decode_header(*header_of(data[: end - 2]))
        assert (found.opaque, found.code, found.flag) == (opaque, first.code, first.flag)
        offsets = {"queueOffset": str(queue_offset), "commitOffset": str(commit_offset)}
        fields = found.ext_fields or {}
        assert {name: str(int(fields[name])) for name in offsets} == offsets
        assert {**fields, **offsets} == {**(first.ext_fields or {}), **offsets}


@with_each_kernel
@given(data=st.binary(max_size=60), at=st.integers(0, 70))
def test_no_bytes_make_it_raise(kernel: Kernel, data: bytes, at: int) -> None:
    pulls = kernel.new_pulls()
    pulls.take(data, at, 0)
    pulls.learn(0, data, 0, None)
    pulls.learn(1, data, 0, None)
    assert pulls.take(data, at, 0) is None or len(data) > 8
