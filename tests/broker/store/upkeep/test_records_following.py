# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from tests.broker.store.upkeep.test_packed_follow import Rig
from txrocketmq.broker.store.upkeep.records_following import RecordsFollowing


def test_its_queues_are_those_that_get_units_or_copies() -> None:
    rig = Rig()
    one, other = rig.queues.open("One", 0), rig.queues.open("Other", 0)
    following = RecordsFollowing(7)
    assert following.queues() == []
    following.units.append((one, 0, [7, 1, 0]))
    following.copies.append((other, 0, [7, 1, 0]))
    assert following.queues() == [one, other]
    assert (following.start_offset, following.end_offset) == (7, 7)
