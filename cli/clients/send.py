# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq send`: sends messages from the command line, a file or standard input, in order."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from txrocketmq.cli import session
from txrocketmq.cli.command_line import (
    CONTEXT,
    PATH,
    Servers,
    above_zero,
    json_option_of,
    moment,
    positive,
    run,
    servers_options,
)
from txrocketmq.cli.lines import portions
from txrocketmq.cli.show import sent_json, sent_line
from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.client.core.instance import ClientInstance
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
"""The largest size of a batch; RocketMQ recommends batches of at most 1 MiB."""
_ENTRY_BYTES: Final = 128
"""About how many bytes a message takes in a batch besides its body: lengths, unique key."""


def word(text: str) -> str:
    """The type of an option that is a tag or a key."""
    if names.NAME_VALUE_SEPARATOR in text or names.PROPERTY_SEPARATOR in text:
        raise click.BadParameter(f"{text!r} contains \\x01 or \\x02, which separate properties")
    return text


def own_property(text: str) -> tuple[str, str]:
    """The type of an option that is a property NAME=VALUE with a name that users may set."""
    name, _, value = text.partition("=")
    try:
        check_user_property(name, value)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} cannot be set as a property: {error}") from None
    return name, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """The arguments and options of the command."""

    topic: str
    bodies: tuple[str, ...]
    file: str | None
    tag: str | None
    key: tuple[str, ...]
    property: tuple[tuple[str, str], ...]
    group: str
    count: int
    batch: bool
    rate: float | None
    delay_level: int | None
    delay: float | None
    at: int | None
    transaction: str | None
    as_json: bool

    def check(self) -> None:
        """Raises UsageError for options that are valid each by itself, but not together."""
        if not self.bodies and self.file is None:
            raise click.UsageError("give a BODY, or --file")
        if STDIN in self.bodies and self.count > 1:
            raise click.UsageError("standard input can be sent only once: leave --count out")
        delays = [self.delay_level, self.delay, self.at]
        if sum(each is not None for each in delays) > 1:
            raise click.UsageError("give one of --delay-level, --delay and --at, not several")
        if self.batch and (self.transaction or self.rate or any(delays)):
            raise click.UsageError(
                "a batch has no delay, no rate and no transaction: leave --batch out"
            )


@click.command(
    "send",
    context_settings=CONTEXT,
    epilog="If BODY is -, each line of standard input is sent as a message; --file does the same"
    " with a file. Empty lines are skipped. A BODY that begins with - stands after --.",
)
@click.argument("topic", metavar="TOPIC")
@click.argument("bodies", metavar="[BODY]...", nargs=-1)
@click.option("--file", type=PATH, help="Send each line of a file as a message, after all BODYs.")
@click.option("--tag", type=word, metavar="TAG", help="The tag by which consumers filter.")
@click.option(
    "--key",
    type=word,
    multiple=True,
    metavar="KEY",
    help="A key by which the message can be found; can be repeated.",
)
@click.option(
    "--property",
    type=own_property,
    multiple=True,
    metavar="NAME=VALUE",
    help="A property of your own; can be repeated.",
)
@servers_options
@click.option(
    "--group",
    default="txrocketmq_send",
    show_default=True,
    metavar="NAME",
    help="The producer group.",
)
@click.option(
    "--count",
    type=positive,
    default="1",
    metavar="N",
    help="Send the whole list of BODYs N times.",
)
@click.option("--batch", is_flag=True, help="Send many messages in one request.")
@click.option(
    "--rate", type=above_zero, metavar="N", help="Send N messages a second at most, such as 0.5."
)
@click.option(
    "--delay-level", type=positive, metavar="N", help="Deliver after the broker's delay level N."
)
@click.option(
    "--delay",
    type=above_zero,
    metavar="SECONDS",
    help="Deliver after this time (brokers of 5.x).",
)
@click.option(
    "--at",
    type=moment(),
    metavar="TIME",
    help="Deliver at a time such as 2026-11-21T08:00:00 (brokers of 5.x).",
)
@click.option(
    "--transaction",
    type=click.Choice(["commit", "rollback"]),
    help="Send each message in a transaction, and commit it or roll it back.",
)
@json_option_of("result")
def command(servers: Servers, **given: Any) -> int:
    """Send each BODY as a message to TOPIC, in the order given.

    For each message it is printed where it was stored. Brokers create the topic unless they are
    configured not to.
    """
    options = Sending(**given)
    options.check()
    return session.run(PROG, servers.config(), lambda client: send(client, options))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)


async def send(client: ClientInstance, options: Sending) -> int:
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


def _ending(options: Sending) -> TransactionStatus:
    return TransactionStatus[(options.transaction or "").upper()]


def _in_transaction(
    client: ClientInstance, options: Sending
) -> Callable[[Message], Awaitable[SendResult]]:
    producer = TransactionProducer(client, options.group, lambda _: _ending(options))

    async def send_one(message: Message) -> SendResult:
        ended = await producer.send_in_transaction(message, lambda *_: _ending(options))
        return ended.send_result

    return send_one


class _Pace:
    """Limits how many messages are sent in a second, however long each send takes."""

    def __init__(self, client: ClientInstance, rate: float | None) -> None:
        self._clock = client.clock
        self._period_ms = 1000 / rate if rate else 0.0
        self._next_ms = float(client.clock.steady_ms())

    async def wait(self) -> None:
        """Waits until the next message may be sent."""
        if not self._period_ms:
            return
        now_ms = self._clock.steady_ms()
        if self._next_ms > now_ms:
            await self._clock.pause(self._next_ms - now_ms)
        self._next_ms = max(self._next_ms, now_ms) + self._period_ms


async def _bodies(client: ClientInstance, options: Sending) -> AsyncIterator[list[bytes]]:
    """Yields bodies in portions: those of the command line together, lines as they arrive."""
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


def _message(options: Sending, body: bytes) -> Message:
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
    """Yields the messages in batches of limited size."""
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


def _print(result: SendResult, options: Sending) -> None:
    print(sent_json(result) if options.as_json else sent_line(result), flush=True)
