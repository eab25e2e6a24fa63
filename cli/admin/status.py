# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq status`, or `txrocketmq` alone: one overview of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

import click

from txrocketmq.cli.admin import lag, topic_rows
from txrocketmq.cli.admin.admin_command import operate
from txrocketmq.cli.admin.overview import Overview, overview
from txrocketmq.cli.command_line import Servers, one_command, run, servers_options
from txrocketmq.cli.session import HOW_TO_START
from txrocketmq.cli.tables import json_text, table_text, terminal_width
from txrocketmq.client.base.errors import MQClientError, NoNameServer
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.primitives.plain_text import plain

PROG: Final = "txrocketmq status"
SHOWN: Final = 20
"""How many topics and groups are shown, those with the most messages and the largest lag."""
BROKER_COLUMNS: Final = {
    "broker": "BROKER", "brokerId": "ID", "address": "ADDRESS", "cluster": "CLUSTER",
    "version": "VERSION", "putTps": "IN/S", "getTps": "OUT/S", "disk": "DISK",
}  # fmt: skip
_TOPIC_COLUMNS: Final = {
    name: heading for name, heading in topic_rows.COLUMNS.items() if name != "perm"
}


@one_command("status", epilog="'txrocketmq' alone does the same.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@servers_options
def command(servers: Servers, as_json: bool) -> None:
    """Show brokers, topics and groups of a cluster, and what is wrong with them."""

    async def work(client: ClientInstance) -> None:
        try:
            found = await overview(client)
        except NoNameServer as error:
            raise MQClientError(
                f"{error}: {HOW_TO_START} ('txrocketmq --help' lists the commands)"
            ) from None
        print(json_text(as_object(found)) if as_json else text(found, terminal_width()), flush=True)

    operate(servers, work)


def as_object(found: Overview) -> Mapping[str, Any]:
    """Returns the overview for programs."""
    return {
        "nameServers": found.name_servers,
        "brokers": found.brokers,
        "topics": found.topics,
        "groups": found.groups,
        "warnings": found.warnings,
        "topicsLeftOut": found.more_topics,
        "groupsLeftOut": found.more_groups,
    }


def text(found: Overview, width: int) -> str:
    """Returns the overview for a person."""
    topics = sorted(found.topics, key=lambda each: (-each.get("messages", 0), each["topic"]))
    groups = sorted(found.groups, key=lambda each: (-each["lag"], each["group"]))
    brokers = [{**each, "disk": _percent(each["diskRatio"])} for each in found.brokers]
    parts = [_wrapped(f"Name servers: {found.name_servers}", width)]
    if brokers:
        folds = ("version", "address", "cluster")
        parts.append(table_text(brokers, BROKER_COLUMNS, folds=folds, width=width))
    if topics:
        parts.append(_shown(topics, found.more_topics, _TOPIC_COLUMNS, "topics list", width))
    else:
        parts.append("There are no topics yet: 'txrocketmq send TOPIC BODY' makes one.")
    if groups:
        parts.append(_shown(groups, found.more_groups, lag.ALL_COLUMNS, "lag", width))
    else:
        parts.append("No consumer group has consumed anything yet.")
    said = [_wrapped(f"Warning: {each}", width) for each in found.warnings] or ["No warnings."]
    return "\n\n".join([*parts, "\n".join(said)])


def _shown(
    rows: Sequence[Mapping[str, Any]],
    more: int,
    columns: Mapping[str, str],
    command_of_all: str,
    width: int,
) -> str:
    """Returns the first rows as a table, and says how many there are besides."""
    folds = (*topic_rows.FOLDS, "model", "inFlight")
    table = table_text(rows[:SHOWN], columns, folds=folds, width=width)
    left = len(rows[SHOWN:]) + more
    if not left:
        return table
    return f"{table}\n... and {left:,} more: 'txrocketmq {command_of_all}' lists all."


def _wrapped(sentence: str, width: int) -> str:
    return "\n".join(wrap(plain(sentence), width, subsequent_indent="  ", break_on_hyphens=False))


def _percent(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.0%}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)
