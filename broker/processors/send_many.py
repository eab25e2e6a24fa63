# SPDX-License-Identifier: Apache-2.0
"""The short way of plain sends: all those of one read, put into the log in one write.

This is the fold of the whole journey of a send (header codec, checks, inner message, reply, the
answer's encoding) into one loop, because producers on one connection send many messages in one read
and each layer costs as much as the work. It takes a message only when nothing about it is special:
the topic exists, the queue id is in range, its properties hold nothing that the broker acts on.
Everything else it hands back, to be served by `send_message.py`; tests hold the two equal.
"""

from __future__ import annotations

import re
import struct
from operator import itemgetter
from typing import Any

from txrocketmq.broker.processors.send_message import MAX_BATCH, SendMessageProcessor
from txrocketmq.broker.store.message_store import PutMessage, PutStatus
from txrocketmq.remoting.call import Buffer, Peer
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.dispatch import serves_many
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.frame import encode_frame
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import is_writable
from txrocketmq.remoting.message.properties import MAX_PROPERTIES_BYTES, decode_properties
from txrocketmq.remoting.message.record import BATCH_ENTRY_HEAD, PROPERTIES_LENGTH
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.message.topics import FORBIDDEN_TO_SEND
from txrocketmq.remoting.packing import fixed
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader
from txrocketmq.remoting.serialize.json import encode_header

SPECIAL = frozenset(
    {
        names.DELAY,
        names.TRAN_MSG,
        names.POP_CK,
        names.MSG_REGION,
        names.TRACE_ON,
        names.CLUSTER,
        names.PRIORITY,
        names.INNER_NUM,
        names.TIMER_DELAY_SEC,
        names.TIMER_DELAY_MS,
        names.TIMER_DELIVER_MS,
    }
)
"""Properties that the broker acts on or sets itself."""
_BATCHS_OWN = re.compile("(?:UNIQ_KEY\x01([0-9A-Za-z]+)\x02)?WAIT\x01true\x02?")
"""Properties of a batch itself, when its messages have the same and more."""
_MAX_BATCH_TOPIC = 127
_PAIR_END = 2
_ENTRY_HEAD = fixed(BATCH_ENTRY_HEAD).struct
_ENTRY_TAIL = fixed(PROPERTIES_LENGTH).struct
_NOT_AGAIN = frozenset((None, "", "0"))
_NO = frozenset((None, "false"))
_NUMBERS = {str(number): number for number in range(1025)}
"""What is surely a number, without a call to find out; others take the long way."""
_OPAQUE = 1_234_567_890
_USUAL = re.compile(
    "(?:KEYS\x01([^\x01\x02]+)\x02)?"
    "UNIQ_KEY\x01([0-9A-Za-z]+)\x02"
    "WAIT\x01true(?:\x02TAGS\x01([^\x01\x02]+))?\x02?"
)
"""Properties without any of the user's own, in the order in which Java's HashMap has them."""

_LETTERS = itemgetter("b", "h", "e", "f", "g", "i", "a", "c", "d")
_NAMES = itemgetter(
    "topic",
    "flag",
    "queueId",
    "sysFlag",
    "bornTimestamp",
    "properties",
    "producerGroup",
    "defaultTopic",
    "defaultTopicQueueNums",
)
"""What a plain send must have: six fields that are used, three that the declaration demands."""

_PREFIX = struct.Struct(">II")
_IPV4_HOST_BYTES = 8

_Stored = tuple[int, int, int, int, str | None, int]
"""Physical offset, size, queue id, queue offset, unique key, opaque."""

_new = tuple.__new__


def answer_with_marks(plain: SendMessageProcessor) -> bytes:
    """The header that answers a send which was stored, with a mark where each answer differs.

    @0 is the physical offset at the end of the message id, @1 the queue, @2 the offset in it, @3
    the transaction id, @4 the opaque.
    """
    answer = RemotingCommand(
        ResponseCode.SUCCESS,
        {
            **plain.ext_fields,
            "msgId": plain.store_host.hex().upper() + "@0",
            "queueId": "@1",
            "queueOffset": "@2",
            "transactionId": "@3",
        },
        flag=RESPONSE_FLAG,
        opaque=_OPAQUE,
    )
    return encode_header(answer).replace(b"%d" % _OPAQUE, b"@4")


