# SPDX-License-Identifier: Apache-2.0
"""Consumer groups: listing, creating, changing and deleting them, and their progress.

Settings are read back after they were made, since a broker of 4.x takes those of 5.x without a
word and does not keep them.

Java: UpdateSubGroupSubCommand, DeleteSubscriptionGroupCommand, ConsumerProgressSubCommand.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Mapping
from typing import Any, Final

from txrocketmq.client.admin.destinations import Destinations
from txrocketmq.client.admin.results import BrokerInfo, GroupProgress, QueueProgress
from txrocketmq.client.admin.topics import Attributes, Topics
from txrocketmq.client.base.errors import GroupNotFound, NotKept
from txrocketmq.client.base.validators import check_group
from txrocketmq.remoting.arguments.arguments import setting_kinds
from txrocketmq.remoting.arguments.kinds import Kind, kind_of
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.topics import DLQ_PREFIX, RETRY_PREFIX
from txrocketmq.remoting.protocol import pull
from txrocketmq.remoting.protocol import topic as calls
from txrocketmq.remoting.protocol.body.offset import QueryConsumeTimeSpanBody, QueueTimeSpan
from txrocketmq.remoting.protocol.body.pop import SetMessageRequestModeRequestBody
from txrocketmq.remoting.protocol.body.stats import ConsumeStats
from txrocketmq.remoting.protocol.body.topic import (
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
)
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import (
    GetConsumeStatsRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
)
from txrocketmq.remoting.protocol.topic import (
    DeleteSubscriptionGroupRequestHeader,
    GetAllSubscriptionGroupRequestHeader,
)

SETTINGS: Final = frozenset(each.name for each in dataclasses.fields(SubscriptionGroupConfig)) - {
    "group_name"
}


class Groups:
    """The part of the admin client for groups of consumers."""

    def __init__(self, destinations: Destinations, topics: Topics) -> None:
        self._servers = destinations
        self._topics = topics

    async def groups(self, cluster: str | None = None) -> list[str]:
        """Returns the names of all groups that the brokers know, or those of one cluster.

        Raises AdminRefused, BrokerNotExist and NoNameServer.
        """
        found: set[str] = set()
        for broker in await self._servers.masters(cluster):
            found.update(await self._group_table(broker))
        return sorted(found)

    async def group_configs(self, group: str) -> dict[str, SubscriptionGroupConfig]:
        """Returns the settings of a group at each master, by broker name.

        Raises GroupNotFound.
        """
        found: dict[str, SubscriptionGroupConfig] = {}
        for broker in await self._servers.masters():
            config = (await self._group_table(broker)).get(group)
            if config is not None:
                found[broker.name] = config
        if not found:
            raise GroupNotFound(group)
        return found

    async def create_group(
        self,
        group: str,
        *,
        cluster: str | None = None,
        broker: str | None = None,
        **settings: Any,
    ) -> None:
        """Creates a group at all masters of a cluster, or at one broker.

        The broker is given by its name or its address. `settings` are the fields of
        SubscriptionGroupConfig, such as retry_max_times=3 or consume_message_orderly=True; the
        others have their defaults. `attributes` maps names to values; the value None removes an
        attribute. If the group exists already, it gets these settings.

        Raises TypeError for a setting that does not exist, ValueError if there are several clusters
        and you name none of them, and also AdminRefused, PartlyFailed, NotKept, BrokerNotExist and
        MessageIllegal.
        """
        check_group(group)
        _check_settings(settings)
        masters = await self._servers.masters_to_change(cluster, broker)
        config = SubscriptionGroupConfig(group_name=group, **_on_wire(settings))
        await self._put_group(group, dict.fromkeys(masters, config), settings)

    async def update_group(
        self,
        group: str,
        *,
        cluster: str | None = None,
        broker: str | None = None,
        **settings: Any,
    ) -> None:
        """Changes some settings of a group, at all masters that have it or at one broker.

        Settings that are not given stay as they are. Raises TypeError for a setting that does not
        exist, GroupNotFound, AdminRefused, PartlyFailed, NotKept and BrokerNotExist.
        """
        _check_settings(settings)
        configs: dict[BrokerInfo, SubscriptionGroupConfig] = {}
        for each in await self._servers.masters(cluster, broker):
            config = (await self._group_table(each)).get(group)
            if config is not None:
                values = {name: getattr(config, name) for name in SETTINGS - {"attributes"}}
                configs[each] = SubscriptionGroupConfig(
                    group_name=group, **{**values, **_on_wire(settings)}
                )
        if not configs:
            raise GroupNotFound(group)
        await self._put_group(group, configs, settings)

    async def delete_group(
        self, group: str, *, clean_offsets: bool = True, cluster: str | None = None
    ) -> None:
        """Deletes a group, its offsets, its retry topic and its dead-letter topic.

        With `clean_offsets=False` the offsets stay, so that a new group of the same name continues
        there. Raises GroupNotFound, AdminRefused, PartlyFailed and BrokerNotExist.
        """
        doing = f"deleting group {group}"
        masters = await self._servers.masters(cluster)
        if not any([group in await self._group_table(each) for each in masters]):
            raise GroupNotFound(group)

        async def delete(broker: BrokerInfo) -> None:
            header = DeleteSubscriptionGroupRequestHeader(
                group_name=group, clean_offset=clean_offsets, remove_offset=clean_offsets
            )
            await self._servers.ask(
                broker.address, calls.DELETE_SUBSCRIPTIONGROUP, header, doing=doing
            )

        await self._servers.each(masters, doing, delete)
        for prefix in (RETRY_PREFIX, DLQ_PREFIX):
            if await self._servers.instance.name_servers.route(prefix + group) is not None:
                await self._topics.delete_topic_here(prefix + group, cluster)

    async def progress(self, group: str, topic: str | None = None) -> GroupProgress:
        """Returns how far a group has come in one topic, or in all topics that it consumes.

        Raises GroupNotFound if no broker knows the group, and also NoRoute, AdminRefused and
        PartlyFailed.
        """
        doing = f"asking how far group {group} has come"
        brokers = await (
            self._servers.brokers_of_group(group)
            if topic is None
            else self._servers.brokers_of_topic(topic)
        )

        async def ask(broker: BrokerInfo) -> ConsumeStats:
            header = GetConsumeStatsRequestHeader(consumer_group=group, topic=topic)
            reply = await self._servers.ask(
                broker.address, admin.GET_CONSUME_STATS, header, doing=doing
            )
            return ConsumeStats.decode(reply.body_bytes)

        tables = await self._servers.each(brokers, doing, ask)
        queues = [
            QueueProgress(
                queue=queue,
                broker_offset=its.broker_offset,
                consumer_offset=its.consumer_offset,
                pull_offset=its.pull_offset,
                last_timestamp=its.last_timestamp,
            )
            for table in tables
            for queue, its in table.offset_table.items()
        ]
        if not queues:
            await self.group_configs(group)
        return GroupProgress(
            group=group,
            queues=tuple(sorted(queues, key=lambda each: each.queue)),
            consume_tps=sum(table.consume_tps for table in tables),
        )

    async def time_spans(self, group: str, topic: str) -> list[QueueTimeSpan]:
        """Returns, for each queue of a topic, the times between which its messages were stored.

        Each result also has the time up to which the group has consumed the queue. Raises NoRoute
        and AdminRefused.
        """
        found: list[QueueTimeSpan] = []
        for broker in await self._servers.brokers_of_topic(topic):
            reply = await self._servers.ask(
                broker.address,
                admin.QUERY_CONSUME_TIME_SPAN,
                QueryConsumeTimeSpanRequestHeader(topic=topic, group=group),
                doing=f"asking for the times of group {group} in topic {topic}",
            )
            found += QueryConsumeTimeSpanBody.decode(reply.body_bytes).consume_time_span_set
        return found

    async def set_request_mode(
        self, group: str, topic: str, mode: str, *, pop_share_queue_num: int = 0
    ) -> None:
        """Sets whether push consumers of a group pull or pop a topic (5.x brokers).

        `mode` is "PULL" or "POP"; it concerns push consumers that let the broker distribute the
        queues. `pop_share_queue_num` says with how many other members each member shares its queues
        when they pop; -1 means that all members pop all queues. Raises ValueError for any other
        mode, and also NoRoute, AdminRefused and PartlyFailed.
        """
        if mode not in ("PULL", "POP"):
            raise ValueError(f"the mode is PULL or POP, not {mode!r}")
        doing = f"setting how group {group} gets the messages of topic {topic}"
        body = SetMessageRequestModeRequestBody(
            topic=topic, consumer_group=group, mode=mode, pop_share_queue_num=pop_share_queue_num
        ).encode()

        async def put(broker: BrokerInfo) -> None:
            await self._servers.ask(
                broker.address, pull.SET_MESSAGE_REQUEST_MODE, NoHeader(), body, doing=doing
            )

        await self._servers.each(await self._servers.brokers_of_topic(topic), doing, put)

    # ------------------------------------------------------------- settings

    async def _group_table(self, broker: BrokerInfo) -> Mapping[str, SubscriptionGroupConfig]:
        reply = await self._servers.ask(
            broker.address,
            calls.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
            GetAllSubscriptionGroupRequestHeader(),
            doing="asking for the groups",
        )
        return SubscriptionGroupWrapper.decode(reply.body_bytes).subscription_group_table

    async def _put_group(
        self,
        group: str,
        configs: Mapping[BrokerInfo, SubscriptionGroupConfig],
        settings: Mapping[str, Any],
    ) -> None:
        doing = f"creating or changing group {group}"

        async def put(broker: BrokerInfo) -> None:
            body = configs[broker].encode()
            await self._servers.ask(
                broker.address,
                calls.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
                NoHeader(),
                body,
                doing=doing,
            )
            kept = (await self._group_table(broker)).get(group)
            lost = [name for name in settings if kept is None or not _is_kept(kept, name, settings)]
            if lost:
                raise NotKept(f"{broker} does not keep {', '.join(sorted(lost))} of group {group}")

        await self._servers.each(list(configs), doing, put)


@functools.cache
def _kinds() -> dict[str, Kind]:
    return {**setting_kinds(SubscriptionGroupConfig), "attributes": kind_of(Attributes)}


def _check_settings(settings: Mapping[str, Any]) -> None:
    for name in settings:
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"a group has no setting {name!r}{hint}")
        _kinds()[name].take(name, settings[name])


def _on_wire(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes are sent as changes: "+name", or "-name" for one that is removed."""
    made = dict(settings)
    if "attributes" in made:
        made["attributes"] = {
            f"-{name}" if value is None else f"+{name}": value or ""
            for name, value in made["attributes"].items()
        }
    return made


def _is_kept(kept: SubscriptionGroupConfig, name: str, settings: Mapping[str, Any]) -> bool:
    if name == "attributes":
        return all(kept.attributes.get(key) == value for key, value in settings[name].items())
    value, its = settings[name], getattr(kept, name)
    return bool(_plain(value) == _plain(its))


def _plain(value: Any) -> Any:
    return value.to_json() if hasattr(value, "to_json") else value
