# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq store dump`: prints messages of a store.

The store is opened on private copies, so nothing is changed, even while a broker uses it; then the
messages that are there at that moment are printed. By place, all records of the log are printed,
including those of deleted topics; by topic and by key, what a broker would return to consumers and
queries.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from txrocketmq.broker.store.disk.dry_files import DryFiles
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreLoss
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.queues.consume_queues import KindOf, kind_unknown
from txrocketmq.cli.show import heading, message_fields
from txrocketmq.cli.store.store_directory import DONE, FAILED, PROG, kinds_of_queues
from txrocketmq.remoting.message.message import MessageExt, body_crc, decode_messages
from txrocketmq.remoting.primitives.plain_text import plain, plain_error, plain_json

_FAR_MS = 1 << 50
_UNITS_AT_ONCE = 1024


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WantedRecords:
    """Which messages are to be printed, and how."""

    offset: int | None
    key: str | None
    topic: str | None
    queue: int | None
    queue_offset: int
    count: int | None
    body: str
    as_json: bool


def dump_store(config: StoreConfig, wanted: WantedRecords) -> int:
    """Prints the requested messages; returns 1 if there are none."""
    files = DryFiles(needs_lock=False)
    in_use = f"{config.store_path_root_dir}/lock"
    held = files.lock_for_reading(in_use)
    if held is None:
        print(f"{PROG} dump: a broker uses the store; this is what is in it now", file=sys.stderr)
    else:
        held.release()
    kind_of = kinds_of_queues(Path(config.store_path_root_dir))
    store = opened(config, files, with_index=wanted.key is not None, kind_of=kind_of)
    count = 0
    for data in islice(records(store, wanted), wanted.count):
        message, is_sound = decoded(data)
        show = as_json if wanted.as_json else as_line
        print(show(message, wanted.body, is_sound=is_sound))
        count += 1
    sys.stdout.flush()
    if not count:
        print(f"{PROG} dump: there is no such message", file=sys.stderr)
    return DONE if count else FAILED


def opened(
    config: StoreConfig,
    files: DryFiles,
    *,
    with_index: bool,
    kind_of: KindOf = kind_unknown,
) -> MessageStore:
    """Opens the store on copies, whatever it has lost."""
    settings = dataclasses.replace(
        config, message_index_enable=with_index, max_msgs_num_batch=1 << 30
    )
    store = MessageStore(settings, files=files)
    now_ms = int(time.time() * 1000)
    try:
        store.load(now_ms, kind_of=kind_of)
    except StoreLoss as error:
        print(f"{PROG} dump: {plain_error(error)}", file=sys.stderr)
        again = DryFiles([error.word], needs_lock=False)
        store = MessageStore(settings, files=again)
        store.load(now_ms, kind_of=kind_of)
    return store


def records(store: MessageStore, wanted: WantedRecords) -> Iterator[memoryview]:
    """Yields the requested records."""
    if wanted.key is not None:
        assert wanted.topic is not None
        yield from finished(
            store.query(wanted.topic, wanted.key, wanted.count or 1 << 20, 0, _FAR_MS)
        ).buffers
    elif wanted.topic is not None:
        ids = store.queue_ids(wanted.topic) if wanted.queue is None else [wanted.queue]
        for queue_id in ids:
            yield from _of_queue(store, wanted.topic, queue_id, wanted.queue_offset)
    else:
        start = store.min_physical_offset if wanted.offset is None else wanted.offset
        yield from store.records(start)


def _of_queue(
    store: MessageStore, topic: str, queue_id: int, queue_offset: int
) -> Iterator[memoryview]:
    at = max(store.min_offset(topic, queue_id), queue_offset)
    end = store.max_offset(topic, queue_id)
    before = -1
    while at < end:
        for unit in store.queue_units(topic, queue_id, at, min(_UNITS_AT_ONCE, end - at)):
            if unit.physical_offset == before:
                continue  # one more message of a batch
            before = unit.physical_offset
            record = store.message_at(unit.physical_offset, unit.size_bytes)
            if record is not None:
                yield record
        at += _UNITS_AT_ONCE


def decoded(data: memoryview) -> tuple[MessageExt, bool]:
    """Returns the message of a record, and whether its body has the right CRC.

    If not, the body is left as it is stored.
    """
    stored = decode_messages(data, decompress_body=False)[0]
    if body_crc(stored.body) != stored.body_crc:
        return stored, False
    return decode_messages(data)[0], True


def as_line(message: MessageExt, body: str, *, is_sound: bool) -> str:
    """Returns a message as a line for a person."""
    place = (
        f"{message.commit_log_offset}+{message.store_size}"
        f" {plain(message.topic)}/{message.queue_id}@{message.queue_offset}"
    )
    wrong = "" if is_sound else " (wrong CRC)"
    return f"{heading(message, place)}{wrong} {_body(message, body)}"


def as_json(message: MessageExt, body: str, *, is_sound: bool) -> str:
    """Returns a message as JSON for a program."""
    fields: dict[str, Any] = message_fields(message)
    del fields["broker"]
    fields["commitLogOffset"] = message.commit_log_offset
    fields["storeSize"] = message.store_size
    fields["bodyCRC"] = message.body_crc
    fields["isBodySound"] = is_sound
    fields["bodyBytes"] = len(message.body)
    if body == "hex":
        fields["bodyHex"] = message.body.hex()
    elif body == "text":
        fields["body"] = message.body.decode("utf-8", "replace")
    return plain_json(orjson.dumps(fields).decode())


def _body(message: MessageExt, how: str) -> str:
    if how == "length":
        return f"<{len(message.body)} bytes>"
    if how == "hex":
        return message.body.hex()
    try:
        return plain(message.body.decode("utf-8"))
    except UnicodeDecodeError:
        return message.body.hex()
