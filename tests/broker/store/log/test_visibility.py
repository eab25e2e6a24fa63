# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.store.log.visibility import enters_queue, is_indexed, visibility
from txrocketmq.remoting.message.flags import MessageSysFlag

HALF = MessageSysFlag.TRANSACTION_PREPARED_TYPE
COMMITTED = MessageSysFlag.TRANSACTION_COMMIT_TYPE
ROLLED_BACK = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


def test_which_messages_are_shown() -> None:
    shown = {flag: visibility(flag) for flag in (0, HALF, COMMITTED, ROLLED_BACK)}
    assert shown == {
        0: (True, True),
        HALF: (False, True),
        COMMITTED: (True, True),
        ROLLED_BACK: (False, False),
    }
    assert visibility(MessageSysFlag.INNER_BATCH) == (True, True)
    assert enters_queue(MessageSysFlag.COMPRESSED)
    assert is_indexed(MessageSysFlag.COMPRESSED)
