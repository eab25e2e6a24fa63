# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from txrocketmq.broker.tables.offset import NOT_FOUND, ConsumerOffsets
from txrocketmq.broker.work.in_thread import Done
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.remoting.protocol.body.route import DataVersion
from txrocketmq.remoting.serialize.json import encode_pretty


def offsets_of(folder: Path) -> ConsumerOffsets:
    return ConsumerOffsets(JsonFile(folder / "offsets.json"), lambda: 1000)


def test_a_commit_counts_forwards_and_backwards(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    assert offsets.query("g", "T", 0) == NOT_FOUND
    offsets.commit("g", "T", 0, 5)
    offsets.commit("g", "T", 1, 7)
    offsets.commit("g", "T", 0, 3)
    assert offsets.of("g", "T") == {0: 3, 1: 7}
    assert offsets.query("h", "T", 0) == NOT_FOUND


def test_offsets_beyond_the_ends_of_queues_are_set_back(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    for group, queue_id, offset in (("g", 0, 5), ("g", 1, 4), ("h", 0, 9)):
        offsets.commit(group, "T", queue_id, offset)
    assert offsets.set_back(lambda topic, queue_id: 4 if topic == "T" else 0) == 2
    assert offsets.of("g", "T") == {0: 4, 1: 4}
    assert offsets.of("h", "T") == {0: 4}
    assert offsets.set_back(lambda *_: 4) == 0


def test_a_reset_holds_until_a_pull_was_told(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    offsets.commit("g", "T", 0, 9)
    offsets.reset("g", "T", 0, 2)
    offsets.commit("g", "T", 0, 10)
    offsets.commit("g", "T", 1, 4)
    assert offsets.query("g", "T", 0) == 2
    assert offsets.query("g", "T", 1) == 4
    assert offsets.take_reset("g", "T", 1) is None
    assert offsets.take_reset("h", "T", 0) is None
    assert offsets.take_reset("g", "T", 0) == 2
    assert offsets.take_reset("g", "T", 0) is None
    assert offsets.query("g", "T", 0) == 2
    offsets.commit("g", "T", 0, 3)
    assert offsets.query("g", "T", 0) == 3


def test_a_second_reset_takes_the_place_of_the_first(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    offsets.reset("g", "T", 0, 2)
    offsets.reset("g", "T", 0, 6)
    assert offsets.query("g", "T", 0) == 6
    assert offsets.take_reset("g", "T", 0) == 6
    assert offsets.of("g", "T") == {0: 6}


def test_resets_of_queues_do_not_hinder_each_other(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    offsets.reset("g", "T", 0, 2)
    offsets.reset("g", "T", 1, 6)
    assert offsets.take_reset("g", "T", 0) == 2
    assert offsets.take_reset("g", "T", 1) == 6


def test_who_reads_what(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    for group, topic in (("g", "T"), ("g", "U"), ("h", "T")):
        offsets.commit(group, topic, 0, 1)
    assert offsets.topics_of("g") == {"T", "U"}
    assert offsets.groups_of("T") == {"g", "h"}
    assert offsets.topics_of("x") == set()


def test_offsets_are_cloned_and_go_their_own_way(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    offsets.commit("g", "T", 0, 5)
    offsets.clone("g", "h", "T")
    offsets.commit("g", "T", 0, 6)
    assert offsets.query("h", "T", 0) == 5


def test_groups_and_topics_are_forgotten(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    for group, topic in (("g", "T"), ("g", "U"), ("h", "T")):
        offsets.commit(group, topic, 0, 1)
    offsets.reset("g", "U", 0, 3)
    for topic in offsets.topics_of("g"):
        offsets.remove("g", topic)
    assert dict(offsets.entries()) == {"T@h": {0: 1}}
    assert offsets.query("g", "U", 0) == NOT_FOUND
    assert (offsets.groups_of("T"), offsets.topics_of("g")) == ({"h"}, set())
    offsets.remove("h", "T")
    assert dict(offsets.entries()) == {}
    assert (offsets.groups_of("T"), offsets.topics_of("h")) == (set(), set())


def test_offsets_are_written_only_when_something_changed(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    path = tmp_path / "offsets.json"
    offsets.saving.begin()
    assert not path.exists()
    offsets.commit("g", "T", 0, 5)
    offsets.saving.begin()
    later = offsets_of(tmp_path)
    later.load()
    assert later.query("g", "T", 0) == 5
    assert later.data_version.counter == 1
    assert later.topics_of("g") == {"T"}
    path.unlink()
    offsets.saving.begin()
    assert not path.exists()


def test_a_commit_while_the_file_is_made_is_in_it_or_in_the_next_one(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    threads: list[tuple[Callable[[], None], Done]] = []
    offsets.saving.in_thread = lambda work, done: threads.append((work, done))
    offsets.commit("g", "T", 0, 5)
    offsets.saving.begin()
    offsets.commit("g", "T", 0, 6)
    offsets.commit("g", "U", 0, 1)
    offsets.remove("x", "T")
    work, done = threads.pop()
    work()
    done(None)
    offsets.remove("g", "U")
    offsets.saving.begin()
    work, done = threads.pop()
    work()
    done(None)
    later = offsets_of(tmp_path)
    later.load()
    assert dict(later.entries()) == {"T@g": {0: 6}}


def test_the_file_is_the_same_whether_it_is_made_of_changes_or_of_everything(
    tmp_path: Path,
) -> None:
    offsets = offsets_of(tmp_path)
    for step in range(30):
        offsets.commit(f"g{step % 4}", f'T"{step % 7}', step % 3, step)
        if step % 5 == 0:
            offsets.remove(f"g{step % 4}", f'T"{step % 3}')
        if step % 3 == 0:
            offsets.clone("g1", "g2", f'T"{step % 7}')
        offsets.saving.begin()
        assert (tmp_path / "offsets.json").read_bytes() == encode_pretty(
            {
                "dataVersion": offsets.data_version.to_json(),
                "offsetTable": dict(sorted(offsets.entries())),
            }
        )


def test_after_a_failure_everything_is_encoded_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets = offsets_of(tmp_path)
    offsets.commit("g", "T", 0, 5)
    ends: list[Exception | None] = []
    offsets.saving.on_end = ends.append
    with monkeypatch.context() as patched:
        patched.setattr("txrocketmq.broker.tables.offset.encode_body", None)
        offsets.saving.begin()
    assert isinstance(ends[0], TypeError)
    offsets.saving.begin()
    later = offsets_of(tmp_path)
    later.load()
    assert later.query("g", "T", 0) == 5


def test_the_file_is_what_the_original_reads(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    offsets.commit("g", "T", 0, 5)
    offsets.saving.begin()
    assert (tmp_path / "offsets.json").read_text() == (
        '{\n\t"dataVersion":{\n\t\t"counter":1,\n\t\t"stateVersion":0,\n\t\t"timestamp":1000\n\t},'
        '\n\t"offsetTable":{\n\t\t"T@g":{\n\t\t\t0:5\n\t\t}\n\t}\n}'
    )


def test_the_original_s_file_is_read(
    golden_store: Callable[[str], Path], golden_version: str
) -> None:
    path = golden_store(golden_version) / "clean" / "config" / "consumerOffset.json"
    offsets = ConsumerOffsets(JsonFile(path), lambda: 0)
    offsets.load()
    assert offsets.query("golden_retry", "%RETRY%golden_retry", 0) == 2
    assert offsets.topics_of("golden_retry") == {"Retry", "%RETRY%golden_retry"}


def test_a_topic_and_a_group_are_forgotten_with_what_broadcasting_left(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    for topic in ("T", "U"):
        for group in ("g", "g@broadcast", "h"):
            offsets.commit(group, topic, 0, 1)
    assert offsets.groups_of("T") == {"g", "h"}
    assert len(list(offsets.forget_topic("T"))) == 3
    assert [key for key, _ in offsets.entries()] == ["U@g", "U@g@broadcast", "U@h"]
    assert len(list(offsets.forget_group("g"))) == 2
    assert [key for key, _ in offsets.entries()] == ["U@h"]
    assert (offsets.topics_of("g@broadcast"), offsets.groups_of("U")) == (set(), {"h"})


def test_what_was_pulled_is_known_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets = offsets_of(tmp_path)
    offsets.pulled("g", "T", 0, 5)
    offsets.pulled("g", "T", 0, 7)
    assert offsets.pulled_of("g", "T") == {0: 7}
    assert offsets.pulled_of("h", "T") == offsets.of("g", "T") == {}
    offsets.remove("g", "T")
    assert offsets.pulled_of("g", "T") == {}
    monkeypatch.setattr("txrocketmq.broker.tables.offset._MOST_PULLED", 2)
    for group in ("a", "b", "c"):
        offsets.pulled(group, "T", 0, 1)
    assert len(offsets._pulled) == 1


def test_groups_called_like_light_queues_have_a_table_of_their_own(tmp_path: Path) -> None:
    path, before = tmp_path / "lmqConsumerOffset.json", JsonFile(tmp_path / "consumerOffset.json")
    before.path.write_text('{"offsetTable":{"T@g":{0:5,1:6}}}')
    offsets = ConsumerOffsets(JsonFile(path), lambda: 1000, before=before)
    offsets.load()
    assert offsets.of("g", "T") == {0: 5, 1: 6}, "they were committed before there was the file"
    offsets.commit("%LMQ%g", "%LMQ%a", 0, 7)
    offsets.commit("%LMQ%g", "T", 0, 1)
    offsets.commit("%LMQ%g", "T", 1, 2)
    offsets.commit("g", "%LMQ%a", 0, 3)
    offsets.saving.begin()
    text = path.read_text()
    assert '"lmqOffsetTable":{\n\t\t"%LMQ%a@%LMQ%g":7\n\t}' in text
    assert '"%LMQ%a@g":{\n\t\t\t0:3\n\t\t}' in text
    before.path.unlink()
    again = ConsumerOffsets(JsonFile(path), lambda: 1000, before=before)
    again.load()
    assert dict(again.entries()) == dict(offsets.entries())
    assert again.query("%LMQ%g", "%LMQ%a", 0) == 7
    again.remove("%LMQ%g", "%LMQ%a")
    again.saving.begin()
    assert '"lmqOffsetTable":{\n\t\t\n\t}' in path.read_text()


def test_offsets_of_another_broker_take_the_place_of_those_of_their_keys(tmp_path: Path) -> None:
    """What is the same is not written again, and the version is that of the other."""
    offsets = offsets_of(tmp_path)
    offsets.commit("g", "T", 0, 5)
    offsets.commit("g", "U", 0, 5)
    offsets.merge("T@g", {1: 7})
    offsets.merge("V@h", {0: 1})
    offsets.merged(DataVersion(timestamp=3, counter=9))
    offsets.saving.begin()
    assert offsets.of("g", "T") == {1: 7}
    assert offsets.of("g", "U") == {0: 5}
    assert offsets.groups_of("V") == {"h"}
    again = offsets_of(tmp_path)
    again.load()
    assert again.data_version == DataVersion(timestamp=3, counter=9)
    assert again.of("g", "T") == {1: 7}
    offsets.merge("T@g", {1: 7})
    offsets.saving.begin()
    assert offsets.data_version.counter == 9
    offsets.commit("g", "T", 1, 8)
    offsets.saving.begin()
    offsets.commit("g", "T", 1, 9)
    offsets.saving.begin()
    assert offsets.data_version.counter > 9, "what is committed here counts"


def test_of_another_table_only_what_is_farther_may_be_taken(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    offsets.commit("g", "T", 0, 5)
    offsets.commit("g", "T", 1, 5)
    assert offsets.advance("T@g", {0: 4, 1: 6, 2: 0}) == 2
    assert offsets.of("g", "T") == {0: 5, 1: 6, 2: 0}
    assert offsets.advance("T@g", {0: 4, 1: 6}) == 0
    assert offsets.advance("U@h", {0: 1}) == 1
    assert offsets.groups_of("U") == {"h"}
