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
from txrocketmq.client.consumer.hooks import ConsumeHook
from txrocketmq.client.consumer.listener import Listener
from txrocketmq.client.consumer.listener import OrderlyListener
from txrocketmq.client.consumer.lite_pull import WatchListener
from txrocketmq.client.consumer.rebalance import QueuesListener
from txrocketmq.client.consumer.subscription import Expression
from txrocketmq.client.producer.hooks import CheckForbidden
from txrocketmq.client.producer.hooks import EndTransactionHook
from txrocketmq.client.producer.hooks import SendHook
from txrocketmq.client.producer.selectors import Selector
from txrocketmq.client.producer.send_result import SendResult
from txrocketmq.client.producer.send_result import TransactionSendResult
from txrocketmq.client.producer.transaction import Check
from txrocketmq.client.producer.transaction import Execute
from txrocketmq.client.trace import TraceRecord
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

from txrocketmq.client.names import (
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
    """Administrates clusters: topics, groups, offsets, messages, clients and servers.

    Names of topics and groups are those that brokers know. Each refusal is an AdminRefused that
    says what was refused, by whom, and what to do; what goes to several servers goes to all of
    them, and PartlyFailed says who failed. Errors of the connection are RemotingErrors.
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
        """Lets producers send to a broker again. Raises AdminRefused, PartlyFailed."""
    def broker_config(self, broker: str) -> Deferred[dict[str, str]]:
        """The settings of a broker. Raises BrokerNotExist, AdminRefused."""
    def broker_counter(self, broker: str, name: str, key: str) -> Deferred[BrokerStatsData | None]:
        """One of a broker's counters over a minute, an hour and a day; None when it has none.

        Such as ("TOPIC_PUT_NUMS", topic) or ("GROUP_GET_NUMS", "TOPIC@GROUP"). Raises
        BrokerNotExist, AdminRefused.
        """
    def broker_stats(self, broker: str) -> Deferred[dict[str, str]]:
        """The state of a broker, given by name or address: names and values as text.

        Raises BrokerNotExist, AdminRefused, and errors of the connection.
        """
    def brokers(self, cluster: str | None = ...) -> Deferred[list[BrokerInfo]]:
        """All brokers that the name servers know, or those of a cluster. Raises NoNameServer."""
    def clean_expired_queues(self, broker: str) -> Deferred[None]:
        """Removes files of queues whose messages have expired. Raises as `clean_unused_topics`."""
    def clean_unused_topics(self, broker: str) -> Deferred[None]:
        """Removes the queues of topics that are deleted. Raises BrokerNotExist, AdminRefused."""
    def clone_offsets(self, source: str, group: str, topic: str | None = ...) -> Deferred[dict[MessageQueue, int]]:
        """Gives a group the offsets of another one, in one topic or in all; returns them.

        Raises GroupOnline when consumers of the group are connected; GroupNotFound, NoRoute,
        BrokerNotExist, AdminRefused.
        """
    def clusters(self) -> Deferred[list[str]]:
        """The names of all clusters. Raises NoNameServer."""
    def consume_directly(self, group: str, client_id: str, topic: str, msg_id: str) -> Deferred[ConsumeMessageDirectlyResult]:
        """Makes a connected consumer consume one message now, whatever its offsets are.

        Raises MessageNotFound, NoRoute, AdminRefused: the client is not connected, or did not
        answer in time.
        """
    def consumer_connections(self, group: str) -> Deferred[ConsumerConnection]:
        """The consumers of a group that are connected, and what they subscribe to.

        Consumers are connected to all brokers, so the first that knows any is believed. Raises
        GroupOffline, AdminRefused, BrokerNotExist.
        """
    def consumer_offset(self, group: str, queue: MessageQueue) -> Deferred[int | None]:
        """The next offset of a queue that a group is to consume; None when it has none.

        Raises NoRoute, BrokerNotExist, AdminRefused.
        """
    def consumer_running_info(self, group: str, client_id: str, *, with_stacks: bool = ...) -> Deferred[ConsumerRunningInfo]:
        """What a consumer is doing; `with_stacks`: also the stacks of its threads.

        Raises GroupOffline, AdminRefused: the client is not connected, or did not answer.
        """
    def consumer_status(self, group: str, topic: str) -> Deferred[Mapping[str, Mapping[MessageQueue, int]]]:
        """How far each connected consumer of a group says that it has come, by client id.

        Raises NoRoute, AdminRefused.
        """
    def create_group(self, group: str, *, cluster: str | None = ..., broker: str | None = ..., **settings: Any) -> Deferred[None]:
        """Creates a group at all masters of a cluster, or at one broker by name or address.

        `settings` are those of SubscriptionGroupConfig, such as retry_max_times=3 or
        consume_message_orderly=True; all others have their defaults. `attributes` are given by
        name, None takes one away. A group that is there already gets these settings. TypeError:
        there is no such setting. ValueError: there are several clusters, and none is named. Raises
        AdminRefused, PartlyFailed, NotKept, BrokerNotExist, MessageIllegal.
        """
    def create_topic(self, topic: str, *, queues: int = ..., perm: int = ..., order: bool = ..., attributes: Attributes | None = ..., cluster: str | None = ..., broker: str | None = ...) -> Deferred[None]:
        """Creates a topic at all masters of a cluster, or at one broker by name or address.

        `queues` are at each broker; `perm` is 6 to read and write, 4 to read, 2 to write.
        `order`: its queues stay the same when brokers are away. `attributes` (5.x) are such as
        {"message.type": "FIFO"}. A topic that is there already gets these settings. ValueError:
        there are several clusters, and none is named. Raises AdminRefused, PartlyFailed, NotKept,
        BrokerNotExist, MessageIllegal.
        """
    def delete_expired_commit_log(self, broker: str) -> Deferred[None]:
        """Removes files of messages that have expired. Raises as `clean_unused_topics`."""
    def delete_group(self, group: str, *, clean_offsets: bool = ..., cluster: str | None = ...) -> Deferred[None]:
        """Deletes a group, its offsets, and its topics of retries and dead letters.

        Raises GroupNotFound, AdminRefused, PartlyFailed, BrokerNotExist.
        """
    def delete_kv_config(self, namespace: str, key: str) -> Deferred[None]:
        """Removes a value from all name servers. Raises AdminRefused, PartlyFailed."""
    def delete_topic(self, topic: str, *, cluster: str | None = ...) -> Deferred[None]:
        """Deletes a topic with its messages, at all masters (of a cluster) and name servers.

        Raises NoRoute, AdminRefused, PartlyFailed, BrokerNotExist.
        """
    def group_configs(self, group: str) -> Deferred[dict[str, SubscriptionGroupConfig]]:
        """A group as each master has it, by the broker's name. Raises GroupNotFound."""
    def groups(self, cluster: str | None = ...) -> Deferred[list[str]]:
        """The names of all groups that brokers know, or those of a cluster.

        Raises AdminRefused, BrokerNotExist, NoNameServer.
        """
    def kv_config(self, namespace: str, key: str) -> Deferred[str | None]:
        """A value that the name servers keep; None when there is none. Raises AdminRefused."""
    def kv_configs(self, namespace: str) -> Deferred[dict[str, str]]:
        """All values of a namespace; perhaps none. Raises AdminRefused."""
    def max_offset(self, queue: MessageQueue) -> Deferred[int]:
        """The offset after the last message of a queue. Raises NoRoute, BrokerNotExist."""
    def message(self, topic: str, msg_id: str) -> Deferred[MessageExt]:
        """The message with an id: the unique key of its producer, or the place at its broker.

        Raises MessageNotFound, NoRoute, AdminRefused, PartlyFailed.
        """
    def message_at(self, queue: MessageQueue, offset: int) -> Deferred[MessageExt]:
        """The message at an offset of a queue. Raises MessageNotFound, NoRoute, AdminRefused."""
    def message_trace(self, msg_id: str, *, trace_topic: str = ...) -> Deferred[list[TraceRecord]]:
        """The trace that clients have written of a message, by its unique key; it may be empty.

        Raises NoRoute, AdminRefused, PartlyFailed.
        """
    def message_tracks(self, message: MessageExt) -> Deferred[list[MessageTrack]]:
        """Whether each group of its topic has consumed a message. Raises NoRoute, AdminRefused."""
    def messages_between(self, topic: str, begin_ms: int, end_ms: int | None = ..., *, expression: str = ..., max_messages: int = ..., seen: Callable[[int], None] | None = ...) -> Deferred[list[MessageExt]]:
        """The messages that were stored between two times, both included, the oldest first.

        `expression` names tags, such as "a || b". At most `max_messages` are given, of the first
        queues. `seen` is called with how many were found, again and again; it must be quick and may
        not call the client. Raises NoRoute, AdminRefused, SubscriptionError.
        """
    def messages_by_key(self, topic: str, key: str, *, begin_ms: int = ..., end_ms: int | None = ..., max_messages: int = ...) -> Deferred[list[MessageExt]]:
        """The messages that were sent with a key, the oldest first; perhaps none.

        The times are those of storage. Raises NoRoute, AdminRefused, PartlyFailed.
        """
    def min_offset(self, queue: MessageQueue) -> Deferred[int]:
        """The offset of the first message of a queue. Raises NoRoute, BrokerNotExist."""
    def namesrv_config(self) -> Deferred[dict[str, dict[str, str]]]:
        """The settings of each name server, by its address. Raises AdminRefused, PartlyFailed."""
    def producer_connections(self, group: str, topic: str) -> Deferred[list[Connection]]:
        """The producers of a group that are connected to the brokers of a topic; perhaps none.

        Raises NoRoute, AdminRefused.
        """
    def producers(self, broker: str) -> Deferred[Mapping[str, tuple[ProducerInfo, ...]]]:
        """All producers that are connected to a broker, by group.

        Raises BrokerNotExist, AdminRefused.
        """
    def progress(self, group: str, topic: str | None = ...) -> Deferred[GroupProgress]:
        """How far a group has come in a topic, or in all topics that it consumes.

        Raises GroupNotFound when nobody has heard of it, NoRoute, AdminRefused, PartlyFailed.
        """
    def put_kv_config(self, namespace: str, key: str, value: str) -> Deferred[None]:
        """Sets a value at all name servers. Raises AdminRefused, PartlyFailed."""
    def resend(self, topic: str, msg_id: str, *, to_topic: str | None = ...) -> Deferred[SendResult]:
        """Sends a message again, to its topic or to another one: all its groups get it anew.

        Body, tag, keys and the properties of the program go along. Raises MessageNotFound and what
        a send raises.
        """
    def reset_offsets(self, group: str, topic: str, to: str | int, *, force: bool = ...) -> Deferred[dict[MessageQueue, int]]:
        """Moves a group to the first or the last message of a topic, or to a time in ms.

        `to` is "first", "last" or the time. Without `force` it goes back only, never forth. The
        result is where it goes on in each queue. Consumers may be connected: they go on there
        after some seconds. ValueError: `to` is something else. Raises GroupNotFound, NoRoute,
        AdminRefused, PartlyFailed.
        """
    def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> Deferred[int]:
        """The offset of the first message stored at a time or later.

        When there is none, it is that of the next message, or in a broker of 4.x the last one's.
        Raises NoRoute, BrokerNotExist, AdminRefused.
        """
    def set_offset(self, group: str, queue: MessageQueue, next_offset: int) -> Deferred[None]:
        """Sets the offset of a group in a queue, while none of its consumers is connected.

        Raises GroupOnline, since a connected consumer would commit its own offset over it;
        OffsetIllegal when the queue does not go that far; NoRoute, BrokerNotExist, AdminRefused.
        """
    def set_request_mode(self, group: str, topic: str, mode: str, *, pop_share_queue_num: int = ...) -> Deferred[None]:
        """Whether push consumers of a group PULL or POP a topic (5.x).

        `pop_share_queue_num`: how many more queues each of them pops, -1 for all. ValueError:
        there is no such mode. Raises NoRoute, AdminRefused, PartlyFailed.
        """
    def time_spans(self, group: str, topic: str) -> Deferred[list[QueueTimeSpan]]:
        """The times of the first and last messages of each queue, and of the group's offset.

        Raises NoRoute, AdminRefused.
        """
    def timer_stats(self, broker: str) -> Deferred[Mapping[str, int]]:
        """How many timer messages wait in a broker, by topic (5.x).

        Raises BrokerNotExist, AdminRefused.
        """
    def topic_configs(self, topic: str) -> Deferred[dict[str, TopicConfig]]:
        """A topic as each master of its route has it, by the broker's name. Raises NoRoute."""
    def topic_groups(self, topic: str) -> Deferred[list[str]]:
        """The groups that consume a topic, or have. Raises NoRoute, AdminRefused."""
    def topic_route(self, topic: str) -> Deferred[TopicRouteData]:
        """Which brokers have a topic, with how many queues. Raises NoRoute, NoNameServer."""
    def topic_stats(self, topic: str) -> Deferred[TopicStats]:
        """The bounds of a topic's queues. Raises NoRoute, AdminRefused."""
    def topics(self, cluster: str | None = ...) -> Deferred[list[str]]:
        """The names of all topics, or of those of a cluster.

        Raises AdminRefused, also of name servers that keep the list to themselves
        (enableAllTopicList), and NoNameServer.
        """
    def update_broker_config(self, broker: str, settings: Mapping[str, str]) -> Deferred[None]:
        """Changes settings of a broker while it runs. Raises BrokerNotExist, AdminRefused."""
    def update_group(self, group: str, *, cluster: str | None = ..., broker: str | None = ..., **settings: Any) -> Deferred[None]:
        """Changes the settings that are given, at all masters that have the group, or at one.

        Raises TypeError, GroupNotFound, AdminRefused, PartlyFailed, NotKept, BrokerNotExist.
        """
    def update_namesrv_config(self, settings: Mapping[str, str]) -> Deferred[None]:
        """Changes settings of all name servers. Raises AdminRefused, PartlyFailed."""
    def update_topic(self, topic: str, *, read_queues: int | None = ..., write_queues: int | None = ..., perm: int | None = ..., order: bool | None = ..., attributes: Attributes | None = ..., broker: str | None = ...) -> Deferred[None]:
        """Changes the given settings of a topic, at all brokers that have it, or at one.

        Raises NoRoute, AdminRefused, PartlyFailed, NotKept, BrokerNotExist.
        """
    def wipe_write_perm(self, broker: str) -> Deferred[int]:
        """Keeps producers away from a broker, as before its stop; returns how many topics it had.

        It lasts until `add_write_perm`, or until the broker changes its topics. Raises AdminRefused
        and PartlyFailed.
        """

class LitePullConsumer:
    """Gives messages to a member of `group`. `instance` is shared and started by the caller.

    `subscriptions` gives topics, each with an expression, as `subscribe` does one after the other.

    Raises MessageIllegal for names that cannot be, and SubscriptionError.
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
        """From now on the hook sees what `poll` and the iterator give, which is a success."""
    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Reads exactly these queues, whoever else reads them.

        Raises ValueError for no queues, and for a consumer that has subscribed.
        """
    @property
    def assignment(self) -> list[MessageQueue]:
        """The queues that are assigned to this consumer now."""
    def commit(self, offsets: Mapping[MessageQueue, int] | None = ...) -> Deferred[None]:
        """Commits the offsets of what `poll` has returned, or the given ones.

        Returns when the brokers have stored them. Raises MQBrokerError, BrokerNotExist and errors
        of the connection.
        """
    def committed(self, queue: MessageQueue) -> Deferred[int | None]:
        """The committed offset of a queue; None if there is none.

        Raises NotRunning, MQBrokerError, BrokerNotExist and errors of the connection.
        """
    def fetch_queues(self, topic: str) -> Deferred[list[MessageQueue]]:
        """All queues of a topic, as the name server has them now. Raises NoRoute."""
    def filter_assigned(self, topic: str, expression: Expression) -> None:
        """What is wanted of assigned queues of a topic (setSubExpressionForAssign).

        Raises ValueError once the consumer has started, and for one that has subscribed.
        """
    def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> Deferred[int]:
        """The offset of the first message of a queue that was stored at this time or later.

        Raises MQBrokerError, BrokerNotExist and errors of the connection.
        """
    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Stops pulling from these queues; `poll` still returns what was pulled already."""
    def poll(self, timeout_ms: int | None = ...) -> Deferred[list[MessageExt]]:
        """Returns the messages of one pull, or an empty list when the time is over.

        Raises NotRunning.
        """
    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Continues to pull from these queues."""
    def seek(self, queue: MessageQueue, offset: int) -> Deferred[None]:
        """Moves to an offset of a queue; messages pulled from it already are dropped.

        Raises NotAssigned, OffsetIllegal, MQBrokerError, BrokerNotExist, errors of the connection.
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
        """Shares the queues of a topic; `queues_changed` hears whenever its own ones change.

        Raises ValueError for a consumer that was assigned queues, MessageIllegal and
        SubscriptionError.
        """
    def unsubscribe(self, topic: str) -> Deferred[None]:
        """Ends the subscription to a topic, so that others get its queues."""
    def watch_queues(self, topic: str, listener: WatchListener) -> Deferred[None]:
        """Lets `listener` know when the queues of a topic change (TopicMessageQueueChangeListener).

        It is looked for every 30 s. A second listener of a topic takes the place of the first.
        Raises NoRoute and NoNameServer once the consumer has started.
        """

class PopConsumer:
    """Takes messages as a member of `group`. `instance` is shared and started by the caller.

    `subscriptions` gives the topics, each with an expression: tags separated by `||`, or `*`, or a
    MessageSelector. With `orderly` a queue gives no more until what it gave is acknowledged, or
    comes again.

    Raises MessageIllegal for names that cannot be, and SubscriptionError.
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

        Of many, those of one broker are told with one request. A message whose time was over comes
        again all the same. Raises MessageIllegal, MQBrokerError, BrokerNotExist and errors of the
        connection.
        """
    def add_consume_hook(self, hook: ConsumeHook) -> None:
        """From now on the hook sees each message when it is given, and when it is acknowledged.

        A message that is not acknowledged while it is hidden ends with TIME_OUT, and what is left
        when the consumer stops with FAILED.
        """
    def change_invisible_time(self, message: MessageExt, invisible_ms: int) -> Deferred[None]:
        """Sets for how long a message stays invisible from now on.

        Raises MessageIllegal, MQBrokerError, also when its time was over, BrokerNotExist and errors
        of the connection.
        """
    def receive(self, max_messages: int | None = ..., invisible_ms: int | None = ..., *, wait_ms: int | None = ...) -> Deferred[list[MessageExt]]:
        """Takes some messages of one topic, and hides them from the group for a time.

        None when there were none in `wait_ms`. Raises NotRunning, PopNotSupported, MQBrokerError,
        NoRoute, and errors of the connection when no place could be asked.
        """
    def renew(self, message: MessageExt) -> Deferred[None]:
        """Hides a message for `invisible_ms` of the settings from now on; raises the same."""
    def subscribe(self, topic: str, expression: Expression = ...) -> Deferred[None]:
        """Subscribes to a topic, or changes its subscription. Raises NoRoute, SubscriptionError."""
    def unsubscribe(self, topic: str) -> Deferred[None]:
        """Ends the subscription to a topic."""

class Producer:
    """A producer of a group.

    Every send raises MessageIllegal for what no broker would take, NoRoute and NoNameServer when
    there is nowhere to send to, MQBrokerError for an answer that no other broker would give
    differently, and SendFailed when all attempts failed.
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
        """The name of its group."""
    def publish_queues(self, topic: str) -> Deferred[list[MessageQueue]]:
        """All queues of a topic that messages can be sent to. Raises NoRoute and NoNameServer."""
    def recall(self, topic: str, recall_handle: str) -> Deferred[str]:
        """Withdraws a delayed message that is not due yet; returns the message's id.

        The handle is the one of its SendResult, which 5.x brokers give. Raises MessageIllegal for
        what is no handle, and MQBrokerError when the broker does not take the message back.
        """
    def reply(self, request: Message, body: bytes, *, timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Sends the reply to a message that was sent with `request`.

        Raises NotARequest for any other message, and what a send raises.
        """
    def request(self, message: Message, *, timeout_ms: int, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ...) -> Deferred[MessageExt]:
        """Sends a message and waits for the reply of a consumer.

        Raises RequestTimedOut if no reply comes in time, and what a send raises.
        """
    def send(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ..., timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Sends a message to the given queue, to one that a selector chooses, or to the next.

        The message is given a unique key if it has none. With a queue or a selector there is one
        attempt, whose error is raised as it is. Raises what the class says.
        """
    def send_async(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ..., timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Begins to send a message; what it gives is done when a broker has answered.

        With `backpressure_enable` it waits while too much is on its way, and raises TooMuchOnTheWay
        when that takes longer than the time of the send. What the class says is raised by what it
        gives.
        """
    def send_batch(self, messages: Sequence[Message], *, queue: MessageQueue | None = ..., timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Sends messages of one topic with one request, into one queue.

        `split_batches` makes batches of any number of messages. Raises what the class says.
        """
    def send_oneway(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ...) -> Deferred[None]:
        """Sends a message once, without waiting for an answer: it may be lost.

        Raises MessageIllegal, NoRoute, NoNameServer and BrokerNotExist.
        """

class PushConsumer:
    """Consumes as a member of `group`. `instance` is shared and started by the caller.

    `subscriptions` gives the topics, each with an expression: tags separated by `||`, or `*`, or a
    MessageSelector. All members of a group have the same subscriptions and share queues by the same
    strategy. A listener that `listener.orderly` marks gets the messages of a queue in order; so
    does any other with `orderly=True`. `queues_changed` hears of each change of its queues.

    Raises MessageIllegal for names that cannot be, and SubscriptionError.
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
        """From now on the hook sees messages before and after the listener has them."""
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
        """Ends the subscription to a topic."""

class TransactionProducer:
    """A producer of a group that also sends in transactions; `check` answers for all of them.

    The members of a group must be able to answer for each other's transactions. `check_concurrency`
    is how many questions are answered at the same time.
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
        """The name of its group."""
    def publish_queues(self, topic: str) -> Deferred[list[MessageQueue]]:
        """All queues of a topic that messages can be sent to. Raises NoRoute and NoNameServer."""
    def recall(self, topic: str, recall_handle: str) -> Deferred[str]:
        """Withdraws a delayed message that is not due yet; returns the message's id.

        The handle is the one of its SendResult, which 5.x brokers give. Raises MessageIllegal for
        what is no handle, and MQBrokerError when the broker does not take the message back.
        """
    def reply(self, request: Message, body: bytes, *, timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Sends the reply to a message that was sent with `request`.

        Raises NotARequest for any other message, and what a send raises.
        """
    def request(self, message: Message, *, timeout_ms: int, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ...) -> Deferred[MessageExt]:
        """Sends a message and waits for the reply of a consumer.

        Raises RequestTimedOut if no reply comes in time, and what a send raises.
        """
    def send(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ..., timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Sends a message to the given queue, to one that a selector chooses, or to the next.

        The message is given a unique key if it has none. With a queue or a selector there is one
        attempt, whose error is raised as it is. Raises what the class says.
        """
    def send_async(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ..., timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Begins to send a message; what it gives is done when a broker has answered.

        With `backpressure_enable` it waits while too much is on its way, and raises TooMuchOnTheWay
        when that takes longer than the time of the send. What the class says is raised by what it
        gives.
        """
    def send_batch(self, messages: Sequence[Message], *, queue: MessageQueue | None = ..., timeout_ms: int | None = ...) -> Deferred[SendResult]:
        """Sends messages of one topic with one request, into one queue.

        `split_batches` makes batches of any number of messages. Raises what the class says.
        """
    def send_in_transaction(self, message: Message, execute: Execute, argument: Any = ...) -> Deferred[TransactionSendResult]:
        """Sends a message, runs `execute(message, argument)`, and tells the broker how that ended.

        What `execute` raises is in the result, and the broker asks later. When the message was not
        stored as safely as brokers are configured to, `execute` is not called and the message is
        rolled back. Raises what a send raises; then nothing was executed either.
        """
    def send_oneway(self, message: Message, *, queue: MessageQueue | None = ..., selector: Selector | None = ..., key: Any = ...) -> Deferred[None]:
        """Sends a message once, without waiting for an answer: it may be lost.

        Raises MessageIllegal, NoRoute, NoNameServer and BrokerNotExist.
        """

def tx(core: type) -> type: ...

__all__ = ['AdminRefused', 'BrokerInfo', 'BrokerNotExist', 'ClientClosed', 'CompressionType', 'ConnectError', 'ConsumeContext', 'ConsumeFrom', 'ConsumeHook', 'ConsumeHookContext', 'ConsumeOrderlyContext', 'ConsumeOrderlyStatus', 'ConsumeReturnType', 'ConsumeStatus', 'EndTransactionContext', 'GroupNotFound', 'GroupOffline', 'GroupOnline', 'GroupProgress', 'MQBrokerError', 'MQClientError', 'Message', 'MessageExt', 'MessageIllegal', 'MessageModel', 'MessageNotFound', 'MessageQueue', 'MessageSelector', 'MessageTrack', 'NoNameServer', 'NoRoute', 'NotARequest', 'NotAssigned', 'NotKept', 'NotRunning', 'OffsetIllegal', 'OffsetsUnreadable', 'PartlyFailed', 'PopNotSupported', 'QueueProgress', 'QueueStats', 'RemotingError', 'RequestTimedOut', 'RequestTimeout', 'SendContext', 'SendFailed', 'SendHook', 'SendResult', 'SendStatus', 'SubscriptionError', 'TooMuchOnTheWay', 'TopicStats', 'TrackType', 'TransactionSendResult', 'TransactionStatus', 'averagely', 'averagely_by_circle', 'by_config', 'by_hash', 'by_machine_room', 'by_random', 'consistent_hash', 'nearby_machine_room', 'new_message', 'orderly', 'split_batches', 'Admin', 'LitePullConsumer', 'PopConsumer', 'Producer', 'PushConsumer', 'TransactionProducer']
