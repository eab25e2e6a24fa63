# SPDX-License-Identifier: Apache-2.0
"""Whole store directories for tests, written from the construct declarations.

`StoreWriter` puts messages as a broker does and may go on while others read: log segments that
roll with blanks, consume queues (plain, with ext files, of batches), index files, config JSON in
the form of 4.9 or of 5.x, checkpoint, abort. Nothing of it shares code with the readers under
test but the declarations. `drafts()` and `write_store()` make random stores with hypothesis.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

from hypothesis import strategies as st

from tests.spark.fastjson import fastjson
from tests.spark.store_index import IndexWriter, write_at
from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.compression import CompressionType, compress
from txrocketmq.remoting.message.flags import MessageSysFlag, transaction_type
from txrocketmq.remoting.message.tags import tags_code

START_MS: Final = 1_763_000_000_000
"""When the first message of a store is stored."""
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
_IPV4: Final = {"ip": bytes((10, 0, 0, 7)), "port": 40_001}
_IPV6: Final = {"ip": bytes(range(0xF0, 0x100)), "port": 40_002}
_NOT_DISPATCHED: Final = (
    MessageSysFlag.TRANSACTION_PREPARED_TYPE,
    MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
)
_BLANK_BYTES: Final = record.BLANK.sizeof()
_EXT_FILE_BYTES: Final = 4096


@dataclass(frozen=True)
class Draft:
    """A message to be put; the writer fills in what is left out."""

    topic: str = "Topic"
    queue_id: int = 0
    body: bytes = b"body"
    properties: Mapping[str, str] = field(default_factory=dict)
    raw_properties: bytes | None = None
    """Replaces `properties`: the bytes as they are to be in the record."""
    trailing_separator: bool = True
    """Whether a separator follows the last property, as in 5.x; 4.9 writes none."""
    flag: int = 0
    sys_flag: int = 0
    """Bits besides those of compression and addresses, such as the transaction type."""
    compression: CompressionType | None = None
    born_ipv6: bool = False
    store_ipv6: bool = False
    v2: bool = False
    """Whether the magic is V2 even for a short topic."""
    born_timestamp: int = START_MS - 25
    after_ms: int = 1
    """How long after the message before it this one is stored."""
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    fakes: int = 0
    """The number of whole records in the body, with the offsets at which they lie there."""
    inner: tuple[tuple[bytes, Mapping[str, str]], ...] = ()
    """Messages of an inner batch, which make the body; the queue is one of batches."""
    light: tuple[str, ...] = ()
    """Names of light queues that the message enters."""
    property_crc: bool = False
    """Whether to append __CRC32#, as 5.x does with enabledAppendPropCRC."""


class Stored(NamedTuple):
    """A message as it was written."""

    draft: Draft
    physical_offset: int
    queue_offset: int
    store_timestamp: int
    data: bytes
    """The record."""
    fields: dict[str, Any]
    """The fields from which the record was built."""
    plain_body: bytes
    """The body before compression."""

    @property
    def size(self) -> int:
        """The size of the record in bytes."""
        return len(self.data)


