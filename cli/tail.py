# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq tail`: the messages of a topic, those that are there and those that come."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from txrocketmq.cli import session
from txrocketmq.cli.reading import (
    TIMED_OUT,
    Printer,
    Silence,
    add_reading_options,
    once_there,
)
from txrocketmq.cli.show import message_json, message_line
from txrocketmq.client.consumer.pull import PullLoop
from txrocketmq.client.instance import ClientInstance
from txrocketmq.remoting.message.tags import SQL92, SUB_ALL, TAG

PROG: Final = "txrocketmq tail"


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The flags of the command."""
    parser = argparse.ArgumentParser(
        prog=PROG,
        description="Prints the messages of a topic as they arrive, until Ctrl-C is pressed.",
        epilog="The command reads independently of all consumer groups and does not change their"
        " offsets. If the topic does not exist yet, the command waits for it.",
    )
    parser.add_argument("topic", metavar="TOPIC", help="the topic to read")
    session.add_namesrv_option(parser)
    add_reading_options(parser, "where to begin")
    parser.add_argument(
        "--sql",
        metavar="EXPR",
        help="print only messages whose properties satisfy an SQL92 expression, such as"
        " \"a > 5 AND b = 'x'\"",
    )
    options = parser.parse_args(arguments)
    if options.sql and options.tag != SUB_ALL:
        parser.error("--tag and --sql are both given: choose one")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints messages; the exit code."""
    options = parse_arguments(arguments)
    return session.run(PROG, options.namesrv, lambda client: tail(client, options), interrupted=0)


async def tail(client: ClientInstance, options: argparse.Namespace) -> int:
    """Prints messages until enough were printed, none came for too long, or it is cancelled."""
    line = message_json if options.json else message_line
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
