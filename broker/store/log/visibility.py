# SPDX-License-Identifier: Apache-2.0
"""Which records are shown: the system flag of a message decides it, here and nowhere else.

Java: CommitLogDispatcherBuildConsumeQueue, CommitLogDispatcherBuildIndex.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.remoting.message.flags import MessageSysFlag

TRANSACTION_MASK: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
DECIDING: Final = TRANSACTION_MASK
"""The bits of a system flag that decide; a message without any of them is shown everywhere."""
_NO_UNIT: Final = MessageSysFlag.TRANSACTION_PREPARED_TYPE


def enters_queue(sys_flag: int) -> bool:
    """Whether a message has a unit in its queue; half and rolled back messages have none."""
    return not sys_flag & _NO_UNIT


def is_indexed(sys_flag: int) -> bool:
    """Whether a message is found by its keys; one that was rolled back is not."""
    return sys_flag & TRANSACTION_MASK != MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


def visibility(sys_flag: int) -> tuple[bool, bool]:
    """Whether a message enters its queue, and whether it is indexed."""
    return enters_queue(sys_flag), is_indexed(sys_flag)
