# SPDX-License-Identifier: Apache-2.0
"""Pulls that a kernel answers have the same answers and effects as if there was none."""

from __future__ import annotations

import dataclasses
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.kernel.random_frames import Frames
from tests.broker.kernel.two_brokers import OneBroker, TwoBrokers, with_each_kernel
from tests.examples import examples
from txrocketmq.broker.kernel.chosen import REFERENCE, Kernel
from txrocketmq.broker.processors.raw_pulls import RawPulls
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.remoting.codes import SerializeType

ANY_SIZE = (1, 9, 100, 1_000, 5_000, 60_000)
GROUPS = ("readers", "others")
BROKERS = {field.name for field in dataclasses.fields(BrokerConfig)}
"""The settings of brokers; others are of stores."""


def effects(one: OneBroker) -> dict[str, object]:
    """What pulls leave behind."""
    parts = one.broker.parts
    found: dict[str, object] = {"held": len(parts.polling), "got": parts.stats.get_total.value}
    found["gets"] = parts.stats.get_total.times
    for group in GROUPS:
        for topic in ("orders", "bills"):
            offsets = parts.offsets.of(group, topic), parts.offsets.pulled_of(group, topic)
            found[f"{group} of {topic}"] = offsets
        found[group] = parts.groups.get(group) is not None
    stats = parts.store.stats
    found["stored"] = stats.got_found, stats.got_messages, stats.got_missed
    return found


def pulls_of(one: OneBroker) -> RawPulls | None:
    """What takes its pulls from bytes, if there is a kernel."""
    for each in one.broker.parts.raw_requests:
        if isinstance(each, RawPulls):
            return each
    return None


def taken(two: TwoBrokers) -> int:
    """How many pulls the kernel has taken."""
    pulls = pulls_of(two.other)
    assert pulls is not None
    return pulls.taken


def fill(two: TwoBrokers, frames: Frames, count: int = 12, **changes: str) -> None:
    """Stores messages in both."""
    for topic in ("orders", "bills"):
        made = [frames.send(b=topic, e=str(n % 4), **changes) for n in range(count)]
        two.read(b"".join(made))


@with_each_kernel
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(5), deadline=None)
def test_random_pulls_cut_anywhere_have_equal_results(kernel: Kernel, seed: int) -> None:
    chance = random.Random(seed)
    frames = Frames(chance)
    with tempfile.TemporaryDirectory() as folder:
        two = TwoBrokers(Path(folder), kernel)
        fill(two, frames, 40)
        for _ in range(4):
            data = b"".join(
                [chance.choice((frames.pull, frames.pull, frames.send))() for _ in range(30)]
            )
            two.read_cut(data, chance, ANY_SIZE)
            passing_ms = chance.choice((4, 400))
            two.both(lambda one: one.pass_ms(passing_ms))  # noqa: B023 - at once
            two.both(effects)
        two.both(lambda one: one.pass_ms(3_000))
        two.both(effects)
        two.compare()
        two.stop()


@with_each_kernel
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(5), deadline=None)
def test_mutated_pulls_have_equal_results(kernel: Kernel, seed: int) -> None:
    chance = random.Random(seed)
    frames = Frames(chance)
    with tempfile.TemporaryDirectory() as folder:
        two = TwoBrokers(Path(folder), kernel)
        fill(two, frames)
        for _ in range(30):
            data = b"".join([frames.pull() for _ in range(chance.randrange(1, 4))])
            two.read_cut(frames.mutated(data) if chance.randrange(2) else data, chance, ANY_SIZE)
            two.both(effects)
        two.compare()
        two.stop()


class Scene:
    """Two brokers with messages, one of them with a kernel."""

    def __init__(self, folder: Path, kernel: Kernel = REFERENCE, **changes: Any) -> None:
        self.frames = Frames(random.Random(3))
        self.two = TwoBrokers(folder, kernel, **changes)
        fill(self.two, self.frames)

    def pull(self, **changes: str) -> int:
        """Pulls from both; returns how many of these pulls the kernel has taken."""
        before = taken(self.two)
        fields = {
            "consumerGroup": "readers", "topic": "orders", "queueId": "1", "queueOffset": "0",
            "maxMsgNums": "32", "sysFlag": "7", "subscription": "*", "commitOffset": "0",
            "maxMsgBytes": "100000",
        }  # fmt: skip
        self.two.read(self.frames.pull(**(fields | changes)))
        self.two.both(effects)
        return taken(self.two) - before


@with_each_kernel
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"slave_read_enable": True},
        {"long_polling_enable": False},
        {"lite_pull_message_enable": False},
        {"max_transfer_count_on_message_in_memory": 2},
        {"max_transfer_bytes_on_message_in_memory": 500},
        {"access_message_in_memory_max_ratio": 0},
        {"enable_consume_queue_ext": True},
        {"auto_create_subscription_group": False},
    ],
    ids=str,
)
def test_every_setting_of_pulls_counts(
    kernel: Kernel, settings: dict[str, Any], tmp_path: Path
) -> None:
    chance = random.Random(7)
    frames = Frames(chance)
    mine = {name: value for name, value in settings.items() if name in BROKERS}
    of_store = {name: value for name, value in settings.items() if name not in BROKERS}
    two = TwoBrokers(tmp_path, kernel, mine, **of_store)
    fill(two, frames, 40)
    for _ in range(4):
        two.read_cut(b"".join([frames.pull() for _ in range(40)]), chance, (5_000, 60_000))
        two.both(effects)
        two.both(lambda one: one.pass_ms(300))
    two.compare()
    two.stop()


