# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from txrocketmq.broker.store.disk import descriptors

QUEUES = """
import os, resource, sys
from txrocketmq.broker.store.disk import descriptors
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus

resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96))
store = MessageStore(StoreConfig(store_path_root_dir=sys.argv[1]))
store.load(1_000)
host = bytes(8)
for turn in range(3):
    for number in range(200):
        message = PutMessage(f"T{number}", 0, b"body", b"", 0, 1, host, host, None, None, None)
        (appended,) = store.put([message], 2_000)
        assert appended.status is PutStatus.PUT_OK, (turn, number, store.why_not_writeable())
descriptor = os.open(os.devnull, os.O_RDONLY)
assert descriptor < 96 - descriptors.kept(96), descriptor
for number in range(200):
    found = store.get(f"T{number}", 0, 0, 32, 1 << 20)
    assert found.count == 3, found
store.stop(3_000)
print(len(store.topics()))
"""


def test_there_may_be_more_queues_than_descriptors(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUEUES, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("200\n", "")


@pytest.mark.parametrize(("most", "kept"), [(64, 8), (1_024, 64), (1 << 20, 256)])
def test_how_many_are_left_to_others(most: int, kept: int) -> None:
    assert descriptors.kept(most) == kept


def test_the_next_number_tells_how_many_are_in_use() -> None:
    number = descriptors.next_number()
    taken = os.open(os.devnull, os.O_RDONLY)
    assert (number, descriptors.next_number() > number) == (taken, True)
    os.close(taken)
    assert descriptors.next_number() == number


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="mappings need no descriptor")
def test_mappings_leave_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "limit", lambda: 256)
    monkeypatch.setattr(descriptors, "next_number", lambda: 256 - 17)
    monkeypatch.setattr(descriptors.mappings, "count", 127)
    descriptors.check_mappable("path")
    assert not descriptors.mappings.is_short()
    monkeypatch.setattr(descriptors.mappings, "count", 128)
    assert descriptors.mappings.is_short()
    monkeypatch.setattr(descriptors.mappings, "count", 0)
    monkeypatch.setattr(descriptors, "next_number", lambda: 256 - 16)
    assert descriptors.mappings.is_short()
    with pytest.raises(OSError, match="Too many open files"):
        descriptors.check_mappable("path")
    monkeypatch.setattr(descriptors, "limit", lambda: resource.RLIM_INFINITY)
    descriptors.check_mappable("path")
    assert not descriptors.mappings.is_short()
