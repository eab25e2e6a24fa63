# SPDX-License-Identifier: Apache-2.0
"""Logs of random records, of all forms that there are, and what may happen to them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.message.record import MAGIC_V1, MAGIC_V2, build_record

_TEXTS = st.sampled_from([
    b"", b"TAGS\x01a\x02", b"TAGS\x01a", b"KEYS\x01k l\x02TAGS\x01\xc3\xa9\x02x\x01y\x02",
    b"DELAY\x013\x02TAGS\x01a\x02", b"INNER_NUM\x012\x02", b"TAGS\x01a\x02TAGS\x01b\x02",
    b"TAGS\x01", b"TAGS", b"\x02", b"TAGS\x01\xff\x02", b"x\x01y\x01z\x02", b"\x01a\x02",
    b"UNIQ_KEY\x010A\x02WAIT\x01true\x02TAGS\x01\xf0\x9f\x98\x80\x02",
])  # fmt: skip
_FLAGS = st.sampled_from(
    [0, int(MessageSysFlag.BORN_HOST_V6), int(MessageSysFlag.STORE_HOST_V6), 0x30, 0x80, 4, 0x8]
)
_FIELDS = st.tuples(
    st.binary(max_size=40) | st.sampled_from([bytes(5000), b"x" * 9000]),
    st.sampled_from([b"T", b"Topic", b"t" * 200, b"\xff"]),
    _TEXTS | st.just(b"n\x01" + b"v" * 9000),
    _FLAGS,
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**62),
)
_HOST: dict[str, Any] = {"ip": bytes(4), "port": 1}
_HOST_IPV6: dict[str, Any] = {"ip": bytes(16), "port": 1}


def _record(offset: int, fields: tuple[bytes, bytes, bytes, int, int, int]) -> bytes:
    body, topic, properties, sys_flag, queue_id, time_ms = fields
    return build_record({
        "magic": MAGIC_V2 if len(topic) > 127 else MAGIC_V1,
        "body_crc": body_crc(body), "queue_id": queue_id, "flag": 0, "queue_offset": time_ms,
        "physical_offset": offset, "sys_flag": sys_flag, "born_timestamp": 1,
        "born_host": _HOST_IPV6 if sys_flag & MessageSysFlag.BORN_HOST_V6 else _HOST,
        "store_timestamp": time_ms,
        "store_host": _HOST_IPV6 if sys_flag & MessageSysFlag.STORE_HOST_V6 else _HOST,
        "reconsume_times": 0, "prepared_transaction_offset": 0, "body": body, "topic": topic,
        "properties": properties,
    })  # fmt: skip


@st.composite
def logs(draw: st.DrawFn) -> tuple[bytes, int, list[int]]:
    """A log, its first offset, and where its records begin and the last one ends."""
    from_offset = draw(st.sampled_from([0, 8192, 2**40]))
    data, begins = b"", [0]
    for fields in draw(st.lists(_FIELDS, max_size=8)):
        data += _record(from_offset + len(data), fields)
        begins.append(len(data))
    return data + bytes(draw(st.integers(0, 200))), from_offset, begins
