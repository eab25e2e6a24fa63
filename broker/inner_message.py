# SPDX-License-Identifier: Apache-2.0
"""A message on its way into the store, while the broker still changes it.

Properties are a dict here and text in the store. Everything that puts messages uses it: sends that
are not plain, messages sent back, delayed ones that are due. Plain sends go past it, see
`processors/send_many.py`. Counterpart of MessageExtBrokerInner and of HookUtils.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from txrocketmq.broker.store.message_store import PutMessage
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC

_IPV6_HOSTS = MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6
TIMER_PROPERTIES = (names.TIMER_DELIVER_MS, names.TIMER_DELAY_SEC, names.TIMER_DELAY_MS)


@dataclass(slots=True)
class InnerMessage:
    """What is about to be put. Hosts are packed as in records (4 or 16 bytes of IP, 4 of port).

    `deliver_ms` is set for a message that waits in the schedule topic: its queue unit then holds
    that time instead of the hash of its tags.
    """

    topic: str
    queue_id: int
    body: bytes
    born_timestamp_ms: int
    born_host: bytes
    store_host: bytes
    properties: dict[str, str] = field(default_factory=dict)
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    deliver_ms: int | None = None

    @classmethod
    def of_stored(
        cls, stored: MessageExt, topic: str, queue_id: int, store_host: bytes
    ) -> InnerMessage:
        """A copy of a stored message for another queue; its body as it was stored."""
        return cls(
            topic,
            queue_id,
            stored.body,
            stored.born_timestamp,
            packed(stored.born_host),
            store_host,
            dict(stored.properties),
            stored.flag,
            stored.sys_flag & ~_IPV6_HOSTS,
            stored.reconsume_times,
        )

    @property
    def delay_level(self) -> int:
        """Level of DELAY; 0 without one, or with one that is no number."""
        text = self.properties.get(names.DELAY)
        try:
            return int(text) if text else 0
        except ValueError:
            return 0

    @property
    def real_queue_id(self) -> int:
        """The queue it was sent to, also while it waits in the schedule topic."""
        return self.queue_id if self.deliver_ms is None else int(self.properties[names.REAL_QID])

    def delay(self, level: int, deliver_ms: int) -> None:
        """Sends it to the schedule topic, to be delivered to where it was to go.

        `level` must be one of the broker's levels (HookUtils.transformDelayLevelMessage).
        """
        self.properties[names.DELAY] = str(level)
        self.properties[names.REAL_TOPIC] = self.topic
        self.properties[names.REAL_QID] = str(self.queue_id)
        for name in TIMER_PROPERTIES:
            self.properties.pop(name, None)
        self.topic = SCHEDULE_TOPIC
        self.queue_id = level - 1
        self.deliver_ms = deliver_ms

    def to_put(self) -> PutMessage:
        """As the store takes it."""
        tags = self.properties.get(names.TAGS)
        sys_flag = self.sys_flag
        if len(self.born_host) > 8:
            sys_flag |= MessageSysFlag.BORN_HOST_V6
        if len(self.store_host) > 8:
            sys_flag |= MessageSysFlag.STORE_HOST_V6
        return PutMessage(
            topic=self.topic,
            queue_id=self.queue_id,
            body=self.body,
            properties=encode_properties(self.properties).encode(),
            tags_code=tags_code(tags) if self.deliver_ms is None else self.deliver_ms,
            born_timestamp_ms=self.born_timestamp_ms,
            born_host=self.born_host,
            store_host=self.store_host,
            uniq_key=self.properties.get(names.UNIQ_KEY),
            keys=self.properties.get(names.KEYS),
            tags=tags,
            flag=self.flag,
            sys_flag=sys_flag,
            reconsume_times=self.reconsume_times,
            prepared_transaction_offset=self.prepared_transaction_offset,
        )


def packed(host: Host) -> bytes:
    """A host as records hold it."""
    return host.ip_bytes + host.port.to_bytes(4, "big")
