# SPDX-License-Identifier: Apache-2.0
# Made by docs/generate_client_stubs.py of the classes of the core: do not edit.
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from twisted.internet.defer import Deferred
from txrocketmq.client.admin.results import BrokerInfo
from txrocketmq.client.admin.results import GroupProgress
from txrocketmq.client.admin.results import MessageTrack
from txrocketmq.client.admin.results import TopicStats
from txrocketmq.client.admin.topics import Attributes
from txrocketmq.client.consumer.config import ConsumeFrom
from txrocketmq.client.consumer.config import MessageModel
from txrocketmq.client.consumer.group.rebalance import QueuesListener
from txrocketmq.client.consumer.group.subscription import Expression
from txrocketmq.client.consumer.listening.hooks import ConsumeHook
from txrocketmq.client.consumer.listening.listener import Listener
from txrocketmq.client.consumer.listening.listener import OrderlyListener
from txrocketmq.client.consumer.lite_pull import WatchListener
from txrocketmq.client.core.trace import TraceRecord
from txrocketmq.client.producer.hooks import CheckForbidden
from txrocketmq.client.producer.hooks import EndTransactionHook
from txrocketmq.client.producer.hooks import SendHook
from txrocketmq.client.producer.send.selectors import Selector
from txrocketmq.client.producer.send_result import SendResult
from txrocketmq.client.producer.send_result import TransactionSendResult
from txrocketmq.client.producer.transaction import Check
from txrocketmq.client.producer.transaction import Execute
from txrocketmq.remoting.message.allocate import Strategy
from txrocketmq.remoting.message.compression import CompressionType
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.client import Connection
from txrocketmq.remoting.protocol.body.client import ConsumeMessageDirectlyResult
from txrocketmq.remoting.protocol.body.client import ConsumerConnection
from txrocketmq.remoting.protocol.body.client import ConsumerRunningInfo
from txrocketmq.remoting.protocol.body.client import ProducerInfo
from txrocketmq.remoting.protocol.body.offset import QueueTimeSpan
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.protocol.body.stats import BrokerStatsData
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from typing import Any
from typing import Self

from txrocketmq.client.faces.names import (
    AdminRefused as AdminRefused,
    BrokerInfo as BrokerInfo,
    BrokerNotExist as BrokerNotExist,
    ClientClosed as ClientClosed,
    CompressionType as CompressionType,
    ConnectError as ConnectError,
    ConsumeContext as ConsumeContext,
    ConsumeFrom as ConsumeFrom,
    ConsumeHook as ConsumeHook,
    ConsumeHookContext as ConsumeHookContext,
    ConsumeOrderlyContext as ConsumeOrderlyContext,
    ConsumeOrderlyStatus as ConsumeOrderlyStatus,
    ConsumeReturnType as ConsumeReturnType,
    ConsumeStatus as ConsumeStatus,
    EndTransactionContext as EndTransactionContext,
    GroupNotFound as GroupNotFound,
    GroupOffline as GroupOffline,
    GroupOnline as GroupOnline,
    GroupProgress as GroupProgress,
    MQBrokerError as MQBrokerError,
    MQClientError as MQClientError,
    Message as Message,
    MessageExt as MessageExt,
    MessageIllegal as MessageIllegal,
    MessageModel as MessageModel,
    MessageNotFound as MessageNotFound,
    MessageQueue as MessageQueue,
    MessageSelector as MessageSelector,
    MessageTrack as MessageTrack,
    NoNameServer as NoNameServer,
    NoRoute as NoRoute,
    NotARequest as NotARequest,
    NotAssigned as NotAssigned,
    NotKept as NotKept,
    NotRunning as NotRunning,
    OffsetIllegal as OffsetIllegal,
    OffsetsUnreadable as OffsetsUnreadable,
    PartlyFailed as PartlyFailed,
    PopNotSupported as PopNotSupported,
    QueueProgress as QueueProgress,
    QueueStats as QueueStats,
    RemotingError as RemotingError,
    RequestTimedOut as RequestTimedOut,
    RequestTimeout as RequestTimeout,
    SendContext as SendContext,
    SendFailed as SendFailed,
    SendHook as SendHook,
    SendResult as SendResult,
    SendStatus as SendStatus,
    SubscriptionError as SubscriptionError,
    TooMuchOnTheWay as TooMuchOnTheWay,
    TopicStats as TopicStats,
    TrackType as TrackType,
    TransactionSendResult as TransactionSendResult,
    TransactionStatus as TransactionStatus,
    averagely as averagely,
    averagely_by_circle as averagely_by_circle,
    by_config as by_config,
    by_hash as by_hash,
    by_machine_room as by_machine_room,
    by_random as by_random,
    consistent_hash as consistent_hash,
    nearby_machine_room as nearby_machine_room,
    new_message as new_message,
    orderly as orderly,
    split_batches as split_batches,
)

