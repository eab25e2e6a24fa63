# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq send`: sends messages from the command line, a file or standard input, in order."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from txrocketmq.cli import names as known
from txrocketmq.cli import session
from txrocketmq.cli.clients.json_line import parts_of_json
from txrocketmq.cli.clients.lines import MAX_LINE_BYTES, portions
from txrocketmq.cli.command_line import (
    PATH,
    Servers,
    above_zero,
    json_option_of,
    moment,
    one_command,
    pair,
    positive,
    run,
    servers_options,
)
from txrocketmq.cli.line_format import FormatReader, Parts
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
GROUP: Final = "txrocketmq_send"
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
    name, value = pair(text)
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
    body_file: tuple[str, ...]
    file: str | None
    form: FormatReader | None
    json_lines: bool
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

    def reader(self) -> Callable[[bytes], Parts]:
        """Returns what reads a line of the input."""
        return parts_of_json if self.json_lines else self.form or Parts

    def check(self) -> None:
        """Raises UsageError for options that are valid each by itself, but not together."""
        has_lines = self.file is not None or STDIN in self.bodies
        if not self.bodies and not self.body_file and not has_lines:
            raise click.UsageError("give a BODY, - for standard input, --file or --body-file")
        if self.json_lines and self.form is not None:
            raise click.UsageError("--json-lines and --format are both given: choose one")
        if (self.json_lines or self.form is not None) and not has_lines:
            option = "--json-lines" if self.json_lines else "--format"
            raise click.UsageError(f"{option} is for lines of input: give - or --file")
        if STDIN in self.bodies and self.count > 1:
            raise click.UsageError("standard input can be sent only once: leave --count out")
        for path in (*self.body_file, *((self.file,) if self.file is not None else ())):
            _check_readable(path)
        delays = [self.delay_level, self.delay, self.at]
        if sum(each is not None for each in delays) > 1:
            raise click.UsageError("give one of --delay-level, --delay and --at, not several")
        if self.batch and (self.transaction or self.rate or any(delays)):
            raise click.UsageError(
                "a batch has no delay, no rate and no transaction: leave --batch out"
            )


def _check_readable(path: str) -> None:
    """Refuses a file that cannot be read, before anything is sent."""
    try:
        Path(path).stat()
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path} cannot be read: {_why(error)}") from None
    if Path(path).is_dir():
        raise click.UsageError(f"{path} cannot be read: it is a folder")
    if not os.access(path, os.R_OK):
        raise click.UsageError(f"{path} cannot be read: {os.strerror(errno.EACCES)}")


