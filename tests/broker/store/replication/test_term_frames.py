# SPDX-License-Identifier: Apache-2.0
"""The bytes between master and slave with a controller, cut anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.store.replication.epochs import Epoch
from txrocketmq.broker.store.replication.frames import HaPeerError
from txrocketmq.broker.store.replication.term_frames import (
    GREETING,
    HANDSHAKE,
    MAX_STATED_BYTES,
    STATED_HEAD_CODEC,
    STATED_REPORT,
    TRANSFER,
    WELCOME_CODEC,
    Greeting,
    MasterDecoder,
    SlaveDecoder,
    StatedFrame,
    Welcome,
    welcome,
)

EPOCHS = [Epoch(1, 0), Epoch(4, 900)]
FRAMES = [(0, EPOCHS[0], 20, b"a" * 30), (30, EPOCHS[0], 30, b""), (900, EPOCHS[1], 0, b"b" * 99)]
OF_MASTER = welcome(614, EPOCHS) + b"".join(
    STATED_HEAD_CODEC.pack(TRANSFER, len(body), offset, *epoch, confirmed) + body
    for offset, epoch, confirmed, body in FRAMES
)
OF_SLAVE = GREETING.build(
    {"state": HANDSHAKE, "sync_from_last_file": 1, "is_learner": 0, "broker_id": 7}
) + b"".join(STATED_REPORT.build({"state": TRANSFER, "offset": each}) for each in (0, 5, 1 << 40))


def flat(item: Welcome | StatedFrame) -> object:
    return (*item[:3], bytes(item.body)) if isinstance(item, StatedFrame) else item


def test_the_bytes_are_those_of_the_original() -> None:
    seen = "000000010000000c000000000000026600000001" + "000000010000000000000000"
    assert welcome(614, [Epoch(1, 0)]) == bytes.fromhex(seen)
    assert OF_SLAVE[:28].hex() == "00000001" + "0001" + "0000" + "0000000000000007" + "00000002" + (
        "0000000000000000"
    )
    assert STATED_HEAD_CODEC.size == 36


@given(st.lists(st.integers(0, len(OF_MASTER))))
def test_what_a_master_sends_is_cut_anywhere(cuts: list[int]) -> None:
    decoder, found = MasterDecoder(), []
    for start, end in pairwise([0, *sorted(cuts), len(OF_MASTER)]):
        found += list(map(flat, decoder.items(OF_MASTER[start:end])))
    assert found == [Welcome(614, EPOCHS), *FRAMES]


@given(st.lists(st.integers(0, len(OF_SLAVE))))
def test_what_a_slave_sends_is_cut_anywhere(cuts: list[int]) -> None:
    decoder, found = SlaveDecoder(), []
    for start, end in pairwise([0, *sorted(cuts), len(OF_SLAVE)]):
        found += list(decoder.items(OF_SLAVE[start:end]))
    assert found == [Greeting(7, from_last_file=True, is_learner=False), 0, 5, 1 << 40]


@pytest.mark.parametrize("size", [-1, -(1 << 31), MAX_STATED_BYTES + 1, (1 << 31) - 1])
def test_a_size_that_cannot_be_is_refused_before_its_bytes_come(size: int) -> None:
    with pytest.raises(HaPeerError, match=f"a frame of {size} bytes cannot be"):
        list(MasterDecoder().items(STATED_HEAD_CODEC.pack(TRANSFER, size, 0, 1, 0, 0)))


@pytest.mark.parametrize("size", [-12, 5, 12_012])
def test_so_is_one_of_epochs(size: int) -> None:
    with pytest.raises(HaPeerError, match=f"a frame of {size} bytes cannot be"):
        list(MasterDecoder().items(WELCOME_CODEC.pack(HANDSHAKE, size, 0, 1)))


def test_epochs_that_do_not_ascend_are_refused() -> None:
    with pytest.raises(HaPeerError, match="table of epochs cannot be right"):
        list(MasterDecoder().items(welcome(5, EPOCHS[::-1])))


def test_who_has_no_controller_is_told_so() -> None:
    with pytest.raises(HaPeerError, match="enableControllerMode=true"):
        list(SlaveDecoder().items(bytes(8)))
    with pytest.raises(HaPeerError, match="enableControllerMode=true"):
        list(MasterDecoder().items(bytes(12)))


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_strange_bytes_are_read_or_refused(parts: list[bytes]) -> None:
    for decoder in (SlaveDecoder(), MasterDecoder()):
        try:
            for part in parts:
                list(decoder.items(part))
        except HaPeerError as error:
            assert str(error)
