# SPDX-License-Identifier: Apache-2.0
"""A send as it is meant: slow, obvious, one at a time, from construct's declarations.

It shares no code with the broker, whose sends it judges. It takes frames, keeps the bytes of
records, units and index, and returns answers as plain values.
"""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

from txrocketmq.broker.store.formats import formats as stores
from txrocketmq.remoting import formats
from txrocketmq.remoting.message.record import (
    BATCH_ENTRY,
    BLANK,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    build_record,
)

LETTERS = dict(
    zip(
        "abcdefghijklmn",
        "producerGroup topic defaultTopic defaultTopicQueueNums queueId sysFlag bornTimestamp flag"
        " properties reconsumeTimes unitMode maxReconsumeTimes batch bname".split(),
        strict=True,
    )
)
OWN = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true", "CLUSTER": "DefaultCluster"}
MANDATORY = (
    "producerGroup topic defaultTopic defaultTopicQueueNums queueId sysFlag bornTimestamp flag"
).split()
NUMBERS = {
    "defaultTopicQueueNums": 31, "queueId": 31, "sysFlag": 31, "bornTimestamp": 63, "flag": 31,
    "reconsumeTimes": 31, "maxReconsumeTimes": 31,
}  # fmt: skip
DELAYS_MS = [1_000, 5_000, 10_000, 30_000, *(60_000 * n for n in range(1, 11)), 1_200_000,
             1_800_000, 3_600_000, 7_200_000]  # fmt: skip


class Refused(Exception):
    """An answer that is not success."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(code, remark)
        self.code, self.remark = code, remark


def parsed(text: str) -> dict[str, str]:
    """Parses properties as a Java map: of equal names the last counts, in the first's place."""
    found: dict[str, str] = {}
    for pair in text.split("\x02"):
        name, _, value = pair.partition("\x01")
        if name and value:
            found[name] = value
    return found


def encoded(properties: dict[str, str]) -> bytes:
    return "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()


def java_hash(text: str) -> int:
    value = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - (value >> 31 << 32)


def host(packed: bytes) -> dict[str, Any]:
    return {"ip": packed[:-4], "port": int.from_bytes(packed[-4:], "big")}


