# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq topics`: list, show, create, change and delete topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from txrocketmq.cli.admin.admin_command import (
    administrate,
    broker_option,
    cluster_option,
    confirm,
    json_option,
    operate,
    place_options,
    show,
    topic_argument,
    yes_option,
)
from txrocketmq.cli.admin.topic_rows import (
    COLUMNS,
    FOLDS,
    PERM_NAMES,
    PERMS,
    OwnTopics,
    topic_rows,
)
from txrocketmq.cli.command_line import (
    Servers,
    group,
    pair,
    positive,
    progress,
    run,
    servers_options,
)
from txrocketmq.cli.tables import json_lines, time_text
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.admin.topics import DEFAULT_QUEUES
from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.primitives.plain_text import plain

PROG: Final = "txrocketmq topics"
command = group("topics", "List, show, create, change and delete topics.")
_perm: Final = click.Choice(list(PERMS))
_attribute: Final = click.option(
    "--attribute",
    "attributes",
    type=pair,
    metavar="NAME=VALUE",
    multiple=True,
    help="An attribute (5.x), such as message.type=FIFO; an empty value removes it.",
)


@command.command("list")
@cluster_option("List only the topics of this cluster.")
@click.option(
    "-a", "--all", "with_all", is_flag=True, help="Include system, retry and dead-letter topics."
)
@click.option("--names", "only_names", is_flag=True, help="Print the names only, one a line.")
@servers_options
@json_option
def list_topics(
    cluster: str | None, with_all: bool, only_names: bool, servers: Servers, as_json: bool
) -> None:
    """List topics with their queues, messages, rates and sizes.

    Sizes are estimated from the sizes of some messages.
    """

    async def work(client: ClientInstance) -> None:
        admin = Admin(client)
        names = await admin.topics(cluster)
        own = await OwnTopics.of(admin)
        wanted = [name for name in names if with_all or name not in own]
        if only_names:
            rows: Sequence[Mapping[str, Any]] = [{"topic": name} for name in wanted]
            if wanted:
                text = json_lines(rows) if as_json else plain("\n".join(wanted), keep="\n")
                print(text, flush=True)
            return
        with progress("asking for topics", len(wanted)) as step:
            rows = await topic_rows(client, wanted, step)
        where = f"in cluster {cluster}" if cluster else "besides those of the system"
        none = f"there are no topics {where}"
        show(rows, COLUMNS, as_json=as_json, none=none, folds=FOLDS)

    operate(servers, work)


@command.command("show")
@topic_argument
@servers_options
@json_option
def show_topic(topic: str, servers: Servers, as_json: bool) -> None:
    """Show the queues of TOPIC.

    For each queue, the first offset, the next offset and the time of the last message are shown.
    Attributes of the topic (5.x), such as message.type, are shown below.
    """

    async def work(admin: Admin) -> None:
        configs = await admin.topic_configs(topic)
        rows = []
        attributes: dict[str, Mapping[str, str]] = {}
        for each in (await admin.topic_stats(topic)).queues:
            config = configs.get(each.queue.broker_name)
            its = attributes[each.queue.broker_name] = {} if config is None else config.attributes
            rows.append(
                {
                    "broker": each.queue.broker_name,
                    "queueId": each.queue.queue_id,
                    "perm": None if config is None else PERM_NAMES.get(config.perm, config.perm),
                    "minOffset": each.min_offset,
                    "maxOffset": each.max_offset,
                    "messages": each.messages,
                    "lastUpdateTimestamp": each.last_update_timestamp,
                    "lastUpdate": time_text(each.last_update_timestamp),
                    "attributes": dict(its),
                }
            )
        columns = {
            "broker": "BROKER", "queueId": "QUEUE", "perm": "PERM", "minOffset": "FIRST",
            "maxOffset": "NEXT", "messages": "MESSAGES", "lastUpdate": "LAST MESSAGE",
        }  # fmt: skip
        show(rows, columns, as_json=as_json, none=f"topic {topic} has no queues", folds=FOLDS)
        if rows and not as_json:
            for line in attribute_lines(attributes):
                print(line, flush=True)

    administrate(servers, work)