class StoreWriter:
    """Writes a store; each `put` is on disk at once. Files are made at full size.

    `first_offset` is where the log starts, as if everything before it had been deleted.
    """

    def __init__(
        self,
        root: Path,
        *,
        segment_bytes: int = 65_536,
        queue_units: int = 50,
        index_slots: int = 32,
        index_items: int = 200,
        first_offset: int = 0,
        version: str = "5.4.0",
        ext: bool = False,
    ) -> None:
        self.root = root
        self.stored: list[Stored] = []
        self.end = first_offset
        """The offset at which the log ends."""
        self.first_offset = first_offset
        self.segment_bytes = segment_bytes
        self._queue_units = queue_units
        self._v4 = version.startswith("4.")
        self._ext = ext
        self._ext_ends: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._next: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._batch_units: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._index = IndexWriter(root / "index", index_slots, index_items)
        self._topics: dict[str, int] = {}
        (root / "commitlog").mkdir(parents=True)
        (root / "consumequeue").mkdir()
        (root / "config").mkdir()
        (root / "lock").write_bytes(b"lock")
        (root / "abort").write_text("" if self._v4 else "4711")

    # --- messages ---

    def put(self, draft: Draft, *, dispatch: bool = True) -> Stored:
        """Appends a message; without `dispatch`, queues and index do not know it (yet)."""
        queue = draft.topic, draft.queue_id
        prepared = transaction_type(draft.sys_flag) in _NOT_DISPATCHED
        queue_offset = 0 if prepared else self._next[queue]
        before = self.stored[-1].store_timestamp if self.stored else START_MS
        stored = self._build(draft, queue_offset, before + draft.after_ms, self.end)
        room = self.segment_bytes - self.end % self.segment_bytes
        if stored.size + _BLANK_BYTES > room:
            blank = record.BLANK.build({"room": room, "magic": record.MAGIC_BLANK})
            self._write_log(self.end, blank)
            self.end += room
            stored = self._build(draft, queue_offset, before + draft.after_ms, self.end)
        assert stored.size + _BLANK_BYTES <= self.segment_bytes, "no segment has room for it"
        self._write_log(self.end, stored.data)
        self.end += stored.size
        self.stored.append(stored)
        self._topics[draft.topic] = max(self._topics.get(draft.topic, 4), draft.queue_id + 1)
        if not prepared:
            self._next[queue] += len(draft.inner) or 1
            for name in draft.light:
                self._next[name, 0] += 1
        if dispatch:
            self.dispatch(stored)
        return stored

    def put_all(self, drafts: Iterable[Draft]) -> list[Stored]:
        """Puts the messages in order."""
        return [self.put(draft) for draft in drafts]

    def dispatch(self, stored: Stored) -> None:
        """Writes the queue unit and index items of a message, as the reput service does."""
        draft = stored.draft
        kind = transaction_type(draft.sys_flag)
        properties = _decoded(stored.fields["properties"])
        if kind not in _NOT_DISPATCHED:
            code = tags_code(properties.get(names.TAGS))
            if draft.topic == SCHEDULE_TOPIC and names.DELAY in properties:
                code = stored.store_timestamp + 1000 * int(properties[names.DELAY])
            if draft.inner:
                self._write_batch_unit(stored, code)
            else:
                self._write_unit(stored, code)
            offsets = properties.get(names.INNER_MULTI_QUEUE_OFFSET, "").split(",")
            for name, offset in zip(draft.light, offsets, strict=False):
                seen = replace(draft, topic=name, queue_id=0)
                self._write_unit(stored._replace(draft=seen, queue_offset=int(offset)), code)
        if kind != MessageSysFlag.TRANSACTION_ROLLBACK_TYPE:
            keys = [properties.get(names.UNIQ_KEY, ""), *properties.get(names.KEYS, "").split(" ")]
            for key in keys:
                if key:
                    self._index.put(
                        f"{draft.topic}#{key}", stored.physical_offset, stored.store_timestamp
                    )

    def _build(self, draft: Draft, queue_offset: int, stored_ms: int, at: int) -> Stored:
        topic = draft.topic.encode()
        sys_flag = draft.sys_flag
        sys_flag |= MessageSysFlag.BORN_HOST_V6 if draft.born_ipv6 else 0
        sys_flag |= MessageSysFlag.STORE_HOST_V6 if draft.store_ipv6 else 0
        if draft.compression is not None:
            sys_flag |= MessageSysFlag.COMPRESSED | draft.compression << 8
        if draft.inner:
            sys_flag |= MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP
        fields: dict[str, Any] = {
            "magic": record.MAGIC_V2 if draft.v2 or len(topic) > 127 else record.MAGIC_V1,
            "queue_id": draft.queue_id,
            "flag": draft.flag,
            "queue_offset": queue_offset,
            "physical_offset": at,
            "sys_flag": sys_flag,
            "born_timestamp": draft.born_timestamp,
            "born_host": _IPV6 if draft.born_ipv6 else _IPV4,
            "store_timestamp": stored_ms,
            "store_host": _IPV6 if draft.store_ipv6 else _IPV4,
            "reconsume_times": draft.reconsume_times,
            "prepared_transaction_offset": draft.prepared_transaction_offset,
            "topic": topic,
            "properties": _properties(
                draft, queue_offset, [self._next[name, 0] for name in draft.light]
            ),
        }
        plain = _inner_batch(draft) if draft.inner else draft.body
        if draft.fakes:
            ipv6 = draft.born_ipv6 + draft.store_ipv6
            plain += fake_records(at + 88 + 12 * ipv6 + len(plain), draft.fakes)
        body = plain if draft.compression is None else compress(plain, draft.compression)
        fields |= {"body": body, "body_crc": crc32(body) & 0x7FFFFFFF}
        data = record.build_record(fields)
        if draft.property_crc:
            data, fields = _with_property_crc(fields)
        return Stored(draft, at, queue_offset, stored_ms, data, fields, plain)

    def _write_log(self, at: int, data: bytes) -> None:
        first = at - at % self.segment_bytes
        write_at(self.segment(first), at - first, data, self.segment_bytes)

    # --- queues ---

    def _write_unit(self, stored: Stored, code: int) -> None:
        draft = stored.draft
        if self._ext:
            code = self._write_ext_unit(stored, code)
        unit = formats.CONSUME_QUEUE_UNIT.build(
            {"physical_offset": stored.physical_offset, "size": stored.size, "tags_code": code}
        )
        self._write_queue("consumequeue", draft, stored.queue_offset, unit)

    def _write_batch_unit(self, stored: Stored, code: int) -> None:
        draft = stored.draft
        queue = draft.topic, draft.queue_id
        unit = formats.BATCH_CONSUME_QUEUE_UNIT.build(
            {
                "physical_offset": stored.physical_offset,
                "size": stored.size,
                "tags_code": code,
                "store_time": stored.store_timestamp,
                "msg_base_offset": stored.queue_offset,
                "batch_size": len(draft.inner),
                "compacted_offset": -1,
                "reserved": 0,
            }
        )
        self._write_queue("batchconsumequeue", draft, self._batch_units[queue], unit)
        self._batch_units[queue] += 1

    def _write_queue(self, kind: str, draft: Draft, index: int, unit: bytes) -> None:
        file_bytes = self._queue_units * len(unit)
        at = index * len(unit)
        first = at - at % file_bytes
        path = self.root / kind / draft.topic / str(draft.queue_id) / f"{first:020d}"
        write_at(path, at - first, unit, file_bytes)

    def _write_ext_unit(self, stored: Stored, code: int) -> int:
        draft = stored.draft
        queue = draft.topic, draft.queue_id
        unit = formats.CONSUME_QUEUE_EXT_UNIT.build(
            {
                "size": formats.CONSUME_QUEUE_EXT_HEAD.sizeof() + 8,
                "tags_code": code,
                "store_time": stored.store_timestamp,
                "bitmap_size": 8,
                "bitmap": bytes(8),
            }
        )
        at = self._ext_ends[queue]
        room = _EXT_FILE_BYTES - at % _EXT_FILE_BYTES
        path = self.root / "consumequeue_ext" / draft.topic / str(draft.queue_id)
        if len(unit) + formats.CONSUME_QUEUE_EXT_END_BYTES > room:
            first = at - at % _EXT_FILE_BYTES
            write_at(path / f"{first:020d}", at - first, b"\xff\xff", _EXT_FILE_BYTES)
            at += room
        first = at - at % _EXT_FILE_BYTES
        write_at(path / f"{first:020d}", at - first, unit, _EXT_FILE_BYTES)
        self._ext_ends[queue] = at + len(unit)
        return formats.CONSUME_QUEUE_EXT_ADDRESS_BASE + at

    # --- the rest of the directory ---

    def segment(self, first_offset: int) -> Path:
        """Returns the path of the log file that starts at this offset."""
        return self.root / "commitlog" / f"{first_offset:020d}"

    def delete_segment(self) -> Path:
        """Deletes the oldest log file, as retention does; returns its path."""
        first = min((self.root / "commitlog").iterdir())
        first.unlink()
        return first

    def write_config(
        self,
        offsets: Mapping[str, Mapping[int, int]] | None = None,
        delay_offsets: Mapping[int, int] | None = None,
        groups: Sequence[str] = (),
    ) -> None:
        """Writes config/*.json and the checkpoint; offsets by "topic@group", then queue."""
        version: dict[str, Any] = {"counter": 3, "timestamp": START_MS}
        if not self._v4:
            version["stateVersion"] = 0
        topics = {
            topic: self._topic_config(topic, queues) for topic, queues in self._topics.items()
        }
        table = {group: {"groupName": group, "consumeEnable": True} for group in groups}
        self._write_json("topics", {"dataVersion": version, "topicConfigTable": topics})
        self._write_json(
            "subscriptionGroup", {"dataVersion": version, "subscriptionGroupTable": table}
        )
        more = {} if self._v4 else {"dataVersion": version}
        self._write_json("consumerOffset", {**more, "offsetTable": dict(offsets or {})})
        self._write_json("delayOffset", {**more, "offsetTable": dict(delay_offsets or {})})
        last = self.stored[-1].store_timestamp if self.stored else 0
        times = {
            "physic_msg_timestamp": last, "logics_msg_timestamp": last, "index_msg_timestamp": 0,
            "master_flushed_offset": 0, "confirm_physical_offset": 0 if self._v4 else self.end,
        }  # fmt: skip
        checkpoint = formats.CHECKPOINT_V4 if self._v4 else formats.CHECKPOINT
        data = checkpoint.build({each.name: times[each.name] for each in checkpoint.subcons})
        write_at(self.root / "checkpoint", 0, data, formats.CHECKPOINT_FILE_BYTES)

    def close(self) -> None:
        """Ends in order: writes the config, and removes `abort`."""
        self.write_config()
        (self.root / "abort").unlink()

    def _topic_config(self, topic: str, queues: int) -> dict[str, Any]:
        return {
            **({} if self._v4 else {"attributes": {}}),
            "order": False,
            "perm": 6,
            "readQueueNums": queues,
            "topicFilterType": "SINGLE_TAG",
            "topicName": topic,
            "topicSysFlag": 0,
            "writeQueueNums": queues,
        }

    def _write_json(self, name: str, value: Any) -> None:
        path = self.root / "config" / f"{name}.json"
        path.write_text(fastjson(value, "\n", inline=self._v4), encoding="utf-8")


