# SPDX-License-Identifier: Apache-2.0
"""What happens if something asked for is gone: an error, or with failOnDataLoss=false a warning."""

from __future__ import annotations

import logging

from txrocketmq.spark.arrow.errors import DataLossError
from txrocketmq.spark.log.log_end import end_of_log
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.store.store import Store

log = logging.getLogger("txrocketmq.spark")


def loss_text(store: Store, start: int, end: int) -> str:
    """Returns a sentence that says which part of a log is gone."""
    return (
        f"the commit log of {store.broker_name} ({store.uri}) has no bytes from {start} to {end}:"
        " retention or somebody has deleted them"
    )


def names_all(options: SourceOptions, broker_name: str, key: str = "") -> bool:
    """Returns whether options name offsets of a broker from which everything is wanted.

    `key` is the `Store.key` of a broker whose store is read.
    """
    starting = options.starting_offsets
    if starting is None or options.starting_timestamp_ms is not None:
        return False
    starting = starting.of_broker(key, broker_name)
    queues = (at for (_, broker, _), at in starting.queues.items() if broker == broker_name)
    return any(at >= 0 for at in (starting.of_log(broker_name), *queues))


def is_outside(store: Store, start: int, end: int) -> bool:
    """Returns whether a range lies in front of what a log has now, or behind it."""
    return end <= store.min_offset() or start >= end_of_log(store)


def lose(text: str, *, fail: bool) -> None:
    """Raises DataLossError if `fail` is true, else logs a warning."""
    if fail:
        raise DataLossError(f"{text}; set failOnDataLoss=false to go on without")
    log.warning("%s", text)