class Reference:
    """A broker with topics of so many queues each; it makes no topic on demand.

    Besides sends it serves a few requests that show what was sent before.
    """

    def __init__(
        self,
        topics: dict[str, int],
        born: bytes,
        store: bytes,
        now_ms: int,
        file_bytes: int = 65_536,
        max_message_bytes: int = 4 << 20,
    ) -> None:
        self.file_bytes, self.max_message_bytes = file_bytes, max_message_bytes
        self.topics = topics
        self.born, self.store, self.now_ms = born, store, now_ms
        self.log = b""
        self.units: dict[tuple[str, int], list[bytes]] = {}
        self.records: dict[tuple[str, int], list[bytes]] = {}
        self.committed: dict[tuple[str, int, str], int] = {}
        self.keys: list[tuple[str, int]] = []
        """The keys in the index, each with the physical offset of its message."""

    def serve(self, frame: bytes) -> dict[str, Any] | None:
        """Returns the answer to one request."""
        found = formats.FRAME.parse(frame)
        if found.serialize_type == 0:
            header = json.loads(found.header)
            ext = {k: v for k, v in (header.get("extFields") or {}).items() if v is not None}
        else:
            header = formats.BINARY_HEADER.parse(found.header)
            ext = {f.name.decode(): f.value.decode() for f in header.fields if f.name and f.value}
        answer = {"code": 0, "flag": 1, "opaque": header["opaque"], "remark": None, "body": b""}
        answer["pulled"] = header["code"] == 11
        try:
            if header["code"] in (10, 310, 320):
                answer["extFields"] = self._send(header["code"], ext, found.body)
            else:
                answer["extFields"], answer["body"] = self._other(header["code"], ext)
        except Refused as refused:
            answer |= {"code": refused.code, "remark": refused.remark, "extFields": None}
        return None if header["flag"] & 2 else answer

    def _other(self, code: int, ext: dict[str, str]) -> tuple[dict[str, str] | None, bytes]:
        """Returns fields and body of the answer to a request that stores nothing."""
        if code == 34:  # HEART_BEAT
            return {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true"}, b""
        if code not in (11, 14, 15, 30):
            raise Refused(3, "")
        queue = ext["topic"], int(ext["queueId"])
        records = self.records.get(queue, [])
        if code == 30:  # GET_MAX_OFFSET
            return {"offset": str(len(records))}, b""
        if code == 11:  # PULL_MESSAGE
            wanted = int(ext["queueOffset"])
            if wanted >= len(records):
                raise Refused(19 if wanted == len(records) else 21, "")
            return None, records[wanted]
        group = (*queue, ext["consumerGroup"])
        if code == 15:  # UPDATE_CONSUMER_OFFSET
            self.committed[group] = int(ext["commitOffset"])
            return None, b""
        return {"offset": str(self.committed[group])}, b""  # QUERY_CONSUMER_OFFSET

    def _fields(self, ext: dict[str, str]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for letter, name in LETTERS.items():
            text = ext.get(letter, ext.get(name))
            if text is None:
                if name in MANDATORY:
                    raise Refused(1, f"RemotingCommandException: the custom field <{name}> is null")
            elif name in NUMBERS:
                if not text and name not in MANDATORY:
                    continue
                limit = 1 << NUMBERS[name]
                if not re.fullmatch(r"[+-]?[0-9]+", text) or not -limit <= int(text) < limit:
                    raise Refused(
                        1,
                        f"RemotingCommandException: the custom field <{name}>:"
                        f' For input string: "{text}"',
                    )
                fields[name] = int(text)
            else:
                fields[name] = text
        return fields

    def _send(self, code: int, ext: dict[str, str], body: bytes) -> dict[str, str]:
        fields = self._fields(ext)
        topic, queue_id = fields["topic"], fields["queueId"]
        if not 0 < len(topic) <= (255 if topic.startswith("%DLQ%") else 127):
            raise Refused(29, "")
        if topic not in self.topics:
            raise Refused(17, "")
        if queue_id >= self.topics[topic]:
            raise Refused(1, "")
        if len(topic) > 127:
            raise Refused(13, "")
        properties = parsed(fields.get("properties", ""))
        told = {"MSG_REGION": OWN["MSG_REGION"], "TRACE_ON": OWN["TRACE_ON"]}
        if code == 320 or fields.get("batch", "").lower() == "true":
            entries = self._entries(body)
            if int(properties.get("DELAY", "0")) > 0:
                raise Refused(13, "")
            places = [
                self._put(topic, queue_id, fields, entry.body, bytes(entry.properties), entry.flag)
                for entry in entries
            ]
            if "UNIQ_KEY" in properties:
                told["transactionId"] = properties["UNIQ_KEY"]
        else:
            if not body:
                raise Refused(13, "")
            for name in OWN:
                properties.pop(name, None)
            properties.pop("POP_CK", None)
            told["transactionId"] = properties["UNIQ_KEY"]
            places = [self._single(topic, queue_id, fields, body, properties)]
        return {
            **told,
            "msgId": ",".join(self._message_id(offset) for offset, _ in places),
            "queueId": str(queue_id),
            "queueOffset": str(places[0][1]),
        }

    def _entries(self, body: bytes) -> list[Any]:
        if not 0 < len(body) <= self.max_message_bytes:
            raise Refused(13, "")
        entries, at = [], 0
        while at < len(body):
            entries.append(BATCH_ENTRY.parse(body[at:]))
            at += 22 + len(entries[-1].body) + len(entries[-1].properties)
        return entries

    def _single(
        self, topic: str, queue_id: int, fields: dict[str, Any], body: bytes, its: dict[str, str]
    ) -> tuple[int, int]:
        deliver_ms = None
        if int(its.get("DELAY", "0")) > 0:
            level = min(int(its["DELAY"]), 18)
            its |= {"DELAY": str(level), "REAL_TOPIC": topic, "REAL_QID": str(queue_id)}
            topic, queue_id = "SCHEDULE_TOPIC_XXXX", level - 1
            deliver_ms = self.now_ms + DELAYS_MS[level - 1]
        text = encoded({**its, **OWN})
        return self._put(topic, queue_id, fields, body, text, fields["flag"], deliver_ms)

    def _put(
        self, topic: str, queue_id: int, fields: dict[str, Any], body: bytes, text: bytes,
        flag: int, deliver_ms: int | None = None,
    ) -> tuple[int, int]:  # fmt: skip
        properties = parsed(text.decode("utf-8", "replace"))
        if len(body) > self.max_message_bytes or len(text) > 32_767:
            raise Refused(13, "")
        units = self.units.setdefault((topic, queue_id), [])
        queue_offset = len(units)
        sys_flag = fields["sysFlag"] & ~0x30
        sys_flag |= 0x10 * (len(self.born) > 8) | 0x20 * (len(self.store) > 8)
        values = {
            "magic": MAGIC_V1 if len(topic.encode()) <= 127 else MAGIC_V2,
            "body_crc": zlib.crc32(body) & 0x7FFFFFFF, "queue_id": queue_id, "flag": flag,
            "queue_offset": queue_offset, "physical_offset": len(self.log), "sys_flag": sys_flag,
            "born_timestamp": fields["bornTimestamp"], "born_host": host(self.born),
            "store_timestamp": self.now_ms, "store_host": host(self.store),
            "reconsume_times": fields.get("reconsumeTimes", 0),
            "prepared_transaction_offset": 0, "body": body, "topic": topic.encode(),
            "properties": text,
        }  # fmt: skip
        size = len(build_record(values))
        if size + 8 > self.file_bytes:
            raise Refused(13, "")
        room = self.file_bytes - len(self.log) % self.file_bytes
        if size + 8 > room:  # a record does not cross files: a blank one takes the rest
            blank: bytes = BLANK.build({"room": room, "magic": MAGIC_BLANK})
            self.log += blank.ljust(room, b"\0")
        offset = values["physical_offset"] = len(self.log)
        record = build_record(values)
        self.records.setdefault((topic, queue_id), []).append(record)
        self.log += record
        tags = properties.get("TAGS")
        code = deliver_ms if deliver_ms is not None else java_hash(tags) if tags else 0
        units.append(
            stores.CONSUME_QUEUE_UNIT.build(
                {"physical_offset": offset, "size": len(record), "tags_code": code}
            )
        )
        keys = [properties["UNIQ_KEY"]] if "UNIQ_KEY" in properties else []
        keys += [key for key in properties.get("KEYS", "").split(" ") if key]
        keys += [f"T#{tags}"] if tags else []
        self.keys += [(f"{topic}#{key}", offset) for key in keys]
        return offset, queue_offset

    def _message_id(self, offset: int) -> str:
        return (self.store + offset.to_bytes(8, "big")).hex().upper()

    def index(self, slots: int, items: int) -> bytes:
        """Returns the bytes of the one index file, which has all keys."""
        newest = [0] * slots
        rows = []
        for number, (key, offset) in enumerate(self.keys, start=1):
            key_hash = abs(java_hash(key))
            key_hash = 0 if key_hash > 0x7FFFFFFF else key_hash
            rows.append(
                {
                    "key_hash": key_hash, "physical_offset": offset, "seconds_since_begin": 0,
                    "previous_item": newest[key_hash % slots],
                }
            )  # fmt: skip
            newest[key_hash % slots] = number
        offsets = [offset for _, offset in self.keys]
        header = {
            "begin_timestamp": self.now_ms, "end_timestamp": self.now_ms,
            "begin_physical_offset": offsets[0], "end_physical_offset": offsets[-1],
            "hash_slot_count": sum(1 for each in newest if each), "index_count": len(rows) + 1,
        }  # fmt: skip
        empty = bytes(stores.INDEX_ITEM.sizeof())
        data: bytes = stores.INDEX_HEADER.build(header)
        data += b"".join(stores.INDEX_SLOT.build({"newest_item": each}) for each in newest) + empty
        data += b"".join(stores.INDEX_ITEM.build(row) for row in rows)
        return data.ljust(40 + 4 * slots + 20 * items, b"\0")
