# SPDX-License-Identifier: Apache-2.0
"""What the commands that administrate have in common: their options, and how they run.

They are made with click, which no server imports: neither does the command `txrocketmq` before one
of them is called.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import click

from txrocketmq.cli import session
from txrocketmq.cli.tables import json_lines, table_text
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.config import namesrv_addr_of_environment
from txrocketmq.client.instance import ClientInstance

F = TypeVar("F", bound=Callable[..., Any])
Work = Callable[[Admin], Awaitable[None]]
CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_JAVA_TIME: Final = "%Y%m%d%H%M%S"


def group(name: str, summary: str) -> click.Group:
    """A command that has commands."""
    return click.Group(name, help=summary, context_settings=CONTEXT, no_args_is_help=True)


def namesrv_option(function: F) -> F:
    """`--namesrv`, as all commands of the client have it."""
    return click.option(
        "-n",
        "--namesrv",
        metavar="ADDR",
        default=lambda: namesrv_addr_of_environment() or session.DEFAULT_NAMESRV,
        help="Addresses of name servers as HOST:PORT, separated by semicolons (default:"
        f" $NAMESRV_ADDR, or {session.DEFAULT_NAMESRV}).",
    )(function)


def json_option(function: F) -> F:
    """`--json`."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print each row as a JSON object on a line of its own.",
    )(function)


def yes_option(function: F) -> F:
    """`--yes`, of what cannot be undone."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")(function)


def place_options(function: F) -> F:
    """`--cluster` and `--broker`, of what is made somewhere."""
    cluster = click.option("-c", "--cluster", help="Apply to all masters of this cluster.")
    broker = click.option(
        "-b", "--broker", help="Apply to this broker, given by name or HOST:PORT."
    )
    return cluster(broker(function))


def confirm(question: str, *, yes: bool) -> None:
    """Asks a person, unless the answer was given; somebody who is not there says no."""
    if not yes:
        click.confirm(question, abort=True, err=True)


def administrate(namesrv: str, work: Work) -> None:
    """Runs the work with an admin client; ends the command with the exit code when it fails."""
    context = click.get_current_context()

    async def run(client: ClientInstance) -> int:
        await work(Admin(client))
        return 0

    code = session.run(context.command_path, namesrv, run)
    if code:
        context.exit(code)


def show(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, as_json: bool) -> None:
    """Prints a table: for a program, or for a person, to whom an empty one is nothing but heads."""
    if as_json:
        if rows:
            print(json_lines(rows), flush=True)
    else:
        print(table_text(rows, columns), flush=True)


def show_values(values: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints names with their values."""
    if as_json:
        print(json_lines([values]), flush=True)
    else:
        rows = [{"name": name, "value": value} for name, value in values.items()]
        print(table_text(rows, {"name": "NAME", "value": "VALUE"}), flush=True)


@contextmanager
def progress(label: str, count: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error for work that may take long; nothing where nobody looks."""
    stream = sys.stderr
    if not stream.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=count, label=label, file=stream) as bar:

        def step(steps: int) -> None:
            bar.update(steps)

        yield step


def pair(text: str) -> tuple[str, str]:
    """The parts of NAME=VALUE, as a type of an option."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return name, value


def moment(*words: str) -> Callable[[str], str | int]:
    """The type of an option that is one of the words, or a time in ms since the epoch."""

    def convert(text: str) -> str | int:
        if text in words:
            return text
        try:
            return parse_time(text)
        except ValueError:
            known = "".join(f"{word}, " for word in words)
            raise click.BadParameter(
                f"{text!r} is neither {known}nor a time such as 2026-11-21T08:00:00"
                if words
                else f"{text!r} is not a time such as 2026-11-21T08:00:00"
            ) from None

    return convert


def parse_time(text: str) -> int:
    """Milliseconds since the epoch: as such, as yyyyMMddHHmmss, or as ISO 8601. ValueError."""
    if re.fullmatch(r"\d{13}", text):
        return int(text)
    if re.fullmatch(r"\d{14}", text):
        moment = datetime.datetime.strptime(text, _JAVA_TIME)  # noqa: DTZ007 - local time
    else:
        moment = datetime.datetime.fromisoformat(text)
    try:
        return int(moment.timestamp() * 1000)
    except OverflowError as error:
        raise ValueError(str(error)) from None


def run(command: click.Command, prog: str, arguments: Sequence[str] | None) -> int:
    """Runs a command; the exit code."""
    try:
        code = command.main(args=arguments, prog_name=prog, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("nothing was done", err=True)
        return 1
    return code if isinstance(code, int) else 0
