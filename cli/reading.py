# SPDX-License-Identifier: Apache-2.0
"""What the commands that print messages have in common: options, printing, and when they end."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, TypeVar

import click
from twisted.internet.defer import Deferred

from txrocketmq.cli.command_line import FIRST, LAST, json_option_of, moment, positive
from txrocketmq.cli.line_format import Printing
from txrocketmq.cli.show import message_json, message_line
from txrocketmq.client.base.errors import NoRoute
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.tags import SUB_ALL, SubscriptionError, build_subscription_data
from txrocketmq.remoting.primitives.plain_text import plain

LOOK_AGAIN_MS: Final = 500
"""How many ms pass before a topic that does not exist yet is looked for again."""
TIMED_OUT: Final = 1
_LINE_END: Final = "\n"
F = TypeVar("F", bound=Callable[..., Any])


_moment: Final = moment(FIRST, LAST)


def _place(text: str) -> str | int:
    """The type of --from where there is --last, for which other tools have a negative number."""
    if text.startswith("-") and text[1:].isdecimal():
        raise click.BadParameter(f"the last {text[1:]} messages are --last {text[1:]} here")
    return _moment(text)


def reading_options(beginning: str, otherwise: str = "") -> Callable[[F], F]:
    """Adds the options that say which messages are printed, how, and when it is enough.

    `beginning` is the help text of --from, and `otherwise` says when its default is another one.
    """
    options = (
        click.option(
            "--from",
            "start",
            type=_place if otherwise else _moment,
            default=None if otherwise else LAST,
            metavar="WHERE",
            help=f"{beginning}: first (all messages), last (only new messages, the default"
            f"{otherwise}), or a time such as 2026-11-21T08:00:00, 20261121080000 or milliseconds"
            " since the epoch.",
        ),
        click.option(
            "--tag",
            type=tags,
            default=SUB_ALL,
            metavar="EXPR",
            help="Print only messages with these tags, such as 'TagA || TagB'.",
        ),
        click.option("--count", type=positive, metavar="N", help="Stop after N messages."),
        click.option(
            "--timeout",
            type=positive,
            metavar="SECONDS",
            help="Stop when no message has arrived for this time; the exit code is 1 if --count"
            " was not reached.",
        ),
        json_option_of("message"),
        click.option(
            "-f",
            "--format",
            "form",
            type=printing,
            metavar="FORMAT",
            help="Print messages in this format, as kcat does, such as '%k: %s\\n': %s body, %k"
            " keys, %g tag, %h properties, %t topic, %b broker, %p queue, %o offset, %T time of"
            " storing (ms), %i message id, %S and %K sizes of body and keys (bytes); also \\n,"
            " \\t and \\xNN.",
        ),
    )

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def printing(text: str) -> Printing:
    """The type of an option that is a format of messages."""
    try:
        return Printing(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not a format such as '%k: %s\\n': {error}; new messages are followed"
            " without any option"
        ) from None


def tags(text: str) -> str:
    """The type of an option that is a subscription expression, which it returns unchanged."""
    try:
        build_subscription_data("", text)
    except SubscriptionError:
        raise click.BadParameter(f"{text!r} does not name a tag, such as 'TagA || TagB'") from None
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The values of these options."""

    topic: str
    start: Literal["first", "last"] | int | None
    tag: str
    count: int | None
    timeout: int | None
    as_json: bool
    form: Printing | None

    @property
    def place(self) -> Literal["first", "last"] | int:
        """Where to begin."""
        return "last" if self.start is None else self.start

    @property
    def line(self) -> Callable[[MessageExt], str | bytes]:
        """Returns what makes lines of messages, or text of any form."""
        if self.form is not None:
            return self.form
        return message_json if self.as_json else message_line

    def check(self) -> None:
        """Raises UsageError for options that are valid each by itself, but not together."""
        if self.as_json and self.form is not None:
            raise click.UsageError("--json and --format are both given: choose one")


async def once_there(
    client: ClientInstance,
    prog: str,
    start: Callable[[], Awaitable[None]],
    is_over: Callable[[], bool],
    on_missing: Callable[[], None] = lambda: None,
) -> None:
    """Starts as soon as the topic exists, unless `is_over`; says once that it is waiting."""
    said = False
    while True:
        try:
            await start()
        except NoRoute as error:
            if not said:
                print(f"{prog}: {plain(str(error))}; waiting for it", file=sys.stderr)
            said = True
            on_missing()
            if is_over():
                return
            await client.clock.pause(LOOK_AGAIN_MS)
        else:
            return


class Printer:
    """Prints messages, and calls `enough` when `limit` of them were printed."""

    def __init__(
        self,
        line: Callable[[MessageExt], str | bytes],
        limit: int | None,
        steady_ms: Callable[[], int],
    ) -> None:
        self._line = line
        self._limit = limit
        self._steady_ms = steady_ms
        self.shown = 0
        self.last_ms = steady_ms()
        self.enough: Callable[[], None] = lambda: None

    @property
    def is_enough(self) -> bool:
        """Whether so many messages were printed as are wanted."""
        return self.shown == self._limit

    def show(self, queue: MessageQueue, messages: Sequence[MessageExt]) -> None:
        """Prints messages of a queue. Raises BrokenPipeError if nobody reads on."""
        self.show_all(messages)

    def show_all(self, messages: Iterable[MessageExt]) -> None:
        """Does the same with messages of any queues."""
        left = None if self._limit is None else self._limit - self.shown
        printed = list(islice(messages, left))
        self.shown += len(printed)
        if printed:
            self.last_ms = self._steady_ms()
            print_all(map(self._line, printed))
        if self.is_enough:
            self.enough()


def print_all(texts: Iterable[str | bytes]) -> None:
    """Prints lines, or bytes as they are; on a terminal no bytes that would control it."""
    lines: list[str] = []
    for text in texts:
        if isinstance(text, str):
            lines.append(text + _LINE_END)
        elif sys.stdout.isatty():
            lines.append(plain(text.decode("utf-8", "replace"), keep="\n\t"))
        else:
            sys.stdout.buffer.write(text)
    print("".join(lines), end="", flush=True)


class Silence:
    """Calls `stop` when nothing was printed for so many seconds."""

    def __init__(
        self, clock: Clock, seconds: int | None, printer: Printer, stop: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._limit_ms = (seconds or 0) * 1000
        self._printer = printer
        self._stop = stop
        self._pause: Deferred[None] | None = None
        self.is_over = False
        if seconds is not None:
            self._wait(self._limit_ms)

    def end(self) -> None:
        """Stops waiting."""
        if self._pause is not None:
            self._pause.cancel()

    def _wait(self, pause_ms: int) -> None:
        self._pause = self._clock.pause(pause_ms)
        self._pause.addCallbacks(lambda _: self._look(), lambda _: None)

    def _look(self) -> None:
        left_ms = self._printer.last_ms + self._limit_ms - self._clock.steady_ms()
        if left_ms > 0:
            self._wait(left_ms)
        else:
            self.is_over = True
            self._stop()
