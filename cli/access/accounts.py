# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq accounts`: who may use the brokers (ACL 2). No command prints a password it is given.

Each broker has accounts of its own, so lists say which brokers have an account as it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from txrocketmq.access.acl.errors import AclError
from txrocketmq.cli import names
from txrocketmq.cli.access.passwords import given_password, password_options
from txrocketmq.cli.access.plain_file import imported
from txrocketmq.cli.admin.admin_command import (
    administrate,
    broker_option,
    cluster_option,
    confirm,
    json_option,
    place_options,
    show,
    show_values,
    yes_option,
)
from txrocketmq.cli.command_line import PATH, Servers, group, run, servers_options
from txrocketmq.client.admin.accounts import Account
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.admin.results import BrokerInfo

PROG: Final = "txrocketmq accounts"
K = TypeVar("K")
command = group("accounts", "List, show, add, change, remove, copy and import accounts.")
account_argument: Final = click.argument("name", metavar="ACCOUNT")
ask_place: Final = cluster_option("Ask only the brokers of this cluster.")
ask_broker: Final = broker_option("Ask only this broker, given by name or HOST:PORT.")
_type: Final = click.option(
    "--super/--normal",
    "is_super",
    default=None,
    help="The type: Super may do everything, Normal only what its policies allow.",
)
_state: Final = click.option(
    "--enable/--disable", "is_enabled", default=None, help="Whether the account may be used."
)


@command.command("list")
@click.argument("containing", metavar="[PART]", default="")
@ask_place
@ask_broker
@servers_options
@json_option
def list_accounts(containing: str, servers: Servers, as_json: bool, **place: Any) -> None:
    """List the accounts, or those whose names contain PART, and which brokers have them."""

    async def work(admin: Admin) -> None:
        found = await admin.accounts(containing, **place)
        rows = [
            {**_values(account), "brokers": where}
            for account, where in places(
                {broker: [_plain(each) for each in its] for broker, its in found.items()}
            )
        ]
        columns = {"account": "ACCOUNT", "type": "TYPE", "enabled": "ENABLED", "brokers": "BROKERS"}
        none = f"no account has {containing} in its name" if containing else "there are no accounts"
        show(rows, columns, as_json=as_json, none=none, folds=("brokers",))

    administrate(servers, work)


@command.command("show")
@account_argument
@ask_place
@ask_broker
@servers_options
@json_option
def show_account(name: str, servers: Servers, as_json: bool, **place: Any) -> None:
    """Show ACCOUNT at each broker, and how many policies it has there; never its password."""

    async def work(admin: Admin) -> None:
        found = await admin.account(name, **place)
        policies = await admin.policies(name, **place)
        for broker, account in found.items():
            its = len(policies.get(broker, ()))
            values = {"broker": broker.name, "address": broker.address, **_values(account)}
            show_values({**values, "policies": its}, as_json=as_json)

    administrate(servers, work)


@command.command("add")
@account_argument
@password_options
@_type
@place_options
@servers_options
def add(
    name: str,
    password_file: str | None,
    generate: bool,
    is_super: bool | None,
    servers: Servers,
    **place: Any,
) -> None:
    """Add ACCOUNT to all brokers of the cluster, or to one broker.

    Without an option for the password, it is asked for, or read from standard input.
    """
    password = given_password(password_file, generate=generate)

    async def work(admin: Admin) -> None:
        await admin.create_account(name, password, is_super=bool(is_super), **place)
        print(password if generate else f"added account {name}")

    administrate(servers, work)


@command.command("change")
@account_argument
@password_options
@click.option("--password", "asks", is_flag=True, help="Ask for a new password, or read it.")
@_type
@_state
@place_options
@servers_options
def change(
    name: str,
    password_file: str | None,
    generate: bool,
    asks: bool,
    is_super: bool | None,
    is_enabled: bool | None,
    servers: Servers,
    **place: Any,
) -> None:
    """Change the password, the type or the state of ACCOUNT.

    Settings without an option stay as they are.
    """
    new = None
    if asks or generate or password_file:
        new = given_password(password_file, generate=generate)
    elif is_super is None and is_enabled is None:
        raise click.UsageError(
            "nothing is to be changed: give --password, --super, --normal, --enable or --disable"
        )

    async def work(admin: Admin) -> None:
        await admin.update_account(
            name, password=new, is_super=is_super, is_enabled=is_enabled, **place
        )
        print(new if generate else f"changed account {name}")

    administrate(servers, work)


