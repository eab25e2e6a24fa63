# SPDX-License-Identifier: Apache-2.0
"""The epochs of a log, their file, and where two logs separate."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.replication.epochs import (
    MOST_EPOCHS,
    Epoch,
    EpochsError,
    EpochTable,
    checked,
    consistent_point,
    from_text,
    to_text,
)

ONE, TWO, THREE = Epoch(1, 0), Epoch(2, 80), Epoch(5, 200)
ROWS = st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 1 << 62)), max_size=9)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return os.fspath(tmp_path / "epochFileCheckpoint")


def table(path: str) -> EpochTable:
    made = EpochTable(OsFiles(), path)
    made.load()
    return made


def test_the_file_is_that_of_the_original() -> None:
    assert to_text([ONE]) == b"1\n1725254278\n1-0\n"
    assert from_text(b"1\n0\n1-0\n") == [ONE]


@given(ROWS)
def test_what_is_written_is_read(rows: list[tuple[int, int]]) -> None:
    numbers, starts = sorted({each for each, _ in rows}), sorted({each for _, each in rows})
    entries = [Epoch(*each) for each in zip(numbers, starts, strict=False)]
    assert from_text(to_text(entries)) == entries


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no table of epochs"),
        (b"1\nx\n1-0\n", "no table of epochs"),
        (b"1\n0\n1-0-3\n", "no table of epochs"),
        (b"\xff\n", "no table of epochs"),
        (b"2\n0\n1-0\n", "it has 1 epochs, of 2"),
        (b"1\n1725254278\n1-9\n", "they were changed"),
        (b"2\n0\n2-0\n1-9\n", "epoch 1 begins at 9, which does not follow epoch 2 at 0"),
        (b"2\n0\n1-9\n2-9\n", "does not follow"),
    ],
)
def test_a_damaged_file_is_named(data: bytes, why: str) -> None:
    with pytest.raises(EpochsError, match=why):
        from_text(data)


@given(st.binary(max_size=60))
def test_whatever_a_file_contains_is_read_or_refused(data: bytes) -> None:
    try:
        assert checked(from_text(data)) is not None
    except EpochsError as error:
        assert str(error)


def test_there_is_a_limit() -> None:
    with pytest.raises(EpochsError, match="more than 1000"):
        checked(Epoch(each, each) for each in range(MOST_EPOCHS + 1))


@pytest.mark.parametrize(
    ("own", "end", "theirs", "its_end", "point"),
    [
        ([ONE], 100, [ONE], 300, 100),
        ([ONE], 300, [ONE], 100, 100),
        ([ONE], 100, [ONE, TWO], 300, 80),  # the old master has more of its epoch
        ([ONE, Epoch(3, 90)], 120, [ONE, TWO], 300, 80),
        ([ONE, Epoch(3, 70)], 120, [ONE, TWO], 300, 70),
        ([ONE, TWO], 120, [ONE, TWO, THREE], 300, 120),
        ([ONE, TWO], 300, [ONE, TWO, THREE], 300, 200),
        ([Epoch(1, 9)], 100, [ONE], 300, -1),
        ([TWO], 100, [], 300, -1),
        ([], 0, [ONE], 300, -1),
    ],
)
def test_two_logs_are_the_same_up_to_a_point(
    own: list[Epoch], end: int, theirs: list[Epoch], its_end: int, point: int
) -> None:
    assert consistent_point(own, end, theirs, its_end) == point


def test_epochs_are_kept(path: str) -> None:
    made = table(path)
    assert made.last is None
    for each in (ONE, TWO, THREE):
        made.begin(each)
    assert [*table(path).entries] == [ONE, TWO, THREE]
    assert made.at(79) == (ONE, 80)
    assert made.at(80) == (TWO, 200)
    assert made.at(1 << 40) == (THREE, (1 << 63) - 1)
    assert table(path + "none").at(5) is None


def test_an_epoch_without_messages_makes_room(path: str) -> None:
    made = table(path)
    for each in (ONE, Epoch(2, 0), TWO._replace(number=3), Epoch(4, 80), Epoch(4, 90)):
        made.begin(each)
    assert made.entries == [ONE, Epoch(4, 80)]


def test_epochs_are_cut_with_the_log(path: str) -> None:
    made = table(path)
    for each in (ONE, TWO, THREE):
        made.begin(each)
    made.cut(200)
    assert made.entries == table(path).entries == [ONE, TWO]
    made.cut(0)
    assert made.entries == [ONE]


def test_the_epochs_of_the_master_are_adopted_up_to_the_end(path: str) -> None:
    made = table(path)
    made.begin(Epoch(3, 70))
    made.adopt([ONE, TWO, THREE], 200)
    assert table(path).entries == [ONE, TWO]


def test_no_more_than_a_master_can_tell_are_kept(path: str) -> None:
    made = table(path)
    made.adopt([Epoch(each, each) for each in range(MOST_EPOCHS)], 1 << 20)
    made.begin(Epoch(5_000, 5_000))
    assert len(made.entries) == MOST_EPOCHS
    assert made.last == Epoch(5_000, 5_000)


def test_the_file_before_counts_if_this_one_is_damaged(path: str) -> None:
    made = table(path)
    made.begin(ONE)
    made.begin(TWO)
    Path(path).write_bytes(b"torn")
    assert table(path).entries == [ONE]
    Path(path + ".bak").write_bytes(b"")
    with pytest.raises(EpochsError, match="epochFileCheckpoint: it is no table"):
        table(path)