class Admin:
    """Administers clusters: topics, groups, offsets, messages, clients and servers.

    Topics and groups have the names under which the brokers know them. A server's refusal raises
    AdminRefused, whose text says what was refused, which server refused it, and what to do. A
    request for several servers is sent to all of them, even if some fail; PartlyFailed then says
    which ones failed. NoNameServer says that no name server can be asked, BrokerNotExist that no
    broker is registered under the given name or in the given cluster, and ValueError that arguments
    contradict each other or that one of several clusters has to be named. Connections that fail
    raise a RemotingError.
    """
    def __init__(
        self,
        *,
        reactor: Any = ...,
        admin_timeout_ms: int = ...,
        search_timeout_ms: int = ...,
        namesrv_addr: str = ...,
        client_ip: str = ...,
        instance_name: str = ...,
        keep_default_instance_name: bool = ...,
        unit_name: str = ...,
        poll_name_server_interval_ms: int = ...,
        heartbeat_broker_interval_ms: int = ...,
        api_timeout_ms: int = ...,
        namesrv_domain: str = ...,
        namesrv_domain_subgroup: str = ...,
        namespace: str = ...,
        namespace_v2: str = ...,
        unit_mode: bool = ...,
        vip_channel_enabled: bool = ...,
        use_heartbeat_v2: bool = ...,
        access_key: str = ...,
        secret_key: str = ...,
        security_token: str = ...,
        use_tls: bool = ...,
        tls_trust_cert_path: str = ...,
        tls_cert_path: str = ...,
        tls_key_path: str = ...,
    ) -> None: ...
    def start(self) -> Deferred[Self]: ...
    def shutdown(self) -> Deferred[None]: ...
    def __aenter__(self) -> Deferred[Self]: ...
    def __aexit__(self, *_: object) -> Deferred[None]: ...
    def add_write_perm(self, broker: str) -> Deferred[int]:
        """Lets producers send to a broker again; returns the number of topics.

        Raises AdminRefused and PartlyFailed.
        """
    def broker_config(self, broker: str) -> Deferred[dict[str, str]]:
        """Returns the settings of a broker.

        Raises BrokerNotExist and AdminRefused.
        """
    def broker_counter(self, broker: str, name: str, key: str) -> Deferred[BrokerStatsData | None]:
        """Returns a counter of a broker over a minute, an hour and a day.

        Counters are, for example, ("TOPIC_PUT_NUMS", topic) and ("GROUP_GET_NUMS", "TOPIC@GROUP").
        The result is None if the broker does not have the counter. Raises BrokerNotExist and
        AdminRefused.
        """
    def broker_stats(self, broker: str) -> Deferred[dict[str, str]]:
        """Returns the state of a broker as names and values, all of them text.

        The broker is given by its name or its address. Raises BrokerNotExist, AdminRefused, and
        errors of the connection.
        """
    def brokers(self, cluster: str | None = ...) -> Deferred[list[BrokerInfo]]:
        """Returns all brokers that the name servers know, or those of one cluster.

        Raises NoNameServer.
        """
    def clean_expired_queues(self, broker: str) -> Deferred[None]:
        """Removes from a broker the files of queues whose messages have expired.

        Raises BrokerNotExist and AdminRefused.
        """
    def clean_unused_topics(self, broker: str) -> Deferred[None]:
        """Removes the queues of topics that no longer exist from a broker.

        Raises BrokerNotExist and AdminRefused.
        """
    def clone_offsets(self, source: str, group: str, topic: str | None = ...) -> Deferred[dict[MessageQueue, int]]:
        """Gives a group the offsets of another group, in one topic or in all; returns them.

        Raises GroupOnline if consumers of the group are connected, and also GroupNotFound, NoRoute,
        BrokerNotExist and AdminRefused.
        """
    def clusters(self) -> Deferred[list[str]]:
        """Returns the names of all clusters.

        Raises NoNameServer.
        """
    def consume_directly(self, group: str, client_id: str, topic: str, msg_id: str) -> Deferred[ConsumeMessageDirectlyResult]:
        """Makes a connected consumer consume one message now; no offset changes.

        Raises MessageNotFound, NoRoute, and AdminRefused if the consumer is not connected or does
        not answer in time.
        """
    def consumer_connections(self, group: str) -> Deferred[ConsumerConnection]:
        """Returns the connected consumers of a group and their subscriptions.

        Since consumers connect to all brokers, the answer is that of the first broker that knows
        any of them. Raises GroupOffline if none is connected, and also AdminRefused and
        BrokerNotExist.
        """
    def consumer_offset(self, group: str, queue: MessageQueue) -> Deferred[int | None]:
        """Returns the offset that a group consumes next in a queue, or None if it has none.

        Raises NoRoute, BrokerNotExist and AdminRefused.
        """
    def consumer_running_info(self, group: str, client_id: str, *, with_stacks: bool = ...) -> Deferred[ConsumerRunningInfo]:
        """Asks a connected consumer for its settings, its queues and its figures.

        With `with_stacks`, the answer also contains the stacks of its threads. Raises GroupOffline
        if no consumer of the group is connected, and AdminRefused if this consumer is not connected
        or does not answer.
        """
    def consumer_status(self, group: str, topic: str) -> Deferred[Mapping[str, Mapping[MessageQueue, int]]]:
        """Asks each connected consumer of a group for its offsets; returns them by client id.

        Raises NoRoute and AdminRefused.
        """
    def create_group(self, group: str, *, cluster: str | None = ..., broker: str | None = ..., **settings: Any) -> Deferred[None]:
        """Creates a group at all masters of a cluster, or at one broker.

        The broker is given by its name or its address. `settings` are the fields of
        SubscriptionGroupConfig, such as retry_max_times=3 or consume_message_orderly=True; the
        others have their defaults. `attributes` maps names to values; the value None removes an
        attribute. If the group exists already, it gets these settings.

        Raises TypeError for a setting that does not exist, ValueError if there are several clusters
        and you name none of them, and also AdminRefused, PartlyFailed, NotKept, BrokerNotExist and
        MessageIllegal.
        """
    def create_topic(self, topic: str, *, queues: int = ..., perm: int = ..., order: bool = ..., attributes: Attributes | None = ..., cluster: str | None = ..., broker: str | None = ...) -> Deferred[None]:
        """Creates a topic at all masters of a cluster, or at one broker.

        The broker is given by its name or its address. `queues` is the number of queues at each
        broker. `perm` is 6 for reading and writing, 4 for reading only, and 2 for writing only.
        With `order`, clients keep using the same list of queues while brokers are away.
        `attributes` are for 5.x brokers, such as {"message.type": "FIFO"}. If the topic exists
        already, it gets these settings.

        Raises ValueError if there are several clusters and you name none of them, and also
        AdminRefused, PartlyFailed, NotKept, BrokerNotExist and MessageIllegal.
        """
    def delete_expired_commit_log(self, broker: str) -> Deferred[None]:
        """Removes from a broker the files of the commit log that have expired.

        Raises BrokerNotExist and AdminRefused.
        """
    def delete_group(self, group: str, *, clean_offsets: bool = ..., cluster: str | None = ...) -> Deferred[None]:
        """Deletes a group, its offsets, its retry topic and its dead-letter topic.

        With `clean_offsets=False` the offsets stay, so that a new group of the same name continues
        there. Raises GroupNotFound, AdminRefused, PartlyFailed and BrokerNotExist.
        """
    def delete_kv_config(self, namespace: str, key: str) -> Deferred[None]:
        """Removes a value from all name servers.

        Raises AdminRefused and PartlyFailed.
        """
    def delete_topic(self, topic: str, *, cluster: str | None = ...) -> Deferred[None]:
        """Deletes a topic and its messages, at all masters or at those of one cluster.

        The name servers forget the topic as well. Raises NoRoute, AdminRefused, PartlyFailed and
        BrokerNotExist.
        """
    def group_configs(self, group: str) -> Deferred[dict[str, SubscriptionGroupConfig]]:
        """Returns the settings of a group at each master, by broker name.

        Raises GroupNotFound.
        """
    def groups(self, cluster: str | None = ...) -> Deferred[list[str]]:
        """Returns the names of all groups that the brokers know, or those of one cluster.

        Raises AdminRefused, BrokerNotExist and NoNameServer.
        """
    def kv_config(self, namespace: str, key: str) -> Deferred[str | None]:
        """Returns a value that the name servers keep, or None if there is none.

        Raises AdminRefused.
        """
    def kv_configs(self, namespace: str) -> Deferred[dict[str, str]]:
        """Returns all values of a namespace; there may be none.

        Raises AdminRefused.
        """
    def max_offset(self, queue: MessageQueue) -> Deferred[int]:
        """Returns the offset that the next message of a queue will get.

        Raises NoRoute and BrokerNotExist.
        """
    def message(self, topic: str, msg_id: str) -> Deferred[MessageExt]:
        """Returns the message with an id.

        The id is either the unique key that its producer gave the message, or the id that says
        where a broker stored it. Raises MessageNotFound, NoRoute, AdminRefused and PartlyFailed.
        """
    def message_at(self, queue: MessageQueue, offset: int) -> Deferred[MessageExt]:
        """Returns the message at an offset of a queue.

        Raises MessageNotFound, NoRoute and AdminRefused.
        """
    def message_trace(self, msg_id: str, *, trace_topic: str = ...) -> Deferred[list[TraceRecord]]:
        """Returns the traces that clients have written of a message, given its unique key.

        The list may be empty. Raises NoRoute, AdminRefused and PartlyFailed.
        """
    def message_tracks(self, message: MessageExt) -> Deferred[list[MessageTrack]]:
        """Returns for each group of the message's topic whether it has consumed the message.

        Raises NoRoute and AdminRefused.
        """
    def messages_between(self, topic: str, begin_ms: int, end_ms: int | None = ..., *, expression: str = ..., max_messages: int = ..., seen: Callable[[int], None] | None = ...) -> Deferred[list[MessageExt]]:
        """Returns the messages that were stored between two times, the oldest first.

        Both times are included. `expression` selects tags, such as "a || b". At most `max_messages`
        are returned; if there are more, they are those of the first queues. `seen` is called again
        and again with the number of messages found so far; it must be quick and must not call the
        client. Raises NoRoute, AdminRefused and SubscriptionError.
        """
    def messages_by_key(self, topic: str, key: str, *, begin_ms: int = ..., end_ms: int | None = ..., max_messages: int = ...) -> Deferred[list[MessageExt]]:
        """Returns the messages that were sent with a key, the oldest first.

        The list may be empty. `begin_ms` and `end_ms` limit the time at which the messages were
        stored. Raises NoRoute, AdminRefused and PartlyFailed.
        """
    def min_offset(self, queue: MessageQueue) -> Deferred[int]:
        """Returns the offset of the first message of a queue.

        Raises NoRoute and BrokerNotExist.
        """
    def namesrv_config(self) -> Deferred[dict[str, dict[str, str]]]:
        """Returns the settings of each name server, by address.

        Raises AdminRefused and PartlyFailed.
        """
    def producer_connections(self, group: str, topic: str) -> Deferred[list[Connection]]:
        """Returns the producers of a group that are connected to the brokers of a topic.

        The list is empty if none is connected. Raises NoRoute and AdminRefused.
        """
    def producers(self, broker: str) -> Deferred[Mapping[str, tuple[ProducerInfo, ...]]]:
        """Returns all producers that are connected to a broker, by group.

        Raises BrokerNotExist and AdminRefused.
        """
    def progress(self, group: str, topic: str | None = ...) -> Deferred[GroupProgress]:
        """Returns how far a group has come in one topic, or in all topics that it consumes.

        Raises GroupNotFound if no broker knows the group, and also NoRoute, AdminRefused and
        PartlyFailed.
        """
    def put_kv_config(self, namespace: str, key: str, value: str) -> Deferred[None]:
        """Sets a value at all name servers.

        Raises AdminRefused and PartlyFailed.
        """
    def resend(self, topic: str, msg_id: str, *, to_topic: str | None = ...) -> Deferred[SendResult]:
        """Sends a message again, to its topic or to another one.

        All groups of that topic receive it. The new message has the body, the tag, the keys and the
        user's properties of the old one. Raises MessageNotFound, NoRoute, and whatever else a send
        raises.
        """
    def reset_offsets(self, group: str, topic: str, to: str | int, *, force: bool = ...) -> Deferred[dict[MessageQueue, int]]:
        """Moves a group to the beginning or the end of a topic, or to a time.

        `to` is "first", "last" or a time in milliseconds since the epoch. With `force=False`,
        offsets are only moved back and never forward. Returns the new offset in each queue.
        Consumers may be connected; they continue at the new offsets after a few seconds. Raises
        ValueError for any other `to`, and also GroupNotFound, NoRoute, AdminRefused and
        PartlyFailed.
        """
    def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> Deferred[int]:
        """Returns the offset of the first message that was stored at a time or later.

        If there is no such message, 5.x brokers return the offset that the next message will get,
        and 4.x brokers that of the last message. Raises NoRoute, BrokerNotExist and AdminRefused.
        """
    def set_offset(self, group: str, queue: MessageQueue, next_offset: int) -> Deferred[None]:
        """Sets the offset of a group in a queue, while no consumer of the group is connected.

        Raises GroupOnline if one is connected, because it would overwrite the offset with its own,
        OffsetIllegal if the queue does not contain the offset, and also NoRoute, BrokerNotExist and
        AdminRefused.
        """
    def set_request_mode(self, group: str, topic: str, mode: str, *, pop_share_queue_num: int = ...) -> Deferred[None]:
        """Sets whether push consumers of a group pull or pop a topic (5.x brokers).

        `mode` is "PULL" or "POP"; it concerns push consumers that let the broker distribute the
        queues. `pop_share_queue_num` says with how many other members each member shares its queues
        when they pop; -1 means that all members pop all queues. Raises ValueError for any other
        mode, and also NoRoute, AdminRefused and PartlyFailed.
        """
    def time_spans(self, group: str, topic: str) -> Deferred[list[QueueTimeSpan]]:
        """Returns, for each queue of a topic, the times between which its messages were stored.

        Each result also has the time up to which the group has consumed the queue. Raises NoRoute
        and AdminRefused.
        """
    def timer_stats(self, broker: str) -> Deferred[Mapping[str, int]]:
        """Returns how many timer messages wait in a broker, by topic (5.x brokers).

        Raises BrokerNotExist and AdminRefused.
        """
    def topic_configs(self, topic: str) -> Deferred[dict[str, TopicConfig]]:
        """Returns the settings of a topic at each master of its route, by broker name.

        Raises NoRoute.
        """
    def topic_groups(self, topic: str) -> Deferred[list[str]]:
        """Returns the names of the groups that consume a topic or have consumed it.

        Raises NoRoute and AdminRefused.
        """
    def topic_route(self, topic: str) -> Deferred[TopicRouteData]:
        """Returns the brokers that have a topic, with their numbers of queues.

        Raises NoRoute and NoNameServer.
        """
    def topic_stats(self, topic: str) -> Deferred[TopicStats]:
        """Returns the first and the next offset of each queue of a topic.

        Raises NoRoute and AdminRefused.
        """
    def topics(self, cluster: str | None = ...) -> Deferred[list[str]]:
        """Returns the names of all topics, or of the topics of one cluster.

        Raises NoNameServer if there is no name server to ask, and AdminRefused if a name server
        does not give the list away (enableAllTopicList).
        """
    def update_broker_config(self, broker: str, settings: Mapping[str, str]) -> Deferred[None]:
        """Changes settings of a broker while it runs.

        Raises BrokerNotExist, and AdminRefused for a setting that cannot be changed while the
        broker runs.
        """
    def update_group(self, group: str, *, cluster: str | None = ..., broker: str | None = ..., **settings: Any) -> Deferred[None]:
        """Changes some settings of a group, at all masters that have it or at one broker.

        Settings that are not given stay as they are. Raises TypeError for a setting that does not
        exist, GroupNotFound, AdminRefused, PartlyFailed, NotKept and BrokerNotExist.
        """
    def update_namesrv_config(self, settings: Mapping[str, str]) -> Deferred[None]:
        """Changes settings of all name servers.

        Raises AdminRefused and PartlyFailed.
        """
    def update_topic(self, topic: str, *, read_queues: int | None = ..., write_queues: int | None = ..., perm: int | None = ..., order: bool | None = ..., attributes: Attributes | None = ..., broker: str | None = ...) -> Deferred[None]:
        """Changes some settings of a topic, at all brokers that have it or at one broker.

        Settings that are not given stay as they are. Raises NoRoute, AdminRefused, PartlyFailed,
        NotKept and BrokerNotExist.
        """
    def wipe_write_perm(self, broker: str) -> Deferred[int]:
        """Keeps producers away from a broker, for example before it is stopped.

        This lasts until `add_write_perm` is called, or until the broker changes its topics. Returns
        the number of topics that were changed. Raises AdminRefused and PartlyFailed.
        """

