# SPDX-License-Identifier: Apache-2.0
"""Sends that a kernel takes are answered, stored and indexed as if there was none."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.kernel.random_frames import Frames
from tests.broker.kernel.two_brokers import TwoBrokers, with_each_kernel
from txrocketmq.broker.kernel.chosen import Kernel

ANY_SIZE = (1, 7, 8, 9, 100, 1_000, 5_000, 60_000, 262_144)


@with_each_kernel
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=8, deadline=None)
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
@settings(max_examples=8, deadline=None)
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


@with_each_kernel
@pytest.mark.parametrize(
    "settings",
    [
        {"flush_disk_type": "SYNC_FLUSH"},
        {"flush_disk_type": "SYNC_FLUSH", "read_un_committed": True},
        {"broker_role": "SYNC_MASTER"},
        {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2, "flush_disk_type": "SYNC_FLUSH"},
        {"message_index_enable": False},
        {"max_message_size": 2_900},
        {"enable_consume_queue_ext": True},
    ],
    ids=" ".join,
)
def test_every_policy_and_setting_of_the_store_counts(
    kernel: Kernel, settings: dict[str, Any], tmp_path: Path
) -> None:
    chance = random.Random(7)
    frames = Frames(chance)
    two = TwoBrokers(tmp_path, kernel, **settings)
    for _ in range(4):
        two.read_cut(frames.some(40), chance, (5_000, 60_000))
        two.both(lambda one: one.pass_ms(300))
    two.both(lambda one: one.pass_ms(10_000))
    two.compare()
    if "enable_consume_queue_ext" in settings:
        assert two.other.taken == 0
    else:
        assert two.other.taken > 0
    two.stop()
