# SPDX-License-Identifier: Apache-2.0
"""What the commands for administrators have in common: options, and how they run.

What all commands have in common is in `command_line`.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from txrocketmq.cli import names, session
from txrocketmq.cli.command_line import Servers, json_option_of
from txrocketmq.cli.tables import json_lines, table_text, terminal_width
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.primitives.plain_text import plain

F = TypeVar("F", bound=Callable[..., Any])
Work = Callable[[Admin], Awaitable[None]]
json_option: Final = json_option_of("row")
topic_argument: Final = click.argument("topic", metavar="TOPIC", shell_complete=names.topics)
group_argument: Final = click.argument("name", metavar="GROUP", shell_complete=names.groups)
broker_argument: Final = click.argument("broker", metavar="BROKER", shell_complete=names.brokers)


def yes_option(function: F) -> F:
    """Adds the option `--yes` to a command that cannot be undone."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")(function)


def place_options(function: F) -> F:
    """Adds the options `--cluster` and `--broker`, which say where something is changed."""
    cluster = cluster_option("Apply to all masters of this cluster.")
    broker = broker_option("Apply to this broker, given by name or HOST:PORT.")
    return cluster(broker(function))


def cluster_option(text: str) -> Callable[[F], F]:
    """Returns what adds the option `--cluster`."""
    return click.option(
        "-c", "--cluster", metavar="CLUSTER", shell_complete=names.clusters, help=text
    )


def broker_option(text: str) -> Callable[[F], F]:
    """Returns what adds the option `--broker`."""
    return click.option("-b", "--broker", metavar="BROKER", shell_complete=names.brokers, help=text)


def confirm(question: str, *, yes: bool) -> None:
    """Asks for confirmation unless `yes` is given; without a terminal, the answer is no."""
    if not yes:
        click.confirm(question, abort=True, err=True)


def administrate(servers: Servers, work: Work) -> None:
    """Calls `work` with an admin client; ends the command with its exit code if that fails."""
    operate(servers, lambda client: work(Admin(client)))


def operate(servers: Servers, work: Callable[[ClientInstance], Awaitable[None]]) -> None:
    """Does the same with the client itself, for what an admin client does not do."""
    context = click.get_current_context()

    async def run(client: ClientInstance) -> int:
        await work(client)
        return 0

    code = session.run(context.command_path, servers.config(), run)
    if code:
        context.exit(code)


def show(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str],
    *,
    as_json: bool,
    none: str,
    folds: Sequence[str] = (),
) -> None:
    """Prints a table, as JSON or for a person, who is told in the words `none` if it is empty.

    `folds` are the columns that are folded first if the table is too wide.
    """
    if not rows:
        say_none(none, as_json=as_json)
    elif as_json:
        print(json_lines(rows), flush=True)
    else:
        print(table_text(rows, columns, folds=folds, width=terminal_width()), flush=True)


def say_none(words: str, *, as_json: bool) -> None:
    """Tells a person that there is nothing to print, on standard error; programs see no lines."""
    if not as_json:
        print(plain(words), file=sys.stderr)


def show_values(values: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints names with their values, as JSON or as a table."""
    if as_json:
        print(json_lines([values]), flush=True)
    else:
        rows = [{"name": name, "value": value} for name, value in values.items()]
        show(rows, {"name": "NAME", "value": "VALUE"}, as_json=False, none="there are no values")
