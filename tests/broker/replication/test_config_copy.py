# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.broker.replication.masters import (
    ADDRESS,
    ALL,
    COUNTS,
    DELAYS,
    GROUPS,
    MODES,
    OF_5,
    OFFSETS,
    PROGRESS,
    ROUND_MS,
    TOPICS,
    UNREACHABLE,
    FakeMaster,
    OwnMaster,
    Slave,
    topic,
)
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import WalkBeat
from txrocketmq.remoting.call import Call, PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.serialize.json import encode_body

RUBBISH = b"\xff" * (16 * 1024 * 1024)


@pytest.fixture(params=[{"page": 0, "without": OF_5}, {"page": 0}, {"page": 1}, {"page": 2}])
def slave(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Slave]:
    """Of a master of 4.9, and of masters of 5.x that send all at once or pages."""
    made = Slave(tmp_path, FakeMaster(**request.param))
    yield made
    made.parts.store.stop(made.parts.now_ms)


def saved(slave: Slave, name: str) -> Any:
    with JsonFile(slave.parts.config_folder / name).content() as content:
        return content


def test_all_tables_are_copied(slave: Slave) -> None:
    parts, master = slave.parts, slave.master
    assert slave.copies() > 0
    assert slave.wrong() == {}
    assert {"A", "B", "C"} <= parts.topics.all().keys()
    assert parts.topics.data_version.counter == parts.groups.data_version.counter == 1
    assert parts.groups.is_read_forbidden("g", "A")
    assert {"g", "h"} <= parts.groups.all().keys()
    assert parts.offsets.of("g", "A") == {0: 5, 1: 7}
    assert parts.offsets.groups_of("B") == {"h"}
    assert parts.schedule.offsets.get(18) == 2
    assert saved(slave, "delayOffset.json")["offsetTable"] == {1: 4, 18: 2}, "at once"
    if not master.without:
        mode = parts.modes.get("A", "g")
        assert mode is not None
        assert mode.pop_share_queue_num == 2
        assert parts.timers.metrics.count("A") == 3
        progress = parts.timers.progress()
        assert progress.read_ms == master.progress.read_ms
        assert progress.master_offset == 9
        assert progress[3:6] == master.progress[3:6]
        assert [code for code in dict.fromkeys(master.asked) if code != PROGRESS] == ALL


def test_nothing_is_replaced_as_long_as_the_version_is_the_same(slave: Slave) -> None:
    """And none is counted up, so that it remains the same: the files have that of the master."""
    changed: list[str] = []
    slave.copies()
    for each in (slave.parts.topics, slave.parts.groups):
        each.on_change.append(changed.append)
        each.saving.begin()
    slave.parts.timers.metrics.saving.begin()
    slave.parts.offsets.saving.begin()
    slave.master.asked.clear()
    slave.copies(ROUND_MS)
    assert slave.master.asked.count(TOPICS) == slave.master.asked.count(GROUPS) == 1
    assert changed == []
    versions = {"topics.json": 1, "subscriptionGroup.json": 1, "consumerOffset.json": 1}
    if not slave.master.without:
        versions["timermetrics"] = 1
    for name, counter in versions.items():
        assert saved(slave, name)["dataVersion"]["counter"] == counter, name


def test_what_the_master_has_no_more_is_gone(slave: Slave) -> None:
    slave.copies()
    master, parts, told = slave.master, slave.parts, list[str]()
    parts.topics.on_change.append(told.append)
    parts.groups.on_change.append(told.append)
    del master.topics["B"], master.groups["h"], master.forbidden["g"], master.offsets["B@h"]
    master.topics["A"] = topic("A", queues=8)
    master.topics["D"] = topic("D")
    master.modes.clear()
    master.versions[TOPICS] = master.versions[GROUPS] = 2
    slave.copies(ROUND_MS)
    assert sorted(told) == ["A", "B", "D", "h"]
    assert parts.topics.get("B") is None
    assert parts.groups.get("h") is None
    assert not parts.groups.is_read_forbidden("g", "A")
    assert parts.topics.get("TBW102") is not None, "the broker's own"
    found = parts.topics.get("A")
    assert found is not None
    assert found.read_queue_nums == 8
    assert parts.offsets.topics_of("h") == set()
    if not master.without:
        assert list(parts.modes.entries()) == []


