# SPDX-License-Identifier: Apache-2.0
"""Ends of transactions that a kernel takes have the same effects as if there was none."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.kernel.random_frames import Frames
from tests.broker.kernel.two_brokers import OneBroker, TwoBrokers, with_each_kernel
from tests.examples import examples
from txrocketmq.broker.kernel.chosen import REFERENCE, Kernel
from txrocketmq.broker.kernel.ends import MOST_HALF_BYTES
from txrocketmq.broker.processors.raw_ends import RawEnds
from txrocketmq.remoting.message.message import decode_message
from txrocketmq.remoting.message.topics import TRANS_HALF_TOPIC, TRANS_OP_TOPIC

ANY_SIZE = (9, 100, 1_000, 5_000, 60_000)
COMMIT, ROLL_BACK = "8", "12"
KEY = "F" * 32


def half(frames: Frames, group: str = "g", body: bytes = b"body", **changes: Any) -> bytes:
    """A half message of a producer group."""
    text = f"TRAN_MSG\x01true\x02UNIQ_KEY\x01{KEY}\x02PGROUP\x01{group}\x02TAGS\x01paid"
    fields = frames._fields(text) | {"b": "orders", "e": "1", "f": "4"} | changes
    return frames._frame(310, fields, body, 0)


def end(frames: Frames, place: tuple[int, int], flag: int = 2, **changes: str) -> bytes:
    """The end of a transaction, by the offsets of its half message in the queue and in the log."""
    fields = {
        "producerGroup": "g", "tranStateTableOffset": str(place[0]),
        "commitLogOffset": str(place[1]), "commitOrRollback": COMMIT,
        "fromTransactionCheck": "false", "msgId": KEY, "transactionId": KEY,
    }  # fmt: skip
    return frames._frame(37, fields | changes, b"", flag)


def places(one: OneBroker) -> list[tuple[int, int]]:
    """All half messages of a broker, by their offsets in the queue and in the log."""
    store = one.broker.parts.store
    count = store.max_offset(TRANS_HALF_TOPIC, 0)
    units = store.queue_units(TRANS_HALF_TOPIC, 0, 0, count)
    return [(number, offset) for number, (offset, _, _) in enumerate(units)]


def ends_of(one: OneBroker) -> dict[str, tuple[int, int, list[tuple[str, float]]]]:
    """What a broker has counted of ends."""
    metrics = one.broker.parts.transaction_metrics
    return {
        topic: (its.committed, its.rolled_back, its.ages_s.buckets())
        for topic, its in metrics.ends.items()
    }


class Scene:
    """Two brokers whose kernel knows half messages for a queue, and how they end."""

    def __init__(self, folder: Path, kernel: Kernel = REFERENCE, seed: int = 3) -> None:
        self.frames = Frames(random.Random(seed))
        self.two = TwoBrokers(folder, kernel)
        for _ in range(2):
            self.two.read(self.frames.usual(b="orders", e="1") + half(self.frames))
        self.two.read(half(self.frames))

    def halves(self, count: int, **changes: Any) -> list[tuple[int, int]]:
        """Sends half messages; returns their places."""
        before = len(places(self.two.plain))
        self.two.read(b"".join([half(self.frames, **changes) for _ in range(count)]))
        self.two.both(places)
        return places(self.two.plain)[before:]

    def taken(self, data: bytes) -> int:
        """Has both read bytes; returns how many requests the kernel has taken."""
        before = self.two.other.taken
        self.two.read(data)
        return self.two.other.taken - before

    def compare(self) -> None:
        """Lets op messages be written, and asserts that all is equal."""
        for _ in range(4):
            self.two.both(lambda one: one.pass_ms(400))
        self.two.both(ends_of)
        self.two.compare()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    # What has the bytes of JSON or of binary headers, and fields in their order or in others.
    for kind in (COMMIT, ROLL_BACK) * 12:
        made.two.read(end(made.frames, made.halves(1)[0], commitOrRollback=kind))
    yield made
    made.compare()
    made.two.stop()


def test_ends_are_taken_between_sends(scene: Scene) -> None:
    frames, found = scene.frames, scene.halves(3)
    kinds = COMMIT, ROLL_BACK, COMMIT
    ends = [
        end(frames, place, commitOrRollback=kind) for place, kind in zip(found, kinds, strict=True)
    ]
    data = b"".join([part for each in ends for part in (each, frames.usual(b="orders", e="1"))])
    assert scene.taken(data) == 6
    store = scene.two.other.broker.parts.store
    last = store.max_offset("orders", 1) - 2
    ((offset, size, _),) = store.queue_units("orders", 1, last, 1)
    record = store.message_at(offset, size)
    assert record is not None
    message = decode_message(record)[0]
    assert (message.body, message.tags, message.sys_flag) == (b"body", "paid", 8)
    assert message.prepared_transaction_offset == found[2][1]
    assert not {"REAL_TOPIC", "REAL_QID"} & message.properties.keys()
    assert store.max_offset(TRANS_OP_TOPIC, 0) == 0, "they wait until the log is durable"
    scene.compare()
    assert store.max_offset(TRANS_OP_TOPIC, 0) == 27


@pytest.mark.parametrize(
    "changes",
    [
        {"producerGroup": "other"},
        {"tranStateTableOffset": "0"},
        {"commitLogOffset": "7"},
        {"commitLogOffset": "99999999"},
        {"commitOrRollback": "0"},
        {"commitOrRollback": "4"},
        {"fromTransactionCheck": "maybe"},
        {"msgId": "with blanks"},
        {"Signature": "A" * 28, "AccessKey": "me"},
    ],
    ids=str,
)
def test_ends_that_are_wrong_are_refused_as_ever(scene: Scene, changes: dict[str, str]) -> None:
    (place,) = scene.halves(1)
    for flag in (0, 2):
        assert scene.taken(end(scene.frames, place, flag, **changes)) == 0


def test_ends_that_want_an_answer_get_it(scene: Scene) -> None:
    (place,) = scene.halves(1)
    assert scene.taken(end(scene.frames, place, 0)) == 0


@pytest.mark.parametrize("kinds", [(COMMIT, COMMIT), (ROLL_BACK, COMMIT), (COMMIT, ROLL_BACK)])
def test_a_transaction_ends_once(scene: Scene, kinds: tuple[str, str]) -> None:
    one, two = scene.halves(2)
    first, second = (end(scene.frames, one, commitOrRollback=kind) for kind in kinds)
    assert scene.taken(first + second) == 0
    assert scene.taken(end(scene.frames, two, commitOrRollback=kinds[0])) == 1
    assert scene.taken(end(scene.frames, two, commitOrRollback=kinds[1])) == 0


@pytest.mark.parametrize(
    "text",
    [
        "CHECK_IMMUNITY_TIME_IN_SECONDS\x015",
        "DELAY\x013",
        "REAL_TOPIC\x01bills",
        "a\x01b\x01c",
        "UNIQ_KEY\x01again",
        "TAGS\x01größe",
    ],
)
def test_unusual_half_messages_are_ended_as_ever(scene: Scene, text: str) -> None:
    text = f"TRAN_MSG\x01true\x02UNIQ_KEY\x01{KEY}\x02PGROUP\x01g\x02{text}\x02"
    for place in scene.halves(3, i=text):
        scene.two.read(end(scene.frames, place))


def test_no_more_is_copied_in_one_run_than_for_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = [bytes([65 + number]) * 40_000 for number in range(12)]
    before = len(places(scene.two.plain))
    for body in bodies:
        scene.two.read(half(scene.frames, body=body))
    found = places(scene.two.plain)[before:]
    runs: list[int] = []
    take_effect = RawEnds.take_effect

    def counted(self: RawEnds, ended: Sequence[Any], now_ms: int) -> None:
        runs.append(len(ended))
        take_effect(self, ended, now_ms)

    monkeypatch.setattr(RawEnds, "take_effect", counted)
    assert scene.taken(b"".join([end(scene.frames, place) for place in found])) == 12
    assert runs == [MOST_HALF_BYTES // 40_500] * 2


def test_half_messages_in_an_earlier_file_are_ended_as_ever(scene: Scene) -> None:
    found = scene.halves(2)
    files = scene.two.other.broker.parts.store._log.files.mapped_files
    while len(files) < 2:
        scene.two.read(half(scene.frames, body=bytes(100_000)))
    assert scene.taken(end(scene.frames, found[0])) == 0
    scene.two.read(half(scene.frames))
    assert scene.taken(end(scene.frames, places(scene.two.plain)[-1])) == 1


def test_no_end_is_taken_while_too_many_wait_for_the_disk(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place,) = scene.halves(1)
    monkeypatch.setattr("txrocketmq.broker.intake.after_durable.MAX_WAITING", 0)
    assert scene.taken(end(scene.frames, place)) == 0


@with_each_kernel
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(5), deadline=None)
def test_random_transactions_cut_anywhere_have_equal_results(kernel: Kernel, seed: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder), kernel, seed)
        for _ in range(4):
            scene.two.read_cut(_mixed(scene, chance), chance, ANY_SIZE)
        taken = [scene.taken(end(scene.frames, scene.halves(1)[0])) for _ in range(20)]
        assert 1 in taken
        scene.compare()
        scene.two.stop()


def _mixed(scene: Scene, chance: random.Random) -> bytes:
    """Half messages, ends of earlier ones, and sends; a few of all of them are not usual."""
    frames, pick = scene.frames, chance.choice
    found = places(scene.two.plain)
    changes: tuple[dict[str, str], ...] = (
        {"producerGroup": "other"}, {"tranStateTableOffset": "1"}, {"commitLogOffset": "5"},
        {"commitOrRollback": "0"}, {"msgId": "-"}, {"msgId": "A1"},
        {"fromTransactionCheck": "true"},
    )  # fmt: skip
    made = []
    for _ in range(60):
        kind = pick(("half", "half", "end", "end", "end", "other"))
        if kind == "half":
            more = pick(({}, {}, {}, {"b": "bills"}, {"e": "3"}, {"h": "7"}, {"j": "2"}))
            group = pick(("g", "g", "g", "other"))
            made.append(half(frames, group, frames._body(), **more))
        elif kind == "end":
            change = pick(({}, {}, {}, {}, pick(changes))) | {
                "commitOrRollback": pick((COMMIT, COMMIT, ROLL_BACK))
            }
            made.append(end(frames, pick(found), pick((2, 2, 2, 0)), **change))
        else:
            made.append(frames.one())
    return b"".join(made)
