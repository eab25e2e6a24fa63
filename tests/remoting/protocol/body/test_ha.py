# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol.body import ha


def test_bodies_are_the_originals(same_bodies_as_the_original: Callable[..., None]) -> None:
    same_bodies_as_the_original(
        ha,
        nested="HAConnectionRuntimeInfo HAClientRuntimeInfo ReplicaIdentity ReplicasInfo",
    )


def test_the_last_term_has_no_end() -> None:
    entry = ha.EpochEntry.decode(b'{"epoch":1,"startOffset":0}')
    assert entry.end_offset == 2**63 - 1
    assert ha.EpochEntry.decode(entry.encode()) == entry


def test_ids_are_a_set() -> None:
    state = ha.SyncStateSet(sync_state_set=frozenset({3, 1, 2}), sync_state_set_epoch=4)
    assert state.encode() == b'{"syncStateSet":[1,2,3],"syncStateSetEpoch":4}'
    assert ha.SyncStateSet.decode(state.encode()) == state
