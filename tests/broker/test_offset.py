# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from txrocketmq.broker.json_file import JsonFile
from txrocketmq.broker.offset import NOT_FOUND, ConsumerOffsets


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
    offsets.remove_group("g")
    assert offsets.table()["offsetTable"] == {"T@h": {0: 1}}
    assert offsets.query("g", "U", 0) == NOT_FOUND
    offsets.remove_topic("T")
    assert offsets.table()["offsetTable"] == {}


def test_offsets_are_written_only_when_something_changed(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    assert offsets.changes() is None
    offsets.commit("g", "T", 0, 5)
    write = offsets.changes()
    assert write is not None
    offsets.commit("g", "T", 0, 6)  # after the snapshot: of the next one
    write()
    later = offsets_of(tmp_path)
    later.load()
    assert later.query("g", "T", 0) == 5
    assert later.data_version.counter == 1
    assert offsets.changes() is not None
    assert offsets.changes() is None


def test_the_file_is_what_the_original_reads(tmp_path: Path) -> None:
    offsets = offsets_of(tmp_path)
    offsets.commit("g", "T", 0, 5)
    write = offsets.changes()
    assert write is not None
    write()
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
