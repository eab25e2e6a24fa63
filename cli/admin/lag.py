# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq lag`: how far consumer groups have come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import click

from txrocketmq.cli import names
from txrocketmq.cli.admin.admin_command import (
    administrate,
    json_option,
    show,
)
from txrocketmq.cli.command_line import Servers, one_command, progress, run, servers_options
from txrocketmq.cli.tables import time_text
from txrocketmq.cli.timeline import at_once
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.base.errors import GroupOffline, MQClientError

PROG: Final = "txrocketmq lag"


@one_command("lag")
@click.argument("name", metavar="[GROUP]", required=False, shell_complete=names.groups)
@click.option(
    "-t", "--topic", metavar="TOPIC", shell_complete=names.topics, help="Show only this topic."
)
@servers_options
@json_option
def command(name: str | None, topic: str | None, servers: Servers, as_json: bool) -> None:
    """Show how far GROUP, or every group, is behind.

    Without GROUP, groups that have consumed nothing yet are left out.
    """

    async def of_all(admin: Admin) -> None:
        rows, none = await _all_rows(admin), "no consumer group has consumed anything yet"
        show(rows, ALL_COLUMNS, as_json=as_json, none=none, folds=FOLDS)

    async def of_one(admin: Admin) -> None:
        assert name is not None
        await show_group(admin, name, topic, as_json=as_json)

    if topic is not None and name is None:
        raise click.UsageError("--topic needs a GROUP")
    administrate(servers, of_all if name is None else of_one)


GROUP_COLUMNS: Final = {
    "topic": "TOPIC", "broker": "BROKER", "queueId": "QUEUE", "brokerOffset": "NEXT",
    "consumerOffset": "CONSUMED", "lag": "LAG", "inFlight": "IN FLIGHT",
    "lastConsumed": "LAST CONSUMED",
}  # fmt: skip
FOLDS: Final = ("lastConsumed", "model", "inFlight")
"""The columns that matter least."""
ALL_COLUMNS: Final = {
    "group": "GROUP", "consumers": "CONSUMERS", "model": "MODEL", "tps": "OUT/S", "lag": "LAG",
    "inFlight": "IN FLIGHT",
}  # fmt: skip


async def group_rows(admin: Admin, group: str, topic: str | None) -> list[dict[str, Any]]:
    """Returns the queues of a group as rows."""
    return [
        {
            "topic": each.queue.topic,
            "broker": each.queue.broker_name,
            "queueId": each.queue.queue_id,
            "brokerOffset": each.broker_offset,
            "consumerOffset": each.consumer_offset,
            "lag": each.lag,
            "inFlight": each.in_flight,
            "lastTimestamp": each.last_timestamp,
            "lastConsumed": time_text(each.last_timestamp),
        }
        for each in (await admin.progress(group, topic)).queues
    ]


async def show_group(admin: Admin, group: str, topic: str | None, *, as_json: bool) -> None:
    """Prints the queues of a group, all or those of one topic."""
    rows = await group_rows(admin, group, topic)
    none = f"group {group} has consumed nothing{f' of topic {topic}' if topic else ''} yet"
    show(rows, GROUP_COLUMNS, as_json=as_json, none=none, folds=FOLDS)


async def _all_rows(admin: Admin) -> list[dict[str, Any]]:
    known = await admin.groups()
    with progress("asking for groups", len(known)) as step:
        return await rows_of_groups(admin, known, step)


async def rows_of_groups(
    admin: Admin, known: Sequence[str], step: Callable[[int], None] = lambda _: None
) -> list[dict[str, Any]]:
    """Returns groups as rows, without those that do nothing; `step` is called after each."""

    async def ask(name: str) -> dict[str, Any] | None:
        row = await _row(admin, name)
        step(1)
        return row

    rows = await at_once([partial(ask, name) for name in known])
    return [row for row in rows if row is not None]


async def _row(admin: Admin, group: str) -> dict[str, Any] | None:
    """Returns a group as one row, or None if it has consumed nothing and nobody is connected."""
    try:
        connection = await admin.consumer_connections(group)
        consumers, model = len(connection.connection_set), connection.message_model
    except GroupOffline:
        consumers, model = 0, None
    try:
        come = await admin.progress(group)
    except MQClientError:
        if not consumers:
            return None
        raise
    if not come.queues and not consumers:
        return None
    return {
        "group": group,
        "consumers": consumers,
        "model": model,
        "tps": come.consume_tps,
        "lag": come.lag,
        "inFlight": come.in_flight,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)
