# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import FakePeer, outcome_of, refused, request
from txrocketmq.broker.processors.pull.pull_message import PullMessageProcessor
from txrocketmq.broker.processors.pull.pull_subscription import PullSubscriptions
from txrocketmq.broker.pulls.long_polling import LongPolling
from txrocketmq.broker.store.message_store import GetMessageStatus, GetResult
from txrocketmq.broker.work.in_thread import Done, Work
from txrocketmq.broker.work.patience import Patience
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.flags import PermName, PullSysFlag
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader, PullMessageResponseHeader

COMMIT, SUSPEND, OWN = PullSysFlag.COMMIT_OFFSET, PullSysFlag.SUSPEND, PullSysFlag.SUBSCRIPTION


class Pulling:
    """A broker that serves pulls; `wake` runs what an arrival would."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.wanted_to_wake = 0
        self.polling = LongPolling(parts.store, self._wake_soon)
        self.threads: list[tuple[Work, Done]] = []
        self.patience = Patience(lambda work, done: self.threads.append((work, done)))
        parts.store.on_arrivals.append(self.polling.listener)
        self.peer = FakePeer()
        self.processor = PullMessageProcessor(
            parts.config,
            parts.topics,
            PullSubscriptions(parts.config, parts.groups, parts.consumers, parts.filters),
            parts.offsets,
            parts.store,
            parts.stats,
            self.polling,
            self.patience,
            parts.broadcast_offsets,
        )

    def _wake_soon(self) -> None:
        self.wanted_to_wake += 1

    def pull(self, code: int = RequestCode.PULL_MESSAGE, **fields: Any) -> Any:
        values: dict[str, Any] = {
            "consumer_group": "g",
            "topic": "T",
            "queue_id": 0,
            "queue_offset": 0,
            "max_msg_nums": 32,
            "sys_flag": OWN,
            "commit_offset": 0,
            "suspend_timeout_millis": 15_000,
            "subscription": "*",
            "sub_version": 0,
        }
        header = PullMessageRequestHeader(**{**values, **fields})
        self.last = request(
            header, b"of no use", code=code, peer=self.peer, now_ms=self.parts.now_ms
        )
        return self.processor.pull(self.last)


@pytest.fixture
def pulling(parts: Parts) -> Pulling:
    parts.topic("T")
    return Pulling(parts)


def bodies(reply: Reply[PullMessageResponseHeader]) -> list[bytes]:
    return [message.body for message in decode_messages(reply.body_bytes)]


def facts(reply: Any) -> tuple[ResponseCode, str | None, int, int, int]:
    """Code, remark, next, least and greatest offset."""
    header = reply.header
    offsets = header.next_begin_offset, header.min_offset, header.max_offset
    return (ResponseCode(reply.code), reply.remark, *offsets)


# ----------------------------------------------------------------------------- what is found


def test_messages_of_a_queue(pulling: Pulling) -> None:
    for body in (b"a", b"b", b"c"):
        pulling.parts.put(body=body)
    reply = pulling.pull(queue_offset=1)
    assert bodies(reply) == [b"b", b"c"]
    assert facts(reply) == (ResponseCode.SUCCESS, "FOUND", 3, 0, 3)
    assert reply.header.suggest_which_broker_id == 0
    item = pulling.parts.stats.item("GROUP_GET_NUMS", "T@g")
    assert item is not None
    assert item.value == 2


def test_no_more_than_is_asked_for(pulling: Pulling) -> None:
    for index in range(5):
        pulling.parts.put(body=b"%d" % index + bytes(400))
    assert len(bodies(pulling.pull(max_msg_nums=2))) == 2
    assert len(bodies(pulling.pull(max_msg_bytes=1_200))) == 2
    assert len(bodies(pulling.pull(max_msg_bytes=1))) == 1  # one there is always
    assert len(bodies(pulling.pull(max_msg_bytes=0))) == 5


def test_flags_of_topic_and_group_are_told(pulling: Pulling) -> None:
    pulling.parts.topics.update(TopicConfig(topic_name="T", topic_sys_flag=1))
    pulling.parts.groups.update(SubscriptionGroupConfig(group_name="g", group_sys_flag=2))
    header = pulling.pull().header
    assert (header.topic_sys_flag, header.group_sys_flag) == (1, 2)


def test_lite_pulls_are_served_alike(pulling: Pulling) -> None:
    pulling.parts.put(body=b"a")
    assert bodies(pulling.pull(RequestCode.LITE_PULL_MESSAGE)) == [b"a"]


@pytest.mark.parametrize(
    ("status", "offset", "code"),
    [
        (GetMessageStatus.MESSAGE_WAS_REMOVING, 5, ResponseCode.PULL_RETRY_IMMEDIATELY),
        (GetMessageStatus.NO_MATCHED_MESSAGE, 5, ResponseCode.PULL_RETRY_IMMEDIATELY),
        (GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, 5, ResponseCode.PULL_OFFSET_MOVED),
        (GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, 0, ResponseCode.PULL_NOT_FOUND),
        (GetMessageStatus.NO_MESSAGE_IN_QUEUE, 5, ResponseCode.PULL_OFFSET_MOVED),
        (GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, ResponseCode.PULL_NOT_FOUND),
        (GetMessageStatus.OFFSET_FOUND_NULL, 5, ResponseCode.PULL_NOT_FOUND),
        (GetMessageStatus.OFFSET_OVERFLOW_ONE, 5, ResponseCode.PULL_NOT_FOUND),
        (GetMessageStatus.OFFSET_OVERFLOW_BADLY, 5, ResponseCode.PULL_OFFSET_MOVED),
        (GetMessageStatus.OFFSET_TOO_SMALL, 5, ResponseCode.PULL_OFFSET_MOVED),
        (GetMessageStatus.OFFSET_RESET, 5, ResponseCode.PULL_OFFSET_MOVED),
    ],
)
def test_every_status_has_its_code(
    pulling: Pulling,
    monkeypatch: pytest.MonkeyPatch,
    status: GetMessageStatus,
    offset: int,
    code: ResponseCode,
) -> None:
    monkeypatch.setattr(pulling.parts.store, "get", lambda *_, **__: GetResult(status, 7, 3, 9))
    reply = pulling.pull(queue_offset=offset)
    assert facts(reply) == (code, status.name, 7, 3, 9)
    assert reply.body_bytes == b""


def test_every_status_is_known() -> None:
    tested = test_every_status_has_its_code.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {each[0] for each in tested} | {GetMessageStatus.FOUND} == set(GetMessageStatus)


def test_offsets_beside_what_is_there(pulling: Pulling) -> None:
    moved, nothing = ResponseCode.PULL_OFFSET_MOVED, ResponseCode.PULL_NOT_FOUND
    assert facts(pulling.pull()) == (nothing, "NO_MESSAGE_IN_QUEUE", 0, 0, 0)
    assert facts(pulling.pull(queue_offset=9)) == (moved, "NO_MESSAGE_IN_QUEUE", 0, 0, 0)
    pulling.parts.put()
    assert facts(pulling.pull(queue_offset=1)) == (nothing, "OFFSET_OVERFLOW_ONE", 1, 0, 1)
    assert facts(pulling.pull(queue_offset=2)) == (moved, "OFFSET_OVERFLOW_BADLY", 1, 0, 1)
    assert facts(pulling.pull(queue_offset=-1)) == (moved, "OFFSET_TOO_SMALL", 0, 0, 1)


def test_another_broker_is_suggested_where_slaves_are_read(
    pulling: Pulling, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(*, slow: bool) -> Any:
        result = GetResult(GetMessageStatus.NO_MATCHED_MESSAGE, 0, 0, 0, suggest_slave=slow)
        monkeypatch.setattr(pulling.parts.store, "get", lambda *_, **__: result)
        return pulling.pull().header.suggest_which_broker_id

    group = SubscriptionGroupConfig(group_name="g", broker_id=3, which_broker_when_consume_slowly=4)
    pulling.parts.groups.update(group)
    assert (found(slow=True), found(slow=False)) == (0, 0)
    pulling.parts.set(slave_read_enable=True)
    assert (found(slow=True), found(slow=False)) == (4, 3)


# ----------------------------------------------------------------------------------- filters


def test_tags_of_the_requests_own_subscription(pulling: Pulling) -> None:
    for tag in ("a", "b", "c"):
        pulling.parts.put(body=tag.encode(), TAGS=tag)
    assert bodies(pulling.pull(subscription="a || c")) == [b"a", b"c"]
    assert facts(pulling.pull(subscription="x"))[:3] == (
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        "NO_MATCHED_MESSAGE",
        3,
    )


def test_tags_of_the_registered_subscription(pulling: Pulling) -> None:
    pulling.parts.consumer("g", "c1", "T")
    pulling.parts.put(body=b"a", TAGS="a")
    assert bodies(pulling.pull(sys_flag=0, subscription=None)) == [b"a"]


def test_an_expression_that_is_none(pulling: Pulling) -> None:
    with refused(
        ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
    ):
        pulling.pull(subscription="||")


def test_other_languages_are_not_understood(pulling: Pulling) -> None:
    with refused(ResponseCode.SYSTEM_ERROR, "does not support consumer to filter message by SQL92"):
        pulling.pull(subscription="a > 1", expression_type="SQL92")


def by_expression(pulling: Pulling, text: str = "a > 5", **fields: Any) -> Any:
    return pulling.pull(subscription=text, expression_type="SQL92", **fields)


def test_expressions_are_asked_of_each_message(pulling: Pulling) -> None:
    pulling.parts.set(enable_property_filter=True)
    for number in range(10):
        pulling.parts.put(body=str(number).encode(), a=str(number))
    assert bodies(by_expression(pulling)) == [b"6", b"7", b"8", b"9"]
    none = by_expression(pulling, "a = 'x'")
    assert (none.code, none.header.next_begin_offset) == (ResponseCode.PULL_RETRY_IMMEDIATELY, 10)


def test_a_pull_by_an_expression_waits_for_what_it_wants(pulling: Pulling) -> None:
    pulling.parts.set(enable_property_filter=True)
    pulling.parts.put(a="6")
    held = by_expression(pulling, queue_offset=1, sys_flag=OWN | SUSPEND)
    assert isinstance(held, PendingReply)
    pulling.parts.put(a="5")
    pulling.parts.put(a="nothing")
    pulling.polling.run_woken()
    assert len(pulling.polling) == 1
    pulling.parts.put(body=b"7", a="7")
    pulling.polling.run_woken()
    assert bodies(outcome_of(held)) == [b"7"]


@pytest.mark.parametrize(
    "text", ["a >", "(" * 10_000, "NOT " * 5000 + "a", "a = '" + "x" * 100_000 + "'"]
)
def test_an_expression_that_cannot_be_read(pulling: Pulling, text: str) -> None:
    pulling.parts.set(enable_property_filter=True)
    failed = ResponseCode.SUBSCRIPTION_PARSE_FAILED
    with refused(failed, "parse the consumer's subscription failed"):
        by_expression(pulling, text)
    with refused(failed, "parse the consumer's subscription failed"):
        pulling.pull(subscription=text, expression_type="GROOVY")


def test_the_registered_expression(pulling: Pulling) -> None:
    parts = pulling.parts
    parts.set(enable_property_filter=True)
    parts.consumer("g", "c1")
    registered = SubscriptionData("T", "a > 5", sub_version=3, expression_type="SQL92")
    parts.consumers.group("g").subscriptions["T"] = registered  # type: ignore[union-attr]
    missing = "The broker's consumer filter data is not exist!Your expression may be wrong!"
    with refused(ResponseCode.FILTER_DATA_NOT_EXIST, missing):
        pulling.pull(sys_flag=0, subscription=None)
    parts.filters.register("g", [replace(registered, sub_version=2)])
    with refused(ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not"):
        pulling.pull(sys_flag=0, subscription=None, sub_version=3)
    parts.filters.register("g", [registered])
    parts.put(body=b"6", a="6")
    parts.put(body=b"5", a="5")
    assert bodies(pulling.pull(sys_flag=0, subscription=None, sub_version=3)) == [b"6"]
    parts.set(enable_property_filter=False)
    with refused(ResponseCode.SYSTEM_ERROR, "does not support consumer to filter message by SQL92"):
        pulling.pull(sys_flag=0, subscription=None, sub_version=3)


# ---------------------------------------------------------------------------------- refusals


def forbidden(pulling: Pulling, remark: str, **fields: Any) -> int | None:
    """The kind told in the header of a refusal."""
    with pytest.raises(ResponseError) as error:
        pulling.pull(**fields)
    assert error.value.code == ResponseCode.NO_PERMISSION
    assert remark in (error.value.remark or "")
    header = error.value.header
    assert isinstance(header, PullMessageResponseHeader)
    assert (header.next_begin_offset, header.min_offset, header.max_offset) == (0, 0, 0)
    return header.forbidden_type


def test_a_broker_that_may_not_be_read(pulling: Pulling) -> None:
    pulling.parts.set(broker_permission=PermName.WRITE)
    assert forbidden(pulling, "pulling message is forbidden") == 1


def test_lite_pulls_may_be_forbidden(pulling: Pulling) -> None:
    pulling.parts.set(lite_pull_message_enable=False)
    code = RequestCode.LITE_PULL_MESSAGE
    assert forbidden(pulling, "for lite pull consumer is forbidden", code=code) == 1
    assert pulling.pull().code == ResponseCode.PULL_NOT_FOUND


def test_a_group_that_may_not_consume(pulling: Pulling) -> None:
    pulling.parts.groups.update(SubscriptionGroupConfig(group_name="g", consume_enable=False))
    assert forbidden(pulling, "subscription group no permission, g") == 2


def test_a_topic_that_may_not_be_read(pulling: Pulling) -> None:
    pulling.parts.topics.update(TopicConfig(topic_name="T", perm=PermName.WRITE))
    assert forbidden(pulling, "the topic[T] pulling message is forbidden") == 3


def test_a_group_that_may_not_broadcast(pulling: Pulling) -> None:
    pulling.parts.groups.update(
        SubscriptionGroupConfig(group_name="g", consume_broadcast_enable=False)
    )
    pulling.parts.consumer("g", "c1", "T", model="BROADCASTING")
    assert forbidden(pulling, "can not consume by broadcast way", sys_flag=0) == 4


def test_a_group_that_may_not_read_the_topic(pulling: Pulling) -> None:
    pulling.parts.consumer("g", "c1", "T")
    pulling.parts.groups.set_readable("g", "T", readable=False)
    remark = "the consumer group[g] is forbidden for topic[T]"
    assert forbidden(pulling, remark, sys_flag=0) == 5


def test_an_unknown_group(pulling: Pulling) -> None:
    pulling.parts.set(auto_create_subscription_group=False)
    with refused(
        ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group [g] does not exist"
    ):
        pulling.pull()


def test_an_unknown_topic(pulling: Pulling) -> None:
    with refused(ResponseCode.TOPIC_NOT_EXIST, "topic[X] not exist, apply first please!"):
        pulling.pull(topic="X")


@pytest.mark.parametrize("queue_id", [-1, 4, 2**31 - 1])
def test_a_queue_out_of_range(pulling: Pulling, queue_id: int) -> None:
    with refused(ResponseCode.INVALID_PARAMETER, f"queueId[{queue_id}] is illegal, topic:[T]"):
        pulling.pull(queue_id=queue_id)


def test_a_group_nobody_has_joined(pulling: Pulling) -> None:
    with refused(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist"):
        pulling.pull(sys_flag=0)


def test_a_topic_the_group_has_not_subscribed(pulling: Pulling) -> None:
    pulling.parts.consumer("g", "c1", "Other")
    with refused(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist"):
        pulling.pull(sys_flag=0)


def test_a_subscription_newer_than_the_heartbeat(pulling: Pulling) -> None:
    pulling.parts.consumer("g", "c1", "T")
    with refused(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"):
        pulling.pull(sys_flag=0, sub_version=2)
    assert pulling.pull(sys_flag=0, sub_version=1).code == ResponseCode.PULL_NOT_FOUND


# ----------------------------------------------------------------------------------- waiting


def test_a_pull_waits_for_a_message(pulling: Pulling) -> None:
    pending = pulling.pull(sys_flag=OWN | SUSPEND)
    assert isinstance(pending, PendingReply)
    pulling.parts.put(queue_id=1)
    assert pulling.wanted_to_wake == 0
    pulling.parts.put(body=b"a")
    assert pulling.wanted_to_wake == 1
    assert not pending.done
    pulling.polling.run_woken()
    assert bodies(outcome_of(pending)) == [b"a"]
    assert len(pulling.polling) == 0


def test_nothing_is_kept_of_a_pull_that_waits_but_what_it_asks(pulling: Pulling) -> None:
    pulling.pull(sys_flag=OWN | SUSPEND)
    assert len(pulling.polling) == 1
    assert (pulling.last.body, pulling.last.command.ext_fields) == (b"", None)


def test_a_pull_waits_for_its_tag(pulling: Pulling) -> None:
    pending = pulling.pull(sys_flag=OWN | SUSPEND, subscription="b")
    pulling.parts.put(body=b"a", TAGS="a")
    pulling.polling.run_woken()
    assert not pending.done
    pulling.parts.put(body=b"b", TAGS="b")
    pulling.polling.run_woken()
    assert bodies(outcome_of(pending)) == [b"b"]


def test_a_pull_does_not_wait_for_ever(pulling: Pulling) -> None:
    pending = pulling.pull(sys_flag=OWN | SUSPEND, suspend_timeout_millis=15_000)
    pulling.polling.tick(pulling.parts.now_ms + 14_999)
    assert not pending.done
    pulling.polling.tick(pulling.parts.now_ms + 15_000)
    assert facts(outcome_of(pending))[0] == ResponseCode.PULL_NOT_FOUND


def test_without_long_polling_it_waits_a_second(pulling: Pulling) -> None:
    pulling.parts.set(long_polling_enable=False)
    pending = pulling.pull(sys_flag=OWN | SUSPEND)
    pulling.polling.tick(pulling.parts.now_ms + 999)
    assert not pending.done
    pulling.polling.tick(pulling.parts.now_ms + 1_000)
    assert pending.done


def test_only_what_found_nothing_waits(pulling: Pulling) -> None:
    assert isinstance(pulling.pull(), Reply)  # it does not want to wait
    moved = pulling.pull(sys_flag=OWN | SUSPEND, queue_offset=9)
    assert isinstance(moved, Reply)
    pulling.parts.put()
    assert isinstance(pulling.pull(sys_flag=OWN | SUSPEND), Reply)
    assert len(pulling.polling) == 0


def test_where_nobody_more_can_wait_it_is_answered_at_once(
    pulling: Pulling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txrocketmq.broker.pulls.long_polling.MAX_HELD", 1)
    assert isinstance(pulling.pull(sys_flag=OWN | SUSPEND), PendingReply)
    reply = pulling.pull(sys_flag=OWN | SUSPEND)
    assert facts(reply)[0] == ResponseCode.PULL_NOT_FOUND


def test_what_changes_while_it_waits_is_told(pulling: Pulling) -> None:
    pending = pulling.pull(sys_flag=OWN | SUSPEND)
    pulling.parts.topics.delete("T")
    pulling.polling.resume_all("T", 0)
    error = outcome_of(pending)
    assert isinstance(error, ResponseError)
    assert error.code == ResponseCode.TOPIC_NOT_EXIST


def test_a_peer_that_has_gone_waits_no_more(pulling: Pulling) -> None:
    pending = pulling.pull(sys_flag=OWN | SUSPEND)
    pulling.polling.disconnected(pulling.peer, pulling.parts.now_ms)
    pulling.parts.put()
    pulling.polling.run_woken()
    assert not pending.done
    assert len(pulling.polling) == 0


# ----------------------------------------------------------------------------------- offsets


def test_offsets_are_committed_on_the_way(pulling: Pulling) -> None:
    offsets = pulling.parts.offsets
    pulling.pull(commit_offset=5)
    assert offsets.query("g", "T", 0) == -1
    pulling.pull(sys_flag=OWN | COMMIT, commit_offset=5)
    assert offsets.query("g", "T", 0) == 5


def test_once_only_also_when_it_waits(pulling: Pulling) -> None:
    offsets = pulling.parts.offsets
    pulling.pull(sys_flag=OWN | COMMIT | SUSPEND, commit_offset=5)
    offsets.commit("g", "T", 0, 7)
    pulling.parts.put()
    pulling.polling.run_woken()
    assert offsets.query("g", "T", 0) == 7


def test_a_reset_is_told_to_the_next_pull(pulling: Pulling) -> None:
    parts = pulling.parts
    for _ in range(3):
        parts.put()
    parts.offsets.reset("g", "T", 0, 1)
    reply = pulling.pull(queue_offset=3, sys_flag=OWN | COMMIT | SUSPEND, commit_offset=3)
    assert facts(reply) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET", 1, 0, 3)
    assert bodies(pulling.pull(queue_offset=1)) == [b"body", b"body"]


def test_a_member_of_a_proxy_is_told_where_it_goes_on(pulling: Pulling) -> None:
    parts = pulling.parts
    for body in (b"a", b"b", b"c"):
        parts.put(body=body)
    member: dict[str, Any] = {"request_source": 1, "proxy_forward_client_id": "c1"}
    assert bodies(pulling.pull(queue_offset=1, **member)) == [b"b", b"c"]
    reply = pulling.pull(queue_offset=-1, **member)
    assert facts(reply) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET", 1, 0, 3)
    pulling.pull(queue_offset=3, **member)
    assert facts(pulling.pull(queue_offset=-1, **member))[2] == 3
    assert bodies(pulling.pull(queue_offset=2)) == [b"c"]


def test_a_refused_pull_commits_nothing(pulling: Pulling) -> None:
    with refused(ResponseCode.INVALID_PARAMETER):
        pulling.pull(sys_flag=OWN | COMMIT, queue_id=4, commit_offset=5)
    assert pulling.parts.offsets.query("g", "T", 4) == -1
