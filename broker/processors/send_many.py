# SPDX-License-Identifier: Apache-2.0
"""The short way of plain sends: all those of one read, put into the log in one write.

This is the fold of the whole journey of a send (header codec, checks, inner message, reply, answer's
encoding) into one loop, because producers on one connection send many messages in one read and each
layer costs as much as the work. It takes a message only when nothing about it is special: the topic
exists, the queue id is in range, its properties hold nothing the broker acts on, the answer is JSON.
Everything else it hands back, to be served by `send_message.py`; `tests` hold the two equal.
"""

from __future__ import annotations

from txrocketmq.broker.processors.send_message import SendMessageProcessor
from txrocketmq.broker.store.message_store import PutMessage, PutStatus
from txrocketmq.broker.topic import FORBIDDEN_TO_SEND
from txrocketmq.remoting.call import Buffer, Peer
from txrocketmq.remoting.command import OWN_LANGUAGE, OWN_VERSION, RemotingCommand
from txrocketmq.remoting.dispatch import serves_many
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag, is_writable
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.protocol import send

import struct

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
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_LETTERS = "bfghjei"
_NAMES = ("topic", "sysFlag", "bornTimestamp", "flag", "reconsumeTimes", "queueId", "properties")


class SendManyProcessor:
    """Plain sends in bulk; `plain` is the processor for all others."""

    def __init__(self, plain: SendMessageProcessor) -> None:
        self._plain = plain
        self._suffix = "".join(
            f"{name}\x01{value}\x02"
            for name, value in {
                **plain.ext_fields,
                names.CLUSTER: plain.config.broker_cluster_name,
            }.items()
        )
        ext = "".join(f'"{name}":"{value}",' for name, value in plain.ext_fields.items())
        head = f'{{"code":0,"extFields":{{{ext}"msgId":"{plain.store_host.hex().upper()}'
        tail = f'"serializeTypeCurrentRPC":"JSON","version":{OWN_VERSION}}}'
        self._answer = (
            head.replace("%", "%%")
            + '%016X","queueId":"%d","queueOffset":"%d","transactionId":"%s"},"flag":1,'
            + f'"language":"{OWN_LANGUAGE}","opaque":%d,{tail}'
        )

    @serves_many(send.SEND_MESSAGE, send.SEND_MESSAGE_V2)
    def send(
        self, peer: Peer, commands: list[RemotingCommand], now_ms: int
    ) -> tuple[list[Buffer], list[RemotingCommand]]:
        """Puts what is plain; gives the answers, and the commands that are not plain."""
        plain = self._plain
        if plain.store.sync_flush or now_ms < plain.config.start_accept_send_request_time_stamp:
            return [], commands
        messages: list[PutMessage] = []
        taken: list[RemotingCommand] = []
        rest: list[RemotingCommand] = []
        for command in commands:
            message = self._message(command, peer)
            if message is None:
                rest.append(command)
            else:
                messages.append(message)
                taken.append(command)
        if not messages:
            return [], rest
        return self._put(messages, taken, rest, now_ms), rest

    def _message(self, command: RemotingCommand, peer: Peer) -> PutMessage | None:
        ext = command.ext_fields
        try:
            if "b" in ext:
                topic, sys_flag, born_ms = ext["b"], int(ext["f"]), int(ext["g"])
                flag, queue_id, text = int(ext["h"]), int(ext["e"]), ext["i"]
                reconsume_times, batch = ext.get("j"), ext.get("m")
                ext["a"], ext["c"], ext["d"]  # the plain way asks for them
            else:
                topic, sys_flag, born_ms = (
                    ext["topic"],
                    int(ext["sysFlag"]),
                    int(ext["bornTimestamp"]),
                )
                flag, queue_id, text = int(ext["flag"]), int(ext["queueId"]), ext["properties"]
                reconsume_times, batch = ext.get("reconsumeTimes"), ext.get("batch")
                ext["producerGroup"], ext["defaultTopic"], ext["defaultTopicQueueNums"]
            if text[-1] != "\x02":
                text += "\x02"
            properties = dict([pair.split("\x01") for pair in text[:-1].split("\x02")])
            uniq_key = properties["UNIQ_KEY"]
        except (KeyError, ValueError, TypeError, IndexError):
            return None
        config = self._plain.topics.get(topic)
        if (
            config is None
            or batch == "true"
            or not 0 <= queue_id < max(config.write_queue_nums, config.read_queue_nums)
            or not SPECIAL.isdisjoint(properties)
            or "" in properties
            or "" in properties.values()
            or not (uniq_key.isascii() and uniq_key.isalnum())
            or topic[0] == "%"
            or topic in FORBIDDEN_TO_SEND
            or config.topic_filter_type != "SINGLE_TAG"
            or not (sys_flag in _INT32 and flag in _INT32 and born_ms in _INT64)
            or (reconsume_times and reconsume_times != "0")
            or not is_writable(self._plain.config.broker_permission)
        ):
            return None
        host = peer.remote_host
        if len(host) > 8:
            sys_flag |= MessageSysFlag.BORN_HOST_V6
        tags = properties.get("TAGS")
        return PutMessage(
            topic,
            queue_id,
            command.body,
            (text + self._suffix).encode(),
            tags_code(tags) if tags else 0,
            born_ms,
            host,
            self._plain.store_host,
            uniq_key,
            properties.get("KEYS"),
            tags,
            flag,
            sys_flag,
        )

    def _put(
        self,
        messages: list[PutMessage],
        commands: list[RemotingCommand],
        rest: list[RemotingCommand],
        now_ms: int,
    ) -> list[Buffer]:
        out: list[Buffer] = []
        topic_count: dict[str, list[int]] = {}
        template = self._answer
        pack = _PREFIX.pack
        for command, message, done in zip(
            commands, messages, self._plain.store.put(messages, now_ms), strict=True
        ):
            status, physical_offset, size, queue_offset, _ = done
            if status is not PutStatus.PUT_OK:
                rest.append(command)  # refused, or not stored: the plain way says why
                continue
            counted = topic_count.get(message.topic)
            if counted is None:
                topic_count[message.topic] = [1, size]
            else:
                counted[0] += 1
                counted[1] += size
            if not command.flag & 2:
                text = template % (
                    physical_offset,
                    message.queue_id,
                    queue_offset,
                    message.uniq_key,
                    command.opaque,
                )
                out.append(pack(len(text) + 4, len(text)) + text.encode())
        for topic, (count, size) in topic_count.items():
            self._plain.stats.put(topic, count, size)
        return [b"".join(out)] if out else []


_PREFIX = struct.Struct(">II")