class LitePullConsumer:
    """Pulls messages as a member of `group`. `instance` is shared and started by the caller.

    `subscriptions` maps topics to expressions; this has the same effect as calling `subscribe` for
    each of them.

    Raises MessageIllegal for names that are not valid, and SubscriptionError for expressions that
    are not.
    """
    def __init__(
        self,
        group: str,
        subscriptions: Mapping[str, Expression] | None = ...,
        *,
        strategy: Strategy = ...,
        reactor: Any = ...,
        message_model: MessageModel = ...,
        consume_from: ConsumeFrom = ...,
        consume_timestamp_ms: int | None = ...,
        auto_commit: bool = ...,
        auto_commit_interval_ms: int = ...,
        poll_timeout_ms: int = ...,
        pull_batch_size: int = ...,
        pull_threshold_for_all: int = ...,
        pull_threshold_for_queue: int = ...,
        pull_threshold_size_for_queue: int = ...,
        consume_max_span: int = ...,
        broker_suspend_max_ms: int = ...,
        timeout_when_suspended_ms: int = ...,
        topic_metadata_check_interval_ms: int = ...,
        rebalance_interval_ms: int = ...,
        persist_interval_ms: int = ...,
        local_offset_store_dir: Path | None = ...,
        enable_trace: bool = ...,
        trace_topic: str = ...,
        namesrv_addr: str = ...,
        client_ip: str = ...,
        instance_name: str = ...,
        keep_default_instance_name: bool = ...,
        unit_name: str = ...,
        poll_name_server_interval_ms: int = ...,
        heartbeat_broker_interval_ms: int = ...,
        api_timeout_ms: int = ...,
        namesrv_domain: str = ...,
        namesrv_domain_subgroup: str = ...,
        namespace: str = ...,
        namespace_v2: str = ...,
        unit_mode: bool = ...,
        vip_channel_enabled: bool = ...,
        use_heartbeat_v2: bool = ...,
        access_key: str = ...,
        secret_key: str = ...,
        security_token: str = ...,
        use_tls: bool = ...,
        tls_trust_cert_path: str = ...,
        tls_cert_path: str = ...,
        tls_key_path: str = ...,
    ) -> None: ...
    def start(self) -> Deferred[Self]: ...
    def shutdown(self) -> Deferred[None]: ...
    def __aenter__(self) -> Deferred[Self]: ...
    def __aexit__(self, *_: object) -> Deferred[None]: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Deferred[MessageExt]: ...
    def add_consume_hook(self, hook: ConsumeHook) -> None:
        """Adds a hook that is called with the messages that `poll` or the iterator returns."""
    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Reads exactly these queues, whoever else reads them.

        Raises ValueError if there are none, or if the consumer has subscribed to a topic.
        """
    @property
    def assignment(self) -> list[MessageQueue]:
        """The queues that are assigned to this consumer now."""
    def commit(self, offsets: Mapping[MessageQueue, int] | None = ...) -> Deferred[None]:
        """Commits the offsets of the messages that `poll` has returned, or the given offsets.

        Returns when the brokers have stored them, or in broadcasting the file. Raises NotRunning,
        NotAssigned, MQBrokerError, BrokerNotExist and errors of the connection; in broadcasting
        OffsetsUnreadable, and OSError if the file cannot be written.
        """
    def committed(self, queue: MessageQueue) -> Deferred[int | None]:
        """Returns the committed offset of a queue, or None if there is none.

        Raises NotRunning, MQBrokerError, BrokerNotExist and errors of the connection.
        """
    def fetch_queues(self, topic: str) -> Deferred[list[MessageQueue]]:
        """Returns all queues of a topic, as the name server has them now.

        Raises NoRoute.
        """
    def filter_assigned(self, topic: str, expression: Expression) -> None:
        """Selects messages of the assigned queues of a topic (setSubExpressionForAssign).

        Raises ValueError once the consumer has started, or if it has subscribed to a topic.
        """
    def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> Deferred[int]:
        """Returns the offset of the first message of a queue stored at this time or later.

        Raises MQBrokerError, BrokerNotExist and errors of the connection.
        """
    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Stops pulling from these queues; `poll` still returns what was pulled already."""
    def poll(self, timeout_ms: int | None = ...) -> Deferred[list[MessageExt]]:
        """Returns the messages of one pull, or an empty list when the time is over.

        Raises NotRunning, and ValueError for a negative time.
        """
    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Continues to pull from these queues."""
    def seek(self, queue: MessageQueue, offset: int) -> Deferred[None]:
        """Moves to an offset of a queue; messages that were pulled already are dropped.

        Raises NotRunning, NotAssigned, OffsetIllegal, MQBrokerError, BrokerNotExist and errors of
        the connection.
        """
    def seek_to_begin(self, queue: MessageQueue) -> Deferred[None]:
        """Moves to the first message of a queue. Raises the same as `seek`."""
    def seek_to_end(self, queue: MessageQueue) -> Deferred[None]:
        """Moves behind the last message of a queue. Raises the same as `seek`."""
    def seek_to_time(self, queue: MessageQueue, timestamp_ms: int) -> Deferred[None]:
        """Moves to the first message of a queue that was stored at this time or later.

        Raises the same as `seek`.
        """
    def subscribe(self, topic: str, expression: Expression = ..., queues_changed: QueuesListener | None = ...) -> Deferred[None]:
        """Subscribes to a topic, whose queues the members of the group share.

        `queues_changed` is called whenever the queues of this consumer change. Raises ValueError if
        queues were assigned to the consumer, MessageIllegal and SubscriptionError.
        """
    def unsubscribe(self, topic: str) -> Deferred[None]:
        """Ends the subscription to a topic, so that other members get its queues.

        Raises nothing, even if the topic was not subscribed to or no broker can be reached.
        """
    def watch_queues(self, topic: str, listener: WatchListener) -> Deferred[None]:
        """Calls `listener` when the queues of a topic change (TopicMessageQueueChangeListener).

        The client checks every 30 s. A second listener for a topic replaces the first one. Raises
        NoRoute and NoNameServer once the consumer has started.
        """

class PopConsumer:
    """Takes messages as a member of `group`. `instance` is shared and started by the caller.

    `subscriptions` maps topics to expressions: tags separated by `||`, or `*`, or a
    MessageSelector. With `orderly`, a queue delivers nothing more until all that it delivered has
    been acknowledged or has become visible again.

    Raises MessageIllegal for names that are not valid, and SubscriptionError for expressions that
    are not.
    """
    def __init__(
        self,
        group: str,
        subscriptions: Mapping[str, Expression] | None = ...,
        *,
        orderly: bool = ...,
        reactor: Any = ...,
        consume_from: ConsumeFrom = ...,
        batch_size: int = ...,
        invisible_ms: int = ...,
        wait_ms: int = ...,
        enable_trace: bool = ...,
        trace_topic: str = ...,
        namesrv_addr: str = ...,
        client_ip: str = ...,
        instance_name: str = ...,
        keep_default_instance_name: bool = ...,
        unit_name: str = ...,
        poll_name_server_interval_ms: int = ...,
        heartbeat_broker_interval_ms: int = ...,
        api_timeout_ms: int = ...,
        namesrv_domain: str = ...,
        namesrv_domain_subgroup: str = ...,
        namespace: str = ...,
        namespace_v2: str = ...,
        unit_mode: bool = ...,
        vip_channel_enabled: bool = ...,
        use_heartbeat_v2: bool = ...,
        access_key: str = ...,
        secret_key: str = ...,
        security_token: str = ...,
        use_tls: bool = ...,
        tls_trust_cert_path: str = ...,
        tls_cert_path: str = ...,
        tls_key_path: str = ...,
    ) -> None: ...
    def start(self) -> Deferred[Self]: ...
    def shutdown(self) -> Deferred[None]: ...
    def __aenter__(self) -> Deferred[Self]: ...
    def __aexit__(self, *_: object) -> Deferred[None]: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Deferred[MessageExt]: ...
    def ack(self, messages: MessageExt | Iterable[MessageExt]) -> Deferred[None]:
        """Acknowledges one message or several, so that they are not delivered again.

        The messages of one broker share a request. A message whose invisible time was over is
        delivered again all the same. Raises MessageIllegal, MQBrokerError, BrokerNotExist and
        errors of the connection.
        """
    def add_consume_hook(self, hook: ConsumeHook) -> None:
        """Adds a hook that is called when a message is delivered and when it is acknowledged.

        A message that is not acknowledged while it is hidden ends with TIME_OUT; messages that are
        left when the consumer stops end with FAILED.
        """
    def change_invisible_time(self, message: MessageExt, invisible_ms: int) -> Deferred[None]:
        """Sets for how long a message stays invisible from now on.

        Raises MessageIllegal, MQBrokerError (also if its invisible time was over), BrokerNotExist
        and errors of the connection.
        """
    def receive(self, max_messages: int | None = ..., invisible_ms: int | None = ..., *, wait_ms: int | None = ...) -> Deferred[list[MessageExt]]:
        """Takes messages of one topic, and hides them from the group for a while.

        The list is empty if no message came within `wait_ms`. Raises NotRunning, PopNotSupported,
        MQBrokerError, NoRoute, errors of the connection if no broker could be asked, and ValueError
        for a negative time or a number of messages that is out of range.
        """
    def renew(self, message: MessageExt) -> Deferred[None]:
        """Hides a message from now on for the `invisible_ms` of the settings.

        Raises the same as `change_invisible_time`.
        """
    def subscribe(self, topic: str, expression: Expression = ...) -> Deferred[None]:
        """Subscribes to a topic, or changes the subscription to it.

        Raises NoRoute and SubscriptionError.
        """
    def unsubscribe(self, topic: str) -> Deferred[None]:
        """Ends the subscription to a topic.

        Raises nothing, even if the topic was not subscribed to or no broker can be reached.
        """

class Producer:
    """Sends messages as a member of a producer group.

    Every send raises MessageIllegal for a message that no broker would accept, NoRoute or
    NoNameServer if there is nowhere to send it, MQBrokerError for an answer that another broker
    would give as well, SendFailed when all attempts have failed, and ValueError for both a queue
    and a selector, or for a selector that chooses none of the queues.
    """
    def __init__(
        self,
        group: str,
        *,
        reactor: Any = ...,
        send_timeout_ms: int = ...,
        send_max_timeout_per_request_ms: int = ...,
        retry_times: int = ...,
        retry_another_broker_when_not_store_ok: bool = ...,
        retry_response_codes: frozenset[int] = ...,
        max_message_bytes: int = ...,
        compress_body_over_bytes: int = ...,
        compression: CompressionType = ...,
        compression_level: int = ...,
        create_topic_key: str = ...,
        default_topic_queue_nums: int = ...,
        topics: tuple[str, ...] = ...,
        send_latency_fault_enable: bool = ...,
        start_detector_enable: bool = ...,
        detect_timeout_ms: int = ...,
        detect_interval_ms: int = ...,
        backpressure_enable: bool = ...,
        backpressure_send_num: int = ...,
        backpressure_send_size: int = ...,
        enable_trace: bool = ...,
        trace_topic: str = ...,
        namesrv_addr: str = ...,
        client_ip: str = ...,
        instance_name: str = ...,
        keep_default_instance_name: bool = ...,
        unit_name: str = ...,
        poll_name_server_interval_ms: int = ...,
        heartbeat_broker_interval_ms: int = ...,
        api_timeout_ms: int = ...,
        namesrv_domain: str = ...,
        namesrv_domain_subgroup: str = ...,
        namespace: str = ...,
        namespace_v2: str = ...,
        unit_mode: bool = ...,
        vip_channel_enabled: bool = ...,
        use_heartbeat_v2: bool = ...,
        access_key: str = ...,
        secret_key: str = ...,
        security_token: str = ...,
        use_tls: bool = ...,
        tls_trust_cert_path: str = ...,
        tls_cert_path: str = ...,
        tls_key_path: str = ...,
    ) -> None: ...
    def start(self) -> Deferred[Self]: ...
    def shutdown(self) -> Deferred[None]: ...
    def __aenter__(self) -> Deferred[Self]: ...
    def __aexit__(self, *_: object) -> Deferred[None]: ...
    def add_check_forbidden_hook(self, hook: CheckForbidden) -> None:
        """Adds a hook that can keep messages from being sent, by raising an exception."""
    def add_send_hook(self, hook: SendHook) -> None:
        """Adds a hook that is called before and after each attempt to send."""
    @property
    def group(self) -> str:
        """The name of the producer's group."""
    def publish_queues(self, topic: str) -> Deferred[list[MessageQueue]]:
        """Returns all queues of a topic to which messages can be sent.

        Raises NoRoute and NoNameServer.
        """
    def recall(self, topic: str, recall_handle: str) -> Deferred[str]:
        """Withdraws a delayed message that is not due yet; returns the message's id.

        The handle is the `recall_handle` of its SendResult, which 5.x brokers return. Raises
        MessageIllegal for an invalid handle, and MQBrokerError if the broker does not withdraw the
        message.
        """
    def reply(self, request: Message, body: bytes, *, timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Sends the reply to a message that was sent with `request`.

        Raises NotARequest for any other message, and whatever a send raises.
        """
    def request(self, message: Message, *, timeout_ms: int, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ...) -> Deferred[MessageExt]:
        """Sends a message and waits for the reply of a consumer.

        Raises RequestTimedOut if no reply arrives in time, and whatever a send raises.
        """
    def send(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ..., timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Sends a message to a given queue, to one that a selector chooses, or to the next one.

        The message gets a unique key if it has none. With `queue` or `selector` there is only one
        attempt, and its error is raised as it is. Raises the errors that the class describes.
        """
    def send_async(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ..., timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Begins to send a message; the result is complete when a broker has answered.

        The call does not wait, unless very many messages wait to be begun. With
        `backpressure_enable`, it waits while too many messages are unanswered, and raises
        TooMuchOnTheWay if that takes longer than the send may take. The errors that the class
        describes are raised by the result.
        """
    def send_batch(self, messages: Sequence[Message], *, queue: MessageQueue | None = ..., timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Sends messages of one topic with one request, into one queue.

        `split_batches` divides any number of messages into such batches. Raises the errors that the
        class describes.
        """
    def send_oneway(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ...) -> Deferred[None]:
        """Sends a message once without waiting for an answer, so it may be lost.

        Raises MessageIllegal, NoRoute, NoNameServer and BrokerNotExist.
        """

class PushConsumer:
    """Consumes as a member of `group`. `instance` is shared and started by the caller.

    `subscriptions` maps topics to expressions: tags separated by `||`, or `*`, or a
    MessageSelector. All members of a group must have the same subscriptions and the same strategy.
    The messages of a queue are consumed in order if the listener is marked with `orderly`, or with
    `orderly=True`. `queues_changed` is called whenever the queues of this member change.

    Raises MessageIllegal for names that are not valid, and SubscriptionError for expressions that
    are not.
    """
    def __init__(
        self,
        group: str,
        subscriptions: Mapping[str, Expression],
        listener: Listener | OrderlyListener,
        *,
        strategy: Strategy = ...,
        orderly: bool | None = ...,
        queues_changed: QueuesListener | None = ...,
        reactor: Any = ...,
        message_model: MessageModel = ...,
        consume_from: ConsumeFrom = ...,
        consume_timestamp_ms: int | None = ...,
        consume_concurrency: int = ...,
        consume_in_threads: bool = ...,
        consume_message_batch_max_size: int = ...,
        pull_batch_size: int = ...,
        pull_batch_bytes: int = ...,
        pull_interval_ms: int = ...,
        pull_threshold_for_queue: int = ...,
        pull_threshold_size_for_queue: int = ...,
        pull_threshold_for_topic: int = ...,
        pull_threshold_size_for_topic: int = ...,
        consume_concurrently_max_span: int = ...,
        post_subscription_when_pull: bool = ...,
        max_reconsume_times: int = ...,
        suspend_current_queue_ms: int = ...,
        consume_timeout_ms: int = ...,
        rebalance_interval_ms: int = ...,
        persist_interval_ms: int = ...,
        await_termination_ms: int = ...,
        local_offset_store_dir: Path | None = ...,
        client_rebalance: bool = ...,
        pop_invisible_ms: int = ...,
        pop_batch_size: int = ...,
        pop_threshold_for_queue: int = ...,
        enable_trace: bool = ...,
        trace_topic: str = ...,
        namesrv_addr: str = ...,
        client_ip: str = ...,
        instance_name: str = ...,
        keep_default_instance_name: bool = ...,
        unit_name: str = ...,
        poll_name_server_interval_ms: int = ...,
        heartbeat_broker_interval_ms: int = ...,
        api_timeout_ms: int = ...,
        namesrv_domain: str = ...,
        namesrv_domain_subgroup: str = ...,
        namespace: str = ...,
        namespace_v2: str = ...,
        unit_mode: bool = ...,
        vip_channel_enabled: bool = ...,
        use_heartbeat_v2: bool = ...,
        access_key: str = ...,
        secret_key: str = ...,
        security_token: str = ...,
        use_tls: bool = ...,
        tls_trust_cert_path: str = ...,
        tls_cert_path: str = ...,
        tls_key_path: str = ...,
    ) -> None: ...
    def start(self) -> Deferred[Self]: ...
    def shutdown(self) -> Deferred[None]: ...
    def __aenter__(self) -> Deferred[Self]: ...
    def __aexit__(self, *_: object) -> Deferred[None]: ...
    def add_consume_hook(self, hook: ConsumeHook) -> None:
        """Adds a hook that is called before and after each call of the listener."""
    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are assigned to this member now; a popped one may have the id -1."""
    def resume(self) -> None:
        """Continues to pull after `suspend`, and rebalances."""
    def subscribe(self, topic: str, expression: Expression = ...) -> Deferred[None]:
        """Subscribes to a topic, or changes its subscription, at once. Raises SubscriptionError."""
    def suspend(self) -> None:
        """Stops pulling until `resume`; messages that were pulled already are consumed."""
    def unsubscribe(self, topic: str) -> Deferred[None]:
        """Ends the subscription to a topic. Raises nothing, even if no broker can be reached."""

class TransactionProducer:
    """A producer that can also send in transactions; `check` answers the brokers' questions.

    Brokers may ask any member of a group about a transaction of another member. `check_concurrency`
    is the number of questions that are answered at the same time.
    """
    def __init__(
        self,
        group: str,
        check: Check,
        *,
        check_concurrency: int = ...,
        reactor: Any = ...,
        send_timeout_ms: int = ...,
        send_max_timeout_per_request_ms: int = ...,
        retry_times: int = ...,
        retry_another_broker_when_not_store_ok: bool = ...,
        retry_response_codes: frozenset[int] = ...,
        max_message_bytes: int = ...,
        compress_body_over_bytes: int = ...,
        compression: CompressionType = ...,
        compression_level: int = ...,
        create_topic_key: str = ...,
        default_topic_queue_nums: int = ...,
        topics: tuple[str, ...] = ...,
        send_latency_fault_enable: bool = ...,
        start_detector_enable: bool = ...,
        detect_timeout_ms: int = ...,
        detect_interval_ms: int = ...,
        backpressure_enable: bool = ...,
        backpressure_send_num: int = ...,
        backpressure_send_size: int = ...,
        enable_trace: bool = ...,
        trace_topic: str = ...,
        namesrv_addr: str = ...,
        client_ip: str = ...,
        instance_name: str = ...,
        keep_default_instance_name: bool = ...,
        unit_name: str = ...,
        poll_name_server_interval_ms: int = ...,
        heartbeat_broker_interval_ms: int = ...,
        api_timeout_ms: int = ...,
        namesrv_domain: str = ...,
        namesrv_domain_subgroup: str = ...,
        namespace: str = ...,
        namespace_v2: str = ...,
        unit_mode: bool = ...,
        vip_channel_enabled: bool = ...,
        use_heartbeat_v2: bool = ...,
        access_key: str = ...,
        secret_key: str = ...,
        security_token: str = ...,
        use_tls: bool = ...,
        tls_trust_cert_path: str = ...,
        tls_cert_path: str = ...,
        tls_key_path: str = ...,
    ) -> None: ...
    def start(self) -> Deferred[Self]: ...
    def shutdown(self) -> Deferred[None]: ...
    def __aenter__(self) -> Deferred[Self]: ...
    def __aexit__(self, *_: object) -> Deferred[None]: ...
    def add_check_forbidden_hook(self, hook: CheckForbidden) -> None:
        """Adds a hook that can keep messages from being sent, by raising an exception."""
    def add_end_transaction_hook(self, hook: EndTransactionHook) -> None:
        """Adds a hook that is called with the end of each transaction."""
    def add_send_hook(self, hook: SendHook) -> None:
        """Adds a hook that is called before and after each attempt to send."""
    @property
    def group(self) -> str:
        """The name of the producer's group."""
    def publish_queues(self, topic: str) -> Deferred[list[MessageQueue]]:
        """Returns all queues of a topic to which messages can be sent.

        Raises NoRoute and NoNameServer.
        """
    def recall(self, topic: str, recall_handle: str) -> Deferred[str]:
        """Withdraws a delayed message that is not due yet; returns the message's id.

        The handle is the `recall_handle` of its SendResult, which 5.x brokers return. Raises
        MessageIllegal for an invalid handle, and MQBrokerError if the broker does not withdraw the
        message.
        """
    def reply(self, request: Message, body: bytes, *, timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Sends the reply to a message that was sent with `request`.

        Raises NotARequest for any other message, and whatever a send raises.
        """
    def request(self, message: Message, *, timeout_ms: int, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ...) -> Deferred[MessageExt]:
        """Sends a message and waits for the reply of a consumer.

        Raises RequestTimedOut if no reply arrives in time, and whatever a send raises.
        """
    def send(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ..., timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Sends a message to a given queue, to one that a selector chooses, or to the next one.

        The message gets a unique key if it has none. With `queue` or `selector` there is only one
        attempt, and its error is raised as it is. Raises the errors that the class describes.
        """
    def send_async(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ..., timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Begins to send a message; the result is complete when a broker has answered.

        The call does not wait, unless very many messages wait to be begun. With
        `backpressure_enable`, it waits while too many messages are unanswered, and raises
        TooMuchOnTheWay if that takes longer than the send may take. The errors that the class
        describes are raised by the result.
        """
    def send_batch(self, messages: Sequence[Message], *, queue: MessageQueue | None = ..., timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Sends messages of one topic with one request, into one queue.

        `split_batches` divides any number of messages into such batches. Raises the errors that the
        class describes.
        """
    def send_in_transaction(self, message: Message, execute: Execute, argument: Any = ...) -> Deferred[TransactionSendResult]:
        """Sends a message, runs `execute(message, argument)`, and tells the broker the outcome.

        If `execute` raises an exception, the result contains it, and the broker asks later. If the
        message was not stored as safely as the brokers are configured to store it, `execute` is not
        called and the message is rolled back. Raises whatever a send raises; `execute` is not
        called then either.
        """
    def send_oneway(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ...) -> Deferred[None]:
        """Sends a message once without waiting for an answer, so it may be lost.

        Raises MessageIllegal, NoRoute, NoNameServer and BrokerNotExist.
        """

def tx(core: type) -> type: ...

__all__ = ['AdminRefused', 'BrokerInfo', 'BrokerNotExist', 'ClientClosed', 'CompressionType', 'ConnectError', 'ConsumeContext', 'ConsumeFrom', 'ConsumeHook', 'ConsumeHookContext', 'ConsumeOrderlyContext', 'ConsumeOrderlyStatus', 'ConsumeReturnType', 'ConsumeStatus', 'EndTransactionContext', 'GroupNotFound', 'GroupOffline', 'GroupOnline', 'GroupProgress', 'MQBrokerError', 'MQClientError', 'Message', 'MessageExt', 'MessageIllegal', 'MessageModel', 'MessageNotFound', 'MessageQueue', 'MessageSelector', 'MessageTrack', 'NoNameServer', 'NoRoute', 'NotARequest', 'NotAssigned', 'NotKept', 'NotRunning', 'OffsetIllegal', 'OffsetsUnreadable', 'PartlyFailed', 'PopNotSupported', 'QueueProgress', 'QueueStats', 'RemotingError', 'RequestTimedOut', 'RequestTimeout', 'SendContext', 'SendFailed', 'SendHook', 'SendResult', 'SendStatus', 'SubscriptionError', 'TooMuchOnTheWay', 'TopicStats', 'TrackType', 'TransactionSendResult', 'TransactionStatus', 'averagely', 'averagely_by_circle', 'by_config', 'by_hash', 'by_machine_room', 'by_random', 'consistent_hash', 'nearby_machine_room', 'new_message', 'orderly', 'split_batches', 'Admin', 'LitePullConsumer', 'PopConsumer', 'Producer', 'PushConsumer', 'TransactionProducer']
