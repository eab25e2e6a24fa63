# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq dead-letters`: messages that a group has given up, and how to deliver them again.

After the last attempt a broker moves a message to the topic %DLQ%GROUP, where it stays until it
expires. It is delivered again by sending a copy: to the retry topic of the group, whose push
consumers read it under its own topic, or to a topic that is named.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from txrocketmq.cli import names
from txrocketmq.cli.admin.admin_command import (
    confirm,
    group_argument,
    json_option,
    operate,
    say_none,
    show,
    yes_option,
)
from txrocketmq.cli.admin.messages import Wanted, amounts, between, print_found, times
from txrocketmq.cli.admin.topic_rows import topic_rows
from txrocketmq.cli.command_line import Servers, group, run, servers_options
from txrocketmq.cli.show import body_text, heading, message_json, sent_json, sent_line
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.base.errors import NoRoute
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.producer.producer import Producer
from txrocketmq.remoting.message import properties
from txrocketmq.remoting.message.message import Message, MessageExt
from txrocketmq.remoting.message.topics import DLQ_PREFIX, RETRY_PREFIX
from txrocketmq.remoting.primitives.plain_text import plain

PROG: Final = "txrocketmq dead-letters"
PRODUCER_GROUP: Final = "txrocketmq_dead_letters"
_KEPT: Final = frozenset({properties.TAGS, properties.KEYS})
command = group("dead-letters", "List messages that groups have given up, and deliver them again.")


@command.command("list")
@click.argument("name", metavar="[GROUP]", required=False, shell_complete=names.groups)
@times("Only dead letters")
@amounts
@servers_options
@json_option
def list_letters(
    name: str | None, count: int, every: bool, servers: Servers, as_json: bool, **span: Any
) -> None:
    """List the dead letters of GROUP, or the groups that have any.

    Of each dead letter of GROUP the line begins with the time, the topic that it was sent to, and
    its id.
    """

    async def of_all(client: ClientInstance) -> None:
        rows = await letters_by_group(client)
        columns = {"group": "GROUP", "messages": "DEAD LETTERS", "lastUpdate": "LAST"}
        show(
            rows, columns, as_json=as_json, none="no group has dead letters", folds=("lastUpdate",)
        )

    async def of_one(client: ClientInstance) -> None:
        wanted = Wanted(count=count, every=every, **span)
        found = letters(client, str(name), wanted)
        line = message_json if as_json else letter_line
        printed = await print_found(found, wanted.limit, line, lambda _: "a later --from")
        if not printed:
            say_none(f"group {name} has no{wanted.such} dead letters", as_json=as_json)

    operate(servers, of_all if name is None else of_one)


@command.command("resend")
@group_argument
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Send all dead letters of the group.")
@times("Only dead letters")
@click.option(
    "--to-topic",
    metavar="TOPIC",
    shell_complete=names.topics,
    help="Send them to this topic, for all groups that consume it, and not to this group alone.",
)
@yes_option
@servers_options
@json_option
def resend(
    name: str,
    ids: Sequence[str],
    every: bool,
    to_topic: str | None,
    yes: bool,
    servers: Servers,
    as_json: bool,
    **span: Any,
) -> None:
    """Deliver dead letters of GROUP again: those with these IDs, of a time, or all.

    Only push consumers of this group receive them, under the topic to which they were sent first.
    For a group that pops or pulls, give --to-topic. Dead letters stay where they are until they
    expire, so to send them twice delivers them twice.
    """
    chosen = _Chosen(ids, Wanted(every=True, **span))
    if not (ids or every or any(span.values())):
        raise click.UsageError("say which: give IDs, --from, --to or --all")
    if ids and (every or any(span.values())):
        raise click.UsageError("give IDs, or --from, --to and --all, not both")
    which = f"{len(ids):,} dead letters" if ids else "all these dead letters"
    to = f"topic {to_topic}" if to_topic else f"group {name}"
    confirm(f"Send {which} of group {name} to {to} again?", yes=yes)

    async def work(client: ClientInstance) -> None:
        producer = Producer(client, PRODUCER_GROUP)
        count = 0
        async for message in chosen.of(client, name):
            result = await producer.send(again(message, name, to_topic))
            print(sent_json(result) if as_json else sent_line(result), flush=True)
            count += 1
        if not count and not as_json:
            say_none("there are no such dead letters", as_json=as_json)

    operate(servers, work)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The dead letters that are sent again."""

    ids: Sequence[str]
    wanted: Wanted

    async def of(self, client: ClientInstance, name: str) -> AsyncIterator[MessageExt]:
        """Yields them. Raises MessageNotFound before the first if one of the ids is unknown."""
        if not self.ids:
            async for message in letters(client, name, self.wanted):
                yield message
            return
        admin = Admin(client)
        topic = DLQ_PREFIX + name
        for message in [await admin.message(topic, each) for each in self.ids]:
            yield message


async def letters(client: ClientInstance, name: str, wanted: Wanted) -> AsyncIterator[MessageExt]:
    """Yields the dead letters of a group, the oldest first; none if it never had any.

    Raises GroupNotFound.
    """
    try:
        async for message in between(client, DLQ_PREFIX + name, wanted):
            yield message
    except NoRoute:
        await Admin(client).group_configs(name)


async def letters_by_group(client: ClientInstance) -> list[dict[str, Any]]:
    """Returns the groups that have dead letters as rows."""
    found = [each for each in await Admin(client).topics() if each.startswith(DLQ_PREFIX)]
    return [
        {
            "group": str(row["topic"]).removeprefix(DLQ_PREFIX),
            "messages": row["messages"],
            "lastUpdateTimestamp": row["lastUpdateTimestamp"],
            "lastUpdate": row["lastUpdate"],
        }
        for row in await topic_rows(client, found)
        if row.get("messages")
    ]


def origin_of(message: MessageExt) -> str:
    """Returns the topic to which a dead letter was sent first."""
    found = message.properties
    return found.get(properties.RETRY_TOPIC) or found.get(properties.DLQ_ORIGIN_TOPIC) or ""


def letter_line(message: MessageExt) -> str:
    """Returns a dead letter as a line."""
    place = f"{plain(origin_of(message)) or '-'} {plain(message.msg_id)}"
    return f"{heading(message, place)} {body_text(message.body)}"


def again(message: MessageExt, name: str, to_topic: str | None) -> Message:
    """Returns the copy that is sent: of a message of the group's retry topic, or of a new one."""
    kept = {
        key: value
        for key, value in message.properties.items()
        if key in _KEPT or key not in properties.SYSTEM_PROPERTIES
    }
    if to_topic:
        return Message(to_topic, message.body, message.flag, properties=kept)
    kept[properties.RETRY_TOPIC] = origin_of(message)
    kept[properties.ORIGIN_MESSAGE_ID] = (
        message.properties.get(properties.ORIGIN_MESSAGE_ID) or message.msg_id
    )
    return Message(RETRY_PREFIX + name, message.body, message.flag, properties=kept)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)