def test_binary_answers_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKETMQ_SERIALIZE_TYPE", SerializeType.ROCKETMQ.name)
    scene = Scene(tmp_path)
    assert [scene.pull() for _ in range(8)][-1] == 1


@with_each_kernel
def test_usual_pulls_are_taken(kernel: Kernel, tmp_path: Path) -> None:
    scene = Scene(tmp_path, kernel)
    assert sum(scene.pull(queueOffset=str(n % 3)) for n in range(20)) > 12
    assert scene.pull(subscription="paid") == 0
    assert scene.pull(queueOffset="99999") == 0
    assert scene.pull(topic="none") == 0


def test_a_reset_offset_goes_the_usual_way(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for _ in range(8):
        scene.pull()
    for one in (scene.two.plain, scene.two.other):
        one.broker.parts.offsets.reset("readers", "orders", 1, 1)
    assert scene.pull() == 0
    assert scene.pull() == 1


def test_rules_are_asked_for_each_pull(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    assert sum(scene.pull() for _ in range(8)) > 4
    for one in (scene.two.plain, scene.two.other):
        one.broker.parts.configuration.update({"brokerPermission": "2"})
    assert scene.pull() == 0
    for one in (scene.two.plain, scene.two.other):
        one.broker.parts.configuration.update({"brokerPermission": "6"})
    assert sum(scene.pull() for _ in range(4)) > 0


def test_places_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("kernel.pulls", "processors.raw_pulls"):
        monkeypatch.setattr(f"txrocketmq.broker.{module}.MOST_PLACES", 3)
    scene = Scene(tmp_path)
    for number in range(20):
        scene.pull(maxMsgNums=str(1 + number % 9))
    handler = pulls_of(scene.two.other)
    assert handler is not None
    assert len(handler._places) <= 3
    assert handler.taken > 0


def test_a_header_that_cannot_be_learned_costs_the_others_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for _ in range(8):
        scene.pull()
    handler = pulls_of(scene.two.other)
    assert handler is not None
    table, places = handler._table, len(handler._places)
    for _ in range(40):
        assert scene.pull(queueOffset="-1") == 0
    assert handler._table is table
    assert len(handler._places) == places


def _kinds(one: OneBroker) -> dict[str, object]:
    """By kind of pull how many were answered, how many wait, and what is held for them."""
    found = {
        str(kind): histogram.buckets()[-1][1]
        for kind, histogram in one.times.items()
        if kind.code in RawPulls.request_codes
    }
    return {**found, "held": len(one.broker.parts.polling), "parked": one.peer._parked_bytes}


def _arrives(one: OneBroker, frames: Frames) -> object:
    return one.read(frames.send(b="orders", e="1", j="0"), 5)


def _is_deleted(one: OneBroker, _: Frames) -> object:
    one.broker.parts.topics.delete("orders")
    one.broker.parts.polling.resume_all("orders", 1)
    return None


def _is_reset(one: OneBroker, _: Frames) -> object:
    one.broker.parts.offsets.reset("readers", "orders", 1, 1)
    one.broker.parts.polling.resume_all("orders", 1)
    return None


def _is_forbidden(one: OneBroker, frames: Frames) -> object:
    one.broker.parts.configuration.update({"brokerPermission": "2"})
    return _arrives(one, frames)


def _is_resumed(one: OneBroker, _: Frames) -> object:
    one.broker.parts.polling.resume_held()
    return None


def _goes(one: OneBroker, _: Frames) -> object:
    one.peer.connectionLost()
    one.connect()
    return None


@with_each_kernel
@pytest.mark.parametrize(
    "ends", [_arrives, _is_deleted, _is_reset, _is_forbidden, _is_resumed, _goes, None]
)
def test_a_pull_that_waits_is_taken_and_ends_as_any_other(
    kernel: Kernel, ends: Any, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, kernel)
    end = str(scene.two.plain.broker.parts.store.max_offset("orders", 1))
    assert end != "0"
    waiting = {"queueOffset": end, "commitOffset": "2"}
    assert sum(scene.pull() for _ in range(4)) > 0  # so the place is that of another offset
    assert sum(scene.pull(**waiting) for _ in range(8)) > 2
    scene.two.both(_kinds)
    held = len(scene.two.other.broker.parts.polling)
    assert held == 8
    if ends is not None:
        both = [Frames(random.Random(4)) for _ in range(2)]
        scene.two.both(lambda one: ends(one, both.pop()))
    for passing_ms in (4, 400, 3_000):
        scene.two.both(lambda one: one.pass_ms(passing_ms))  # noqa: B023 - at once
        scene.two.both(effects)
        scene.two.both(_kinds)
    assert not len(scene.two.other.broker.parts.polling)
    scene.two.compare()
    scene.two.stop()


def test_too_many_pulls_that_wait_are_answered_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path)
    end = str(scene.two.plain.broker.parts.store.max_offset("orders", 1))
    assert [scene.pull(queueOffset=end) for _ in range(8)][-1] == 1
    monkeypatch.setattr("txrocketmq.broker.pulls.long_polling.MAX_HELD", 8)
    assert scene.pull(queueOffset=end) == 0
    scene.two.both(_kinds)
