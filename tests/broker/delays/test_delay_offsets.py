# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.delays.delay_offsets import DelayOffsets
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.saving import SOON_MS


@pytest.fixture(name="offsets")
def offsets_(parts: Parts) -> DelayOffsets:
    parts.put("T", body=b"something that has to be durable")
    file = JsonFile(parts.config_folder / "delayOffset.json")
    return DelayOffsets(file, parts.clock, parts.store)


def kept(parts: Parts) -> dict[int, int]:
    file = JsonFile(parts.config_folder / "delayOffset.json")
    return DelayOffsets(file, parts.clock, parts.store).decode(_content(file))


def _content(file: JsonFile) -> dict[str, object]:
    with file.content() as content:
        return dict(content)


def test_only_durable_progress_is_written(parts: Parts, offsets: DelayOffsets) -> None:
    offsets.set(3, 7)
    offsets.save_soon(0)
    assert offsets.get(3) == 7
    assert offsets.get(4) is None
    assert kept(parts) == {}
    parts.store.flush.flush_all()
    offsets.save_soon(SOON_MS)
    assert kept(parts) == {3: 7}


def test_a_sync_is_wanted_a_few_times_a_second_while_progress_is_not_durable(
    parts: Parts, offsets: DelayOffsets
) -> None:
    wanted: list[int] = []
    offsets.on_wanted.append(lambda: wanted.append(1))
    offsets.save_soon(0)
    assert not wanted
    offsets.set(1, 1)
    for steady_ms in range(0, 2 * SOON_MS, 100):
        offsets.save_soon(steady_ms)
    assert len(wanted) == 2
    parts.store.flush.flush_all()
    offsets.save_soon(5 * SOON_MS)
    assert len(wanted) == 2


def test_progress_of_before_does_not_count_when_the_table_is_replaced(
    parts: Parts, offsets: DelayOffsets
) -> None:
    offsets.set(1, 100)
    offsets.settle()
    finished(offsets.replace({1: 5}, {}))
    parts.store.flush.flush_all()
    offsets.settle()
    offsets.saving.write_now()
    assert kept(parts) == {1: 5}
    assert offsets.table()["offsetTable"] == {1: 5}
    assert offsets.progress() == {1: (5, 0)}