@command.command("remove")
@account_argument
@yes_option
@place_options
@servers_options
def remove(name: str, yes: bool, servers: Servers, **place: Any) -> None:
    """Remove ACCOUNT and its policies.

    Its clients are refused from then on, also those that are connected.
    """
    confirm(f"Remove account {name} and its policies?", yes=yes)

    async def work(admin: Admin) -> None:
        await admin.account(name, **place)
        await admin.delete_account(name, **place)
        print(f"removed account {name}")

    administrate(servers, work)


@command.command(
    "copy",
    epilog="Use an account of the type Super, since no other may read passwords.",
)
@click.argument("copied", metavar="[ACCOUNT]...", nargs=-1)
@click.option(
    "--from",
    "source",
    required=True,
    metavar="BROKER",
    shell_complete=names.brokers,
    help="The broker that has the accounts.",
)
@click.option(
    "--to",
    "target",
    required=True,
    metavar="BROKER",
    shell_complete=names.brokers,
    help="The broker that gets them.",
)
@servers_options
def copy(copied: Sequence[str], source: str, target: str, servers: Servers) -> None:
    """Copy accounts with their policies from one broker to another: the named ones, or all."""

    async def work(admin: Admin) -> None:
        for name, count in (
            await admin.copy_accounts(copied, source=source, target=target)
        ).items():
            print(f"copied account {name} with {_count(count)}")

    administrate(servers, work)


@command.command("import", epilog="Accounts that already exist at a broker are not changed there.")
@click.argument("file", metavar="FILE", type=PATH)
@place_options
@servers_options
def import_accounts(file: str, servers: Servers, **place: Any) -> None:
    """Import the accounts of FILE, a plain_acl.yml of RocketMQ 4, as accounts with policies."""
    try:
        accounts, warnings = imported(file)
    except AclError as error:
        raise click.ClickException(str(error)) from None

    async def work(admin: Admin) -> None:
        found = await admin.accounts(**place)
        for warning in warnings:
            print(f"warning: {warning}")
        for account, policies, its in accounts:
            lacking = [
                broker
                for broker, known in found.items()
                if account.name not in [each.name for each in known]
            ]
            for broker in lacking:
                await admin.put_account(account, policies, exists=False, broker=broker.address)
            if not lacking:
                print(f"account {account.name} exists already")
                continue
            print(f"imported account {account.name} with {_count(len(policies))}")
            for warning in its:
                print(f"warning: {warning}")

    administrate(servers, work)


def _count(policies: int) -> str:
    return f"{policies} {'policy' if policies == 1 else 'policies'}"


def places(found: Mapping[BrokerInfo, Sequence[K]]) -> list[tuple[K, str]]:
    """Returns each value once, with the brokers that have it; "all" if several have all of it."""
    where: dict[K, list[str]] = {}
    for broker, values in found.items():
        for value in values:
            where.setdefault(value, []).append(
                broker.name if broker.is_master else f"{broker.name}/{broker.broker_id}"
            )
    is_everywhere = len(found) > 1
    return [
        (value, "all" if is_everywhere and len(its) == len(found) else ", ".join(its))
        for value, its in where.items()
    ]


def _plain(account: Account) -> Account:
    """Returns the account without its password, so that others are shown where it is the same."""
    return Account(name=account.name, is_super=account.is_super, is_enabled=account.is_enabled)


def _values(account: Account) -> dict[str, Any]:
    return {
        "account": account.name,
        "type": "Super" if account.is_super else "Normal",
        "enabled": account.is_enabled,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)