def _why(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


def reading(text: str) -> FormatReader:
    """The type of an option that is the format of lines."""
    try:
        return FormatReader(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not a format of lines such as '%k: %s': {error}"
        ) from None


@one_command(
    "send",
    epilog="If BODY is -, each line of standard input is sent as a message; --file does the same"
    ' with a file. Empty lines are skipped. Put -- before a BODY that begins with "-".',
)
@click.argument("topic", metavar="TOPIC", shell_complete=known.topics)
@click.argument("bodies", metavar="[BODY]...", nargs=-1)
@click.option(
    "--body-file",
    type=PATH,
    multiple=True,
    metavar="FILE",
    help="Send the whole content of a file as one message, after all BODYs; can be repeated.",
)
@click.option(
    "--file",
    type=PATH,
    metavar="FILE",
    help="Send each line of a file as a message, after all others.",
)
@click.option(
    "-f",
    "--format",
    "form",
    type=reading,
    metavar="FORMAT",
    help="Read each line in this format, such as '%k: %s': %s body, %k keys, %g tag, %h properties"
    " NAME=VALUE,..., with any text in between.",
)
@click.option(
    "--json-lines",
    is_flag=True,
    help="Each line is a message as a JSON object, as 'txrocketmq tail --json' prints it. Its"
    " body, tag, keys, properties and flag are sent.",
)
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
@click.option(
    "--group",
    default=GROUP,
    metavar="NAME",
    help=f"The producer group (default: {GROUP}).",
)
@click.option(
    "--count",
    type=positive,
    default="1",
    metavar="N",
    help="Send the whole list of messages N times (default: 1).",
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
@servers_options
def command(servers: Servers, **given: Any) -> int:
    """Send each BODY as a message to TOPIC, in the order given.

    Print where each message was stored. Brokers create the topic unless they are configured not to.
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
    async for portion in _messages(client, options):
        if options.batch:
            for batch in batches(portion):
                _print(await producer.send_batch(batch), options)
        else:
            for message in portion:
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


async def _messages(client: ClientInstance, options: Sending) -> AsyncIterator[list[Message]]:
    """Yields messages in portions: those of the command line together, lines as they arrive."""
    lines = _Lines(client, options)
    waiting: list[Message] = []
    for _ in range(options.count):
        for body in _given(options):
            if body is not None:
                waiting.append(_message(options, Parts(body)))
                if len(waiting) < BATCH_MESSAGES:
                    continue
            if waiting:
                yield waiting
            waiting = []
            if body is None:
                async for messages in lines.of(sys.stdin.fileno()):
                    yield messages
        if options.file is not None:
            if waiting:
                yield waiting
            waiting = []
            with Path(options.file).open("rb") as file:  # noqa: ASYNC230 - a command of its own
                async for messages in lines.of(file.fileno()):
                    yield messages
    if waiting:
        yield waiting


def _given(options: Sending) -> Iterator[bytes | None]:
    """Yields the bodies of the command line and the whole files, and None for standard input.

    Raises OSError, and MessageIllegal for a file that is too large for a message.
    """
    for body in options.bodies:
        yield None if body == STDIN else body.encode("utf-8", "surrogateescape")
    for path in options.body_file:
        with Path(path).open("rb") as file:
            body_bytes = file.read(MAX_LINE_BYTES + 1)
        if len(body_bytes) > MAX_LINE_BYTES:
            raise MessageIllegal(
                f"{path} is larger than {MAX_LINE_BYTES} bytes: a message cannot be so large"
            )
        yield body_bytes


class _Lines:
    """Reads lines of the input as messages; it counts them to name one that is wrong."""

    def __init__(self, client: ClientInstance, options: Sending) -> None:
        self._reactor = client.clock.reactor
        self._options = options
        self._read = options.reader()
        self._count = 0
        self._warns = self._read is Parts

    async def of(self, descriptor: int) -> AsyncIterator[list[Message]]:
        """Yields portions of messages. Raises MessageIllegal after those before a wrong line."""
        async for lines in portions(self._reactor, descriptor):
            messages: list[Message] = []
            if self._warns and lines:
                self._warns = False
                _warn_of_json(lines[0])
            for line in lines:
                self._count += 1
                try:
                    messages.append(_message(self._options, self._read(line)))
                except (ValueError, MessageIllegal) as error:
                    if messages:
                        yield messages
                    raise MessageIllegal(
                        f"line {self._count} of the input (not counting empty ones) cannot be"
                        f" sent: {error}"
                    ) from None
            yield messages


def _warn_of_json(line: bytes) -> None:
    """Says that lines are bodies if the first is a message as `tail --json` prints it."""
    try:
        parts_of_json(line)
    except MessageIllegal:
        return
    print(
        f"{PROG}: each line is sent as a body as it is; with --json-lines, the messages would be"
        " sent that the lines describe",
        file=sys.stderr,
        flush=True,
    )


def _message(options: Sending, parts: Parts) -> Message:
    message = new_message(
        options.topic,
        parts.body,
        tags=parts.tag or options.tag or None,
        keys=(*options.key, *parts.keys),
        properties={**dict(options.property), **parts.properties},
        flag=parts.flag,
        delay_level=options.delay_level,
        delay_ms=None if options.delay is None else round(options.delay * 1000),
        deliver_at_ms=options.at,
    )
    if not parts.body:
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
