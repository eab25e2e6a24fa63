# SPDX-License-Identifier: Apache-2.0
"""The two ids of a message: one says where it is stored, the other was made by its producer.

The offset message id consists of the store host and the commit-log offset in hexadecimal;
VIEW_MESSAGE_BY_ID finds a message by it. The unique key travels as property UNIQ_KEY; the broker
indexes it, and tools read the send time from it. Both are 32 characters with an IPv4 host and 56
with IPv6.

Java: common.message.MessageDecoder.createMessageId, MessageId, MessageClientIDSetter.
"""

from __future__ import annotations

import ipaddress
import itertools
import time
from functools import lru_cache
from typing import Final, NamedTuple

from construct import Int16ub, Int32sb, Int32ub, Int64sb, Struct

from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.record import IPV4_HOST, IPV6_HOST
from txrocketmq.remoting.primitives.packing import fixed

MESSAGE_ID_TAIL = Struct("port" / Int32sb, "commit_log_offset" / Int64sb)
"""What follows the address of the store host in an offset message id."""

UNIQUE_KEY_TAIL = Struct(
    "pid" / Int16ub,
    "class_loader_hash" / Int32ub,
    "since_month_start_ms" / Int32ub,
    "counter" / Int16ub,
)
"""What follows the address of the producer in a unique key."""

_HOSTS: Final = {
    fixed(host).offset_of("port"): fixed(host).struct for host in (IPV4_HOST, IPV6_HOST)
}
"""The codec of a host by the number of bytes of its address, 4 or 16."""
_OFFSET: Final = fixed(MESSAGE_ID_TAIL).struct
_KEY_TAIL: Final = fixed(UNIQUE_KEY_TAIL).struct
_KEY_HEAD_TAIL_BYTES: Final = fixed(UNIQUE_KEY_TAIL).offset_of("since_month_start_ms")
_IPV4_BYTES: Final = 4
_IPV6_BYTES: Final = 16
_ID_CHARS: Final = (32, 56)
_CLOCK_STEP_MS: Final = 1_000_000


class MessageIdError(RemotingError, ValueError):
    """A text is no message id."""


class Host(NamedTuple):
    """An address and a port, as messages contain them; the address is text, IPv4 or IPv6."""

    ip: str
    port: int

    def __str__(self) -> str:
        return f"[{self.ip}]:{self.port}" if self.is_ipv6 else f"{self.ip}:{self.port}"

    @property
    def is_ipv6(self) -> bool:
        """Whether the address is an IPv6 address, which has 16 bytes."""
        return ":" in self.ip

    @property
    def ip_bytes(self) -> bytes:
        """The 4 or 16 bytes of the address. Raises ValueError if `ip` is no address."""
        return ip_bytes(self.ip)


@lru_cache(maxsize=4096)
def host_of(packed: bytes, port: int) -> Host:
    """Returns the host with this address of 4 or 16 bytes.

    The results are cached, since the same few hosts come in every message.
    """
    return Host(str(ipaddress.ip_address(packed)), port)


@lru_cache(maxsize=4096)
def ip_bytes(ip: str) -> bytes:
    """Returns the 4 or 16 bytes of an address. Raises ValueError if the text is no address."""
    return ipaddress.ip_address(ip).packed


def pack_host(ip: bytes, port: int) -> bytes:
    """Returns an address of 4 or 16 bytes with its port, as records contain it."""
    return _HOSTS[len(ip)].pack(ip, port)


class MessageId(NamedTuple):
    """What an offset message id says: where the message is stored."""

    store_host: Host
    commit_log_offset: int


def encode_message_id(store_host: Host, commit_log_offset: int) -> str:
    """Returns the offset message id of a message that is stored there."""
    packed = store_host.ip_bytes + _OFFSET.pack(store_host.port, commit_log_offset)
    return packed.hex().upper()


