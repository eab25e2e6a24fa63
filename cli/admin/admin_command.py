# SPDX-License-Identifier: Apache-2.0
"""What the commands for administrators have in common: options, and how they run.

What all commands have in common is in `command_line`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from txrocketmq.cli import session
from txrocketmq.cli.command_line import Servers, json_option_of
from txrocketmq.cli.tables import json_lines, table_text
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.core.instance import ClientInstance

F = TypeVar("F", bound=Callable[..., Any])
Work = Callable[[Admin], Awaitable[None]]
json_option: Final = json_option_of("row")


def yes_option(function: F) -> F:
    """Adds the option `--yes` to a command that cannot be undone."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")(function)


def place_options(function: F) -> F:
    """Adds the options `--cluster` and `--broker`, which say where something is changed."""
    cluster = click.option("-c", "--cluster", help="Apply to all masters of this cluster.")
    broker = click.option(
        "-b", "--broker", help="Apply to this broker, given by name or HOST:PORT."
    )
    return cluster(broker(function))


def confirm(question: str, *, yes: bool) -> None:
    """Asks for confirmation unless `yes` is given; without a terminal, the answer is no."""
    if not yes:
        click.confirm(question, abort=True, err=True)


def administrate(servers: Servers, work: Work) -> None:
    """Calls `work` with an admin client; ends the command with its exit code if that fails."""
    context = click.get_current_context()

    async def run(client: ClientInstance) -> int:
        await work(Admin(client))
        return 0

    code = session.run(context.command_path, servers.config(), run)
    if code:
        context.exit(code)


def show(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, as_json: bool) -> None:
    """Prints a table, as JSON or for a person, who sees the headings even if there are no rows."""
    if as_json:
        if rows:
            print(json_lines(rows), flush=True)
    else:
        print(table_text(rows, columns), flush=True)


def show_values(values: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints names with their values, as JSON or as a table."""
    if as_json:
        print(json_lines([values]), flush=True)
    else:
        rows = [{"name": name, "value": value} for name, value in values.items()]
        print(table_text(rows, {"name": "NAME", "value": "VALUE"}), flush=True)
