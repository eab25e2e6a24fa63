# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq tail`: the messages of a topic, those that are there and those that come."""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from collections.abc import Callable, Sequence
from typing import Final

from twisted.internet.defer import Deferred

from txrocketmq.cli import session
from txrocketmq.cli.show import message_json, message_line
from txrocketmq.client.consumer.pull import PullLoop, Start
from txrocketmq.client.errors import NoRoute
from txrocketmq.client.instance import ClientInstance
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.tags import SUB_ALL, SubscriptionError, build_subscription_data
from txrocketmq.remoting.transport.clock import Clock

PROG: Final = "txrocketmq tail"
LOOK_AGAIN_MS: Final = 500
"""How often a topic that nobody has is looked for."""
TIMED_OUT: Final = 1
_PLACES: Final[dict[str, Start]] = {"first": "first", "last": "last"}
_JAVA_TIME: Final = "%Y%m%d%H%M%S"


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The flags of the command."""
    parser = argparse.ArgumentParser(
        prog=PROG,
        description="Prints the messages of a topic as they come, until Ctrl-C.",
        epilog="It reads beside all consumers and changes nobody's offsets. A topic that is not"
        " there yet is waited for.",
    )
    parser.add_argument("topic", metavar="TOPIC")
    session.add_namesrv_option(parser)
    parser.add_argument(
        "--from",
        dest="start",
        type=parse_start,
        default="last",
        metavar="WHERE",
        help="first: all messages; last: only new ones (default); or those stored since a time:"
        " 2026-11-21T08:00:00, 20261121080000, or milliseconds since the epoch",
    )
    parser.add_argument(
        "--tag",
        type=parse_tags,
        default=SUB_ALL,
        metavar="EXPR",
        help="only these tags: 'TagA || TagB'",
    )
    parser.add_argument("--count", type=_positive, metavar="N", help="end after N messages")
    parser.add_argument(
        "--timeout",
        type=_positive,
        metavar="SECONDS",
        help="end after so long without a message; exit code 1 if --count was not reached",
    )
    parser.add_argument("--json", action="store_true", help="messages as JSON, one object a line")
    return parser.parse_args(arguments)


def parse_start(text: str) -> Start:
    """first, last, or a time; a local one unless it names its zone."""
    if text in _PLACES:
        return _PLACES[text]
    if re.fullmatch(r"\d{13}", text):
        return int(text)
    try:
        if re.fullmatch(r"\d{14}", text):
            moment = datetime.datetime.strptime(text, _JAVA_TIME)  # noqa: DTZ007 - local time
        else:
            moment = datetime.datetime.fromisoformat(text)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):  # also of a time before the first year, in another zone
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither first, last nor a time like 2026-11-21T08:00:00"
        ) from None


def parse_tags(text: str) -> str:
    """A subscription expression that names a tag, as it is."""
    try:
        build_subscription_data("", text)
    except SubscriptionError:
        raise argparse.ArgumentTypeError(f"{text!r} names no tag, as 'TagA || TagB' does") from None
    return text


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints messages; the exit code."""
    options = parse_arguments(arguments)
    return session.run(PROG, options.namesrv, lambda client: tail(client, options), interrupted=0)


async def tail(client: ClientInstance, options: argparse.Namespace) -> int:
    """Prints messages until enough were printed, none came for too long, or it is cancelled."""
    line = message_json if options.json else message_line
    printer = Printer(line, options.count, client.clock.now_ms)
    loop = PullLoop(
        client, options.topic, printer.show, start=options.start, expression=options.tag
    )
    printer.enough = loop.stop
    silence = _Silence(client.clock, options.timeout, printer, loop.stop)
    try:
        await _start(client, loop, silence)
        await loop.done
    finally:
        silence.end()
        loop.stop()
    return TIMED_OUT if options.count and printer.shown < options.count else 0


async def _start(client: ClientInstance, loop: PullLoop, silence: _Silence) -> None:
    """Starts as soon as the topic is there."""
    said = False
    while True:
        try:
            await loop.start()
        except NoRoute as error:
            if not said:
                print(f"{PROG}: {error}; waiting for it", file=sys.stderr)
            said = True
            if loop.start_from == "last":
                loop.start_from = "first"  # all that the topic will have came after this moment
            if silence.is_over:
                return
            await client.clock.pause(LOOK_AGAIN_MS)
        else:
            return


class Printer:
    """Prints messages, and calls `enough` when `limit` were printed."""

    def __init__(
        self, line: Callable[[MessageExt], str], limit: int | None, now_ms: Callable[[], int]
    ) -> None:
        self._line = line
        self._limit = limit
        self._now_ms = now_ms
        self.shown = 0
        self.last_ms = now_ms()
        self.enough: Callable[[], None] = lambda: None

    def show(self, queue: MessageQueue, messages: list[MessageExt]) -> None:
        """Prints messages of a queue; raises BrokenPipeError when nobody reads any more."""
        if self._limit is not None:
            messages = messages[: self._limit - self.shown]
        self.shown += len(messages)
        if messages:
            self.last_ms = self._now_ms()
            print("\n".join(map(self._line, messages)), flush=True)
        if self.shown == self._limit:
            self.enough()


class _Silence:
    """Calls `stop` when nothing was printed for some seconds."""

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
        """Waits no more."""
        if self._pause is not None:
            self._pause.cancel()

    def _wait(self, pause_ms: int) -> None:
        self._pause = self._clock.pause(pause_ms)
        self._pause.addCallbacks(lambda _: self._look(), lambda _: None)

    def _look(self) -> None:
        left_ms = self._printer.last_ms + self._limit_ms - self._clock.now_ms()
        if left_ms > 0:
            self._wait(left_ms)
        else:
            self.is_over = True
            self._stop()
