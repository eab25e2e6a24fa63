# SPDX-License-Identifier: Apache-2.0
"""What `txrocketmq status` says: brokers, topics, groups, and what is wrong with them.

A cluster may have any number of topics and groups, each of which costs some requests; so only so
many are looked at, and the overview says how many were left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from txrocketmq.cli.admin.groups import is_system_group
from txrocketmq.cli.admin.lag import rows_of_groups
from txrocketmq.cli.admin.topic_rows import OwnTopics, topic_rows
from txrocketmq.cli.timeline import at_once
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.admin.results import MASTER_ID, BrokerInfo
from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.topics import DLQ_PREFIX

MOST_TOPICS: Final = 500
MOST_GROUPS: Final = 500
MOST_DEAD: Final = 200
"""How many topics, groups, and topics of dead letters are looked at."""
DISK_RATIO: Final = 0.75
"""From which part of a disk on a broker deletes old files (diskMaxUsedSpaceRatio)."""
_FAILURES: Final = (MQClientError, RemotingError)
Row = dict[str, Any]


@dataclass(slots=True)
class Overview:
    """What was found; the rows are those of the tables."""

    name_servers: str
    brokers: list[Row] = field(default_factory=list)
    topics: list[Row] = field(default_factory=list)
    groups: list[Row] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    more_topics: int = 0
    more_groups: int = 0


async def overview(client: ClientInstance) -> Overview:
    """Asks a cluster how it is. Raises NoNameServer, and AdminRefused for what is none."""
    admin = Admin(client)
    found = Overview(client.config.namesrv_addr)
    found.brokers = await broker_rows(admin, await admin.brokers())
    names = await admin.topics()
    own = await OwnTopics.of(admin)
    topics = [name for name in names if name not in own]
    found.topics = await topic_rows(client, topics[:MOST_TOPICS])
    found.more_topics = len(topics[MOST_TOPICS:])
    dead = [name for name in names if name.startswith(DLQ_PREFIX)]
    letters = await topic_rows(client, dead[:MOST_DEAD])
    groups = [name for name in await _groups(admin) if not is_system_group(name)]
    found.groups = await rows_of_groups(admin, groups[:MOST_GROUPS])
    found.more_groups = len(groups[MOST_GROUPS:])
    found.warnings = warnings(found.brokers, found.topics, found.groups, letters)
    return found


async def broker_rows(admin: Admin, brokers: Sequence[BrokerInfo]) -> list[Row]:
    """Returns brokers as rows; one that does not answer has no version.

    Slaves have numbers of bytes by which they are behind the master of their name, and times at
    which they last heard from it, as far as brokers tell.
    """

    async def ask(broker: BrokerInfo) -> Row:
        problem: str | None = None
        try:
            stats = await admin.broker_stats(broker.address)
        except _FAILURES as error:
            stats, problem = {}, str(error)
        is_slave = broker.broker_id != MASTER_ID
        heard_ms = await _heard_ms(admin, broker.address) if is_slave and not problem else None
        return {
            "cluster": broker.cluster,
            "broker": broker.name,
            "brokerId": broker.broker_id,
            "address": broker.address,
            "role": "slave" if is_slave else "master",
            "version": stats.get("brokerVersionDesc"),
            "putTps": _first_number(stats.get("putTps")),
            "getTps": _first_number(stats.get("getTransferredTps")),
            "diskRatio": _first_number(stats.get("commitLogDiskRatio")),
            "logEnd": _first_number(stats.get("commitLogMaxOffset")),
            "heardTimestamp": heard_ms,
            "problem": problem,
        }

    rows = await at_once([partial(ask, each) for each in brokers])
    ends = {
        (row["cluster"], row["broker"]): row["logEnd"] for row in rows if row["role"] == "master"
    }
    for row in rows:
        master, own = ends.get((row["cluster"], row["broker"])), row.pop("logEnd")
        is_known = row["role"] == "slave" and master is not None and own is not None
        row["behindBytes"] = max(int(master - own), 0) if is_known else None
    return rows


async def _heard_ms(admin: Admin, address: str) -> int | None:
    """When a slave last heard from its master, in ms; None if it does not say, as in 4.9."""
    try:
        its = (await admin.replication(address)).ha_client_runtime_info
    except _FAILURES:
        return None
    return its.last_read_timestamp or None


def warnings(
    brokers: Sequence[Mapping[str, Any]],
    topics: Sequence[Mapping[str, Any]],
    groups: Sequence[Mapping[str, Any]],
    dead: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Returns sentences about what somebody should look at."""
    said = []
    if not brokers:
        said.append("No broker is registered, so nothing can be sent: start one.")
    for each in brokers:
        ratio = each["diskRatio"] or 0
        if each["problem"]:
            said.append(f"Broker {each['broker']} does not answer: {each['problem']}.")
        elif ratio >= DISK_RATIO:
            said.append(
                f"The disk of broker {each['broker']} is {ratio:.0%} full: old messages are deleted"
                " early, and sends are refused when it is full."
            )
    unanswered = [str(each["topic"]) for each in topics if "messages" not in each]
    if unanswered:
        said.append(f"No broker answers for {_some(unanswered, 'topic')}.")
    said += [
        f"Group {each['group']} is {_count(each['lag'], 'message')} behind, and no consumer of it"
        " is connected."
        for each in groups
        if each["lag"] and not each["consumers"]
    ]
    for each in dead:
        if each.get("messages"):
            group = str(each["topic"]).removeprefix(DLQ_PREFIX)
            said.append(
                f"Group {group} has {_count(each['messages'], 'dead letter')}: see 'txrocketmq"
                f" dead-letters list {group}'."
            )
    return said


async def _groups(admin: Admin) -> list[str]:
    """Returns the groups; none if no broker can be asked, which is said of the brokers."""
    try:
        return await admin.groups()
    except _FAILURES:
        return []


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _some(names: Sequence[str], noun: str) -> str:
    shown = ", ".join(names[:5])
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return f"{noun}{'s' if len(names) > 1 else ''} {shown}{more}"


def _first_number(text: str | None) -> float | None:
    """Returns the first number of a text.

    Of the three rates that brokers report, it is the one over ten seconds; the others are those
    over a minute and ten minutes.
    """
    try:
        return float((text or "").split()[0])
    except (IndexError, ValueError):
        return None
