# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq send`: messages from the command line or standard input, in order."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from txrocketmq.cli import session
from txrocketmq.cli.lines import portions
from txrocketmq.cli.reading import parse_start
from txrocketmq.cli.show import sent_json, sent_line
from txrocketmq.client.errors import MessageIllegal
from txrocketmq.client.instance import ClientInstance
from txrocketmq.client.producer.new_message import new_message
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.send_result import SendResult, TransactionStatus
from txrocketmq.client.producer.transaction import TransactionProducer
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.message.properties import check_user_property

PROG: Final = "txrocketmq send"
STDIN: Final = "-"
BATCH_MESSAGES: Final = 1024
BATCH_BYTES: Final = 1024 * 1024
"""Bounds of a batch; RocketMQ recommends batches of at most 1 MiB."""
_ENTRY_BYTES: Final = 128
"""About what a message costs in a batch beside its body: lengths, unique key."""


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The flags of the command."""
    parser = argparse.ArgumentParser(
        prog=PROG,
        description="Sends each BODY as a message, in the order given, and prints where it was"
        " stored.",
        epilog="If BODY is -, each line of standard input is sent as a message; --file does the"
        " same with a file. Empty lines are skipped.",
    )
    parser.add_argument(
        "topic",
        metavar="TOPIC",
        help="the topic; brokers create it unless they are configured not to",
    )
    parser.add_argument(
        "bodies",
        metavar="BODY",
        nargs="*",
        help="the text to send, or - for the lines of standard input",
    )
    parser.add_argument(
        "--file", metavar="PATH", help="send each line of a file as a message, after all BODYs"
    )
    parser.add_argument("--tag", type=_word, help="the tag by which consumers filter")
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        type=_word,
        help="a key by which the message can be found; can be repeated",
    )
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        type=_property,
        help="a property of your own; can be repeated",
    )
    session.add_namesrv_option(parser)
    parser.add_argument(
        "--group", default="txrocketmq_send", help="the producer group (default: %(default)s)"
    )
    parser.add_argument(
        "--count", type=_count, default=1, metavar="N", help="send the whole list of bodies N times"
    )
    parser.add_argument("--batch", action="store_true", help="send many messages in one request")
    _add_ways(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print each result as a JSON object on a line of its own",
    )
    options = parser.parse_intermixed_args(arguments)  # options may stand before a BODY
    _check_together(parser, options)
    return options


def _check_together(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Options that each are right, and not together."""
    if not options.bodies and options.file is None:
        parser.error("give a BODY, or --file")
    if STDIN in options.bodies and options.count > 1:
        parser.error("standard input can be sent only once: leave --count out")
    delays = [options.delay_level, options.delay, options.at]
    if sum(each is not None for each in delays) > 1:
        parser.error("give one of --delay-level, --delay and --at, not several")
    if options.batch and (options.transaction or options.rate or any(delays)):
        parser.error("a batch has no delay, no rate and no transaction: leave --batch out")


def _add_ways(parser: argparse.ArgumentParser) -> None:
    """When and how messages are sent."""
    parser.add_argument(
        "--rate", type=_rate, metavar="N", help="send N messages a second at most, such as 0.5"
    )
    parser.add_argument(
        "--delay-level", type=_count, metavar="N", help="deliver after the broker's delay level N"
    )
    parser.add_argument(
        "--delay", type=_rate, metavar="SECONDS", help="deliver after this time (brokers of 5.x)"
    )
    parser.add_argument(
        "--at",
        type=_time,
        metavar="TIME",
        help="deliver at a time such as 2026-11-21T08:00:00 (brokers of 5.x)",
    )
    parser.add_argument(
        "--transaction",
        choices=["commit", "rollback"],
        help="send each message in a transaction, and commit it or roll it back",
    )


