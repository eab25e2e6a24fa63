# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq store cut`: cuts off the end of a store, and keeps it in `lost/`.

What would be cut off is found out on copies and told first. Then the cut is ordered, and done by
opening the store and closing it in order: see broker/store/opening/cut.py. If the command is ended
meanwhile, it can be repeated, and a broker that opens the store does what is left.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from txrocketmq.broker.store.check.check import StoreCheck
from txrocketmq.broker.store.check.comparison import around
from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.formats.opening_report import messages
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.opening.cut import Cut
from txrocketmq.cli.store.store_compare import compared, opened
from txrocketmq.cli.store.store_directory import (
    DONE,
    FAILED,
    agrees,
    kinds_of_queues,
    known_topics,
)
from txrocketmq.remoting.primitives.plain_text import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCut:
    """Where the store is to be cut, and how."""

    at: int | None
    other: Path | None
    dry_run: bool
    yes: bool


def cut_store(config: StoreConfig, other: StoreConfig | None, wanted: WantedCut) -> int:
    """Cuts a store after confirmation; returns 0 if it ends there now."""
    root = config.store_path_root_dir
    order = Cut(OsFiles(), config)
    if order.is_ordered:
        if wanted.dry_run:
            print(plain(f"{root} is to be cut already: {order.path} has not been obeyed yet."))
            return DONE
        return _obey(config)
    with opened(config) as check:
        if check.refusal is not None:
            raise StoreError(f"{check.refusal}. Repair the store before it is cut")
        at = wanted.at if wanted.at is not None else _common_end(check, other)
        _check_place(root, check, at)
        if at == check.end:
            print(plain(f"{root} ends at {at}: there is nothing to cut."))
            return DONE
        for line in _plan(root, check, at):
            print(plain(line))
        assert check.recovered is not None
        newest_ms = check.recovered.last_store_timestamp_ms
    if wanted.dry_run:
        return DONE
    if not wanted.yes and not agrees("cut", "Cut the store like this?"):
        print("Nothing has been changed.")
        return FAILED
    order.order(at, newest_ms, int(time.time() * 1000))
    return _obey(config)


def _common_end(check: StoreCheck, other: StoreConfig | None) -> int:
    assert other is not None
    with opened(other) as their:
        comparison = compared(check, their, shows=True)
        if not comparison.has_common or comparison.equal_to <= comparison.start:
            raise StoreError(
                f"nothing in {check.log.files.directory} is the same as in"
                f" {their.log.files.directory}, so nothing would be left: begin with an empty store"
            )
        # A store that is the same as far as it goes has nothing to be cut off.
        is_prefix = not comparison.differs and check.end <= their.end
        return check.end if is_prefix else comparison.equal_to


def _check_place(root: str, check: StoreCheck, at: int) -> None:
    """Raises StoreError if the log cannot be cut there."""
    if not check.start < at <= check.end:
        raise StoreError(
            f"{root} cannot be cut at {at}: its log runs from {check.start} to {check.end}, and"
            " something of it has to be left"
        )
    before, after = around(check, at)
    if before != after:
        raise StoreError(
            f"{root} cannot be cut at {at}, within a record: one begins at {before}, and the next"
            f" one at {after}. Choose one of these"
        )


def _plan(root: str, check: StoreCheck, at: int) -> list[str]:
    count = sum(map(len, check.structure().batches(at, check.end)))
    return [
        f"{root} has the log from {check.start} to {check.end}.",
        f"It would end at {at}, without the last {messages(count)}, {check.end - at:,} bytes.",
        "They would be kept in lost/ in the store; no consumer would get them.",
    ]


def _obey(config: StoreConfig) -> int:
    """Opens the store, which cuts it, and closes it in order."""
    root = Path(config.store_path_root_dir)
    store = MessageStore(config)
    recovered = store.load(
        int(time.time() * 1000), topics=known_topics(root), kind_of=kinds_of_queues(root)
    )
    for warning in recovered.warnings:
        print(plain(warning, keep="\n"))
    store.stop(int(time.time() * 1000))
    print(plain(f"{root} ends at {recovered.max_offset} now, and was closed in order."))
    return DONE
