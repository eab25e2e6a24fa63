# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq consume`: receives messages as a member of a group, prints and commits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import click
from twisted.internet.defer import Deferred

from txrocketmq.cli import names, session
from txrocketmq.cli.command_line import Servers, one_command, run, servers_options
from txrocketmq.cli.reading import (
    TIMED_OUT,
    Printer,
    Reading,
    Silence,
    once_there,
    reading_options,
)
from txrocketmq.client.consumer.config import ConsumeFrom, MessageModel, PushConsumerConfig
from txrocketmq.client.consumer.listening.listener import ConsumeContext, ConsumeOrderlyContext
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.message.message import MessageExt

PROG: Final = "txrocketmq consume"
_PLACES: Final = {"first": ConsumeFrom.FIRST_OFFSET, "last": ConsumeFrom.LAST_OFFSET}


@dataclass(frozen=True, slots=True, kw_only=True)
class Consuming(Reading):
    """The arguments and options of the command."""

    group: str
    orderly: bool
    broadcast: bool


@one_command(
    "consume",
    epilog="The members of a group share the queues of the topic, and the group continues where it"
    " stopped, whoever its members are. To look at messages without taking them from a group, use"
    " txrocketmq tail.",
)
@click.argument("topic", metavar="TOPIC", shell_complete=names.topics)
@click.option(
    "-g",
    "--group",
    required=True,
    metavar="GROUP",
    shell_complete=names.groups,
    help="The consumer group to join.",
)
@click.option(
    "--orderly",
    is_flag=True,
    help="Consume the messages of each queue one after the other; the broker locks the queue for"
    " this member of the group.",
)
@click.option(
    "--broadcast",
    is_flag=True,
    help="Consume all messages, whatever other members of the group consume; the offsets are kept"
    " in ~/.rocketmq_offsets.",
)
@reading_options("Where a group begins that has not consumed the topic before")
@servers_options
def command(servers: Servers, **given: Any) -> int:
    """Consume the messages of TOPIC as a member of a consumer group.

    They are printed until Ctrl-C is pressed.
    """
    options = Consuming(**given)
    options.check()
    return session.run(
        PROG, servers.config(), lambda client: consume(client, options), interrupted=0
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)


async def consume(client: ClientInstance, options: Consuming) -> int:
    """Consumes until enough was printed, none came for too long, or it is cancelled."""
    taking = _Taking(client, options)
    consumer = PushConsumer(
        client,
        options.group,
        {options.topic: options.tag},
        taking.listen,
        config=_config(options.place, is_broadcast=options.broadcast),
        orderly=options.orderly,
    )
    silence = Silence(client.clock, options.timeout, taking.printer, taking.end)

    async def start() -> None:
        await client.subscribe_queues(client.with_namespace(options.topic))  # else it waits itself
        await consumer.start()

    try:
        await once_there(client, PROG, start, lambda: silence.is_over)
        await taking.done
    finally:
        silence.end()
        await consumer.stop()
    return TIMED_OUT if options.count and taking.printer.shown < options.count else 0


def _config(start: str | int, *, is_broadcast: bool) -> PushConsumerConfig:
    model = MessageModel.BROADCASTING if is_broadcast else MessageModel.CLUSTERING
    if isinstance(start, str):
        return PushConsumerConfig(message_model=model, consume_from=_PLACES[start])
    return PushConsumerConfig(
        message_model=model, consume_from=ConsumeFrom.TIMESTAMP, consume_timestamp_ms=start
    )


class _Taking:
    """Prints messages until there are enough.

    Those that are printed count as consumed; those that come later do not.
    """

    def __init__(self, client: ClientInstance, options: Consuming) -> None:
        self.done: Deferred[None] = Deferred()
        self.printer = Printer(options.line, options.count, client.clock.steady_ms)
        self.printer.enough = self.end
        self._is_over = False

    def end(self) -> None:
        """Stops printing."""
        if not self._is_over:
            self._is_over = True
            self.done.callback(None)

    def listen(
        self, messages: list[MessageExt], context: ConsumeContext | ConsumeOrderlyContext
    ) -> Deferred[None] | None:
        """Prints messages; those beyond the limit are not acknowledged and stay for the group."""
        if self._is_over:
            return Deferred()
        try:
            self.printer.show(context.queue, messages)
        except BrokenPipeError as error:
            self._is_over = True
            self.done.errback(error)
            return Deferred()
        return None
