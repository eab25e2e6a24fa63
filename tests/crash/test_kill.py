# SPDX-License-Identifier: Apache-2.0
"""A process that is killed while it stores messages: what it acknowledged is there afterwards.

No sync is needed for that: what was copied into a mapped file belongs to the system.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.remoting.message.message import decode_messages

NOW_MS = 1_700_000_000_000
FAR_MS = 1 << 50
BATCH = 7
QUEUES = 3

WRITER = f"""
import sys
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus

host = bytes([127, 0, 0, 1]) + bytes(4)
settings = dict(part.split("=") for part in sys.argv[2:])
sizes = {{name: int(value) for name, value in settings.items()}}
store = MessageStore(StoreConfig(store_path_root_dir=sys.argv[1], **sizes))
store.load({NOW_MS})
number = 0
while True:
    batch = []
    for number in range(number, number + {BATCH}):
        key = f"7F0000010A1B18B4AAC2{{number:012X}}"
        text = f"UNIQ_KEY\\x01{{key}}\\x02".encode()
        body = b"%d" % number * 50
        batch.append(
            PutMessage(
                "Topic", number % {QUEUES}, body, text, 0, 1, host, host, key, None, None
            )
        )
    number += 1
    results = store.put(batch, {NOW_MS} + number)
    assert {{result.status for result in results}} == {{PutStatus.PUT_OK}}
    print(number, flush=True)
    if number % 210 == 0:
        store.tick({NOW_MS} + 1000 * number)
        job = store.flush.begin()
        if job is not None:
            job.run()
            store.flush.finish(job)
"""

SMALL: dict[str, Any] = {
    "mapped_file_size_commit_log": 65_536,
    "mapped_file_size_consume_queue": 2_000,
    "max_hash_slot_num": 500,
    "max_index_num": 2_000,
}


def write_until_killed(root: Path, acknowledgements: int) -> int:
    """Kills a writer after so many batches; how many messages it acknowledged in the end."""
    arguments = [f"{name}={value}" for name, value in SMALL.items()]
    command = [sys.executable, "-c", WRITER, str(root), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(acknowledgements)]
        writer.kill()
        lines += writer.stdout.readlines()
    assert writer.returncode == -9
    return int([line for line in lines if line.endswith(b"\n")][-1])


@pytest.mark.parametrize("acknowledgements", [1, 40, 400])
def test_what_was_acknowledged_is_there(tmp_path: Path, acknowledgements: int) -> None:
    count = write_until_killed(tmp_path, acknowledgements)
    assert count >= BATCH * acknowledgements
    store = MessageStore(StoreConfig(store_path_root_dir=str(tmp_path), **SMALL))
    done = store.load(NOW_MS)
    assert not done.was_closed
    assert not done.warnings
    for queue_id in range(QUEUES):
        numbers: list[int] = []
        while True:
            result = store.get("Topic", queue_id, len(numbers), 32, 1 << 20)
            if not result.count:
                break
            found = decode_messages(b"".join(result.buffers))
            numbers += [int(message.body[: len(message.body) // 50]) for message in found]
        expected = list(range(queue_id, count, QUEUES))
        assert numbers[: len(expected)] == expected
        assert numbers == list(range(queue_id, numbers[-1] + 1, QUEUES)), "nor is any there twice"
    for number in range(0, count, 11):
        by_key = store.query("Topic", f"7F0000010A1B18B4AAC2{number:012X}", 32, 0, FAR_MS)
        assert len(by_key.buffers) == 1, number
    store.stop(NOW_MS)
    assert not (tmp_path / "abort").exists()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    for _ in range(3):
        write_until_killed(tmp_path, 2)
    store = MessageStore(StoreConfig(store_path_root_dir=str(tmp_path), **SMALL))
    store.load(NOW_MS)
    assert store.max_offset("Topic", 0) > 0
    store.stop(NOW_MS)
