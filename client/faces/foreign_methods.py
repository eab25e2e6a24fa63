# SPDX-License-Identifier: Apache-2.0
"""What methods of other clients are called here, or how that is done which they do.

The answer is given when a program asks for an attribute that is not there, so `hasattr` says the
same as before. Letters count, however they are joined, as in foreign_settings.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from txrocketmq.client.faces.foreign_settings import answer_for
from txrocketmq.remoting.arguments.foreign import Foreign, plain, spelt_otherwise, table_of

_BY_ADMIN = "Admin lists, creates and deletes topics and groups"
_LISTENER = "its listener gets the messages"

FOREIGN_METHODS: Final = (
    Foreign("connect open begin run initialize init start_consuming listen", "start",
        "and a with statement starts it as well"),
    Foreign("close stop disconnect aclose quit terminate destroy stop_consuming", "shutdown",
        "and a with statement ends it as well"),
    Foreign("produce send_message publish basic_publish xadd send_sync send_and_wait put"
        " send_and_forget send_normal_message", "send", "", "a Producer sends"),
    Foreign("send_delay send_delay_message send_orderly send_orderly_with_sharding_key", "send",
        "and new_message takes delay_level and deliver_at_ms, and send a selector and its key",
        "a Producer sends"),
    Foreign("flush", note="each send has its own result: wait for what send or send_async returns"),
    Foreign("init_transactions begin_transaction commit_transaction abort_transaction"
        " send_message_in_transaction send_offsets_to_transaction", "send_in_transaction", "",
        "a TransactionProducer sends messages that belong to a transaction of the program"),
    Foreign("partitions_for partitions_for_topic fetch_message_queues fetch_publish_message_queues"
        " fetch_subscribe_message_queues", "publish_queues fetch_queues", "",
        "Admin lists topics and their queues"),
    Foreign("list_topics topics get_topics topic_list fetch_all_topic_list", "topics", "",
        _BY_ADMIN),
    Foreign("create_topics create_topic queue_declare new_topic", "create_topic", "", _BY_ADMIN),
    Foreign("delete_topics delete_topic queue_delete", "delete_topic", "", _BY_ADMIN),
    Foreign("describe_topics describe_topic topic_info", "topic_stats",
        "and topic_configs and topic_route tell more", _BY_ADMIN),
    Foreign("create_partitions", "update_topic", "", _BY_ADMIN),
    Foreign("list_consumer_groups list_groups consumer_groups", "groups", "", _BY_ADMIN),
    Foreign("describe_consumer_groups describe_groups list_consumer_group_offsets consumer_lag",
        "progress", "and consumer_connections tells who is connected", _BY_ADMIN),
    Foreign("delete_consumer_groups delete_groups", "delete_group", "", _BY_ADMIN),
    Foreign("alter_consumer_group_offsets", "reset_offsets", "", _BY_ADMIN),
    Foreign("describe_cluster list_brokers", "brokers", "", _BY_ADMIN),
    Foreign("query_messages query_message view_message search_messages", "messages_by_key",
        "and message and messages_between find others", "Admin finds messages"),
    Foreign("getone getmany get consume read xread xreadgroup pull fetch basic_get get_message"
        " get_messages receive poll", "poll receive", "", _LISTENER,
        "nothing has to be polled, since send returns the result"),
    Foreign("ack basic_ack ack_message acknowledge xack commit commit_sync commit_async"
        " commit_offset store_offsets", "ack commit", "",
        "a listener that returns has consumed its messages, which are then committed",
        "send returns when the message is stored"),
    Foreign("nack basic_nack reject basic_reject send_message_back negative_acknowledge"
        " change_invisible_duration",
        "change_invisible_time", "after which the message is delivered again",
        "a listener that raises gets its messages again", "consumers do that"),
    Foreign("seek_to_beginning", "seek_to_begin", "", "Admin resets the offsets of a group"),
    Foreign("seek", "", "Admin resets the offsets of a group"),
    Foreign("pause suspend", "pause suspend", "", "shutdown ends it",
        "it sends only what it is given"),
    Foreign("position beginning_offsets end_offsets offsets_for_times get_watermark_offsets"
        " highwater search_offset", "offset_for_timestamp", "and Admin tells where queues begin and"
        " end", "Admin tells where queues begin and end"),
    Foreign("register_message_listener set_message_listener basic_consume set_listener"
        " register_message_callback", note="the listener is the third argument of PushConsumer"),
)  # fmt: skip

_TABLE: Final = table_of(FOREIGN_METHODS, plain)


def method_for(name: str, methods: Collection[str], settings: Collection[str]) -> str:
    """Returns what to say of a method of another client to a class with these, or ""."""
    if answer := spelt_otherwise(name, methods):
        return answer
    if foreign := _TABLE.get(plain(name)):
        return foreign.answer(methods, to_producer="send" in methods)
    answer = answer_for(name[3:], settings) if name.startswith("set") else ""
    return f"settings are given when it is made: {answer}" if answer else ""


def missing(settings: Callable[[], Collection[str]]) -> Callable[[Any, str], Any]:
    """Returns the method that is asked for attributes which a class with these settings lacks."""

    def __getattr__(self: Any, name: str) -> Any:  # noqa: N807
        """Says how what other clients have is called or done here."""
        answer = ""
        if not name.startswith("_") and not hasattr(type(self), name):
            methods = [each for each in dir(type(self)) if not each.startswith("_")]
            answer = method_for(name, methods, settings())
        if answer:
            raise AttributeError(f"{type(self).__name__} has no {name!r}: {answer}")
        return object.__getattribute__(self, name)  # which raises what it has raised before

    __getattr__.__annotations__ = {}
    return __getattr__
