# SPDX-License-Identifier: Apache-2.0
"""Where a command takes the password of an account from: not from its arguments.

Other users of the machine see the arguments of a process, and shells keep them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from txrocketmq.cli.command_line import PATH, first_line
from txrocketmq.cli.servers.first_account import new_secret

F = TypeVar("F", bound=Callable[..., Any])
STDIN: Final = "-"


def password_options(function: F) -> F:
    """Adds the options `--password-file` and `--generate`."""
    file = click.option(
        "--password-file",
        type=PATH,
        metavar="FILE",
        help="A file whose first line is the password, which is the secret key of the account's"
        " clients; - is standard input.",
    )
    generate = click.option(
        "--generate",
        is_flag=True,
        help="Generate a password and print it once, as the only output.",
    )
    return file(generate(function))


def given_password(password_file: str | None, *, generate: bool) -> str:
    """Returns the password; without an option, it is asked for, or read from standard input.

    Raises ClickException.
    """
    if generate and password_file:
        raise click.UsageError("give --password-file or --generate, not both")
    if generate:
        return new_secret()
    if password_file is None and sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    return first_line(password_file or STDIN)
