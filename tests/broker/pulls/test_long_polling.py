# SPDX-License-Identifier: Apache-2.0
"""Held requests: woken by what is for them, by their deadline, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fakes import FakePeer
from txrocketmq.broker.pulls import long_polling
from txrocketmq.broker.pulls.long_polling import SLICE, SLICE_S, HeldRequest, LongPolling
from txrocketmq.broker.pulls.message_filter import MessageFilter
from txrocketmq.broker.store.queues.consume_queue import Unit
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.message.properties import decode_properties


class Queues:
    """Tag codes of each queue's messages, in order; the record of a message is its queue offset."""

    def __init__(self) -> None:
        self.codes: dict[tuple[str, int], list[int]] = {}
        self.asked = 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        self.asked += 1
        return len(self.codes.get((topic, queue_id), []))

    def queue_units(self, topic: str, queue_id: int, offset: int, count: int) -> list[Unit]:
        codes = self.codes[topic, queue_id][offset : offset + count]
        return [Unit(offset + index, 1, code) for index, code in enumerate(codes)]

    def message_at(self, physical_offset: int, size: int | None = None) -> memoryview | None:
        properties = {"offset": str(physical_offset)}
        record = encode_message(MessageExt("T", b"", 0, properties))
        return memoryview(record) if physical_offset < 100 else None


class ByOffset:
    """A filter of messages by their offsets."""

    terms = 1

    def __init__(self, wants: Callable[[int], bool]) -> None:
        self._wants = wants

    def wants(self, text: str) -> bool:
        return self._wants(int(decode_properties(text)["offset"]))


class Scene:
    def __init__(self) -> None:
        self.queues = Queues()
        self.wakes = 0
        self.resumed: list[Any] = []
        self.polling = LongPolling(self.queues, self._wake)

    def _wake(self) -> None:
        self.wakes += 1

    def hold(
        self,
        name: Any,
        *,
        peer: Any = None,
        codes: set[int] | None = None,
        wants: Callable[[int], bool] | None = None,
        deadline_ms: int = 15_000,
        queue_id: int = 0,
    ) -> bool:
        offset = len(self.queues.codes.get(("T", queue_id), []))
        by_offset = None if wants is None else ByOffset(wants)
        wanted = MessageFilter(None if codes is None else frozenset(codes), by_offset)
        return self.polling.hold(
            HeldRequest(
                peer,
                "T",
                queue_id,
                offset,
                deadline_ms,
                lambda: self.resumed.append(name),
                wanted,
            )
        )

    def arrive(self, *codes: int, queue_id: int = 0) -> None:
        queue = self.queues.codes.setdefault(("T", queue_id), [])
        queue.extend(codes)
        place = SimpleNamespace(topic="T", queue_id=queue_id, max_offset=len(queue))
        waiting, arrived = self.polling.listener
        if waiting:
            arrived([(place, 0, [])])


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_an_arrival_wakes_once_and_only_after_run_woken(scene: Scene) -> None:
    scene.hold("a")
    scene.arrive(1)
    scene.arrive(2)
    assert (scene.wakes, scene.resumed) == (1, [])
    scene.polling.run_woken()
    assert scene.resumed == ["a"]
    assert len(scene.polling) == 0


def test_another_queue_wakes_nobody(scene: Scene) -> None:
    scene.hold("a")
    scene.arrive(1, queue_id=1)
    assert scene.wakes == 0


def test_a_filter_lets_only_its_tags_wake(scene: Scene) -> None:
    scene.hold("a", codes={7})
    scene.arrive(1, 2)
    scene.polling.run_woken()
    assert scene.resumed == []
    scene.arrive(7)
    scene.polling.run_woken()
    assert scene.resumed == ["a"]


def test_the_deadline_resumes(scene: Scene) -> None:
    scene.hold("a", deadline_ms=15_000)
    scene.polling.tick(14_999)
    assert scene.resumed == []
    scene.polling.tick(15_000)
    assert scene.resumed == ["a"]


def test_a_missed_arrival_is_found_by_the_tick(scene: Scene) -> None:
    scene.hold("a")
    scene.queues.codes["T", 0] = [1]
    scene.polling.tick(1)
    assert scene.resumed == ["a"]


def test_a_lost_peer_takes_its_pulls_along(scene: Scene) -> None:
    gone, there = object(), object()
    scene.hold("a", peer=gone)
    scene.hold("b", peer=there)
    scene.polling.disconnected(gone, 0)  # type: ignore[arg-type]
    scene.arrive(1)
    scene.polling.run_woken()
    assert scene.resumed == ["b"]


def test_a_pull_may_park_again_while_it_is_resumed(scene: Scene) -> None:
    def again() -> None:
        scene.hold("again")

    peer: Any = None
    scene.polling.hold(HeldRequest(peer, "T", 0, 0, 100, again))
    scene.arrive(1)
    scene.polling.run_woken()
    assert len(scene.polling) == 1