def fake_records(at: int, count: int) -> bytes:
    """Returns records end to end that say they lie at `at`: plausible, but only a body."""
    data = b""
    for number in range(count):
        body = b"fake %d" % number
        data += record.build_record(
            {
                "magic": record.MAGIC_V1,
                "body_crc": crc32(body) & 0x7FFFFFFF,
                "queue_id": 0,
                "flag": 0,
                "queue_offset": number,
                "physical_offset": at + len(data),
                "sys_flag": 0,
                "born_timestamp": START_MS,
                "born_host": _IPV4,
                "store_timestamp": START_MS,
                "store_host": _IPV4,
                "reconsume_times": 0,
                "prepared_transaction_offset": 0,
                "body": body,
                "topic": b"Fake",
                "properties": b"",
            }
        )
    return data


def _properties(draft: Draft, queue_offset: int, in_light: Sequence[int]) -> bytes:
    if draft.raw_properties is not None:
        return draft.raw_properties
    pairs = dict(draft.properties)
    if draft.inner:
        pairs |= {names.INNER_NUM: str(len(draft.inner)), names.INNER_BASE: str(queue_offset)}
    if draft.light:
        pairs |= {
            names.INNER_MULTI_DISPATCH: ",".join(draft.light),
            names.INNER_MULTI_QUEUE_OFFSET: ",".join(map(str, in_light)),
        }
    return _encoded(pairs, trailing_separator=draft.trailing_separator or draft.property_crc)


