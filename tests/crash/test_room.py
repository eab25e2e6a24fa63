# SPDX-License-Identifier: Apache-2.0
"""A store in a process that gets no more room, for its files or for mapping them.

Where files live in memory, to read a hole of a mapping takes a page, as writing does: without one
the process ends by SIGBUS. What cannot be had is to be a sentence at the start and a refused
message later, and what was acknowledged is there when there is room again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LIMIT_S = 60
MIB = 1 << 20

PROGRAM = """
import json, os, resource, sys
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus
from txrocketmq.broker.store.disk.steps import finished

NOW_MS = 1_700_000_000_000
HOST = bytes([127, 0, 0, 1]) + bytes(4)
root, count, more_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if more_bytes:
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more_bytes, used + more_bytes))
store = MessageStore(StoreConfig(
    store_path_root_dir=root, mapped_file_size_commit_log=1 << 20, max_index_num=20_000,
    mapped_file_size_consume_queue=60_000, max_hash_slot_num=10_000,
    clean_file_forcibly_enable=False,
))
try:
    store.load(NOW_MS)
except StoreError as error:
    print(json.dumps({"sentence": str(error)}))
    sys.exit(1)
acknowledged = []
for number in range(count):
    now_ms = NOW_MS + number
    text = b"UNIQ_KEY\\x01%032d\\x02" % number
    body = b"%d" % number * 1000
    put = PutMessage(
        f"T{number % 7}", number % 3, body, text, 0, 1, HOST, HOST, f"{number:032}", None, None
    )
    (result,) = store.put([put], now_ms)
    if result.status is PutStatus.PUT_OK:
        acknowledged.append(number)
    if number % 50 == 0:
        store.tick(now_ms)
        job = store.flush.begin()
        if job is not None:
            job.run()
            store.flush.finish(job)
found = []
for topic in store.topics():
    for queue_id in store.queue_ids(topic):
        for unit in store.queue_units(topic, queue_id, 0, 1 << 30):
            record = store.message_at(unit.physical_offset, unit.size_bytes)
            if record is None:
                continue
            text = bytes(record).partition(b"UNIQ_KEY\\x01")[2][:32]
            finished(store.query(topic, text.decode(), 32, 0, 1 << 50))
            found.append(int(text))
for offset in range(0, store.max_physical_offset + (2 << 20), 4096):
    store.message_at(offset)
print(json.dumps({
    "acknowledged": acknowledged, "found": sorted(found), "why": store.why_not_writeable()
}))
sys.stdout.flush()
os._exit(0)  # as if it was killed: nothing is closed
"""


def run(root: Path, count: int, more_bytes: int = 0) -> tuple[int, dict[str, Any]]:
    """Opens a store, puts so many messages, reads all that is there: exit code, what was said."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root), str(count), str(more_bytes)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    assert done.stdout, (done.returncode, done.stderr)
    said: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, said


@pytest.fixture
def memory_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory of 12 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a file system in memory, and not everywhere")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(place: Path) -> Path:
    """Takes all room that is left."""
    filler = place / "filler"
    with filler.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


def sparse(path: Path) -> None:
    """Makes holes of all pages of zeros, as a copy would."""
    copy = path.with_name(path.name + ".copy")
    subprocess.run(["cp", "--sparse=always", path, copy], check=True)
    copy.rename(path)


def test_a_full_disk_in_memory_ends_no_process(memory_disk: Path) -> None:
    root = memory_disk / "store"
    code, first = run(root, 4_000)
    assert code == 0
    assert 1_000 < len(first["acknowledged"]) < 4_000
    assert first["found"] == first["acknowledged"]
    assert "No space left" in first["why"]
    filler = fill(memory_disk)
    code, full = run(root, 100)
    if code:
        assert "No space left" in full["sentence"]
    else:
        assert full["acknowledged"] == []
        assert full["found"] == first["found"]
    filler.unlink()
    _, after = run(root, 20)
    assert after["found"] == sorted(first["found"] + after["acknowledged"])


def test_a_store_with_holes_on_a_full_disk_is_read_or_refused_with_a_sentence(
    memory_disk: Path,
) -> None:
    root = memory_disk / "store"
    _, first = run(root, 300)
    for path in root.rglob("*"):
        if path.is_file() and path.stat().st_size:
            sparse(path)
    filler = fill(memory_disk)
    code, full = run(root, 10)
    if code:
        assert "No space left" in full["sentence"]
    else:
        assert full["found"] == first["found"]
    filler.unlink()
    _, after = run(root, 10)
    assert after["found"] == sorted(first["found"] + after["acknowledged"])


@pytest.mark.parametrize("name", ["commitlog/{next_log}", "index/20991231235959999"])
def test_a_file_that_was_made_and_has_no_page_is_not_touched_without_room(
    memory_disk: Path, name: str
) -> None:
    root = memory_disk / "store"
    _, first = run(root, 300)
    last = max((root / "commitlog").iterdir())
    path = root / name.format(next_log=f"{int(last.name) + MIB:020d}")
    size = next(path.parent.iterdir()).stat().st_size
    with path.open("wb") as file:
        file.truncate(size)
    filler = fill(memory_disk)
    code, full = run(root, 10)
    if code:
        assert "No space left" in full["sentence"]
    else:
        assert full["found"] == first["found"]
    filler.unlink()
    _, after = run(root, 10)
    assert after["found"] == sorted(first["found"] + after["acknowledged"])


@pytest.mark.parametrize("more_mib", [1, 3, 10, 30])
def test_low_address_space_ends_no_process(tmp_path: Path, more_mib: int) -> None:
    _, first = run(tmp_path / "store", 3_000)
    assert len(first["acknowledged"]) == 3_000
    code, low = run(tmp_path / "store", 3_000, more_mib * MIB)
    if code:
        assert "Cannot allocate memory" in low["sentence"]
    else:
        assert set(low["found"]) <= set(first["found"])
    _, after = run(tmp_path / "store", 0)
    assert len(after["found"]) == 3_000 + len(low.get("acknowledged", ()))
