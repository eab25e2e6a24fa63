# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.remoting.message.flags import (
    MessageSysFlag,
    PermName,
    PullSysFlag,
    TopicSysFlag,
    is_inherited,
    is_readable,
    is_writable,
    perm_to_string,
    transaction_type,
)


def test_values_are_the_originals() -> None:
    assert (MessageSysFlag.COMPRESSED, MessageSysFlag.MULTI_TAGS) == (1, 2)
    assert (MessageSysFlag.BORN_HOST_V6, MessageSysFlag.STORE_HOST_V6) == (16, 32)
    assert (MessageSysFlag.NEED_UNWRAP, MessageSysFlag.INNER_BATCH) == (64, 128)
    assert (PullSysFlag.COMMIT_OFFSET, PullSysFlag.SUSPEND, PullSysFlag.SUBSCRIPTION) == (1, 2, 4)
    assert (PullSysFlag.CLASS_FILTER, PullSysFlag.LITE_PULL) == (8, 16)
    assert (TopicSysFlag.UNIT, TopicSysFlag.UNIT_SUB) == (1, 2)


def test_transaction_type_is_a_number_of_two_bits() -> None:
    assert [transaction_type(0x731 | kind) for kind in (0x0, 0x4, 0x8, 0xC)] == [0x0, 0x4, 0x8, 0xC]


def test_perm_to_string_as_java() -> None:
    texts = [perm_to_string(perm) for perm in range(9)]
    assert texts == ["---", "--X", "-W-", "-WX", "R--", "R-X", "RW-", "RWX", "---"]


def test_permissions() -> None:
    assert is_readable(PermName.READ | PermName.WRITE)
    assert not is_readable(PermName.WRITE)
    assert is_writable(PermName.WRITE)
    assert not is_writable(PermName.READ | PermName.INHERIT)
    assert is_inherited(7)
    assert not is_inherited(6)
