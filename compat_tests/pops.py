# SPDX-License-Identifier: Apache-2.0
"""POP with plain frames: asks as the official proxy does, and reads records without our codecs."""

import base64
import json
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from compat_tests import probe
from compat_tests.java_client import Json
from compat_tests.peers import Broker
from compat_tests.scene import poll

POP, ACK, HIDE, NOTIFY, POLLING, BATCH_ACK = 200050, 200051, 200053, 200054, 200055, 200151
SETTINGS: Final = {"popFromRetryProbability": "0"}
"""Settings of brokers with which messages of retry topics are popped as soon as possible."""
BACK_S: Final = 120.0
"""Seconds: a message that is not acknowledged is back long before that."""
_BODY_LENGTH_AT: Final = 84
_RETRY_V1, _RETRY_V2 = "1", "2"


class Taken(NamedTuple):
    """A message that was popped; `topic` is the topic where it is, perhaps a retry topic."""

    text: str
    topic: str
    queue_id: int
    offset: int
    handle: str


class Popped:
    """Pops with plain frames, and makes handles as the official client does."""

    def __init__(self, broker: Broker, topic: str, group: str) -> None:
        self.broker, self.topic, self.group = broker, topic, group
        self.handles: dict[int, str] = {}
        self.header: Json = {}
        self.body = b""
        self.code = 0

    def call(self, code: int, fields: Mapping[str, Any], body: bytes = b"") -> Json:
        words = {key: str(value) for key, value in fields.items()}
        header, self.body = probe.request(self.broker.port, code, words, body, 40.0)
        self.header = header.get("extFields") or {}
        return header

    def fields(self, **more: Any) -> Json:
        return {"consumerGroup": self.group, "topic": self.topic, "queueId": 0, **more}

    def ask(self, **wanted: Any) -> list[bytes]:
        """Pops messages; returns their records."""
        fields = {
            "queueId": -1, "maxMsgNums": 32, "invisibleTime": 60_000, "pollTime": 0,
            "bornTime": int(time.time() * 1000), "initMode": 0, "order": "false", **wanted,
        }  # fmt: skip
        self.code = self.call(POP, self.fields(**fields))["code"]
        found = records(self.body)
        said = [
            each.split(" ") for each in self.header.get("startOffsetInfo", "").split(";") if each
        ]
        starts = {(retry, queue_id): offset for retry, queue_id, offset in said}
        for record in found:
            offset = int.from_bytes(record[20:28], "big")
            head = self.header
            self.handles[offset] = " ".join(
                (
                    starts.get(("0", "0"), "0"), head["popTime"], head["invisibleTime"],
                    head["reviveQid"], "0", self.broker.name, "0", str(offset),
                )
            )  # fmt: skip
        return found

    def take(self, **wanted: Any) -> list[Taken]:
        """Pops from the first queue and the retry topic; returns messages with their handles."""
        found = []
        for record in self.ask(**wanted):
            queue_id = int.from_bytes(record[12:16], "big")
            offset = int.from_bytes(record[20:28], "big")
            handle = properties_of(record).get("POP_CK") or self.handles[offset]
            where = {
                _RETRY_V1: f"%RETRY%{self.group}_{self.topic}",
                _RETRY_V2: f"%RETRY%{self.group}+{self.topic}",
            }.get(handle.split(" ")[4], self.topic)
            found.append(Taken(text_of(record), where, queue_id, offset, handle))
        return found

    def until(self, what: str, **wanted: Any) -> list[str]:
        """Pops until something comes; returns the texts of the messages."""
        found: list[str] = []

        def is_there() -> bool:
            found.extend(text_of(item) for item in self.ask(**wanted))
            return bool(found)

        poll(is_there, what, BACK_S)
        return found

    def ack(self, offset: int, **other: Any) -> Json:
        handle = self.handles.get(offset, "")
        return self.call(ACK, self.fields(**{"extraInfo": handle, "offset": offset, **other}))

    def ack_taken(self, taken: Taken) -> Json:
        return self.ack(
            taken.offset, extraInfo=taken.handle, topic=taken.topic, queueId=taken.queue_id
        )

    def ack_together(self, taken: list[Taken]) -> Json:
        """Acknowledges messages of one pop from one queue in a batch."""
        start, popped, invisible, revive, retry = taken[0].handle.split(" ")[:5]
        bits = sum(1 << each.offset - int(start) for each in taken)
        ack = {
            "c": self.group, "t": self.topic, "r": retry, "so": int(start),
            "q": taken[0].queue_id, "rq": int(revive), "pt": int(popped), "it": int(invisible),
            "b": base64.b64encode(bits.to_bytes(8, "little").rstrip(b"\0")).decode(),
        }  # fmt: skip
        body = json.dumps({"brokerName": self.broker.name, "acks": [ack]}).encode()
        return self.call(BATCH_ACK, {}, body)

    def hide(self, offset: int, invisible_ms: int) -> Json:
        handle = self.handles[offset]
        fields = self.fields(extraInfo=handle, offset=offset, invisibleTime=invisible_ms)
        return self.call(HIDE, fields)

    def hide_taken(self, taken: Taken, invisible_ms: int) -> Taken:
        """Changes the invisible time; returns the message with its new handle."""
        fields = self.fields(
            extraInfo=taken.handle, offset=taken.offset, invisibleTime=invisible_ms,
            topic=taken.topic, queueId=taken.queue_id,
        )  # fmt: skip
        answer = self.call(HIDE, fields)
        assert answer["code"] == 0, answer
        head, words = self.header, taken.handle.split(" ")
        handle = [str(taken.offset), head["popTime"], head["invisibleTime"], head["reviveQid"]]
        return taken._replace(handle=" ".join([*handle, *words[4:]]))


def records(body: bytes) -> list[bytes]:
    found = []
    while body:
        size = int.from_bytes(body[:4], "big")
        found.append(body[:size])
        body = body[size:]
    return found


def text_of(record: bytes) -> str:
    return _body_of(record).decode()


def properties_of(record: bytes) -> dict[str, str]:
    at = _BODY_LENGTH_AT + 4 + len(_body_of(record))
    at += 1 + record[at]  # the topic
    size = int.from_bytes(record[at : at + 2], "big")
    words = record[at + 2 : at + 2 + size].decode().split("\x02")
    return dict(word.split("\x01", 1) for word in words if word)


def _body_of(record: bytes) -> bytes:
    at = _BODY_LENGTH_AT + 4
    return record[at : at + int.from_bytes(record[_BODY_LENGTH_AT:at], "big")]
