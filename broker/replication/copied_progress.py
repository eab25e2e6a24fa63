# SPDX-License-Identifier: Apache-2.0
"""Reads the progress of another broker from its answers: offsets of groups, and delay levels.

A slave takes its master's, and a master that comes back that of the slave which acted for it. Java:
getAllConsumerOffset and getAllDelayOffset of BrokerOuterAPI.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from txrocketmq.broker.delays.delay_offsets import DelayOffsets
from txrocketmq.broker.replication.copied_table import (
    MOST_ENTRIES,
    CopyError,
    chunks,
    text_of,
    version_in,
)
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.protocol.body.route import DataVersion
from txrocketmq.remoting.serialize.json import decode_body
from txrocketmq.remoting.serialize.json_members import place_of, taking

OFFSETS: Final = "offsetTable"
_LIGHT_OFFSETS: Final = "lmqOffsetTable"
_MOST_DELAY_BYTES: Final = 64 * 1024


def read_offsets(
    reply: Reply[Any], table: ConsumerOffsets
) -> Steps[tuple[dict[str, dict[int, int]], DataVersion | None]]:
    """Returns the offsets by "topic@group" and queue of an answer to GET_ALL_CONSUMER_OFFSET, and
    their version, if they have one. Raises CopyError and WRONG (copied_table.py).
    """
    text = text_of(reply, OFFSETS)
    held: dict[str, dict[int, int]] = {}
    for field in (OFFSETS, _LIGHT_OFFSETS):
        if place_of(text, (field,)) is not None:
            entries: dict[str, Any] = {}
            text = yield from taking(text, (field,), entries, lambda value: value)
            for chunk in chunks(entries):
                _add(held, table.decode({field: chunk}).offsets)
                yield
    version = yield from version_in(text)
    return held, version


def read_delay_offsets(
    reply: Reply[Any], table: DelayOffsets
) -> tuple[dict[int, int], Mapping[str, Any]]:
    """Returns the offsets by delay level of an answer to GET_ALL_DELAY_OFFSET, and its content.

    Raises CopyError and WRONG.
    """
    content = decode_body(reply.body_bytes, max_bytes=_MOST_DELAY_BYTES)
    if not isinstance(content, Mapping) or not isinstance(content.get(OFFSETS), Mapping):
        raise CopyError(f"its answer, {reply.body_bytes[:60]!r}, has no object {OFFSETS}")
    held = table.decode(content)
    if any(offset < 0 for offset in held.values()):
        raise CopyError("it has a delay level with an offset below 0")
    return held, content


def _add(held: dict[str, dict[int, int]], more: dict[str, dict[int, int]]) -> None:
    for key in more:
        if "@" not in key:
            raise ValueError(f"{key!r:.80} does not name a topic and a group, as topic@group")
    held.update(more)
    if len(held) > MOST_ENTRIES:
        raise CopyError(f"it has offsets for more than {MOST_ENTRIES} topics and groups")
