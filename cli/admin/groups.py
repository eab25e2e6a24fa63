# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq groups`: list, show, create, change and delete consumer groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from txrocketmq.cli.admin.admin_command import (
    administrate,
    cluster_option,
    confirm,
    group_argument,
    json_option,
    place_options,
    show,
    show_values,
    yes_option,
)
from txrocketmq.cli.command_line import Servers, group, pair, run, servers_options
from txrocketmq.client.admin.admin import Admin
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig

PROG: Final = "txrocketmq groups"
command = group("groups", "List, show, create, change and delete consumer groups.")
_SYSTEM_PREFIXES: Final = ("CID_RMQ_SYS_", "CID_ONS")
_SYSTEM: Final = frozenset({"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP"})
"""Groups that each broker has (MixAll.PREDEFINE_GROUP_SET)."""
_TYPES: Final = {
    each.name: str(each.type)
    for each in dataclasses.fields(SubscriptionGroupConfig)
    if str(each.type) in ("int", "bool")
}
"""The settings whose values are plain, with the names of their types."""
_set: Final = click.option(
    "--set",
    "pairs",
    type=pair,
    metavar="NAME=VALUE",
    multiple=True,
    help=f"A setting: one of {', '.join(sorted(_TYPES))}.",
)


@command.command("list")
@cluster_option("List only the groups of this cluster.")
@click.option("-a", "--all", "with_all", is_flag=True, help="Include the groups of the system.")
@servers_options
@json_option
def list_groups(cluster: str | None, with_all: bool, servers: Servers, as_json: bool) -> None:
    """List the names of consumer groups.

    The command txrocketmq lag shows how far they have come.
    """

    async def work(admin: Admin) -> None:
        names = await admin.groups(cluster)
        rows = [{"group": name} for name in names if with_all or not is_system_group(name)]
        show(rows, {"group": "GROUP"}, as_json=as_json, none="there are no consumer groups")

    administrate(servers, work)


@command.command("show")
@group_argument
@servers_options
@json_option
def show_group(name: str, servers: Servers, as_json: bool) -> None:
    """Show the settings of GROUP at each broker."""

    async def work(admin: Admin) -> None:
        for broker, config in sorted((await admin.group_configs(name)).items()):
            show_values({"broker": broker, **config.to_json()}, as_json=as_json)

    administrate(servers, work)


@command.command("consumers")
@group_argument
@servers_options
@json_option
def consumers(name: str, servers: Servers, as_json: bool) -> None:
    """List the connected consumers of GROUP, and their subscriptions."""

    async def work(admin: Admin) -> None:
        connection = await admin.consumer_connections(name)
        subscriptions = ", ".join(
            f"{topic} [{its.sub_string}]"
            for topic, its in sorted(connection.subscription_table.items())
        )
        rows = [
            {
                "clientId": each.client_id,
                "address": each.client_addr,
                "language": each.language,
                "model": connection.message_model,
                "subscriptions": subscriptions,
            }
            for each in connection.connection_set
        ]
        columns = {
            "clientId": "CLIENT", "address": "ADDRESS", "language": "LANGUAGE", "model": "MODEL",
            "subscriptions": "SUBSCRIPTIONS",
        }  # fmt: skip
        none = f"no consumer of group {name} is connected"
        folds = ("subscriptions", "model", "language")
        show(rows, columns, as_json=as_json, none=none, folds=folds)

    administrate(servers, work)


@command.command("create")
@group_argument
@_set
@place_options
@servers_options
def create_group(
    name: str, pairs: Sequence[tuple[str, str]], servers: Servers, **place: Any
) -> None:
    """Create GROUP at all masters of the cluster, or at one broker."""
    settings = _settings(pairs)

    async def work(admin: Admin) -> None:
        await admin.create_group(name, **place, **settings)
        print(f"created group {name}")

    administrate(servers, work)


@command.command("update")
@group_argument
@_set
@place_options
@servers_options
def update_group(
    name: str, pairs: Sequence[tuple[str, str]], servers: Servers, **place: Any
) -> None:
    """Change the given settings of GROUP.

    All other settings stay as they are.
    """
    settings = _settings(pairs)
    if not settings:
        raise click.UsageError("nothing is to be changed: give --set")

    async def work(admin: Admin) -> None:
        await admin.update_group(name, **place, **settings)
        print(f"changed group {name}")

    administrate(servers, work)


@command.command("delete")
@group_argument
@click.option(
    "--keep-offsets",
    is_flag=True,
    help="Keep the offsets, so that a group of the same name continues there.",
)
@cluster_option("Delete it only in this cluster.")
@yes_option
@servers_options
def delete_group(
    name: str, keep_offsets: bool, cluster: str | None, yes: bool, servers: Servers
) -> None:
    """Delete GROUP and its offsets.

    Its topics of retries and of dead letters are deleted as well.
    """
    confirm(f"Delete group {name} with its retries and dead letters?", yes=yes)

    async def work(admin: Admin) -> None:
        await admin.delete_group(name, clean_offsets=not keep_offsets, cluster=cluster)
        print(f"deleted group {name}")

    administrate(servers, work)


def _settings(pairs: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
    made: dict[str, Any] = {}
    for name, text in pairs:
        kind = _TYPES.get(name)
        if kind is None:
            raise click.UsageError(
                f"a group has no setting {name!r} here; there are {', '.join(sorted(_TYPES))}"
            )
        if kind == "bool" and text in ("true", "false"):
            made[name] = text == "true"
        elif kind == "int" and text.lstrip("-").isdecimal():
            made[name] = int(text)
        else:
            wanted = "true or false" if kind == "bool" else "a whole number"
            raise click.UsageError(f"{name} must be {wanted}, not {text!r}")
    return made


def is_system_group(name: str) -> bool:
    """Returns whether each broker has this group."""
    return name in _SYSTEM or name.startswith(_SYSTEM_PREFIXES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)