class SendManyProcessor:
    """Plain sends in bulk; `plain` is the processor for all others."""

    def __init__(self, plain: SendMessageProcessor) -> None:
        self._plain = plain
        self._queues: dict[str, int] = {}
        self._data_version: object = None
        own = {**plain.ext_fields, names.CLUSTER: plain.config.broker_cluster_name}
        self._suffix = "".join(f"{name}\x01{value}\x02" for name, value in own.items())
        self.properties_end = self._suffix.encode()
        """What the properties of each message get."""
        text = answer_with_marks(plain).replace(b"%", b"%%").replace(b"@4", b"%d")
        for mark, form in ((b"@0", b"%016X"), (b"@1", b"%d"), (b"@2", b"%d"), (b"@3", b"%b")):
            text = text.replace(mark, form)
        self._answer = text
        timeout = b'"code":%d,' % ResponseCode.FLUSH_DISK_TIMEOUT
        self._timeout_answer = text.replace(b'"code":0,', timeout)

    def serves(self, peer: Peer, now_ms: int) -> bool:
        """Whether the peer may go the short way now."""
        plain = self._plain
        return (
            now_ms >= plain.config.start_accept_send_request_time_stamp
            and len(peer.remote_host) + len(plain.store_host) == 2 * _IPV4_HOST_BYTES
        )

    def message_of(self, command: RemotingCommand, born_host: bytes) -> PutMessage | None:
        """The message of a send; None when it is not plain."""
        if self._plain.topics.data_version is not self._data_version:
            self._learn_topics()
        messages: list[PutMessage] = []
        self._sort([command], born_host, messages, [], [])
        return messages[0] if messages else None

    @serves_many(send.SEND_MESSAGE, send.SEND_MESSAGE_V2)
    def send_singles(
        self, peer: Peer, commands: list[RemotingCommand], now_ms: int
    ) -> tuple[list[Buffer], list[RemotingCommand]]:
        """Puts what is plain; gives the answers, and the commands that are not plain."""
        plain = self._plain
        if not self.serves(peer, now_ms):
            return [], commands
        if plain.topics.data_version is not self._data_version:
            self._learn_topics()
        messages: list[PutMessage] = []
        taken: list[RemotingCommand] = []
        rest: list[RemotingCommand] = []
        self._sort(commands, peer.remote_host, messages, taken, rest)
        if not messages:
            return [], rest
        stored = self._put(messages, taken, rest, now_ms)
        if not plain.store.sync_flush:
            return _frames(self._answer, stored), rest
        if stored:
            # Group commit: one fsync answers all.
            end_offset = max(each[0] + each[1] for each in stored)
            plain.store.when_durable(
                end_offset,
                now_ms,
                lambda durable: peer.write(
                    _frames(self._answer if durable else self._timeout_answer, stored)
                ),
            )
        return [], rest

    @serves_many(send.SEND_BATCH_MESSAGE)
    def send_batches(
        self, peer: Peer, commands: list[RemotingCommand], now_ms: int
    ) -> tuple[list[Buffer], list[RemotingCommand]]:
        """As `send_singles`, for batches: one write for each, no objects for its messages."""
        plain = self._plain
        if plain.store.sync_flush or not self.serves(peer, now_ms):
            return [], commands
        if plain.topics.data_version is not self._data_version:
            self._learn_topics()
        out: list[Buffer] = []
        rest: list[RemotingCommand] = []
        for command in commands:
            messages = self._unpacked(command, peer.remote_host)
            answer = self._put_batch(command, messages, now_ms) if messages else None
            if answer is None:
                rest.append(command)
            elif not command.flag & ONEWAY_FLAG:
                out += answer
        return out, rest

    def _unpacked(self, command: RemotingCommand, born_host: bytes) -> list[PutMessage] | None:
        """The messages of a batch; None when one of them, or the batch, is not plain."""
        try:
            header = SendMessageRequestHeader.decode(command.ext_fields)
            if (
                not 0 <= header.queue_id < self._queues[header.topic]
                or header.reconsume_times
                or _BATCHS_OWN.fullmatch(header.properties or "") is None
                or len(header.topic) > _MAX_BATCH_TOPIC
            ):
                return None
            messages = self._entries(command.body, header, born_host)
        except (KeyError, ValueError, HeaderError, struct.error):
            return None
        return messages if messages and len(messages) <= MAX_BATCH else None

    def _entries(
        self, body: bytes, header: SendMessageRequestHeader, born_host: bytes
    ) -> list[PutMessage] | None:
        if len(body) > self._plain.store.config.max_message_size:
            return None
        messages: list[PutMessage] = []
        topic, queue_id = header.topic, header.queue_id
        born_ms, sys_flag = header.born_timestamp, header.sys_flag
        head, length, usual = _ENTRY_HEAD.unpack_from, _ENTRY_TAIL.unpack_from, _USUAL.fullmatch
        suffix, store_host = self._suffix.encode(), self._plain.store_host
        at, end = 0, len(body)
        while at < end:
            _, _, _, flag, body_bytes = head(body, at)
            start = at + _ENTRY_HEAD.size
            stop = start + body_bytes
            (properties_bytes,) = length(body, stop)
            text_at = stop + _ENTRY_TAIL.size
            at = text_at + properties_bytes
            if body_bytes < 0 or properties_bytes < 0 or at > end:
                return None
            properties = body[text_at:at]
            match = usual(properties.decode())
            if match is None or properties_bytes + len(suffix) >= MAX_PROPERTIES_BYTES:
                return None
            keys, uniq_key, tags = match.groups()
            if properties[-1] != _PAIR_END:
                properties += b"\x02"
            messages.append(
                _new(
                    PutMessage,
                    (
                        topic, queue_id, body[start:stop], properties + suffix,
                        tags_code(tags) if tags else 0, born_ms, born_host, store_host,
                        uniq_key, keys, tags, flag, sys_flag, 0, 0,
                    ),
                )
            )  # fmt: skip
        return messages

    def _put_batch(
        self, command: RemotingCommand, messages: list[PutMessage], now_ms: int
    ) -> list[Buffer]:
        plain = self._plain
        results = plain.store.put(messages, now_ms)
        refused = next((done[0] for done in results if done[0] is not PutStatus.PUT_OK), None)
        if refused is not None:  # there is no room, or a message is too large
            error = plain.refusal_of(refused)
            answer = RemotingCommand(
                error.code, None, flag=RESPONSE_FLAG, opaque=command.opaque, remark=error.remark
            )
            return encode_frame(answer)
        plain.stats.put(messages[0][0], len(messages), sum(done[2] for done in results))
        host = plain.store_host.hex().upper()
        ext_fields = {
            **plain.ext_fields,
            "msgId": ",".join([f"{host}{done[1]:016X}" for done in results]),
            "queueId": str(messages[0][1]),
            "queueOffset": str(results[0][3]),
        }
        ext: Any = command.ext_fields
        transaction_id = decode_properties(ext.get("i") or ext.get("properties") or "").get(
            names.UNIQ_KEY
        )
        if transaction_id:
            ext_fields["transactionId"] = transaction_id
        answer = RemotingCommand(
            ResponseCode.SUCCESS, ext_fields, flag=RESPONSE_FLAG, opaque=command.opaque
        )
        return encode_frame(answer)

    def _learn_topics(self) -> None:
        """Number of queues of each topic that plain sends may go to."""
        topics = self._plain.topics
        self._data_version = topics.data_version
        writable = is_writable(self._plain.config.broker_permission)
        self._queues = {
            name: max(topic.write_queue_nums, topic.read_queue_nums)
            for name, topic in topics.all().items()
            if writable
            and name not in FORBIDDEN_TO_SEND
            and not name.startswith("%")
            and topic.topic_filter_type == "SINGLE_TAG"
        }

    def _sort(
        self,
        commands: list[RemotingCommand],
        born_host: bytes,
        messages: list[PutMessage],
        taken: list[RemotingCommand],
        rest: list[RemotingCommand],
    ) -> None:
        # The path of every message: no call in it that could be left out.
        queues_of, suffix, store_host = self._queues, self._suffix, self._plain.store_host
        usual, new, put, numbers = _USUAL.fullmatch, _new, PutMessage, _NUMBERS
        for command in commands:
            ext: Any = command.ext_fields
            try:
                if "b" in ext:
                    topic, flag, queue, sys_flag, born_ms, text, _, _, nums = _LETTERS(ext)
                    batch, again, most = ext.get("m"), ext.get("j"), ext.get("l")
                else:
                    topic, flag, queue, sys_flag, born_ms, text, _, _, nums = _NAMES(ext)
                    batch, again = ext.get("batch"), ext.get("reconsumeTimes")
                    most = ext.get("maxReconsumeTimes")
                queue_id = numbers[queue]
                if (
                    batch not in _NO
                    or again not in _NOT_AGAIN
                    or most not in _NOT_AGAIN
                    or nums not in numbers
                    or not born_ms.isdigit()
                    or queue_id >= queues_of[topic]
                ):
                    rest.append(command)
                    continue
                match = usual(text)
                if match is not None:
                    keys, uniq_key, tags = match.groups()
                else:
                    keys, uniq_key, tags = _indexed(text)
                    if uniq_key is None:
                        rest.append(command)
                        continue
                properties = text + suffix if text[-1] == "\x02" else text + "\x02" + suffix
                message = new(
                    put,
                    (
                        topic, queue_id, command.body, properties.encode(),
                        tags_code(tags) if tags else 0, int(born_ms), born_host, store_host,
                        uniq_key, keys, tags, numbers[flag], numbers[sys_flag], 0, 0,
                    ),
                )  # fmt: skip
            except (KeyError, ValueError, TypeError, IndexError):
                rest.append(command)
                continue
            messages.append(message)
            taken.append(command)

    def _put(
        self,
        messages: list[PutMessage],
        commands: list[RemotingCommand],
        rest: list[RemotingCommand],
        now_ms: int,
    ) -> list[_Stored]:
        """What was stored and wants an answer; the commands of what was not go to `rest`."""
        stored: list[_Stored] = []
        counts: dict[str, list[int]] = {}
        ok = PutStatus.PUT_OK
        results = self._plain.store.put(messages, now_ms)
        for command, message, done in zip(commands, messages, results, strict=True):
            status, physical_offset, size, queue_offset, _ = done
            if status is not ok:
                rest.append(command)  # the plain way says why
                continue
            counted = counts.get(message[0])
            if counted is None:
                counts[message[0]] = [1, size]
            else:
                counted[0] += 1
                counted[1] += size
            if not command.flag & ONEWAY_FLAG:
                stored.append(
                    (physical_offset, size, message[1], queue_offset, message[8], command.opaque)
                )
        for topic, (count, size) in counts.items():
            self._plain.stats.put(topic, count, size)
        return stored


