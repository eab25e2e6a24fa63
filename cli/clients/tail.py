# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq tail`: prints the messages of a topic, present and future ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from txrocketmq.cli import session
from txrocketmq.cli.command_line import CONTEXT, Servers, run, servers_options
from txrocketmq.cli.reading import (
    TIMED_OUT,
    Printer,
    Reading,
    Silence,
    once_there,
    reading_options,
)
from txrocketmq.cli.show import message_json, message_line
from txrocketmq.client.consumer.pull import PullLoop
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.message.tags import SQL92, SUB_ALL, TAG

PROG: Final = "txrocketmq tail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tailing(Reading):
    """The arguments and options of the command."""

    sql: str | None


@click.command(
    "tail",
    context_settings=CONTEXT,
    epilog="The command reads independently of all consumer groups and does not change their"
    " offsets. If the topic does not exist yet, the command waits for it.",
)
@click.argument("topic", metavar="TOPIC")
@servers_options
@reading_options("Where to begin")
@click.option(
    "--sql",
    metavar="EXPR",
    help="Print only messages whose properties satisfy an SQL92 expression, such as"
    " \"a > 5 AND b = 'x'\".",
)
def command(servers: Servers, **given: Any) -> int:
    """Print the messages of TOPIC as they arrive, until Ctrl-C is pressed."""
    options = Tailing(**given)
    if options.sql and options.tag != SUB_ALL:
        raise click.UsageError("--tag and --sql are both given: choose one")
    return session.run(PROG, servers.config(), lambda client: tail(client, options), interrupted=0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)


async def tail(client: ClientInstance, options: Tailing) -> int:
    """Prints messages until enough were printed, none came for too long, or it is cancelled."""
    line = message_json if options.as_json else message_line
    printer = Printer(line, options.count, client.clock.steady_ms)
    loop = PullLoop(
        client,
        options.topic,
        printer.show,
        start=options.start,
        expression=options.sql or options.tag,
        expression_type=SQL92 if options.sql else TAG,
    )
    printer.enough = loop.stop

    def on_missing() -> None:
        if loop.start_from == "last":
            loop.start_from = "first"  # all that the topic will have came after this moment

    silence = Silence(client.clock, options.timeout, printer, loop.stop)
    try:
        await once_there(client, PROG, loop.start, lambda: silence.is_over, on_missing)
        await loop.done
    finally:
        silence.end()
        loop.stop()
    return TIMED_OUT if options.count and printer.shown < options.count else 0
