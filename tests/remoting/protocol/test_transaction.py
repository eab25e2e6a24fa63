# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol import transaction


def test_headers_are_the_originals(same_headers_as_the_original: Callable[..., None]) -> None:
    same_headers_as_the_original(transaction)


def test_topic_is_unknown_to_4_9() -> None:
    header = transaction.EndTransactionRequestHeader.decode(
        {
            "producerGroup": "g",
            "tranStateTableOffset": "1",
            "commitLogOffset": "2",
            "commitOrRollback": "8",
            "msgId": "m",
        }
    )
    assert (header.topic, header.from_transaction_check, header.commit_or_rollback) == (
        None,
        False,
        8,
    )
