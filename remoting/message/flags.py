# SPDX-License-Identifier: Apache-2.0
"""The bit sets of the protocol: flags of messages, pulls and topics, and permissions.

They are plain integers in namespaces, not members of IntFlag: `&` on an IntFlag costs half a
microsecond, and these bits are tested for every message.

Java: common.sysflag.MessageSysFlag, PullSysFlag, TopicSysFlag, common.constant.PermName.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.remoting.message import record


class MessageSysFlag:
    """The bits of a message's `sys_flag`."""

    COMPRESSED: Final = 0x1
    MULTI_TAGS: Final = 0x2
    TRANSACTION_NOT_TYPE: Final = 0x0
    TRANSACTION_PREPARED_TYPE: Final = 0x4
    TRANSACTION_COMMIT_TYPE: Final = 0x8
    TRANSACTION_ROLLBACK_TYPE: Final = 0xC
    """Also the mask of the transaction type, which is a number of two bits, not two flags."""
    BORN_HOST_V6: Final = record.BORN_HOST_IPV6
    STORE_HOST_V6: Final = record.STORE_HOST_IPV6
    NEED_UNWRAP: Final = 0x40
    INNER_BATCH: Final = 0x80
    """The body is a batch that the store keeps as one record (BatchConsumeQueue)."""
    COMPRESSION_LZ4: Final = 0x100
    COMPRESSION_ZSTD: Final = 0x200
    COMPRESSION_ZLIB: Final = 0x300
    COMPRESSION_MASK: Final = 0x700
    """The kind of compression; 0 with COMPRESSED set is zlib, as clients before 4.9.3 wrote it."""


def transaction_type(sys_flag: int) -> int:
    """Returns the transaction type of a message: one of MessageSysFlag.TRANSACTION_*_TYPE."""
    return sys_flag & MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


class PullSysFlag:
    """The bits of `sysFlag` in a pull request."""

    COMMIT_OFFSET: Final = 0x1
    """The header's commit offset is to be stored."""
    SUSPEND: Final = 0x2
    """The broker may hold the request while there is no message."""
    SUBSCRIPTION: Final = 0x4
    """The header carries the subscription expression."""
    CLASS_FILTER: Final = 0x8
    LITE_PULL: Final = 0x10


class TopicSysFlag:
    """The bits of `topicSysFlag` in a topic's configuration."""

    UNIT: Final = 0x1
    UNIT_SUB: Final = 0x2


class PermName:
    """The bits of `perm`, which says what may be done with a topic or a broker."""

    INHERIT: Final = 0x1
    """Other topics may be created with the settings of this one."""
    WRITE: Final = 0x2
    READ: Final = 0x4
    PRIORITY: Final = 0x8
    """Messages carry priorities (5.4)."""


def is_readable(perm: int) -> bool:
    """Returns whether consumers may read from a topic or broker with this `perm`."""
    return perm & PermName.READ != 0


def is_writable(perm: int) -> bool:
    """Returns whether producers may write to a topic or broker with this `perm`."""
    return perm & PermName.WRITE != 0


def is_inherited(perm: int) -> bool:
    """Returns whether other topics may be created with the settings of a topic with this `perm`."""
    return perm & PermName.INHERIT != 0


def perm_to_string(perm: int) -> str:
    """Returns the permission as tools print it: `RWX`, with `-` for what is not allowed."""
    return "".join(
        (
            "R" if is_readable(perm) else "-",
            "W" if is_writable(perm) else "-",
            "X" if is_inherited(perm) else "-",
        )
    )
