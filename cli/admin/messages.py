# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq messages`: find messages, see what became of them, and have them consumed again."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import click

from txrocketmq.cli import names
from txrocketmq.cli.admin.admin_command import (
    administrate,
    group_argument,
    json_option,
    operate,
    say_none,
    show,
    topic_argument,
)
from txrocketmq.cli.command_line import Servers, group, moment, positive, run, servers_options
from txrocketmq.cli.show import message_json, message_line, place_text, sent_json, sent_line
from txrocketmq.cli.tables import time_text
from txrocketmq.cli.timeline import Span, Timeline, queue_of, spans_from
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.base.config import TRACE_TOPIC
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.core.trace import TraceRecord
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.tags import SUB_ALL

F = TypeVar("F", bound=Callable[..., Any])
PROG: Final = "txrocketmq messages"
PAGE: Final = 64
"""How many messages are printed unless another number is given, and found by key at once: brokers
give no more in one answer."""
MOST_BY_KEY: Final = 10_000
"""How many messages with one key are held in memory."""
_PAGES_IN_VAIN: Final = 2
_SECOND_MS: Final = 1_000
command = group("messages", "Find messages, see what became of them, and have them consumed again.")


class Place(NamedTuple):
    """Where a message is."""

    broker_name: str
    queue_id: int
    offset: int


