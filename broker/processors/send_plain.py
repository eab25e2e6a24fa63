# SPDX-License-Identifier: Apache-2.0
"""The shortest way of a send: from the bytes of its header to the log, no objects between.

What a Java producer sends again and again is told by the form of its header (PlainSends). Its
place (topic, queue id, system flag) is looked up by the bytes it is written in; the first message
of each place is decoded and checked as any other, by `send_many.py`, and what was found holds until
topics or queues change. A read in which something is not as simple as that goes that way as a
whole; tests hold all ways equal.
"""

from __future__ import annotations

import struct

from txrocketmq.broker.processors.send_many import SendManyProcessor, answer_with_marks
from txrocketmq.broker.processors.send_message import SendMessageProcessor
from txrocketmq.broker.store.message_store import Place, PlainBatch
from txrocketmq.remoting.call import Buffer, Peer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import serves_plain
from txrocketmq.remoting.serialize.plain_sends import PlainSend, PlainSends

MAX_PLACES = 4096
"""Places that are kept at once: topics times queues times ways of writing them."""

_HEX_DIGITS = 16
_PREFIX = struct.Struct(">II")


class SendPlainProcessor:
    """Plain sends in bulk; `many` is for all others."""

    def __init__(self, plain: SendMessageProcessor, many: SendManyProcessor) -> None:
        self._plain = plain
        self._many = many
        self._places: dict[bytes, Place] = {}
        self._data_version: object = None
        self._queues_removed = -1
        text = answer_with_marks(plain)
        pieces = []
        for mark in (b"@0", b"@1", b"@2", b"@3", b"@4"):
            piece, _, text = text.partition(mark)
            pieces.append(piece)
        self._pieces = (*pieces, text)
        self._prefixes: dict[int, bytes] = {}

    @serves_plain
    def send_plain(
        self, peer: Peer, sends: PlainSends, now_ms: int
    ) -> tuple[list[Buffer], list[RemotingCommand]]:
        """Puts all of them and gives the answers, or has it done."""
        plain, many = self._plain, self._many
        store = plain.store
        if (
            plain.topics.data_version is not self._data_version
            or store.queues_removed != self._queues_removed
        ):
            self._data_version = plain.topics.data_version
            self._queues_removed = store.queues_removed
            self._places = {}
        names = {send[0] for send in sends.sends}
        if many.serves(peer, now_ms) and (
            names <= self._places.keys() or self._learn(sends, peer.remote_host)
        ):
            batch = store.put_plain(
                sends.sends,
                self._places,
                len(sends.data),
                (peer.remote_host, plain.store_host),
                now_ms,
            )
            if batch is not None:
                for topic, count, size_bytes in batch.totals:
                    plain.stats.put(topic, count, size_bytes)
                return [self._answers(sends.sends, batch)], []
        out, rest = many.send_singles(peer, sends.commands(), now_ms)
        return out, rest

    def _learn(self, sends: PlainSends, born_host: bytes) -> bool:
        """Makes the places known that are not; False when there is one that is not plain."""
        places = self._places
        if len(places) + len(sends.sends) > MAX_PLACES:
            places.clear()
        for send in sends.sends:
            if send[0] in places:
                continue
            message = self._many.message_of(sends.command(send), born_host)
            if message is None:
                return False
            try:
                place = self._plain.store.place(
                    message.topic, message.queue_id, message.sys_flag, self._many.properties_end
                )
            except ValueError:
                return False
            places[send[0]] = place
        return True

    # The path of every message: no call in it that could be left out.
    def _answers(self, sends: list[PlainSend], batch: PlainBatch) -> bytes:
        """The answers, ready to be written."""
        places, prefixes = self._places, self._prefixes
        before_id, before_queue, before_offset, before_key, before_opaque, end = self._pieces
        fixed_bytes = sum(map(len, self._pieces)) + _HEX_DIGITS
        ids = struct.pack(f">{len(sends)}q", *batch.offsets).hex().upper().encode()
        at, out = 0, list[bytes]()
        for (name, _, _, key, _, opaque, *_), queue_offset in zip(
            sends, batch.queue_offsets, strict=True
        ):
            queue_id = places[name].queue_id_text
            offset = b"%d" % queue_offset
            size = fixed_bytes + len(queue_id) + len(offset) + len(key) + len(opaque)
            prefix = prefixes.get(size)
            if prefix is None:
                prefix = prefixes[size] = _PREFIX.pack(size + 4, size)
            id_end = at + _HEX_DIGITS
            out += (
                prefix, before_id, ids[at:id_end], before_queue, queue_id, before_offset, offset,
                before_key, key, before_opaque, opaque, end,
            )  # fmt: skip
            at = id_end
        return b"".join(out)