def test_offsets_that_only_the_slave_has_stay_while_topic_and_group_do(of_5: Slave) -> None:
    """Consumers may have committed them here while the master was away."""
    offsets = of_5.parts.offsets
    of_5.copies()
    offsets.commit("h", "A", 0, 3)
    offsets.commit("h@broadcast", "A", 0, 3)
    offsets.commit("h", "gone", 0, 3)
    offsets.commit("gone", "A", 0, 3)
    offsets.commit("g", "A", 0, 100)
    of_5.copies(ROUND_MS)
    assert offsets.topics_of("h") == {"A", "B"}
    assert offsets.topics_of("h@broadcast") == {"A"}
    assert offsets.topics_of("gone") == set()
    assert offsets.of("g", "A") == {0: 5, 1: 7}, "the master's count"


def test_offsets_of_light_queues(of_5: Slave) -> None:
    body = encode_body({"lmqOffsetTable": {"%LMQ%q@%LMQ%q": 7}, "offsetTable": {}})
    of_5.master.instead[OFFSETS] = body
    of_5.parts.topics.get = topic  # type: ignore[assignment]
    of_5.copies()
    assert of_5.parts.offsets.of("%LMQ%q", "%LMQ%q") == {0: 7}


def test_rounds_every_ten_seconds_and_timers_every_three(of_5: Slave) -> None:
    of_5.copies()
    of_5.master.asked.clear()
    for _ in range(30):
        of_5.copies(1_000)
    assert of_5.master.asked.count(OFFSETS) == 3
    assert of_5.master.asked.count(PROGRESS) == 10


def test_one_round_at_a_time_and_a_new_master_at_once(of_5: Slave) -> None:
    master = of_5.master
    master.is_slow = True
    of_5.copies()
    of_5.copies(ROUND_MS)
    assert master.asked == [TOPICS, PROGRESS]
    of_5.address = None
    while master.open:
        master.answer()
        of_5.go_on()
    master.is_slow = False
    assert set(master.asked) <= {TOPICS, PROGRESS}, "a round ends when its master goes"
    of_5.copies(ROUND_MS)
    assert set(master.asked) <= {TOPICS, PROGRESS}, "there is none to ask"
    master.asked.clear()
    of_5.address = ADDRESS
    of_5.copies(1_000)
    assert MODES in master.asked


def test_what_a_master_does_not_serve_is_said_once_and_asked_for_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(
        "txrocketmq.broker.work.notices.not_copied", lambda what, _: said.append(what)
    )
    slave = Slave(tmp_path, FakeMaster(without=OF_5))
    for _ in range(60):
        slave.copies(ROUND_MS)
    assert sorted(said) == ["counts of timers", "modes of groups", "progress of timers"]
    assert slave.wrong() == {}
    assert [slave.master.asked.count(each) for each in OF_5] == [1, 1, 1]
    slave.copies(ROUND_MS)
    assert [slave.master.asked.count(each) for each in OF_5] == [2, 2, 2]
    slave.parts.store.stop(slave.parts.now_ms)


def test_a_master_without_timers_is_no_failure(of_5: Slave) -> None:
    for each in (COUNTS, PROGRESS):
        of_5.master.instead[each] = Reply(code=ResponseCode.SYSTEM_ERROR, remark="null")
    of_5.copies()
    assert of_5.wrong() == {}