def place(text: str) -> Place:
    """The type of an option that is the place of a message."""
    match = re.fullmatch(r"(.+)/(\d{1,9})@(\d{1,18})", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not BROKER/QUEUE@OFFSET")
    return Place(match.group(1), int(match.group(2)), int(match.group(3)))


def times(only: str) -> Callable[[F], F]:
    """The options --from and --to, for a sentence that begins with "Print only messages"."""

    def add(function: F) -> F:
        for option, name, side in (("--to", "end_ms", "earlier"), ("--from", "begin_ms", "later")):
            how = f"{only} that were stored at this time or {side}."
            function = click.option(option, name, type=moment(), metavar="TIME", help=how)(function)
        return function

    return add


def amounts(function: F) -> F:
    """The options --count and --all."""
    how = f"Stop after N messages, and say so if there are more (default: {PAGE})."
    count = click.option("--count", type=positive, default=str(PAGE), metavar="N", help=how)
    every = click.option(
        "--all", "every", is_flag=True, help="Do not stop before the last message."
    )
    return count(every(function))


@command.command("view")
@topic_argument
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
            none = f"no consumer group has topic {topic}"
            show(rows, columns, as_json=as_json, none=none)

    administrate(servers, work)


@command.command("query")
@topic_argument
@click.option(
    "-k", "--key", metavar="KEY", help="Print only messages that were sent with this key."
)
@times("Print only messages")
@click.option(
    "--tag", metavar="EXPR", help="Print only messages with these tags, such as 'TagA || TagB'."
)
@amounts
@click.option(
    "--after",
    type=place,
    metavar="PLACE",
    help="Continue after the message at this place, written as it is printed: BROKER/QUEUE@OFFSET.",
)
@servers_options
@json_option
def find(topic: str, servers: Servers, as_json: bool, **given: Any) -> None:
    """Print messages of TOPIC, by key or by the time of storing, the oldest first.

    A TIME is written as for txrocketmq tail --from.
    """
    wanted = Wanted(**given)
    wanted.check()

    async def work(client: ClientInstance) -> None:
        if wanted.key is not None:
            messages, has_more = await by_key(Admin(client), topic, wanted)
            _print(messages, as_json=as_json)
            if not messages:
                say_none(f"topic {topic} has no message with this key", as_json=as_json)
            if has_more:
                say_more(len(messages), "a greater --count or an earlier --to")
        else:
            line = message_json if as_json else message_line
            found = between(client, topic, wanted)
            printed = await print_found(
                found, wanted.limit, line, lambda last: f"--after {place_text(last)}"
            )
            if not printed:
                say_none(f"topic {topic} has no{wanted.such} messages", as_json=as_json)

    operate(servers, work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which messages of a topic are to be found."""

    key: str | None = None
    begin_ms: int | None = None
    end_ms: int | None = None
    tag: str | None = None
    count: int = PAGE
    every: bool = False
    after: Place | None = None

    def check(self) -> None:
        """Raises UsageError for options that are valid each by itself, but not together."""
        if self.key is None and self.begin_ms is None and self.after is None:
            raise click.UsageError("give --key or --from")
        if self.key is not None and self.tag is not None:
            raise click.UsageError("--key and --tag are both given: choose one")
        if self.key is not None and self.after is not None:
            raise click.UsageError("--after is for messages by time: with --key, give --count")

    @property
    def such(self) -> str:
        """The word before a noun for those that are wanted, if not all of the topic are."""
        limits = (self.begin_ms, self.end_ms, self.tag, self.after)
        return " such" if any(limits) else ""

    @property
    def limit(self) -> int | None:
        """How many messages are printed at most."""
        return None if self.every else self.count


async def between(client: ClientInstance, topic: str, wanted: Wanted) -> AsyncIterator[MessageExt]:
    """Yields messages by the time of storing. Raises MessageNotFound if none is at --after."""
    queues = await client.subscribe_queues(topic)
    begin_ms, last = wanted.begin_ms or 0, None
    if wanted.after is not None:
        queue = MessageQueue(topic, wanted.after.broker_name, wanted.after.queue_id)
        last = await Admin(client).message_at(queue, wanted.after.offset)
        begin_ms = max(begin_ms, last.store_timestamp)
    spans = await spans_from(client, queues, begin_ms)
    if last is not None:
        before = last.store_timestamp, queue_of(last)
        spans[before[1]] = Span(last.queue_offset + 1, spans[before[1]].end)

    def wants(message: MessageExt) -> bool:
        if last is not None and (queue := queue_of(message)) != before[1]:
            return (message.store_timestamp, queue) > before
        return message.store_timestamp >= begin_ms

    end_ms = wanted.end_ms
    timeline = Timeline(
        client,
        spans,
        expression=wanted.tag or SUB_ALL,
        wants=wants,
        ends_at=lambda message: end_ms is not None and message.store_timestamp > end_ms,
    )
    async for message in timeline.messages():
        yield message


async def by_key(admin: Admin, topic: str, wanted: Wanted) -> tuple[list[MessageExt], bool]:
    """Returns the newest messages with a key, the oldest first, and whether there are more.

    Brokers give the newest of a time, so many at once as they like. The next page has what is older
    than the oldest of these; since their index has times in seconds only, some come twice.
    """
    most = MOST_BY_KEY if wanted.limit is None else min(wanted.limit, MOST_BY_KEY)
    found: dict[str, MessageExt] = {}
    end_ms = wanted.end_ms
    in_vain = 0
    while len(found) <= most and in_vain < _PAGES_IN_VAIN:
        page = await admin.messages_by_key(
            topic, wanted.key or "", begin_ms=wanted.begin_ms or 0, end_ms=end_ms, max_messages=PAGE
        )
        if not page:
            break
        known = len(found)
        found.update((each.offset_msg_id, each) for each in page)
        in_vain = in_vain + 1 if len(found) == known else 0
        end_ms = page[0].store_timestamp - (_SECOND_MS if in_vain else 0)
    messages = sorted(found.values(), key=lambda each: each.store_timestamp)
    return messages[-most:], len(messages) > most


async def print_found(
    found: AsyncIterator[MessageExt],
    limit: int | None,
    line: Callable[[MessageExt], str],
    how: Callable[[MessageExt], str],
) -> int:
    """Prints messages up to the limit, and says how to continue if there are more.

    Returns how many were printed.
    """
    last: MessageExt | None = None
    count = 0
    async for message in found:
        if last is not None and count == limit:
            sys.stdout.flush()
            say_more(count, how(last))
            return count
        print(line(message))
        last = message
        count += 1
    sys.stdout.flush()
    return count


def say_more(count: int, how: str) -> None:
    """Says on standard error that there are more messages than were printed."""
    prog = click.get_current_context().command_path
    print(
        f"{prog}: stopped after {count:,} messages, and there are more: continue with {how}, or"
        " give --all",
        file=sys.stderr,
    )


@command.command("trace")
@click.argument("msg_id", metavar="ID")
@click.option(
    "--trace-topic",
    default=TRACE_TOPIC,
    metavar="TOPIC",
    shell_complete=names.topics,
    help=f"The topic to which clients write traces (default: {TRACE_TOPIC}).",
)
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
        none = f"topic {trace_topic} has no trace of this message"
        show([_record_row(each) for each in records], columns, as_json=as_json, none=none)

    administrate(servers, work)


@command.command("resend")
@topic_argument
@click.argument("msg_id", metavar="ID")
@click.option(
    "--to",
    "to_topic",
    metavar="TOPIC",
    shell_complete=names.topics,
    help="Send it to this topic instead.",
)
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
@topic_argument
@click.argument("msg_id", metavar="ID")
@group_argument
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
        columns = {"result": "RESULT", "ms": "MS", "remark": "REMARK"}
        show([row], columns, as_json=as_json, none="there was no answer")

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
