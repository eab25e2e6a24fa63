# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq offsets`: show, reset, set and clone the offsets of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import click

from txrocketmq.cli import names
from txrocketmq.cli.admin.admin_command import (
    administrate,
    broker_argument,
    confirm,
    group_argument,
    json_option,
    show,
    topic_argument,
    yes_option,
)
from txrocketmq.cli.admin.lag import show_group
from txrocketmq.cli.command_line import Servers, group, moment, run, servers_options, whole
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.admin.offsets import FIRST, LAST
from txrocketmq.remoting.message.message import MessageQueue

PROG: Final = "txrocketmq offsets"
command = group("offsets", "Show, reset, set and clone the offsets of consumer groups.")


@command.command("show")
@group_argument
@click.option(
    "-t", "--topic", metavar="TOPIC", shell_complete=names.topics, help="Show only this topic."
)
@servers_options
@json_option
def show_offsets(name: str, topic: str | None, servers: Servers, as_json: bool) -> None:
    """Show the offsets of GROUP in each queue.

    The command txrocketmq lag GROUP shows the same.
    """

    async def work(admin: Admin) -> None:
        await show_group(admin, name, topic, as_json=as_json)

    administrate(servers, work)


@command.command("reset")
@group_argument
@topic_argument
@click.option(
    "--to",
    type=moment(FIRST, LAST),
    required=True,
    metavar="WHERE",
    help="Where the group continues: first, last, or a time such as 2026-11-21T08:00:00,"
    " 20261121080000 or milliseconds since the epoch.",
)
@click.option("--back-only", is_flag=True, help="Do not move any queue forward.")
@yes_option
@servers_options
@json_option
def reset(
    name: str,
    topic: str,
    to: str | int,
    back_only: bool,
    yes: bool,
    servers: Servers,
    as_json: bool,
) -> None:
    """Move GROUP back or forward in TOPIC.

    Consumers may be connected. Messages before the new offsets count as consumed; messages behind
    them are consumed again.
    """
    confirm(f"Reset the offsets of group {name} in topic {topic} to {to}?", yes=yes)

    async def work(admin: Admin) -> None:
        done = await admin.reset_offsets(name, topic, to, force=not back_only)
        _show(done, as_json=as_json)

    administrate(servers, work)


@command.command("set")
@group_argument
@topic_argument
@broker_argument
@click.argument("queue_id", metavar="QUEUE", type=whole(0))
@click.argument("offset", type=whole(0))
@servers_options
@json_option
def set_offset(
    name: str, topic: str, broker: str, queue_id: int, offset: int, servers: Servers, as_json: bool
) -> None:
    """Set the offset of GROUP in one queue of TOPIC.

    No consumer of the group may be connected.
    """

    async def work(admin: Admin) -> None:
        queue = MessageQueue(topic, broker, queue_id)
        await admin.set_offset(name, queue, offset)
        _show({queue: offset}, as_json=as_json)

    administrate(servers, work)


@command.command("clone")
@click.argument("source", metavar="FROM", shell_complete=names.groups)
@group_argument
@click.option(
    "-t",
    "--topic",
    metavar="TOPIC",
    shell_complete=names.topics,
    help="Clone only the offsets of this topic.",
)
@servers_options
@json_option
def clone(source: str, name: str, topic: str | None, servers: Servers, as_json: bool) -> None:
    """Give GROUP the offsets of the group FROM.

    No consumer of GROUP may be connected.
    """

    async def work(admin: Admin) -> None:
        _show(await admin.clone_offsets(source, name, topic), as_json=as_json)

    administrate(servers, work)


def _show(offsets: Mapping[MessageQueue, int], *, as_json: bool) -> None:
    rows = [
        {
            "topic": queue.topic,
            "broker": queue.broker_name,
            "queueId": queue.queue_id,
            "offset": offset,
        }
        for queue, offset in sorted(offsets.items())
    ]
    columns = {"topic": "TOPIC", "broker": "BROKER", "queueId": "QUEUE", "offset": "OFFSET"}
    show(rows, columns, as_json=as_json, none="no offset was changed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)
