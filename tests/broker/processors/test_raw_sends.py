# SPDX-License-Identifier: Apache-2.0
"""Sends that a kernel takes are answered, stored and indexed as if there was none."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.kernel.random_frames import Frames
from tests.broker.kernel.two_brokers import TwoBrokers, with_each_kernel
from txrocketmq.broker.kernel.chosen import Kernel

ANY_SIZE = (1, 7, 8, 9, 100, 1_000, 5_000, 60_000, 262_144)


@with_each_kernel
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=15, deadline=None)
def test_random_mixes_cut_anywhere_have_equal_results(kernel: Kernel, seed: int) -> None:
    chance = random.Random(seed)
    frames = Frames(chance)
    with tempfile.TemporaryDirectory() as folder:
        two = TwoBrokers(Path(folder), kernel)
        for _ in range(3):
            two.read_cut(frames.some(40), chance, ANY_SIZE)
        two.compare()
        two.read(b"".join([frames.send(b="orders") for _ in range(50)]))
        assert two.other.taken > 0
        two.compare()
        two.stop()


@with_each_kernel
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=15, deadline=None)
def test_mutated_frames_have_equal_results(kernel: Kernel, seed: int) -> None:
    chance = random.Random(seed)
    frames = Frames(chance)
    with tempfile.TemporaryDirectory() as folder:
        two = TwoBrokers(Path(folder), kernel)
        for _ in range(30):
            data = frames.some(chance.randrange(1, 6))
            two.read_cut(frames.mutated(data) if chance.randrange(2) else data, chance, ANY_SIZE)
        two.compare()
        two.stop()
