# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq tail`: prints the messages of a topic, present and future ones.

What is there already is printed in the order in which it was stored if it is read apart from what
comes: with --last and with --no-follow.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import click

from txrocketmq.cli import names, session
from txrocketmq.cli.command_line import Servers, one_command, positive, run, servers_options
from txrocketmq.cli.reading import (
    TIMED_OUT,
    Printer,
    Reading,
    Silence,
    once_there,
    reading_options,
)
from txrocketmq.cli.timeline import Span, Timeline, spans_from
from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.consumer.pull import PullLoop
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.tags import SQL92, SUB_ALL, TAG

PROG: Final = "txrocketmq tail"
MOST_LAST: Final = 10_000
"""How many messages --last takes at most: so many are held in memory."""


class WantedQueue(NamedTuple):
    """A queue that is to be read: its id, and the broker if only one of several is meant."""

    broker_name: str | None
    queue_id: int


def wanted_queue(text: str) -> WantedQueue:
    """The type of an option that is a queue: ID, or BROKER/ID as it is printed."""
    match = re.fullmatch(r"(?:(.+)/)?(\d{1,9})", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a queue: write ID or BROKER/ID")
    return WantedQueue(match.group(1), int(match.group(2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tailing(Reading):
    """The arguments and options of the command."""

    sql: str | None
    queue: tuple[WantedQueue, ...]
    last: int | None
    follow: bool

    def check(self) -> None:
        """Raises UsageError for options that are valid each by itself, but not together."""
        Reading.check(self)
        if self.sql and self.tag != SUB_ALL:
            raise click.UsageError("--tag and --sql are both given: choose one")
        if self.last is not None and self.place != "last":
            raise click.UsageError("--last and --from are both given: choose one")
        if self.last is not None and self.last > MOST_LAST:
            raise click.UsageError(f"--last takes at most {MOST_LAST} messages: give --from")

    @property
    def place(self) -> Literal["first", "last"] | int:
        """Where to begin: what is not followed begins with the first message."""
        if self.start is None and not self.follow and self.last is None:
            return "first"
        return "last" if self.start is None else self.start

    def wants(self, queue: MessageQueue) -> bool:
        """Whether this queue is to be read."""
        return not self.queue or any(
            each.queue_id == queue.queue_id and each.broker_name in (None, queue.broker_name)
            for each in self.queue
        )

    @property
    def expression_type(self) -> str:
        """What kind of expression `expression` is."""
        return SQL92 if self.sql else TAG

    @property
    def expression(self) -> str:
        """What the messages are selected by."""
        return self.sql or self.tag


@one_command(
    "tail",
    epilog="The command reads independently of all consumer groups and does not change their"
    " offsets. If the topic does not exist yet, the command waits for it; if it is deleted and"
    " created again, the command goes on with the new one.",
)
@click.argument("topic", metavar="TOPIC", shell_complete=names.topics)
@click.option(
    "--last",
    type=positive,
    metavar="N",
    help="Begin with the last N messages of all queues together.",
)
@click.option(
    "--queue",
    type=wanted_queue,
    multiple=True,
    metavar="QUEUE",
    help="Print only this queue, given as ID or BROKER/ID; can be repeated.",
)
@click.option(
    "--follow/--no-follow",
    default=True,
    help="Go on with new messages (the default), or stop after those that are there.",
)
@reading_options("Where to begin", " unless --no-follow is given")
@click.option(
    "--sql",
    metavar="EXPR",
    help="Print only messages whose properties satisfy an SQL92 expression, such as"
    " \"a > 5 AND b = 'x'\".",
)
@servers_options
def command(servers: Servers, **given: Any) -> int:
    """Print the messages of TOPIC as they arrive, until Ctrl-C is pressed."""
    options = Tailing(**given)
    options.check()
    return session.run(PROG, servers.config(), lambda client: tail(client, options), interrupted=0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)


async def tail(client: ClientInstance, options: Tailing) -> int:
    """Prints messages until enough were printed, none came for too long, or it is cancelled."""
    printer = Printer(options.line, options.count, client.clock.steady_ms)
    if options.follow:
        await _follow(client, options, printer)
    else:
        await _print_present(client, options, printer)
    return TIMED_OUT if options.count and printer.shown < options.count else 0


async def _follow(client: ClientInstance, options: Tailing, printer: Printer) -> None:
    loop = PullLoop(
        client,
        options.topic,
        printer.show,
        start=options.place,
        wants=options.wants,
        expression=options.expression,
        expression_type=options.expression_type,
    )
    printer.enough = loop.stop

    async def start() -> None:
        if options.last is not None:
            spans = await _print_present(client, options, printer)
            loop.start_from = {queue: span.end for queue, span in spans.items()}
        elif options.queue:
            await _queues(client, options)  # says that there is no such queue
        await loop.start()

    def on_missing() -> None:
        if loop.start_from == "last":
            loop.start_from = "first"  # all that the topic will have came after this moment

    silence = Silence(client.clock, options.timeout, printer, loop.stop)
    try:
        await once_there(client, PROG, start, lambda: silence.is_over, on_missing)
        await loop.done
    finally:
        silence.end()
        loop.stop()


async def _queues(client: ClientInstance, options: Tailing) -> list[MessageQueue]:
    """Returns the queues to read. Raises NoRoute, and MQClientError if the topic lacks them."""
    every = await client.subscribe_queues(options.topic)
    queues = list(filter(options.wants, every))
    if not queues:
        known = ", ".join(f"{each.broker_name}/{each.queue_id}" for each in every[:16])
        raise MQClientError(f"topic {options.topic} does not have this queue; it has {known}")
    return queues


async def _print_present(
    client: ClientInstance, options: Tailing, printer: Printer
) -> dict[MessageQueue, Span]:
    """Prints what is there, in the order in which it was stored; returns what was read."""
    queues = await _queues(client, options)
    spans = await spans_from(client, queues, options.place, options.last)
    timeline = Timeline(
        client,
        spans,
        expression=options.expression,
        expression_type=options.expression_type,
    )
    if options.last is not None:
        newest: deque[MessageExt] = deque(maxlen=options.last)
        async for message in timeline.messages():
            newest.append(message)
        printer.show_all(newest)
        return spans
    async for message in timeline.messages():
        printer.show_all([message])
        if printer.is_enough:
            break
    return spans
