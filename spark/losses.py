# SPDX-License-Identifier: Apache-2.0
"""What happens if something asked for is gone: an error, or with failOnDataLoss=false a warning."""

from __future__ import annotations

import logging

from txrocketmq.spark.errors import DataLossError
from txrocketmq.spark.store import Store

log = logging.getLogger("txrocketmq.spark")


def loss_text(store: Store, start: int, end: int) -> str:
    """Returns a sentence that says which part of a log is gone."""
    return (
        f"the commit log of {store.broker_name} ({store.uri}) has no bytes from {start} to {end}:"
        " retention or somebody has deleted them"
    )


def lose(text: str, *, fail: bool) -> None:
    """Raises DataLossError if `fail` is true, else logs a warning."""
    if fail:
        raise DataLossError(f"{text}; set failOnDataLoss=false to go on without")
    log.warning("%s", text)