def decode_message_id(text: str) -> MessageId:
    """Returns where the message is stored. Raises MessageIdError if the text has another form.

    A unique key has the same form, so only the broker can tell whether a message lies at the
    offset.
    """
    packed = _unhex(text)
    address_bytes = len(packed) - _OFFSET.size
    port, offset = _OFFSET.unpack_from(packed, address_bytes)
    return MessageId(host_of(packed[:address_bytes], port), offset)


class UniqueKey(NamedTuple):
    """What a unique key says; `created_ms` is the time by the producer's clock."""

    ip: str
    pid: int
    class_loader_hash: int
    created_ms: int
    counter: int


class UniqueKeys:
    """Makes the unique keys of one process.

    `ip` has 4 or 16 bytes; `instance_hash` distinguishes several makers in one process (in Java it
    is the hash of the class loader). As in the original, a key contains the time since the start of
    the month in local time, so month and year are lost.
    """

    def __init__(self, ip: bytes, pid: int, instance_hash: int) -> None:
        if len(ip) not in (_IPV4_BYTES, _IPV6_BYTES):
            raise ValueError(f"an address has 4 or 16 bytes, not {len(ip)}")
        process = _KEY_TAIL.pack(pid & 0xFFFF, instance_hash & 0xFFFFFFFF, 0, 0)
        self._head = (ip + process[:_KEY_HEAD_TAIL_BYTES]).hex().upper()
        self._counter = itertools.count()
        self._month_start_ms = 0
        self._month_end_ms = 0

    def create(self, now_ms: int) -> str:
        """Returns a new key; keys of the same millisecond differ in their counter."""
        if now_ms >= self._month_end_ms or now_ms < self._month_start_ms - _CLOCK_STEP_MS:
            self._month_start_ms = month_start_ms(now_ms)
            self._month_end_ms = _next_month_start_ms(now_ms)
        # The clock may be set back across the start of a month: then 0, as in the original.
        since_ms = max(now_ms - self._month_start_ms, 0)
        return f"{self._head}{since_ms:08X}{next(self._counter) & 0xFFFF:04X}"


def decode_unique_key(key: str, now_ms: int) -> UniqueKey:
    """Decodes a unique key. Raises MessageIdError for any other text.

    A key does not contain its month: the current month is assumed, or the previous one if the time
    would otherwise be in the future (getNearlyTimeFromID). So the time of a key older than a month
    is wrong.
    """
    packed = _unhex(key)
    address_bytes = len(packed) - _KEY_TAIL.size
    pid, class_loader_hash, since_ms, counter = _KEY_TAIL.unpack_from(packed, address_bytes)
    created_ms = month_start_ms(now_ms) + since_ms
    if created_ms > now_ms:
        created_ms = month_start_ms(month_start_ms(now_ms) - 1) + since_ms
    ip = str(ipaddress.ip_address(packed[:address_bytes]))
    return UniqueKey(ip, pid, class_loader_hash, created_ms, counter)


def month_start_ms(time_ms: int) -> int:
    """Returns the start of the month that contains this time, in the local time zone."""
    local = time.localtime(time_ms // 1000)
    return _local_midnight_ms(local.tm_year, local.tm_mon)


def _next_month_start_ms(time_ms: int) -> int:
    local = time.localtime(time_ms // 1000)
    return _local_midnight_ms(local.tm_year, local.tm_mon + 1)


def _local_midnight_ms(year: int, month: int) -> int:
    return int(time.mktime((year, month, 1, 0, 0, 0, 0, 0, -1))) * 1000


def _unhex(text: str) -> bytes:
    if len(text) not in _ID_CHARS:
        raise MessageIdError(f"a message id has 32 or 56 characters, not {len(text)}: {text!r:.80}")
    try:
        packed = bytes.fromhex(text)
    except ValueError:
        raise MessageIdError(f"a message id is hexadecimal: {text!r:.80}") from None
    if len(text) != 2 * len(packed):
        raise MessageIdError(f"a message id is hexadecimal: {text!r:.80}")
    return packed
