# SPDX-License-Identifier: Apache-2.0
"""Finds where the index of a store that is opened continues, and moves aside what is wrong in it.

Java: IndexService.load, and the building of the index behind CommitLog.recoverAbnormally.
"""

from __future__ import annotations

from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.opening_report import Recovered
from txrocketmq.broker.store.index.index_file import Index
from txrocketmq.broker.store.log.log_walk import record_at
from txrocketmq.broker.store.opening import index_comparison
from txrocketmq.broker.store.opening.inventory import Inventory
from txrocketmq.broker.store.opening.loss import Loss


class IndexRecovery:
    """The index of one opening; what is said goes into the warnings of `loss`."""

    def __init__(self, config: StoreConfig, row: MappedFileQueue, index: Index, loss: Loss) -> None:
        self._config = config
        self._row = row
        self._index = index
        self._loss = loss
        self._gone: list[str] = []
        """The paths of files that are none of the index any more."""

    def begin(self, done: Recovered, inventory: Inventory | None, durable: int) -> int:
        """The log offset at which to continue the index; files behind a gap are moved aside.

        The log was durable up to `durable` when it was opened. Files that are given up are durably
        gone when this returns: the log may take other messages at the same offsets, and a file that
        was back after a power cut would stand for these, also if it lacks some of them.
        """
        self._give_up(done.max_offset)
        begin = self._begin(done, inventory, durable)
        if self._gone:
            self._loss.make_durable(self._gone[-1])
        return begin

    def _begin(self, done: Recovered, inventory: Inventory | None, durable: int) -> int:
        index, end = self._index, done.max_offset
        if not self._config.message_index_enable:
            return end
        if inventory is not None and inventory.is_indexed and index.extents() == inventory.index:
            return end
        row, at = self._row, (begin := max(self._row.min_offset, 0))
        for number, (_, last) in enumerate(index.spans()):
            if index_comparison.lacks_before(index, row, number, at):
                for path in index.drop_from(number):
                    self._loss.warnings.append(
                        f"{path} is not continued, since the index lacks messages before it."
                        f" {self._set_aside(path)}"
                    )
                break
            record = record_at(row, last, check_crc=False)
            at = max(last if record is None else last + record.size_bytes, begin)
        if index.spans():
            return at
        if not index_comparison.has_keys_between(row, begin, end):
            return durable  # no producer here sets keys
        if done.was_closed:
            self._loss.warnings.append("The index is missing; it is built from the log.")
        return begin

    def _give_up(self, end: int) -> None:
        """Removes files of messages that are not in the log, which ends there, or were not when
        the machine went down; moves aside those that cannot be trusted.
        """
        index = self._index
        self._gone += index.remove_unfinished()
        wrong, index.damaged = index.damaged, []
        if misdated := index_comparison.first_misdated(index, self._row, end):
            wrong += [(path, misdated[1]) for path in index.drop_from(misdated[0])]
        for path, why in wrong:
            self._loss.warnings.append(f"{path} is damaged: {why}. {self._set_aside(path)}")
        if dropped := index.drop_after(end):
            self._gone += dropped
            self._loss.warnings.append(
                "The index had messages that the log does not have any more; the files of it that"
                " had them were removed, and are built again from the log."
            )

    def _set_aside(self, path: str) -> str:
        target = self._loss.move_aside(path)
        self._gone.append(path)
        return f"It was moved to {target}, and the index is built from the log."
