# SPDX-License-Identifier: Apache-2.0
"""Local offsets: the file of the Java client, its .bak, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.client.fakes import Scene, result_of
from tests.examples import examples
from txrocketmq.client.base.errors import OffsetsUnreadable
from txrocketmq.client.consumer.queue.local_offsets import LocalOffsets
from txrocketmq.client.consumer.queue.queue_life import Seen
from txrocketmq.remoting.message.message import MessageQueue

QUEUE, OTHER = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)
_QUEUE = '{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":0,\n\t\t\t"topic":"T"\n\t\t}:5'
JAVA = {
    "4.9.7": '{\n\t"offsetTable":{' + _QUEUE + "\n\t}\n}",
    "5.4.0": '{\n\t"offsetTable":{\n\t\t' + _QUEUE + "\n\t}\n}",
}
"""What OffsetSerializeWrapper.toJson(true) of the official jars gives."""
OURS = '{\n\t"offsetTable":{\n\t\t{"brokerName":"broker-a","queueId":0,"topic":"T"}:5\n\t}\n}'
"""What its fromJson reads, in either release."""


def test_the_path_is_that_of_a_java_consumer(scene: Scene, tmp_path: Path) -> None:
    path = LocalOffsets(scene.client, "g", tmp_path).path
    assert path == tmp_path / "10.0.0.9@DEFAULT" / "g" / "offsets.json"
    assert LocalOffsets(scene.client, "g", str(tmp_path)).path == path
    assert LocalOffsets(scene.client, "g").path.parts[-4] == ".rocketmq_offsets"


def test_what_is_persisted_is_there_the_next_time(scene: Scene, tmp_path: Path) -> None:
    offsets = LocalOffsets(scene.client, "g", tmp_path)
    assert result_of(offsets.read(QUEUE)) is None
    offsets.note(QUEUE, 5)
    offsets.note(OTHER, 7)
    result_of(offsets.persist([QUEUE]))
    assert result_of(offsets.read(QUEUE)) == 5
    again = LocalOffsets(scene.client, "g", tmp_path)
    assert [result_of(again.read(each)) for each in (QUEUE, OTHER)] == [5, None]
    again.note(OTHER, 8)
    result_of(again.commit(OTHER))
    third = LocalOffsets(scene.client, "g", tmp_path)
    assert [result_of(third.read(each)) for each in (QUEUE, OTHER)] == [5, 8]
    assert offsets.path.with_name("offsets.json.bak").exists()


def test_it_writes_what_java_reads(scene: Scene, tmp_path: Path) -> None:
    offsets = LocalOffsets(scene.client, "g", tmp_path)
    offsets.note(QUEUE, 5)
    result_of(offsets.persist([QUEUE]))
    assert offsets.path.read_text() == OURS


def test_what_was_seen_is_kept_beside_the_offset(scene: Scene, tmp_path: Path) -> None:
    offsets = LocalOffsets(scene.client, "g", tmp_path)
    offsets.marks[QUEUE] = Seen(4, 700, 1_700_000_000_000)
    offsets.note(QUEUE, 5)
    offsets.note(OTHER, 7)
    result_of(offsets.persist([QUEUE, OTHER]))
    assert '"seenTable":{\n\t\t"T 0 broker-a":"4 700 1700000000000"' in offsets.path.read_text()
    again = LocalOffsets(scene.client, "g", tmp_path)
    result_of(again.load())
    assert again.marks == {QUEUE: Seen(4, 700, 1_700_000_000_000)}
    again.note(OTHER, 8)
    again.marks[OTHER] = Seen(7, 900, 1_700_000_000_001)
    result_of(again.persist([OTHER]))
    del again.marks[QUEUE]
    again.set(QUEUE, 0)  # it was made anew
    result_of(again.persist([QUEUE]))
    third = LocalOffsets(scene.client, "g", tmp_path)
    result_of(third.load())
    assert third.marks == {OTHER: Seen(7, 900, 1_700_000_000_001)}


@pytest.mark.parametrize("release", JAVA)
def test_a_file_of_java_is_read(scene: Scene, tmp_path: Path, release: str) -> None:
    offsets = LocalOffsets(scene.client, "g", tmp_path)
    offsets.path.parent.mkdir(parents=True)
    offsets.path.write_text(JAVA[release])
    assert result_of(offsets.read(QUEUE)) == 5


def test_nothing_is_written_when_nothing_has_changed(scene: Scene, tmp_path: Path) -> None:
    offsets = LocalOffsets(scene.client, "g", tmp_path)
    offsets.note(QUEUE, 5)
    result_of(offsets.persist([QUEUE]))
    offsets.path.unlink()
    result_of(offsets.persist([QUEUE]))
    assert not offsets.path.exists()


@pytest.mark.parametrize("damage", ["", "{", '{"offsetTable":7}'])
def test_a_damaged_file_gives_way_to_the_one_before(
    scene: Scene, tmp_path: Path, damage: str
) -> None:
    offsets = LocalOffsets(scene.client, "g", tmp_path)
    offsets.path.parent.mkdir(parents=True)
    offsets.path.write_text(damage)
    offsets.path.with_name("offsets.json.bak").write_text(OURS)
    if damage.endswith("7}"):  # whole, and yet not what it should be
        with pytest.raises(OffsetsUnreadable, match="offsetTable"):
            result_of(offsets.load())
    else:
        assert result_of(offsets.read(QUEUE)) == 5


def test_when_both_are_damaged_that_is_an_error_which_names_them(
    scene: Scene, tmp_path: Path
) -> None:
    offsets = LocalOffsets(scene.client, "g", tmp_path)
    offsets.path.parent.mkdir(parents=True)
    offsets.path.write_text("{")
    with pytest.raises(OffsetsUnreadable, match="offsets.json"):
        result_of(offsets.load())
    offsets.note(QUEUE, 5)
    result_of(offsets.persist([QUEUE]))  # it says so, and the file stays
    assert offsets.path.read_text() == "{"


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**40), st.booleans()), max_size=12),
    st.uuids(),
)
def test_an_offset_goes_back_only_when_it_is_set(
    scene: Scene, tmp_path: Path, steps: list[tuple[int, int, bool]], group: object
) -> None:
    offsets = LocalOffsets(scene.client, str(group), tmp_path)
    model: dict[MessageQueue, int] = {}
    for queue_id, offset, is_set in steps:
        queue = MessageQueue("T", "broker-a", queue_id)
        (offsets.set if is_set else offsets.note)(queue, offset)
        model[queue] = offset if is_set else max(offset, model.get(queue, -1))
    result_of(offsets.persist(list(model)))
    again = LocalOffsets(scene.client, str(group), tmp_path)
    assert {queue: result_of(again.read(queue)) for queue in model} == model
    assert offsets.table("T") == model