def test_resume_all_takes_a_queue_whole(scene: Scene) -> None:
    scene.hold("a", codes={1})
    scene.hold("b")
    scene.polling.resume_all("T", 0)
    assert scene.resumed == ["a", "b"]


def test_all_are_resumed_a_slice_at_a_time(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_polling, "SLICE", 2)
    for name in "abc":
        scene.hold(name)
    scene.polling.resume_held()
    assert scene.resumed == ["a"], "the first of two steps has found them"
    scene.polling.run_woken()
    assert scene.resumed == ["a", "b", "c"]
    assert len(scene.polling) == 0
    scene.polling.resume_held()


def test_there_is_a_limit(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_polling, "MAX_HELD", 1)
    assert scene.hold("a")
    assert not scene.hold("b")


def test_where_the_unit_is_not_enough_the_record_decides(scene: Scene) -> None:
    scene.hold("a", codes={7}, wants=lambda offset: offset >= 2)
    scene.hold("b", wants=lambda offset: offset >= 3)
    for codes, resumed in (((7, 7), []), ((1,), []), ((1,), ["b"]), ((7,), ["b", "a"])):
        scene.arrive(*codes)
        scene.polling.run_woken()
        assert scene.resumed == resumed


def test_a_record_that_cannot_be_had_wakes(scene: Scene) -> None:
    scene.queues.codes["T", 0] = [1] * 100
    scene.hold("a", wants=lambda _: False)
    scene.arrive(1)
    scene.polling.run_woken()
    assert scene.resumed == ["a"]


def test_who_has_much_to_look_through_is_resumed_instead(scene: Scene) -> None:
    scene.hold("a", codes={7})
    scene.arrive(*[1] * 2_001)
    scene.polling.run_woken()
    assert scene.resumed == ["a"]


def test_many_are_resumed_in_slices(scene: Scene) -> None:
    for number in range(2 * SLICE):
        scene.hold(number)
    scene.arrive(1)
    turns: list[int] = []
    while scene.wakes > len(turns):
        before = len(scene.resumed)
        scene.polling.run_woken()
        turns.append(len(scene.resumed) - before)
    assert scene.resumed == list(range(2 * SLICE))
    assert max(turns) <= SLICE


@pytest.mark.parametrize("deadline_ms", [900, 5_300])
def test_many_whose_time_is_over_are_resumed_in_slices(scene: Scene, deadline_ms: int) -> None:
    for number in range(2 * SLICE):
        scene.hold(number, deadline_ms=deadline_ms)
    scene.polling.tick(5_300)
    assert scene.resumed == list(range(SLICE))
    assert scene.wakes == 1
    scene.polling.tick(6_300)
    scene.polling.run_woken()
    assert scene.resumed == list(range(2 * SLICE))
    assert len(scene.polling) == 0


def test_deadlines_before_and_after_a_tick_and_in_the_past(scene: Scene) -> None:
    for name, deadline_ms in (("a", 10_900), ("b", 9_000), ("c", 10_100)):
        scene.hold(name, deadline_ms=deadline_ms)
    scene.polling.tick(10_500)
    assert scene.resumed == ["b", "c"]
    scene.hold("late", deadline_ms=3_000)
    scene.polling.tick(10_600)
    assert scene.resumed == ["b", "c", "late"]
    scene.polling.tick(1_000_000_000)
    assert scene.resumed[3:] == ["a"]


class Counted(HeldRequest):
    """A request that counts how often any was looked for in a table."""

    looked_for = 0

    def __hash__(self) -> int:
        Counted.looked_for += 1
        return id(self)


@pytest.fixture
def crowd(scene: Scene) -> Scene:
    """10,240 requests for one queue, 1,000 more for as many others; of 1,000 peers."""
    scene.peers = [object() for _ in range(1_000)]  # type: ignore[attr-defined]
    for number in range(11_240):
        peer: Any = scene.peers[number % 1_000]  # type: ignore[attr-defined]
        queue_id = max(number - 10_240, 0)
        scene.polling.hold(Counted(peer, "T", queue_id, 0, 60_000, lambda: scene.resumed.append(0)))
    Counted.looked_for = 0
    return scene


def test_a_disconnect_costs_what_the_peer_has_and_no_more(crowd: Scene) -> None:
    peers = crowd.peers  # type: ignore[attr-defined]
    crowd.polling.disconnected(peers[0], 0)
    assert Counted.looked_for <= 12 * 6
    for peer in peers:
        crowd.polling.disconnected(peer, 0)
    for _ in range(100):
        crowd.polling.run_woken()
    assert len(crowd.polling) == 0
    assert Counted.looked_for <= 11_240 * 6
    crowd.wakes = 0
    crowd.polling.disconnected(peers[0], 0)
    crowd.arrive(1)
    crowd.polling.tick(60_000)
    assert crowd.resumed == []
    assert crowd.wakes == 0


