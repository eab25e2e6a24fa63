# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq brokers`: list brokers, show their state, and change their settings."""

from __future__ import annotations

import difflib
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from txrocketmq.cli.admin.admin_command import (
    administrate,
    broker_argument,
    cluster_option,
    json_option,
    show,
    show_values,
)
from txrocketmq.cli.admin.overview import broker_rows
from txrocketmq.cli.command_line import Servers, group, pair, run, servers_options
from txrocketmq.cli.tables import size_text
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.base.errors import MQClientError

PROG: Final = "txrocketmq brokers"
command = group("brokers", "List brokers, show their state, and change their settings.")


@command.command("list")
@cluster_option("List only the brokers of this cluster.")
@servers_options
@json_option
def list_brokers(cluster: str | None, servers: Servers, as_json: bool) -> None:
    """List the brokers that are registered at the name servers.

    A broker that does not answer is listed without a version. If there are slaves, the list says by
    how many bytes of the log each is behind its master, and how long ago it last heard from it.
    """

    async def work(admin: Admin) -> None:
        rows = await broker_rows(admin, await admin.brokers(cluster))
        columns = {
            "cluster": "CLUSTER", "broker": "BROKER", "brokerId": "ID", "address": "ADDRESS",
            "version": "VERSION", "putTps": "IN/S", "getTps": "OUT/S",
        }  # fmt: skip
        if any(row["role"] == "slave" for row in rows):
            columns["replication"] = "REPLICATION"
            for row in rows:
                row["replication"] = _replication_text(row)
        place = f"in cluster {cluster}" if cluster else "at the name servers"
        none = f"no broker is registered {place}"
        folds = ("replication", "version", "address")
        show(rows, columns, as_json=as_json, none=none, folds=folds)

    administrate(servers, work)


def _replication_text(row: Mapping[str, Any]) -> str:
    """What a broker is, and how far a slave is, by the clock of this machine."""
    text = str(row["role"])
    if row["behindBytes"] is not None:
        text += f", {size_text(row['behindBytes'])} behind"
    if row["heardTimestamp"] is not None:
        text += f", heard {max(time.time() - row['heardTimestamp'] / 1000, 0):.0f} s ago"
    return text


@command.command("show")
@broker_argument
@servers_options
@json_option
def show_broker(broker: str, servers: Servers, as_json: bool) -> None:
    """Show the state of BROKER.

    BROKER is a name or HOST:PORT.
    """

    async def work(admin: Admin) -> None:
        show_values(await admin.broker_stats(broker), as_json=as_json)

    administrate(servers, work)


@command.command("config")
@broker_argument
@click.option(
    "--set", "pairs", type=pair, metavar="NAME=VALUE", multiple=True, help="Change this setting."
)
@servers_options
@json_option
def config(broker: str, pairs: Sequence[tuple[str, str]], servers: Servers, as_json: bool) -> None:
    """Show or change the settings of BROKER.

    BROKER is a name or HOST:PORT. With --set, the settings that it names are changed, and only
    these are shown.
    """

    async def work(admin: Admin) -> None:
        changes = dict(pairs)
        if changes:
            await admin.update_broker_config(broker, changes)
        settings = await admin.broker_config(broker)
        for name in changes:
            if name not in settings:
                near = difflib.get_close_matches(name, settings, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise MQClientError(f"broker {broker} has no setting {name}{hint}")
        shown = {name: settings.get(name) for name in changes or sorted(settings)}
        show_values(shown, as_json=as_json)

    administrate(servers, work)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)
