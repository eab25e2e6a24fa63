# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq contexts`: clusters by name, and which of them the commands use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec, TypeVar

import click

from txrocketmq.cli.admin.admin_command import json_option, show, show_values
from txrocketmq.cli.command_line import PATH, context_names, first_line, group, run
from txrocketmq.cli.context_file import (
    CONTEXT_VARIABLE,
    Context,
    ContextError,
    ContextFile,
    contexts_path,
)

P = ParamSpec("P")
T = TypeVar("T")
PROG: Final = "txrocketmq contexts"
HIDDEN: Final = "(hidden)"
command = group("contexts", "Name clusters, and choose which of them the commands use.")


_name: Final = click.argument("name", metavar="NAME", shell_complete=context_names)


@command.command("list")
@json_option
def list_contexts(as_json: bool) -> None:
    """List the contexts, and mark the one that is used."""
    file = _file()
    used = os.environ.get(CONTEXT_VARIABLE) or file.current
    rows = [
        {
            "used": "*" if name == used else "",
            "context": name,
            "namesrv": each.namesrv,
            "tls": each.encrypts,
            "accessKey": each.access_key,
        }
        for name, each in sorted(file.contexts.items())
    ]
    if as_json:
        rows = [{**row, "used": bool(row["used"])} for row in rows]
    columns = {
        "used": " ", "context": "CONTEXT", "namesrv": "NAME SERVERS", "tls": "TLS",
        "accessKey": "ACCESS KEY",
    }  # fmt: skip
    none = f"there are no contexts; '{PROG} add' adds one"
    show(rows, columns, as_json=as_json, none=none, folds=("accessKey", "namesrv"))


@command.command("show")
@_name
@json_option
def show_context(name: str, as_json: bool) -> None:
    """Show the values of the context NAME, except the secret key."""
    context = _of(_file().get, name)
    values = {each: getattr(context, each) for each in Context.__slots__}
    if context.secret_key:
        values["secret_key"] = HIDDEN
    show_values(values, as_json=as_json)


@command.command(
    "add",
    epilog="The file is txrocketmq/contexts.toml in $XDG_CONFIG_HOME, by default in ~/.config."
    " Only its owner can read it.",
)
@_name
@click.option(
    "-n",
    "--namesrv",
    required=True,
    metavar="ADDR",
    help="Addresses of name servers as HOST:PORT, separated by semicolons.",
)
@click.option("--tls", is_flag=True, help="Encrypt connections to the servers.")
@click.option(
    "--tls-trust-cert",
    type=PATH,
    metavar="FILE",
    default="",
    help="Certificates (PEM) by which servers are checked; implies --tls.",
)
@click.option(
    "--tls-check-name",
    is_flag=True,
    help="Check that certificates are for the addresses of the servers; implies --tls.",
)
@click.option(
    "--tls-cert",
    type=PATH,
    metavar="FILE",
    default="",
    help="Client certificate (PEM) to present to servers; implies --tls.",
)
@click.option(
    "--tls-key",
    type=PATH,
    metavar="FILE",
    default="",
    help="Private key (PEM) of the client certificate.",
)
@click.option(
    "--access-key",
    metavar="KEY",
    default="",
    help="The account that signs requests. Its secret key is taken from --secret-key-file, or from"
    " $ROCKETMQ_SECRET_KEY, or asked for.",
)
@click.option(
    "--secret-key-file",
    type=PATH,
    metavar="FILE",
    default="",
    help="A file whose first line is the secret key of --access-key.",
)
@click.option("--use", is_flag=True, help="Use this context from now on.")
def add(name: str, use: bool, secret_key_file: str, **values: Any) -> None:
    """Add a context NAME to the file of contexts."""
    if values["access_key"]:
        values["secret_key"] = _secret_key(secret_key_file)
    elif secret_key_file:
        raise click.UsageError("--secret-key-file belongs to --access-key")
    for each in ("tls_trust_cert", "tls_cert", "tls_key"):
        if values[each]:
            values[each] = os.path.abspath(values[each])  # noqa: PTH100 - it does not have to exist
    file = _of(_file().with_context, name, Context(**values))
    if use:
        file = _of(file.using, name)
    _of(file.write)
    print(f"added context {name} to {file.path}")
    if not use:
        print(
            f"commands use it with --context {name}, or after 'txrocketmq contexts use {name}'",
            file=sys.stderr,
        )


def _secret_key(path: str) -> str:
    if path:
        return first_line(path)
    return os.environ.get("ROCKETMQ_SECRET_KEY") or str(
        click.prompt("Secret key", hide_input=True, err=True)
    )


@command.command("use")
@_name
def use_context(name: str) -> None:
    """Use the context NAME wherever neither an option nor the environment names a cluster."""
    _of(_of(_file().using, name).write)
    print(f"using context {name}")


@command.command("remove")
@_name
def remove(name: str) -> None:
    """Remove the context NAME from the file of contexts."""
    _of(_of(_file().without, name).write)
    print(f"removed context {name}")


def _file() -> ContextFile:
    return _of(ContextFile.read, contexts_path())


def _of(work: Callable[P, T], *arguments: P.args, **_: P.kwargs) -> T:
    """Calls a function; its ContextError ends the command with one sentence."""
    try:
        return work(*arguments, **_)
    except ContextError as error:
        raise click.ClickException(str(error)) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)