def test_a_tick_without_anything_due_touches_no_request(crowd: Scene) -> None:
    crowd.queues.asked = 0
    for now_ms in range(0, 59_000, 1_000):
        crowd.polling.tick(now_ms)
    assert Counted.looked_for == 0
    assert crowd.queues.asked <= 59 * 1_000
    assert crowd.resumed == []
    crowd.polling.tick(60_000)
    assert len(crowd.resumed) == SLICE


def test_missed_arrivals_are_found_though_queues_are_many(scene: Scene) -> None:
    for queue_id in range(1, 2_500):
        scene.hold(queue_id, queue_id=queue_id)
        scene.queues.codes["T", queue_id] = [1]
    for now_ms in range(4):
        scene.queues.asked = 0
        scene.polling.tick(now_ms)
        assert scene.queues.asked <= 1_000
        for _ in range(6):
            scene.polling.run_woken()
    assert sorted(scene.resumed) == list(range(1, 2_500))


def test_a_turn_ends_when_its_time_is_over_and_others_come_first(scene: Scene) -> None:
    looked_at: list[tuple[int, int]] = []
    now_s = 0.0

    def filter_of(name: int) -> Callable[[int], bool]:
        def wants(offset: int) -> bool:
            nonlocal now_s
            looked_at.append((name, offset))
            now_s += 0.51 * SLICE_S
            return offset == 5

        return wants

    scene.polling = LongPolling(scene.queues, scene._wake, lambda: now_s)
    for name in range(3):
        scene.hold(name, wants=filter_of(name))
    scene.arrive(*[0] * 6)
    turns = 0
    while len(scene.polling):
        before = len(looked_at)
        scene.polling.run_woken()
        assert len(looked_at) - before <= 2
        turns += 1
    assert (turns, len(looked_at)) == (9, 18)
    assert looked_at[:6] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)], "each in its turn"
    assert scene.resumed == [0, 1, 2]


def test_a_filter_judges_a_message_once_for_all_that_have_it(scene: Scene) -> None:
    looked_at: list[int] = []

    def wants(offset: int) -> bool:
        looked_at.append(offset)
        return offset == 2

    one = ByOffset(wants)
    for name in range(50):
        request = HeldRequest(
            FakePeer(), "T", 0, 0, 100, lambda name=name: scene.resumed.append(name),  # type: ignore[misc]
            MessageFilter(by_properties=one),
        )  # fmt: skip
        scene.polling.hold(request)
    scene.arrive(0, 0, 0)
    scene.polling.run_woken()
    assert looked_at == [0, 1, 2]
    assert scene.resumed == list(range(50))


def test_a_long_run_of_units_is_looked_through_in_parts(scene: Scene) -> None:
    scene.hold("a", codes={7})
    scene.hold("b", codes={8})
    scene.arrive(*[1] * 900, 7)
    for turn in range(4):
        assert scene.resumed == [], turn
        scene.polling.run_woken()
        if scene.resumed:
            break
    assert scene.resumed == ["a"]


def test_the_requests_of_a_peer_that_has_gone_are_forgotten_in_slices_and_never_run(
    scene: Scene,
) -> None:
    gone = FakePeer()
    for name in range(2 * SLICE):
        scene.hold(name, peer=gone)
    scene.hold("there", peer=FakePeer())
    scene.polling.disconnected(gone, 0)
    scene.arrive(1)
    left = []
    while len(scene.polling):
        scene.polling.run_woken()
        left.append(len(scene.polling))
    assert scene.resumed == ["there"]
    assert len(left) > 1


def test_a_read_that_fails_keeps_the_others_from_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue_units = scene.queues.queue_units

    def fails_once(topic: str, queue_id: int, offset: int, count: int) -> list[Unit]:
        monkeypatch.setattr(scene.queues, "queue_units", queue_units)
        raise OSError("a page cannot be read")

    monkeypatch.setattr(scene.queues, "queue_units", fails_once)
    for name in "abc":
        scene.hold(name, codes={7})
    scene.arrive(7)
    with pytest.raises(OSError, match="a page cannot be read"):
        scene.polling.run_woken()
    assert scene.wakes == 2, "what is left does not wait for the next tick"
    scene.polling.run_woken()
    assert scene.resumed == ["a", "b", "c"], "the first is answered by its own pull"


def test_a_pull_that_fails_keeps_the_others_from_nothing(scene: Scene) -> None:
    def fails() -> None:
        raise OSError("a page cannot be read")

    scene.polling.hold(HeldRequest(FakePeer(), "T", 0, 0, 15_000, fails))
    scene.hold("b")
    scene.arrive(7)
    with pytest.raises(OSError, match="a page cannot be read"):
        scene.polling.run_woken()
    assert scene.wakes == 2
    scene.polling.run_woken()
    assert scene.resumed == ["b"]
