# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus, refused


def test_what_is_refused_has_no_place() -> None:
    result = refused(PutStatus.MESSAGE_ILLEGAL, 5)
    assert result == (PutStatus.MESSAGE_ILLEGAL, -1, 0, -1, 5)


def test_a_plain_message_needs_no_more_than_its_place_and_hosts(
    message: Callable[..., PutMessage],
) -> None:
    plain = message("T", 3, b"body", tags="A")
    assert plain.properties == b"TAGS\x01A\x02"
    assert plain[-4:] == (0, 0, 0, 0)
    assert plain._fields[-4:] == (
        "flag",
        "sys_flag",
        "reconsume_times",
        "prepared_transaction_offset",
    )