def _encoded(pairs: Mapping[str, str], *, trailing_separator: bool) -> bytes:
    text = "\x02".join(f"{name}\x01{value}" for name, value in pairs.items())
    return (text + "\x02" if text and trailing_separator else text).encode()


def _decoded(properties: bytes) -> dict[str, str]:
    pairs = (pair.split("\x01", 1) for pair in properties.decode("utf-8", "replace").split("\x02"))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and all(pair)}


def _inner_batch(draft: Draft) -> bytes:
    return b"".join(
        record.build_batch_entry(
            {
                "flag": draft.flag,
                "body": body,
                "properties": _encoded(pairs, trailing_separator=draft.trailing_separator),
            }
        )
        for body, pairs in draft.inner
    )


def _with_property_crc(fields: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """Returns the CRC of all before it, as ten digits with the lowest one first."""
    before = fields["properties"]
    reserved = len(f"{names.CRC32}\x01") + 10 + 1
    data = record.build_record({**fields, "properties": before + bytes(reserved)})
    digits = f"{crc32(data[:-reserved]) & 0x7FFFFFFF:010d}"[::-1]
    fields = {**fields, "properties": before + f"{names.CRC32}\x01{digits}\x02".encode()}
    return record.build_record(fields), fields


# --- random stores ---

_TOPICS: Final = ("Orders", "Payments", "%RETRY%group", "Ünï-cödé", "T" * 127, "L" * 200)
LIGHT_LISTS: Final = (("%LMQ%a",), ("%LMQ%b", "%LMQ%a"))
_TEXT: Final = st.text(st.characters(exclude_characters="\x01\x02", codec="utf-8"), max_size=12)
_PROPERTIES: Final = st.dictionaries(
    st.sampled_from(
        (names.TAGS, names.KEYS, names.UNIQ_KEY, names.WAIT, "color", "größe", "TAG", "KEYSS")
    ),
    _TEXT,
    max_size=5,
)
_ODD_PROPERTIES: Final = st.binary(max_size=40) | st.lists(
    st.sampled_from((b"\x01", b"\x02", b"TAGS", b"KEYS", b"a", b"b\x01c\x02", b"\xff", b"=")),
    max_size=8,
).map(b"".join)
_BODIES: Final = st.binary(max_size=300) | st.builds(
    lambda unit, times: unit * times, st.binary(min_size=1, max_size=20), st.integers(0, 100)
)


@st.composite
def drafts(draw: st.DrawFn, *, plain: bool = False, light: bool = False) -> Draft:
    """Draws any message; `plain` ones have no odd properties, `light` adds light queues."""
    inner: tuple[tuple[bytes, dict[str, str]], ...] = ()
    if draw(st.integers(0, 15)) == 0:
        inner = tuple(draw(st.lists(st.tuples(_BODIES, _PROPERTIES), min_size=1, max_size=4)))
    topic = "Batches" if inner else draw(st.sampled_from(_TOPICS))
    compression = draw(st.sampled_from((None, None, None, *CompressionType)))
    odd = not plain and not inner and draw(st.integers(0, 9)) == 0
    kinds = (0, 0, 0, MessageSysFlag.TRANSACTION_COMMIT_TYPE, *_NOT_DISPATCHED)
    kind = 0 if inner else draw(st.sampled_from(kinds))
    enters = light and not (inner or odd or topic.startswith("%") or kind in _NOT_DISPATCHED)
    return Draft(
        topic=topic,
        queue_id=draw(st.integers(0, 3)),
        body=draw(_BODIES),
        properties=draw(_PROPERTIES),
        raw_properties=draw(_ODD_PROPERTIES) if odd else None,
        trailing_separator=draw(st.booleans()),
        flag=draw(st.integers(-(1 << 31), (1 << 31) - 1)),
        sys_flag=kind,
        compression=None if inner else compression,
        born_ipv6=draw(st.booleans()),
        store_ipv6=draw(st.booleans()),
        v2=draw(st.integers(0, 7)) == 0,
        after_ms=draw(st.integers(0, 2000)),
        reconsume_times=draw(st.integers(0, 16)),
        prepared_transaction_offset=draw(st.integers(0, 1 << 40)),
        fakes=0
        if plain or inner or compression is not None
        else draw(st.sampled_from((0, 0, 1, 3))),
        inner=inner,
        light=draw(st.sampled_from(((), *LIGHT_LISTS))) if enters else (),
        property_crc=not inner and not odd and draw(st.integers(0, 7)) == 0,
    )


def write_store(
    root: Path, messages: Iterable[Draft], *, segment_bytes: int = 4096, first_offset: int = 0
) -> StoreWriter:
    """Writes a whole store and leaves it open; `close()` ends it in order."""
    writer = StoreWriter(root, segment_bytes=segment_bytes, first_offset=first_offset)
    writer.put_all(messages)
    writer.write_config()
    return writer
