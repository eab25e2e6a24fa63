# SPDX-License-Identifier: Apache-2.0
"""A store on the disk that was closed in order, for tests of its readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.crash.ledger import HOST
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore, PutMessage
from txrocketmq.broker.store.upkeep.record_dispatch import ArrivalListener
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.message.record import MAGIC_V1, build_record

NOW_MS: Final = 1_700_000_000_000
MESSAGES: Final = 300
_BODY_AT: Final = 88
"""The offset of the body in a record with IPv4 hosts."""
SETTINGS: Final[dict[str, Any]] = {
    "mapped_file_size_commit_log": 8192,
    "mapped_file_size_consume_queue": 800,
    "max_hash_slot_num": 50,
    "max_index_num": 500,
}


def for_each_queue(heard: Callable[[str, int, int], object]) -> ArrivalListener:
    """Returns a listener that always waits for new messages, by which `heard` is told of each
    queue: its topic, id and new end.
    """

    def all_heard(rows: Sequence[tuple[Any, ...]]) -> None:
        for queue, *_ in rows:
            heard(queue.topic, queue.queue_id, queue.max_offset)

    return ArrivalListener((heard,), all_heard)


def put_message(number: int) -> PutMessage:
    """Makes the message with this number: in one of two topics and two queues, with a key."""
    texts = {"UNIQ_KEY": f"unique-{number}", "KEYS": f"key-{number}"}
    return PutMessage(
        f"Topic{number % 2}",
        number // 2 % 2,
        f"body-{number}".encode(),
        "".join(f"{name}\x01{value}\x02" for name, value in texts.items()).encode(),
        tags_code=0,
        born_timestamp_ms=NOW_MS,
        born_host=HOST,
        store_host=HOST,
        uniq_key=texts["UNIQ_KEY"],
        keys=texts["KEYS"],
        tags=None,
    )


def filled_store(root: Path, *, closes: bool = True) -> MessageStore:
    """Makes the store; without `closes` it is left open, as by a running broker."""
    store = MessageStore(StoreConfig(store_path_root_dir=str(root), **SETTINGS))
    store.load(NOW_MS)
    for start in range(0, MESSAGES, 10):
        store.put([put_message(number) for number in range(start, start + 10)], NOW_MS + start)
    if closes:
        store.stop(NOW_MS + MESSAGES)
    else:
        store.flush.flush_all()
        store.tick(NOW_MS + MESSAGES)
    return store


def store_with_a_record_in_a_body(root: Path) -> int:
    """Makes a sound store, with a message that nobody sends by chance.

    The end of its record is itself a record, of no queue, which says that it lies where it lies.
    Returns the position of the outer record in its file.
    """
    store = filled_store(root, closes=False)
    while store.max_physical_offset % 8192 > 4_000:
        store.put([put_message(0)], NOW_MS + MESSAGES)
    start, outer, filler = store.max_physical_offset, put_message(0), b"z" * 200
    host = {"ip": bytes([127, 0, 0, 1]), "port": 1}
    inner = build_record(
        {
            "magic": MAGIC_V1, "body_crc": body_crc(b"inner"), "queue_id": 0, "flag": 0,
            "queue_offset": 0, "physical_offset": start + _BODY_AT + len(filler),
            "sys_flag": MessageSysFlag.TRANSACTION_ROLLBACK_TYPE, "born_timestamp": NOW_MS,
            "born_host": host, "store_timestamp": NOW_MS, "store_host": host, "reconsume_times": 0,
            "prepared_transaction_offset": 0, "body": b"inner", "topic": outer.topic.encode(),
            "properties": outer.properties,
        }
    )  # fmt: skip
    head = inner[: inner.index(b"inner") + len(b"inner")]
    store.put([outer._replace(body=filler + head)], NOW_MS + MESSAGES)
    store.put([put_message(1)], NOW_MS + MESSAGES)
    store.stop(NOW_MS + MESSAGES)
    return start % 8192


def contents(root: Path) -> dict[str, bytes]:
    """Returns what is in the files under the root, by path."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def spoil(path: Path, at: int, data: bytes) -> None:
    """Overwrites bytes of a file."""
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)