def _rate(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def _time(text: str) -> int:
    start = parse_start(text)
    if isinstance(start, str):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2026-11-21T08:00:00")
    return start


def _word(text: str) -> str:
    if names.NAME_VALUE_SEPARATOR in text or names.PROPERTY_SEPARATOR in text:
        raise argparse.ArgumentTypeError(
            f"{text!r} contains \\x01 or \\x02, which separate properties"
        )
    return text


def _property(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    try:
        check_user_property(name, value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be set as a property: {error}") from None
    return name, value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Sends; the exit code."""
    options = parse_arguments(arguments)
    return session.run(PROG, options.namesrv, lambda client: send(client, options))


async def send(client: ClientInstance, options: argparse.Namespace) -> int:
    """Sends all bodies and prints the results."""
    producer = Producer(client, options.group)
    send_one = _in_transaction(client, options) if options.transaction else producer.send
    pace = _Pace(client, options.rate)
    async for bodies in _bodies(client, options):
        messages = [_message(options, body) for body in bodies]
        if options.batch:
            for batch in batches(messages):
                _print(await producer.send_batch(batch), options)
        else:
            for message in messages:
                await pace.wait()
                _print(await send_one(message), options)
    return 0


def _ending(options: argparse.Namespace) -> TransactionStatus:
    return TransactionStatus[options.transaction.upper()]


def _in_transaction(
    client: ClientInstance, options: argparse.Namespace
) -> Callable[[Message], Awaitable[SendResult]]:
    producer = TransactionProducer(client, options.group, lambda _: _ending(options))

    async def send_one(message: Message) -> SendResult:
        ended = await producer.send_in_transaction(message, lambda *_: _ending(options))
        return ended.send_result

    return send_one


class _Pace:
    """Waits so that there are so many messages a second at most, however long each send takes."""

    def __init__(self, client: ClientInstance, rate: float | None) -> None:
        self._clock = client.clock
        self._period_ms = 1000 / rate if rate else 0.0
        self._next_ms = float(client.clock.steady_ms())

    async def wait(self) -> None:
        """Until the next message may leave."""
        if not self._period_ms:
            return
        now_ms = self._clock.steady_ms()
        if self._next_ms > now_ms:
            await self._clock.pause(self._next_ms - now_ms)
        self._next_ms = max(self._next_ms, now_ms) + self._period_ms


async def _bodies(
    client: ClientInstance, options: argparse.Namespace
) -> AsyncIterator[list[bytes]]:
    """Bodies in portions: those of the command line together, lines as they come."""
    waiting: list[bytes] = []
    for _ in range(options.count):
        for body in options.bodies:
            if body != STDIN:
                waiting.append(body.encode("utf-8", "surrogateescape"))
                if len(waiting) < BATCH_MESSAGES:
                    continue
            if waiting:
                yield waiting
            waiting = []
            if body == STDIN:
                async for lines in portions(client.clock.reactor, sys.stdin.fileno()):
                    yield lines
        if options.file is not None:
            if waiting:
                yield waiting
            waiting = []
            with Path(options.file).open("rb") as file:  # noqa: ASYNC230 - a command of its own
                async for lines in portions(client.clock.reactor, file.fileno()):
                    yield lines
    if waiting:
        yield waiting


def _message(options: argparse.Namespace, body: bytes) -> Message:
    message = new_message(
        options.topic,
        body,
        tags=options.tag or None,
        keys=options.key,
        properties=dict(options.property),
        delay_level=options.delay_level,
        delay_ms=None if options.delay is None else round(options.delay * 1000),
        deliver_at_ms=options.at,
    )
    if not body:
        raise MessageIllegal(
            "the message is empty: RocketMQ does not accept messages without a body"
        )
    return message


def batches(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """The messages in batches of bounded size."""
    batch: list[Message] = []
    size_bytes = 0
    for message in messages:
        each_bytes = len(message.body) + _ENTRY_BYTES
        if batch and (len(batch) == BATCH_MESSAGES or size_bytes + each_bytes > BATCH_BYTES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(message)
        size_bytes += each_bytes
    if batch:
        yield batch


def _print(result: SendResult, options: argparse.Namespace) -> None:
    print(sent_json(result) if options.json else sent_line(result), flush=True)
