# SPDX-License-Identifier: Apache-2.0
"""The lives of all parts of a broker, in order; each is declared beside its part.

A part comes after those that it uses. So the files are loaded, and the parts opened, from the first
to the last; and at the end, what is only in memory is written from the last to the first:

1. what is popped, which becomes records of the store,
2. the log, with the messages that wait until it is durable,
3. progress that depends on that, and then the offsets that hold some of it,
4. all other tables, and at the very end the store is closed.

Java: the order of initialize and shutdown in BrokerController.
"""

from __future__ import annotations

from txrocketmq.broker.journal import Journal
from txrocketmq.broker.parts import Parts
from txrocketmq.broker.work.life import Life


def all_parts(parts: Parts, journal: Journal) -> list[Life]:
    """Lists the lives of these parts."""
    sync = parts.store_services.sync
    slave, on_master = parts.slave, parts.registration.on_master
    return [
        parts.store_services.life(),
        *parts.access.lives(),
        parts.master.life(),
        *([] if slave is None else [slave.life(on_master)]),
        *([] if parts.controlled is None else [parts.controlled.life(parts.master, slave)]),
        parts.groups.life(),
        parts.topics.life(),
        parts.filters.life(parts.consumers),
        parts.modes.life(),
        parts.schedule.life(parts.topics, sync),
        parts.transaction_metrics.life(parts.config.transaction_metric_flush_interval),
        parts.pop.orders.life(),
        parts.offsets.life(parts.config),
        parts.lost_files.life(),
        parts.polling.life(parts.store.on_arrivals),
        parts.pop.life(),
        parts.pop.revive.life(),
        parts.transaction_check.life(),
        parts.timers.life(parts.topics),
        *([] if parts.timer_escape is None else [parts.timer_escape.life()]),
        parts.after_durable.life(sync, parts.later),
        parts.pop.check_points.life(),
        parts.patience.life(),
        parts.in_order.life(),
        parts.group_changes.life(),
        parts.consumers.life(),
        parts.producers.life(),
        parts.locks.life(),
        parts.stats.life(),
        parts.broadcast_offsets.life(parts.walks),
        parts.routes.life(),
        parts.registration.life(),
        *([] if parts.config_copy is None else [parts.config_copy.life()]),
        *([] if slave is None else [parts.new_topics.life()]),
        parts.acting.life(
            parts.members, parts.polling.resume_held, parts.create_new_topics, parts.store.commit
        ),
        parts.members.life(),
        parts.pre_online.life(),
        journal.life(),
    ]
