# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.work.progress import DurableProgress


class Log:
    """A log that ends at `max_physical_offset`, and is durable up to `flushed_offset`."""

    def __init__(self) -> None:
        self.max_physical_offset = self.flushed_offset = 0

    @property
    def flush(self) -> Log:
        return self

    def append(self, size: int = 1) -> None:
        self.max_physical_offset += size

    def sync(self, offset: int | None = None) -> None:
        self.flushed_offset = self.max_physical_offset if offset is None else offset


def test_progress_waits_until_the_log_is_durable_up_to_its_present_end() -> None:
    log = Log()
    progress = DurableProgress[str](log)
    log.append(10)
    assert progress.note("first") == 10
    log.append(10)
    assert progress.note("second") == 20
    assert progress.take() == []
    log.sync(19)
    assert progress.take() == ["first"]
    assert progress.take() == []
    log.sync()
    assert progress.take() == ["second"]
    assert not len(progress)


def test_the_end_may_be_that_of_an_earlier_time() -> None:
    log = Log()
    progress = DurableProgress[str](log)
    log.append(10)
    end = log.max_physical_offset
    log.append(10)
    assert progress.note("before", end) == 10
    log.sync(10)
    assert progress.take() == ["before"]


def test_of_progress_that_changes_all_the_time_one_waits() -> None:
    log = Log()
    progress = DurableProgress[int](log)
    for number in range(100):
        log.append()
        assert progress.latest(lambda number=number: number) is None  # type: ignore[misc]
        assert len(progress) == 1
    log.sync(1)
    assert progress.latest(lambda: 100) == 0
    assert progress.latest(lambda: 101) is None
    log.sync()
    assert progress.latest(lambda: 102) == 102, "all is durable, so the present progress is"
    assert not len(progress)


def test_what_does_not_count_any_more_is_forgotten() -> None:
    log = Log()
    progress = DurableProgress[str](log)
    log.append()
    progress.note("of before")
    progress.forget()
    log.sync()
    assert progress.take() == []


_STEPS = st.lists(st.sampled_from(("do", "sync part", "sync", "save", "note")), max_size=60)


@given(steps=_STEPS, at_once=st.booleans())
def test_after_a_crash_no_saved_progress_is_ahead_of_the_log(
    steps: list[str], at_once: bool
) -> None:
    """Each piece of work is one byte of the log, and progress is how many pieces were done."""
    log = Log()
    progress = DurableProgress[int](log)
    saved = [0]

    def settle() -> None:
        if at_once:
            latest = progress.latest(lambda: log.max_physical_offset)
            saved.extend(() if latest is None else (latest,))
        else:
            saved.extend(progress.take())
        # A crash now would leave the durable part of the log, and this file.
        assert saved[-1] <= log.flushed_offset
        assert saved == sorted(saved)

    for step in steps:
        if step == "do":
            log.append()
        elif step == "sync part":
            log.sync((log.flushed_offset + log.max_physical_offset) // 2)
        elif step == "sync":
            log.sync()
        elif step == "note" and not at_once:
            progress.note(log.max_physical_offset)
        settle()
    if not at_once:
        progress.note(log.max_physical_offset)
    log.sync()
    settle()
    assert saved[-1] == log.max_physical_offset, "all that was done is saved in the end"
    assert not len(progress)
