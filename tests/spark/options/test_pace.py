# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.spark.clock import Clock
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.log.log_reader import read_log
from txrocketmq.spark.options.pace import MIN_STEP_BYTES, STEPS_A_SECOND, Pace
from txrocketmq.spark.store.store import Store


@given(
    st.integers(1, 10_000),
    st.lists(st.tuples(st.integers(0, 30_000), st.floats(0, 3)), min_size=1, max_size=30),
)
def test_in_no_time_is_more_read_than_that_and_one_read(
    rate: int, reads: list[tuple[int, float]]
) -> None:
    clock = Clock()
    pace = Pace(rate, now=clock.now, sleep=clock.sleep)
    done: list[tuple[float, int]] = []
    for count, idle_s in reads:
        pace.wait(count)
        done.append((clock.now(), count))
        clock.sleep(idle_s)
    for first, (start, _) in enumerate(done):
        inside = 0
        for at, count in done[first:]:
            assert inside <= rate * (at - start) * (1 + 1e-9) + 1e-3
            inside += count


def test_a_read_waits_no_longer_than_it_must() -> None:
    clock = Clock()
    pace = Pace(1000, now=clock.now, sleep=clock.sleep)
    pace.wait(500)
    assert clock.slept == []
    pace.wait(2000)
    assert clock.slept == [0.5]
    clock.sleep(1.5)
    pace.wait(1)
    assert clock.slept == [0.5, 1.5, 0.5]


def test_steps_are_a_part_of_a_second_but_not_tiny() -> None:
    clock = Clock()
    quick = Pace(80 << 20, now=clock.now, sleep=clock.sleep)
    step = (80 << 20) // STEPS_A_SECOND
    assert list(quick.steps(2 * step + 1)) == [
        (0, step), (step, 2 * step), (2 * step, 2 * step + 1),
    ]  # fmt: skip
    assert clock.slept == [1 / STEPS_A_SECOND] * 2
    assert list(quick.steps(0)) == []
    slow = Pace(1000, now=clock.now, sleep=clock.sleep)
    assert next(slow.steps(1 << 30)) == (0, MIN_STEP_BYTES)


def test_without_a_limit_there_is_no_pace() -> None:
    assert Pace.of(None) is None
    assert isinstance(Pace.of(1), Pace)


def test_a_log_is_read_as_fast_as_is_allowed(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=1 << 20)
    writer.put_all(Draft(body=bytes(10_000)) for _ in range(150))
    store = Store.open(str(writer.root))
    clock = Clock()
    pace = Pace(256 << 10, now=clock.now, sleep=clock.sleep)
    reading = read_log(store, 0, writer.end, first_is_boundary=True, pace=pace)
    assert sum(len(found) for found in reading if isinstance(found, Records)) == 150
    seconds = 150 * 10_000 / (256 << 10)
    assert seconds - 1 < clock.now() < 1.5 * seconds, "what was read twice at the seams counts"
    assert max(clock.slept) <= 1