def _frames(template: bytes, stored: list[_Stored]) -> list[Buffer]:
    """The answers, ready to be written."""
    pack = _PREFIX.pack
    out: list[bytes] = []
    for physical_offset, _, queue_id, queue_offset, uniq_key, opaque in stored:
        text = template % (
            physical_offset,
            queue_id,
            queue_offset,
            (uniq_key or "").encode(),
            opaque,
        )
        out.append(pack(len(text) + 4, len(text)) + text)
    return [b"".join(out)] if out else []


def _indexed(text: str) -> tuple[str | None, str | None, str | None]:
    """KEYS, UNIQ_KEY and TAGS of any properties; no UNIQ_KEY means: not plain."""
    if text[-1] == "\x02":
        text = text[:-1]
    pairs = text.split("\x02")
    properties = dict([pair.split("\x01") for pair in pairs])
    uniq_key = properties.get("UNIQ_KEY")
    if (
        uniq_key is None
        or len(properties) != len(pairs)
        or not (uniq_key.isascii() and uniq_key.isalnum())
        or not SPECIAL.isdisjoint(properties)
        or properties.get("WAIT", "true") != "true"
        or "" in properties
        or "" in properties.values()
    ):
        return None, None, None
    return properties.get("KEYS"), uniq_key, properties.get("TAGS")
