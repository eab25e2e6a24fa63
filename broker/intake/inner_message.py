# SPDX-License-Identifier: Apache-2.0
"""A message on its way into the store, while the broker may still change it.

Properties are a dict here and text in the store. What no transform touches never becomes one of
these, see `processors/send/send_message.py`; both ways end in a PutMessage. Counterpart of
MessageExtBrokerInner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Flag, auto

from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import Host, pack_host
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.remoting.primitives.java_numbers import NumberFormatError, integer

_IPV6_HOSTS = MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6
_IPV4_HOST_BYTES = 8
TIMER_PROPERTIES = (names.TIMER_DELIVER_MS, names.TIMER_DELAY_SEC, names.TIMER_DELAY_MS)


class Way(Flag):
    """How a message comes to the intake."""

    SEND = auto()
    """A producer has sent it."""
    BATCH = auto()
    """A whole batch, before it is taken apart: it has the properties of its header only."""
    ENTRY = auto()
    """A message of a batch."""
    SEND_BACK = auto()
    """A consumer has sent it back."""
    DELIVERY = auto()
    """It has waited in the schedule topic and is due."""
    COMMIT = auto()
    """Its transaction is committed."""
    REPLY = auto()
    """It answers a request of another client."""
    REVIVE = auto()
    """It was popped and not acknowledged in time, or it is a record of that."""


ALL_WAYS = (
    Way.SEND | Way.BATCH | Way.ENTRY | Way.SEND_BACK | Way.DELIVERY | Way.COMMIT | Way.REPLY
    | Way.REVIVE
)  # fmt: skip


@dataclass(slots=True)
class InnerMessage:
    """A message about to be put. Hosts are packed as in records: IP, of 4 or 16 bytes, and port.

    `deliver_ms` is set for a message that waits in the schedule topic: its queue unit then holds
    that time instead of the hash of its tags. `max_reconsume_times` is the limit that a consumer
    states when it sends a message to its retry topic, and None when the limit of the group counts.
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
    way: Way = Way.SEND
    max_reconsume_times: int | None = None
    is_parked: bool = False
    """Whether the message is to wait elsewhere; its properties then say which queue it is for."""
    counted: int = 0
    """How many messages its body has, if they have been counted already."""

    @classmethod
    def of_stored(
        cls,
        stored: MessageExt,
        topic: str,
        queue_id: int,
        store_host: bytes,
        way: Way = Way.DELIVERY,
    ) -> InnerMessage:
        """Copies a stored message for another queue; the body stays as it was stored."""
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
            way=way,
        )

    @property
    def delay_level(self) -> int:
        """The level in DELAY; 0 when there is none.

        Raises ResponseError when it is not a number, since a message that was to be delayed must
        not be delivered at once.
        """
        text = self.properties.get(names.DELAY)
        if not text:
            return 0
        try:
            return integer(text)
        except NumberFormatError:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"{names.DELAY} must be a delay level, which is a number such as 3. For input"
                f' string: "{text:.50}"',
            ) from None

    @property
    def real_queue_id(self) -> int:
        """The queue that the message was sent to, even when it is to wait elsewhere."""
        return int(self.properties[names.REAL_QID]) if self.is_parked else self.queue_id

    @property
    def waits(self) -> bool:
        """Whether its sender waits for the confirmation (isWaitStoreMsgOK)."""
        return self.properties.get(names.WAIT, "true").lower() == "true"

    def delay(self, level: int, deliver_ms: int) -> None:
        """Sends the message to the schedule topic; its properties keep where it was to go.

        `level` must be one of the broker's levels (HookUtils.transformDelayLevelMessage).
        """
        self.properties[names.DELAY] = str(level)
        self.park(SCHEDULE_TOPIC, level - 1)
        for name in TIMER_PROPERTIES:
            self.properties.pop(name, None)
        self.deliver_ms = deliver_ms

    def park(self, topic: str, queue_id: int) -> None:
        """Sends the message to a topic where it waits; its properties keep where it is to go."""
        self.properties[names.REAL_TOPIC] = self.topic
        self.properties[names.REAL_QID] = str(self.queue_id)
        self.topic = topic
        self.queue_id = queue_id
        self.is_parked = True

    def to_put(self, properties: bytes | None = None) -> PutMessage:
        """Converts the message for the store; `properties` may give them encoded already."""
        tags = self.properties.get(names.TAGS)
        sys_flag = self.sys_flag
        if len(self.born_host) > _IPV4_HOST_BYTES:
            sys_flag |= MessageSysFlag.BORN_HOST_V6
        if len(self.store_host) > _IPV4_HOST_BYTES:
            sys_flag |= MessageSysFlag.STORE_HOST_V6
        if properties is None:
            properties = encode_properties(self.properties).encode("utf-8", "replace")
        return PutMessage(
            topic=self.topic,
            queue_id=self.queue_id,
            body=self.body,
            properties=properties,
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
    """Packs a host as records contain it: 4 or 16 bytes of IP, and 4 of port."""
    return pack_host(host.ip_bytes, host.port)
