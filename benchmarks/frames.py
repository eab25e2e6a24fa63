# SPDX-License-Identifier: Apache-2.0
"""Frames as the official Java client 4.9.7 writes them, byte for byte except for what varies.

Written from recorded traffic (JSON headers, the default), and on purpose not with
`txrocketmq.remoting`: a load generator that shares code with the server would share its
mistakes too, and it must cost as little as possible.
"""

import base64
import hmac
import json
import struct
from typing import Any, Final

SUCCESS: Final = 0
RESPONSE: Final = 1
FLAG_COMMIT_OFFSET: Final = 1
FLAG_SUSPEND: Final = 2

_LENGTHS = struct.Struct(">II")
_KEY = "FD000000000000000000000000000002%04X30946E09%012X"
_SEND_HEADER = (
    '{"code":310,"extFields":{"a":"bench-producer","b":"%s","c":"TBW102","d":"8","e":"%d","f":"0",'
    '"g":"%d","h":"0","i":"UNIQ_KEY\\u0001' + _KEY + '\\u0002WAIT\\u0001true","j":"0","k":"false",'
    '"m":"false","n":"broker-a"},"flag":0,"language":"JAVA","opaque":%d,'
    '"serializeTypeCurrentRPC":"JSON","version":407}'
)
_BATCH_HEADER = (
    '{"code":320,"extFields":{"a":"bench-producer","b":"%s","c":"TBW102","d":"8","e":"%d","f":"0",'
    '"g":"%d","h":"0","i":"WAIT\\u0001true","j":"0","k":"false","m":"true","n":"broker-a"},'
    '"flag":0,"language":"JAVA","opaque":%d,"serializeTypeCurrentRPC":"JSON","version":407}'
)
_BATCH_ENTRY = struct.Struct(">IIIII")
_PULL_HEADER = (
    '{"code":11,"extFields":{"queueId":"%d","maxMsgNums":"32","sysFlag":"%d",'
    '"suspendTimeoutMillis":"15000","commitOffset":"%d","bname":"broker-a","topic":"%s",'
    '"queueOffset":"%d","expressionType":"TAG","subVersion":"%d","consumerGroup":"%s"},'
    '"flag":0,"language":"JAVA","opaque":%d,"serializeTypeCurrentRPC":"JSON","version":407}'
)
_HEARTBEAT_HEADER = (
    '{"code":34,"flag":0,"language":"JAVA","opaque":%d,"serializeTypeCurrentRPC":"JSON",'
    '"version":407}'
)
_MAX_OFFSET_HEADER = (
    '{"code":30,"extFields":{"queueId":"%d","topic":"%s"},"flag":0,"language":"JAVA","opaque":%d,'
    '"serializeTypeCurrentRPC":"JSON","version":407}'
)
_RUNTIME_INFO_HEADER = (
    '{"code":28,"flag":0,"language":"JAVA","opaque":%d,"serializeTypeCurrentRPC":"JSON",'
    '"version":407}'
)


def frame(header: str, body: bytes) -> bytes:
    """Returns a frame: total length, header length (whose high byte 0 means JSON), header, body."""
    encoded = header.encode()
    return _LENGTHS.pack(4 + len(encoded) + len(body), len(encoded)) + encoded + body


def send_message_v2(
    topic: str,
    queue_id: int,
    body: bytes,
    *,
    opaque: int,
    now_ms: int,
    process: int,
    account: tuple[str, str] | None = None,
) -> bytes:
    """Encodes one message in the client's default way; `process` and `opaque` make its key.

    An account consists of the access key and the secret key that signs the message.
    """
    header = _SEND_HEADER % (topic, queue_id, now_ms, process, opaque, opaque)
    return frame(header if account is None else _signed(header, body, *account), body)


def _signed(header: str, body: bytes, access_key: str, secret_key: str) -> str:
    content = json.loads(header)
    fields = content["extFields"]
    fields["AccessKey"] = access_key
    values = "".join(fields[name] for name in sorted(fields)).encode()
    digest = hmac.digest(secret_key.encode(), values + body, "sha1")
    fields["Signature"] = base64.b64encode(digest).decode()
    return json.dumps(content, separators=(",", ":"))


def send_batch_message(
    topic: str, queue_id: int, bodies: list[bytes], *, opaque: int, now_ms: int, process: int
) -> bytes:
    """Encodes several messages in one request; each has its size, zeros, body and properties."""
    entries = []
    for n, body in enumerate(bodies):
        key = _KEY % (process, opaque * len(bodies) + n)
        properties = f"UNIQ_KEY\x01{key}\x02WAIT\x01true".encode()
        size = _BATCH_ENTRY.size + len(body) + 2 + len(properties)
        entries.append(_BATCH_ENTRY.pack(size, 0, 0, 0, len(body)))
        entries.append(body + len(properties).to_bytes(2, "big") + properties)
    return frame(_BATCH_HEADER % (topic, queue_id, now_ms, opaque), b"".join(entries))


def pull_message(
    topic: str, group: str, queue_id: int, queue_offset: int, *, opaque: int, version: int
) -> bytes:
    """Encodes a push consumer's pull of at most 32 messages that may be suspended for 15 s.

    It commits `queue_offset`. `version` is that of the subscription in the group's heartbeat; a
    later one would be refused.
    """
    flags = FLAG_SUSPEND | (FLAG_COMMIT_OFFSET if queue_offset else 0)
    where = (queue_id, flags, queue_offset, topic, queue_offset)
    header = _PULL_HEADER % (*where, version, group, opaque)
    return frame(header, b"")


def max_offset(topic: str, queue_id: int, *, opaque: int) -> bytes:
    """Encodes the question where a queue ends."""
    return frame(_MAX_OFFSET_HEADER % (queue_id, topic, opaque), b"")


def runtime_info(*, opaque: int) -> bytes:
    """Encodes the question for what a broker tells about itself."""
    return frame(_RUNTIME_INFO_HEADER % opaque, b"")


def consumer_heartbeat(
    client_id: str, group: str, topic: str, *, opaque: int, version: int
) -> bytes:
    """Encodes a heartbeat with the group and its subscription; without it, pulls are refused."""
    subscriptions = [
        {
            "classFilterMode": False,
            "codeSet": [],
            "expressionType": "TAG",
            "subString": "*",
            "subVersion": version,
            "tagsSet": [],
            "topic": subscribed,
        }
        for subscribed in (f"%RETRY%{group}", topic)
    ]
    consumer = {
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
        "messageModel": "CLUSTERING",
        "subscriptionDataSet": subscriptions,
        "unitMode": False,
    }
    body = {
        "clientID": client_id,
        "consumerDataSet": [consumer],
        "producerDataSet": [{"groupName": "CLIENT_INNER_PRODUCER"}],
    }
    return frame(_HEARTBEAT_HEADER % opaque, json.dumps(body, separators=(",", ":")).encode())


def split(data: bytes) -> tuple[list[tuple[dict[str, Any], bytes]], bytes]:
    """Returns the whole frames at the start of `data`, each as header and body, and the rest."""
    frames = []
    start = 0
    while len(data) - start >= _LENGTHS.size:
        total_bytes, header_bytes = _LENGTHS.unpack_from(data, start)
        end = start + 4 + total_bytes
        if len(data) < end:
            break
        body_start = start + _LENGTHS.size + (header_bytes & 0xFFFFFF)
        frames.append((json.loads(data[start + _LENGTHS.size : body_start]), data[body_start:end]))
        start = end
    return frames, data[start:]