WRONG = [
    RUBBISH,
    b"",
    b"[]",
    b"{}",
    (
        b'{"dataVersion":{"counter":9},"topicConfigTable":{"A":7},"subscriptionGroupTable":{"g":7},'
        b'"offsetTable":{"A@g":7},"messageRequestModeMap":{"A":7},"timingCount":{"A":7}}'
    ),
    (
        b'{"topicConfigTable":{},"subscriptionGroupTable":{},"offsetTable":{"A@g":{"x":"y"}},'
        b'"messageRequestModeMap":[],"timingCount":{}}'
    ),
    (
        b'{"dataVersion":7,"topicConfigTable":{"A":{}},"subscriptionGroupTable":{"g":{}},'
        b'"offsetTable":{"A":{0:1}},"messageRequestModeMap":7,"timingCount":{"A":{}}}'
    ),
    (
        b'{"dataVersion":{"counter":9},"topicConfigTable":{"A":{"topicName":"B"}},'
        b'"subscriptionGroupTable":{"g":{"groupName":"h"}},"offsetTable":{0:null},'
        b'"messageRequestModeMap":{"A":{"g":[]}},"timingCount":{"A":{"count":[]}}}'
    ),
    (
        b'{"dataVersion":{"counter":9},"topicConfigTable":{"A":{"topicName":"A","readQueueNums":-1}},'
        b'"subscriptionGroupTable":{"g":{"groupName":[]}},"offsetTable":{1:-5},'
        b'"messageRequestModeMap":{"A":[]},"timingCount":{"A":null}}'
    ),
    b'{"dataVersion":{"counter":9},"topicConfigTable":' + b"[" * 5_000,
    b'{"a":' * 100_000,
    UNREACHABLE,
    Reply(code=ResponseCode.NO_PERMISSION, remark="who are you?"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_a_master_that_answers_nonsense_changes_nothing_and_is_told(
    of_5: Slave, wrong: Any
) -> None:
    of_5.copies()
    before = of_5.state()
    of_5.master.instead = dict.fromkeys((TOPICS, GROUPS, OFFSETS, DELAYS, MODES, COUNTS), wrong)
    of_5.master.instead[PROGRESS] = wrong if not isinstance(wrong, bytes) else b""
    of_5.copies(ROUND_MS)
    assert of_5.state() == before
    said = of_5.wrong()
    assert set(said) == {
        "topics", "groups", "offsets", "progress of delay levels", "modes of groups",
        "counts of timers", "progress of timers",
    }  # fmt: skip
    for each in said.values():
        assert each.startswith(f"the master {ADDRESS}: ")
        assert len(each) < 400
        assert "\n" not in each
    of_5.master.instead.clear()
    of_5.copies(ROUND_MS)
    assert of_5.wrong() == {}


def test_a_master_of_ours_is_copied_to_the_byte(tmp_path: Path) -> None:
    """What it answers is what its processors say; then its files are those of the slave."""
    master = OwnMaster(tmp_path / "master")
    slave = Slave(tmp_path / "slave", FakeMaster())
    slave.copy.begin(master.invoke)
    slave.copies()
    assert slave.wrong() == {}
    for name, its, copied in master.files(slave.parts):
        assert copied == its, name
    assert slave.parts.schedule.offsets.get(2) == 5
    assert slave.parts.topics.data_version.counter > 0
    slave.parts.store.stop(slave.parts.now_ms)
    master.parts.store.stop(master.parts.now_ms)


def test_a_master_whose_log_is_not_followed_is_not_copied(tmp_path: Path) -> None:
    """It may have lost its disk, and have nothing any more."""
    parts = Parts(tmp_path, store_settings={"broker_role": "SLAVE"})
    slave, copy, asked = parts.slave, parts.config_copy, list[str]()
    assert slave is not None
    assert copy is not None

    def invoke(
        address: str, call: Call[Any, Any], header: Header, *, timeout_ms: int
    ) -> PendingReply:
        asked.append(address)
        return PendingReply()

    copy.begin(invoke)
    (all_tables, _) = copy.life().beats
    assert isinstance(all_tables, WalkBeat)
    slave.found_master("10.0.0.1:10912", ADDRESS)
    assert all_tables.steps(0, 0) is None
    slave._follows = True
    steps = all_tables.steps(0, 0)
    assert steps is not None
    next(steps)
    assert asked == [ADDRESS]
    parts.store.stop(parts.now_ms)


def test_a_master_has_nothing_to_copy(parts: Parts) -> None:
    assert parts.config_copy is None
