# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq messages`: find messages, see what became of them, and have them consumed again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from txrocketmq.cli.admin.admin_command import administrate, json_option, show
from txrocketmq.cli.command_line import Servers, group, moment, run, servers_options
from txrocketmq.cli.show import message_json, message_line, sent_json, sent_line
from txrocketmq.cli.tables import time_text
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.base.config import TRACE_TOPIC
from txrocketmq.client.core.trace import TraceRecord
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.tags import SUB_ALL

PROG: Final = "txrocketmq messages"
command = group("messages", "Find messages, see what became of them, and have them consumed again.")


@command.command("view")
@click.argument("topic")
@click.argument("msg_id", metavar="ID")
@click.option(
    "--groups",
    "with_groups",
    is_flag=True,
    help="Show for each group whether it has consumed the message.",
)
@servers_options
@json_option
def view(topic: str, msg_id: str, with_groups: bool, servers: Servers, as_json: bool) -> None:
    """Print the message of TOPIC with an ID.

    The ID is the one that its producer gave it, or the one that says where it is stored.
    """

    async def work(admin: Admin) -> None:
        message = await admin.message(topic, msg_id)
        _print([message], as_json=as_json)
        if with_groups:
            rows = [
                {"group": each.group, "track": each.track.value, "detail": each.detail}
                for each in await admin.message_tracks(message)
            ]
            columns = {"group": "GROUP", "track": "STATE", "detail": "WHY"}
            show(rows, columns, as_json=as_json)

    administrate(servers, work)


@command.command("query")
@click.argument("topic")
@click.option("-k", "--key", help="Print only messages that were sent with this key.")
@click.option(
    "--from",
    "begin_ms",
    type=moment(),
    metavar="TIME",
    help="Print only messages that were stored at this time or later.",
)
@click.option(
    "--to",
    "end_ms",
    type=moment(),
    metavar="TIME",
    help="Print only messages that were stored at this time or earlier.",
)
@click.option(
    "--tag", metavar="EXPR", help="Print only messages with these tags, such as 'TagA || TagB'."
)
@click.option(
    "--count",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    metavar="N",
    help="Print at most this many messages.",
)
@servers_options
@json_option
def find(
    topic: str,
    key: str | None,
    begin_ms: int | None,
    end_ms: int | None,
    tag: str | None,
    count: int,
    servers: Servers,
    as_json: bool,
) -> None:
    """Print messages of TOPIC, by key or by the time of storing.

    A TIME is written as for txrocketmq tail --from.
    """
    if key is None and begin_ms is None:
        raise click.UsageError("give --key or --from")
    if key is not None and tag is not None:
        raise click.UsageError("--key and --tag are both given: choose one")

    async def work(admin: Admin) -> None:
        if key is not None:
            found = await admin.messages_by_key(
                topic, key, begin_ms=begin_ms or 0, end_ms=end_ms, max_messages=count
            )
        else:
            found = await admin.messages_between(
                topic, begin_ms or 0, end_ms, expression=tag or SUB_ALL, max_messages=count
            )
        _print(found, as_json=as_json)

    administrate(servers, work)


@command.command("trace")
@click.argument("msg_id", metavar="ID")
@click.option("--trace-topic", default=TRACE_TOPIC, show_default=True)
@servers_options
@json_option
def trace(msg_id: str, trace_topic: str, servers: Servers, as_json: bool) -> None:
    """Print the trace of the message with this ID.

    The ID is the one that its producer gave it. Clients write traces only if they are configured
    to.
    """

    async def work(admin: Admin) -> None:
        records = await admin.message_trace(msg_id, trace_topic=trace_topic)
        columns = {
            "what": "WHAT", "time": "TIME", "group": "GROUP", "success": "SUCCESS",
            "costMs": "MS",
        }  # fmt: skip
        show([_record_row(each) for each in records], columns, as_json=as_json)

    administrate(servers, work)


@command.command("resend")
@click.argument("topic")
@click.argument("msg_id", metavar="ID")
@click.option("--to", "to_topic", metavar="TOPIC", help="Send it to this topic instead.")
@servers_options
@json_option
def resend(topic: str, msg_id: str, to_topic: str | None, servers: Servers, as_json: bool) -> None:
    """Send the message of TOPIC with this ID again.

    All groups receive it once more.
    """

    async def work(admin: Admin) -> None:
        result = await admin.resend(topic, msg_id, to_topic=to_topic)
        print(sent_json(result) if as_json else sent_line(result), flush=True)

    administrate(servers, work)


@command.command("deliver")
@click.argument("topic")
@click.argument("msg_id", metavar="ID")
@click.argument("name", metavar="GROUP")
@click.argument("client_id", metavar="CLIENT")
@servers_options
@json_option
def deliver(
    topic: str, msg_id: str, name: str, client_id: str, servers: Servers, as_json: bool
) -> None:
    """Have one consumer of GROUP consume a message now.

    CLIENT is an ID that txrocketmq groups consumers lists.

    The offsets of the group stay as they are.
    """

    async def work(admin: Admin) -> None:
        result = await admin.consume_directly(name, client_id, topic, msg_id)
        row = {"result": result.consume_result, "ms": result.spent_time_mills,
               "remark": result.remark}  # fmt: skip
        show([row], {"result": "RESULT", "ms": "MS", "remark": "REMARK"}, as_json=as_json)

    administrate(servers, work)


def _print(messages: Sequence[MessageExt], *, as_json: bool) -> None:
    line = message_json if as_json else message_line
    if messages:
        print("\n".join(map(line, messages)), flush=True)


def _record_row(record: TraceRecord) -> dict[str, Any]:
    timestamp_ms = getattr(record, "timestamp_ms", 0)
    return {
        "what": record.word,
        "timestamp": timestamp_ms,
        "time": time_text(timestamp_ms),
        "group": getattr(record, "group", None),
        "success": getattr(record, "success", None),
        "costMs": getattr(record, "cost_ms", None),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)
