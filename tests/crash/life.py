# SPDX-License-Identifier: Apache-2.0
"""One life of a store: what a process does with it from its start to its end, at random.

The ledger is told of everything. Whoever runs the life decides how it ends: in order with `stop`,
or by leaving it as it is, which is what a kill does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from random import Random
from typing import Any, Final

from tests.crash.judge import Excuse, Findings, judge
from tests.crash.ledger import Ledger
from txrocketmq.broker.kernel.chosen import chosen_kernel
from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.damage import Damage
from txrocketmq.broker.store.formats.opening_report import Recovered
from txrocketmq.broker.store.formats.put_message import Appended
from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.message_store import MessageStore, PutStatus

TINY: Final[dict[str, Any]] = {
    "mapped_file_size_commit_log": 16_384,
    "mapped_file_size_consume_queue": 400,
    "mapped_file_size_consume_queue_ext": 256,
    "max_hash_slot_num": 50,
    "max_index_num": 300,
    "file_reserved_time": 0,
    "delete_when": "",
}
"""Files so small that files of each kind are always being rolled. Log files are deleted only when
`expire` asks for it. Other settings vary, above all those that recovery depends on.
"""
LARGE: Final[dict[str, Any]] = {
    "mapped_file_size_commit_log": 1 << 20,
    "mapped_file_size_consume_queue": 4_000,
    "max_hash_slot_num": 500,
    "max_index_num": 20_000,
}
_SECOND_MS: Final = 1_000


class Life:
    """One life of a store; `said` are the warnings of the start, and the damages found since."""

    def __init__(
        self, config: StoreConfig, ledger: Ledger, now_ms: int, files: Files | None = None
    ) -> None:
        self.ledger = ledger
        self.now_ms = now_ms
        self.steady_ms = 1_000
        self.files = files
        kernel = chosen_kernel()  # as a broker has it
        new_rows = None if kernel is None else kernel.new_rows
        self.store = MessageStore(config, files=files, new_rows=new_rows)
        self.store.damaged.listeners.append(self._hear_of_damage)
        self.recovered: Recovered | None = None
        self.said: list[str] = []
        self._is_expiring = False
        self._waiting: set[int] = set()
        """Numbers of messages that the store has taken, but not yet reported to be durable."""

    def start(self) -> None:
        """Opens the store. Raises StoreError when the store refuses."""
        self._tell_time()
        self.recovered = self.store.load(self.now_ms, self.steady_ms)
        self.said = list(self.recovered.warnings)

    def _hear_of_damage(self, damage: Damage, more: int) -> None:
        place = f"{damage.path} is damaged at byte {damage.position}"
        self.said.append(
            f"{place} (log offset {damage.physical_offset}), and at {more} places more"
        )

    def judge(self, excuse: Excuse | None = None) -> Findings:
        """Judges the store; see judge.judge."""
        return judge(self.store, self.ledger, self.said, excuse, self._waiting)

    def put(self, count: int) -> None:
        """Puts messages as one batch. With SYNC_FLUSH they are acknowledged by a later flush."""
        self.pass_ms(3)
        messages = self.ledger.draw(count, self.now_ms)
        numbers = list(messages)
        appended = self.store.put(list(messages.values()), self.now_ms)
        refused = [
            number
            for number, one in zip(numbers, appended, strict=True)
            if one.status is not PutStatus.PUT_OK
        ]
        taken = {
            number: one
            for number, one in zip(numbers, appended, strict=True)
            if one.status is PutStatus.PUT_OK
        }
        self.ledger.refused(refused)
        if not taken:
            return
        end = max(one.physical_offset + one.size for one in taken.values())
        outcome = self.store.commit.outcome(end)
        if not isinstance(outcome, Ticket):
            self.ledger.acknowledge(list(taken), list(taken.values()))
            return
        self._waiting.update(taken)
        outcome.then(self._acknowledgement(taken))

    def _acknowledgement(self, taken: dict[int, Appended]) -> Callable[[PutStatus], None]:
        def answer(status: PutStatus) -> None:
            if status is PutStatus.PUT_OK:
                self._waiting.difference_update(taken)
                self.ledger.acknowledge(list(taken), list(taken.values()))

        return answer

    def flush(self) -> None:
        """Does what the thread of the flush jobs does."""
        job = self.store.flush.begin()
        if job is not None:
            with suppress(MemoryError):  # the broker finishes a job however its thread has ended
                job.run()
            if job.is_log_synced:
                # With SYNC_FLUSH answers leave while the job is finished.
                self.ledger.durable(job.log_end)
            self.store.flush.finish(job)

    def tick(self, ms: int = _SECOND_MS) -> None:
        """Advances the time; housekeeping is done once, at the end."""
        self.pass_ms(ms)
        if self._is_expiring:
            self._note_expired()
        self.store.tick(self.now_ms, self.steady_ms)
        steps = self.store.follow_log()
        if steps is not None:
            finished(steps)
        job = self.store.removals.begin()
        if job is not None:
            try:
                job.run()
            finally:
                self.store.removals.finish(job)

    def make_files(self, number: int) -> None:
        """Has files of some light queues made."""
        steps = self.store.make_files()
        if steps is not None:
            for _ in islice(steps, number):
                pass

    def pass_ms(self, ms: int) -> None:
        """Advances the time."""
        self.steady_ms += ms
        self.set_clock(ms)

    def set_clock(self, by_ms: int) -> None:
        """Moves the wall clock forward, or back with a negative number."""
        self.now_ms += by_ms
        self._tell_time()

    def _tell_time(self) -> None:
        if hasattr(self.files, "now_ms"):
            self.files.now_ms = self.now_ms  # type: ignore[union-attr]

    def delete_topic(self, topic: str) -> None:
        """Deletes a topic; later messages to it start at offset 0."""
        self.flush()  # no answer may be outstanding to what is deleted
        self.ledger.delete_topic(topic)
        self.store.delete_topic(topic)

    def expire(self) -> None:
        """Asks for the deletion of old log files: the next ticks delete all but the last one."""
        self._is_expiring = True
        self._note_expired()
        self.store.delete_expired(self.now_ms, self.steady_ms)

    def _note_expired(self) -> None:
        file_bytes = self.store.config.mapped_file_size_commit_log
        self.ledger.expire(self.store.max_physical_offset // file_bytes * file_bytes)

    def stop(self) -> None:
        """Closes the store in order, after everything that waits for the disk."""
        self.flush()
        self.store.stop(self.now_ms)
        self.ledger.durable(self.store.max_physical_offset)

    def step(self, random: Random, *, deletes_topics: bool = False) -> None:
        """Does something random that a broker does."""
        chance = random.random()
        if chance < 0.45:
            self.put(1)
        elif chance < 0.7:
            self.put(random.randint(2, 40))
        elif chance < 0.9:
            self.flush()
        elif chance < 0.97:
            self.tick(random.choice((_SECOND_MS, 2 * _SECOND_MS, 61 * _SECOND_MS)))
            self.flush()
        elif chance < 0.975:
            self.make_files(random.randrange(4))
        elif chance < 0.985 and deletes_topics:
            self.delete_topic(f"Topic{random.randrange(self.ledger.shape.topics)}")
        else:
            self.expire()