def attribute_lines(by_broker: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Returns a line with the attributes of a topic, or one for each broker if they differ."""
    texts = {
        broker: ", ".join(f"{plain(name)}={plain(its[name])}" for name in sorted(its)) or "none"
        for broker, its in by_broker.items()
    }
    if len(set(texts.values())) == 1:
        (text,) = set(texts.values())
        return [] if text == "none" else [f"Attributes: {text}"]
    return [f"Attributes at {plain(broker)}: {text}" for broker, text in texts.items()]


@command.command("route")
@topic_argument
@servers_options
@json_option
def route_of_topic(topic: str, servers: Servers, as_json: bool) -> None:
    """Show which brokers have TOPIC, and how many queues."""

    async def work(admin: Admin) -> None:
        route = await admin.topic_route(topic)
        brokers = {each.broker_name: each for each in route.broker_datas}
        rows: list[dict[str, Any]] = []
        for queues in route.queue_datas:
            broker = brokers.get(queues.broker_name)
            addresses = {} if broker is None else dict(sorted(broker.broker_addrs.items()))
            rows.append(
                {
                    "broker": queues.broker_name,
                    "cluster": None if broker is None else broker.cluster,
                    "readQueues": queues.read_queue_nums,
                    "writeQueues": queues.write_queue_nums,
                    "perm": PERM_NAMES.get(queues.perm, queues.perm),
                    "addresses": " ".join(addresses.values()),
                }
            )
        columns = {
            "broker": "BROKER", "cluster": "CLUSTER", "readQueues": "READ QUEUES",
            "writeQueues": "WRITE QUEUES", "perm": "PERM", "addresses": "ADDRESSES",
        }  # fmt: skip
        none = f"no broker has topic {topic}"
        show(rows, columns, as_json=as_json, none=none, folds=("addresses", "cluster"))

    administrate(servers, work)


@command.command("create")
@topic_argument
@click.option(
    "--queues",
    type=positive,
    default=str(DEFAULT_QUEUES),
    metavar="N",
    help=f"The number of queues at each broker (default: {DEFAULT_QUEUES}).",
)
@click.option("--perm", type=_perm, default="rw", help="What clients may do (default: rw).")
@click.option(
    "--order", is_flag=True, help="Keep the list of queues the same while brokers are away."
)
@_attribute
@place_options
@servers_options
def create_topic(
    topic: str, perm: str, attributes: Sequence[tuple[str, str]], servers: Servers, **settings: Any
) -> None:
    """Create TOPIC at all masters of the cluster, or at one broker.

    A topic that exists with another number of queues stays as it is.
    """

    async def work(admin: Admin) -> None:
        given = _attributes(attributes)
        await _check_queues(admin, topic, **settings)
        await admin.create_topic(topic, perm=PERMS[perm], attributes=given, **settings)
        print(f"created topic {topic}")

    administrate(servers, work)


async def _check_queues(
    admin: Admin, topic: str, *, queues: int, cluster: str | None, broker: str | None, **_: Any
) -> None:
    """Raises ValueError if the topic has another number of queues, on whose order readers rely."""
    try:
        route = await admin.topic_route(topic)
    except MQClientError:  # it is new, or the creation says what is wrong
        return
    places = {
        each.broker_name: {each.broker_name, *each.broker_addrs.values()}
        for each in route.broker_datas
        if cluster in (None, each.cluster)
    }
    for has in route.queue_datas:
        count = max(has.read_queue_nums, has.write_queue_nums)
        its = places.get(has.broker_name, ())
        if count != queues and its and (broker is None or broker in its):
            raise ValueError(
                f"topic {topic} exists already: it has {count} queue{'' if count == 1 else 's'} at"
                f" {has.broker_name}, not {queues}; 'txrocketmq topics update' changes topics"
            )


@command.command("update")
@topic_argument
@click.option(
    "--read-queues",
    type=positive,
    metavar="N",
    help="The number of queues that can be read.",
)
@click.option(
    "--write-queues",
    type=positive,
    metavar="N",
    help="The number of queues that can be written.",
)
@click.option("--perm", type=_perm, help="What clients may do.")
@click.option(
    "--order/--no-order",
    default=None,
    help="Whether to keep the list of queues the same while brokers are away.",
)
@_attribute
@broker_option("Change it only at this broker, given by name or HOST:PORT.")
@servers_options
def update_topic(
    topic: str,
    perm: str | None,
    attributes: Sequence[tuple[str, str]],
    servers: Servers,
    **settings: Any,
) -> None:
    """Change the given settings of TOPIC.

    All other settings stay as they are.
    """

    async def work(admin: Admin) -> None:
        number = None if perm is None else PERMS[perm]
        given = _attributes(attributes)
        await admin.update_topic(topic, perm=number, attributes=given, **settings)
        print(f"changed topic {topic}")

    administrate(servers, work)


@command.command("delete")
@topic_argument
@cluster_option("Delete it only in this cluster.")
@yes_option
@servers_options
def delete_topic(topic: str, cluster: str | None, yes: bool, servers: Servers) -> None:
    """Delete TOPIC and all its messages."""
    confirm(f"Delete topic {topic} with all its messages?", yes=yes)

    async def work(admin: Admin) -> None:
        await admin.delete_topic(topic, cluster=cluster)
        print(f"deleted topic {topic}")

    administrate(servers, work)


def _attributes(pairs: Sequence[tuple[str, str]]) -> dict[str, str | None]:
    return {name: value or None for name, value in pairs}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)
