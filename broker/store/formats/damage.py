# SPDX-License-Identifier: Apache-2.0
"""Places to which a queue or the index points in the log and where there is no message.

Damaged places of the index itself are among them. A list of its own has messages whose bodies do
not have the CRC that they were stored with: they are served all the same, since consumers check the
CRC. Without this, a zeroed page of the log or a damaged unit of a queue would go to consumers as
garbage.

The original serves such bytes as they are.
"""

from __future__ import annotations

from typing import NamedTuple

from txrocketmq.broker.store.formats.reports import Reports


class Damage(NamedTuple):
    """A place without the message that should be there, or with a body that is not its own.

    `path` and `position` are the log's file and the position in it, "" and -1 when the log has no
    such offset. `queue` is "topic/queue id" of the unit that names the place and `queue_offset` its
    offset (for a body, that of its record); for the index they are "" and -1. If the index itself
    is damaged, `path` and `position` are of its file and `physical_offset` is -1: queries may miss
    messages.
    """

    physical_offset: int
    size_bytes: int
    path: str
    position: int
    queue: str
    queue_offset: int


class DamagedRecords(Reports[Damage]):
    """Counts and reports damages."""
