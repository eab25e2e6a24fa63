# SPDX-License-Identifier: Apache-2.0
"""What a broker writes when it stops, in order.

Counterpart of the end of BrokerController.shutdownBasicService.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from txrocketmq.broker.parts import Parts
from txrocketmq.broker.store.formats.errors import StoreError

Failed = Callable[[str, Exception], None]
"""Is told what failed, such as "writing topics.json", and why."""


def write_all(parts: Parts, now_ms: int, failed: Failed) -> None:
    """Saves what is only in memory, then closes the store; a failure does not stop the rest."""
    for what, write in (
        ("writing down what is popped", partial(parts.pop.check_points.write_all, now_ms)),
        ("flushing the store", parts.flush_all),
        ("keeping the progress of timers", lambda: parts.timers.close(now_ms)),
        ("writing timermetrics", parts.timers.metrics.saving.write_now),
        ("keeping the progress of transactions", parts.transaction_check.settle),
        ("keeping the progress of pops", parts.pop.settle),
        ("writing consumerOffset.json", parts.offsets.saving.write_now),
        ("writing consumerOrderInfo.json", parts.pop.orders.saving.write_now),
        ("writing transactionMetrics", parts.transaction_metrics.saving.write_now),
        ("keeping the progress of delay levels", parts.schedule.settle),
        ("writing delayOffset.json", parts.schedule.saving.write_now),
        ("writing messageRequestMode.json", parts.modes.saving.write_now),
        ("writing consumerFilter.json", parts.filters.saving.write_now),
        ("writing topics.json", parts.topics.saving.write_now),
        ("writing subscriptionGroup.json", parts.groups.saving.write_now),
        ("closing the store", lambda: parts.store.stop(now_ms)),
    ):
        try:
            write()
        except (OSError, StoreError) as error:
            failed(what, error)
