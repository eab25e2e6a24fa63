# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq store repair`: opens a store as a broker does, with losses accepted, and closes it.

What that would do is found out on copies and told first. What is in the way is moved to
`lost/TIME` in the store, where it stays.
"""

from __future__ import annotations

import time
from pathlib import Path

from txrocketmq.broker.store.check.check import StoreCheck
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreLoss
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.cli.store.store_directory import (
    DONE,
    FAILED,
    agrees,
    kinds_of_queues,
    known_topics,
)
from txrocketmq.remoting.primitives.plain_text import plain


def repair_store(config: StoreConfig, root: Path, *, yes: bool) -> int:
    """Repairs the store after confirmation; returns 0 if a broker can open it now."""
    topics = known_topics(root)
    now_ms = int(time.time() * 1000)
    kind_of = kinds_of_queues(root)
    check = StoreCheck(config, kind_of)
    try:
        can_be_opened = check.open(now_ms, topics)
        refusal = check.refusal
        for text in plan(check):
            print(plain(text, keep="\n"))
    finally:
        check.close()
    if not can_be_opened:
        print("This cannot be repaired: a broker could not open what is left.")
        return FAILED
    if not check.findings and check.recovered is not None and check.recovered.was_closed:
        print("There is nothing to repair.")
        return DONE
    if not yes and not agrees("repair", "Repair the store like this?"):
        print("Nothing has been changed.")
        return FAILED
    if isinstance(refusal, StoreLoss):
        Path(refusal.word).touch()
    store = MessageStore(config)
    recovered = store.load(now_ms, topics=topics, kind_of=kind_of)
    for warning in recovered.warnings:
        print(plain(warning, keep="\n"))
    store.stop(int(time.time() * 1000))
    print(plain(str(recovered), keep="\n"))
    print("The store was closed in order; a broker can open it.")
    return DONE


def plan(check: StoreCheck) -> list[str]:
    """Returns what is wrong, and what opening the store would do about it."""
    lines = [finding.text for finding in check.findings]
    done = check.recovered
    if done is not None:
        lines.append(f"With what is left: {done}")
    lines += [f"would move {path} to {target}" for path, target in check.files.moved]
    lines += [f"would remove {path}" for path in check.files.removed]
    return lines
