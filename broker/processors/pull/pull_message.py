# SPDX-License-Identifier: Apache-2.0
"""PULL_MESSAGE, LITE_PULL_MESSAGE: returns messages of a queue, or waits for them.

Checked in the original's order: broker permission, lite pull, group, topic and its permission,
queue id, subscription (in the header or of the heartbeat). Found messages leave as slices of the
mapped log. A pull that finds nothing and may be suspended is held, and run once more when a
message is there or its time is over. One whose filter has much to do ends after some of the
messages, as if it had reached the end of a stretch: its consumer goes on behind them at once; one
whose expression has to be compiled first waits for that. A pull of messages that are not in memory
waits until a thread has read them; where too many wait for that, it is refused with SYSTEM_BUSY, as
by the original's control of cold data, and clients try again. Codes: 0, 2, 19, 20, 21; 1, 16, 17,
23, 24, 25, 26, 27, 28, 29. Not done: static topics.

A slave whose master is there sends readers back to it, unless their messages are old, and has none
wait; and it moves no offsets that are out of range, since its queues may lack something. (In 5.x, a
slave does so also when its master has gone, and a reader that finds nothing asks without a pause.)

Java: PullMessageProcessor, DefaultPullMessageResultHandler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from txrocketmq.broker.kernel.chosen import Kernel
from txrocketmq.broker.processors.lite_topics import refusal_of_lite_topic
from txrocketmq.broker.processors.pull.pull_answers import PullAnswers
from txrocketmq.broker.processors.pull.pull_subscription import FAQ, PullSubscriptions, forbidden
from txrocketmq.broker.pulls.broadcast_offsets import BroadcastOffsets
from txrocketmq.broker.pulls.long_polling import HeldRequest, LongPolling
from txrocketmq.broker.pulls.message_filter import ALL, MessageFilter
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.packed import PullAnswer
from txrocketmq.broker.store.get.jumps import GROUP, Jump
from txrocketmq.broker.store.get.packed_get import NOTHING_YET
from txrocketmq.broker.store.message_store import (
    GetMessageStatus,
    GetResult,
    MessageStore,
)
from txrocketmq.broker.tables.attributes import has_batch_queues
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.tables.stats import BrokerStats
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.patience import Patience
from txrocketmq.remoting.call import Buffer, Peer, PendingReply, Reply, Request
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.flags import PermName, PullSysFlag
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol import pull
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader, PullMessageResponseHeader

_NO_BYTE_LIMIT = 2**31 - 1
_FOUND = GetMessageStatus.FOUND.name
_SUCCESS = int(ResponseCode.SUCCESS)
_NOT_FOUND = int(ResponseCode.PULL_NOT_FOUND)
_LITE_PULL = int(RequestCode.LITE_PULL_MESSAGE)
_READ = PermName.READ
_SUSPEND = int(PullSysFlag.SUSPEND)
_COMMIT_OFFSET = int(PullSysFlag.COMMIT_OFFSET)

MASTER_ID = 0
BROKER_FORBIDDEN = 1
TOPIC_FORBIDDEN = 3

_CODES = {
    GetMessageStatus.FOUND: ResponseCode.SUCCESS,
    GetMessageStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}
"""The codes of statuses; those for an empty queue depend on the offset that was asked for."""
_RECENT = GetResult(GetMessageStatus.FOUND, 0, 0, 0)
"""What a kernel finds is recent, so that no slave is suggested for it."""


def _suggested_broker(group: SubscriptionGroupConfig, result: GetResult) -> int:
    return group.which_broker_when_consume_slowly if result.suggest_slave else group.broker_id


def _suggested_by_slave(
    has_master: Callable[[], bool], group: SubscriptionGroupConfig, result: GetResult
) -> int:
    if has_master() and not result.suggest_slave:
        return MASTER_ID
    return _suggested_broker(group, result)


class PullMessageProcessor:
    """Serves pulls."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        subscriptions: PullSubscriptions,
        offsets: ConsumerOffsets,
        store: MessageStore,
        stats: BrokerStats,
        polling: LongPolling,
        patience: Patience,
        broadcast_offsets: BroadcastOffsets,
    ) -> None:
        self._config = config
        self._topics = topics
        self._subscriptions = subscriptions
        self._offsets = offsets
        self._store, self._find_queue = store, store.find_queue
        self._stats = stats
        self._polling = polling
        self._patience = patience
        self._broadcast_offsets = broadcast_offsets
        self._serve = self._run
        self._is_master = True
        self._suggested_broker = _suggested_broker
        self._answer: PullAnswer | None = None
        self._answers = PullAnswers()

    def with_kernel(self, kernel: Kernel, serialize_type: int) -> None:
        """Has a kernel answer usual pulls from now on, with headers of this form."""
        self._answer, self._answers = kernel.pull_answer, PullAnswers(serialize_type)

    def on_slave(self, has_master: Callable[[], bool]) -> None:
        """Serves pulls as a slave from now on; `has_master` tells whether its master is there."""
        self._serve, self._is_master = partial(self._run_on_slave, has_master), False
        self._suggested_broker = partial(_suggested_by_slave, has_master)

    @serves(pull.PULL_MESSAGE, pull.LITE_PULL_MESSAGE, vip=False)
    def pull(
        self, request: Request[PullMessageRequestHeader]
    ) -> Reply[PullMessageResponseHeader] | PendingReply:
        """Answers with messages, or with the reason for none; may wait for suspendTimeoutMillis."""
        header = request.header
        if header.lite_topic:
            raise refusal_of_lite_topic(header.lite_topic)
        found = self._patience.answer(request.peer, partial(self._found_or_held, request))
        if header.sys_flag & _COMMIT_OFFSET:
            self._offsets.commit(
                header.consumer_group, header.topic, header.queue_id, header.commit_offset
            )
        if isinstance(found, PendingReply):
            # The body is dropped, so that a large one is not kept while the request waits.
            request.command.body, request.command.ext_fields = b"", None
        return found

    def _found_or_held(
        self, request: Request[PullMessageRequestHeader]
    ) -> Reply[PullMessageResponseHeader] | PendingReply:
        """Runs a pull; holds it if there is no message yet, and it may be held."""
        header = request.header
        is_held = header.sys_flag & _SUSPEND
        queue = self._find_queue(header.topic, header.queue_id)
        if is_held and queue is not None and queue.max_offset == header.queue_offset:
            pending = PendingReply()
            if self._hold_at_end(request, pending):
                return pending
        found = self._serve(request)
        if is_held and found.code == _NOT_FOUND:
            pending = PendingReply()
            wanted = self._subscriptions.wanted(header, self._subscriptions.group(header))
            resume, at = partial(self.resume, request, pending), header.queue_offset
            if self._hold(request.peer, header, at, request.steady_ms, resume, wanted):
                return pending
        return found

    def _hold_at_end(
        self, request: Request[PullMessageRequestHeader], pending: PendingReply
    ) -> bool:
        """Holds a pull that begins where its queue ends, which needs no answer from the store.

        It is no slave's, and no reset is waiting. Rules are asked in the order of `_run`; may raise
        what these raise.
        """
        header, peer = request.header, request.peer
        if not (self._is_master and header.queue_offset) or self._offsets.has_resets:
            return False
        group = self._subscriptions.group(header)
        self._topic(header, request.command.code, peer)
        wanted = self._subscriptions.wanted(header, group)
        if self._broadcast_offsets.client_of(header, peer) is not None:
            return False
        resume = partial(self.resume, request, pending)
        return self.wait(peer, header, header.queue_offset, request.steady_ms, resume, wanted)

    def wait(
        self, peer: Peer, header: PullMessageRequestHeader, queue_offset: int, steady_ms: int,
        resume: Callable[[], None], wanted: MessageFilter = ALL,
    ) -> bool:  # fmt: skip
        """Holds a pull that begins at another offset than its header says, where its queue ends,
        until `resume` is called; False if too many are held.
        """
        if not self._hold(peer, header, queue_offset, steady_ms, resume, wanted):
            return False
        self._subscriptions.make_group(header.consumer_group)
        self._offsets.pulled(header.consumer_group, header.topic, header.queue_id, queue_offset)
        self._store.stats.got_missed += 1
        return True

    def resume(self, request: Request[PullMessageRequestHeader], pending: PendingReply) -> None:
        """Runs a pull that was held once more."""
        try:
            found = self._patience.answer(request.peer, partial(self._serve, request))
        except Exception as error:  # noqa: BLE001 - the answer of one pull, not of all
            pending.resolve(error)
            return
        if isinstance(found, PendingReply):
            found.then(pending.resolve)
        else:
            pending.resolve(found)

    def _hold(
        self, peer: Peer, header: PullMessageRequestHeader, queue_offset: int, steady_ms: int,
        resume: Callable[[], None], wanted: MessageFilter,
    ) -> bool:  # fmt: skip
        hold_ms = header.suspend_timeout_millis
        if not self._config.long_polling_enable:
            hold_ms = self._config.short_polling_time_mills
        held = HeldRequest(
            peer, header.topic, header.queue_id, queue_offset, steady_ms + hold_ms, resume, wanted
        )
        return self._polling.hold(held)

    def _run(self, request: Request[PullMessageRequestHeader]) -> Reply[PullMessageResponseHeader]:
        """Serves a pull by what there is now; raises NotYet."""
        header, command = request.header, request.command
        group = self._subscriptions.group(header)
        topic = self._topic(header, command.code, request.peer)
        wanted = self._subscriptions.wanted(header, group)
        member = self._broadcast_offsets.client_of(header, request.peer)
        if self._answer is not None and wanted == ALL and member is None:
            at, opaque = header.queue_offset, command.opaque
            frame = self._found(self._answer, header, at, opaque, group, topic)
            if frame:
                return Reply(frame=frame)
        result = self._get(header, member, wanted)
        self._subscriptions.make_group(header.consumer_group)
        self._offsets.pulled(
            header.consumer_group, header.topic, header.queue_id, result.next_begin_offset
        )
        if result.count:
            code, remark = _SUCCESS, _FOUND
            self._stats.got(header.consumer_group, header.topic, result.count, result.size_bytes)
        else:
            code, remark = self._code_without(header, result), result.status.name
        if member is not None:
            moved_to = result.next_begin_offset
            is_moved = code == ResponseCode.PULL_OFFSET_MOVED
            self._broadcast_offsets.pulled(
                header, member, moved_to if is_moved else header.queue_offset
            )
        least = result.min_offset
        if not result.max_offset and has_batch_queues(topic.attributes):
            least = -1  # as by BatchConsumeQueue without any message
        answer = PullMessageResponseHeader(
            suggest_which_broker_id=(
                self._suggested_broker(group, result) if self._config.slave_read_enable else 0
            ),
            next_begin_offset=result.next_begin_offset,
            min_offset=least,
            max_offset=result.max_offset,
            topic_sys_flag=topic.topic_sys_flag,
            group_sys_flag=group.group_sys_flag,
        )
        return Reply(answer, result.buffers, code, remark)

    def found(
        self, peer: Peer, header: PullMessageRequestHeader, code: int, queue_offset: int,
        opaque: int,
    ) -> Sequence[Buffer] | None:  # fmt: skip
        """Returns the answer to a pull with this header that begins at another offset, if a kernel
        makes it. An empty one means that it is to `wait`, None that it has to be served as a
        request. May raise what that raises.
        """
        answer, header_group = self._answer, self._subscriptions.group(header)
        topic = self._topic(header, code, peer)
        if (
            answer is None
            or self._subscriptions.wanted(header, header_group) != ALL
            or self._broadcast_offsets.client_of(header, peer) is not None
        ):
            return None
        found = self._found(answer, header, queue_offset, opaque, header_group, topic)
        may_wait = header.sys_flag & _SUSPEND and self._is_master
        return found if found or may_wait else None

    def _found(
        self, answer: PullAnswer, header: PullMessageRequestHeader, queue_offset: int, opaque: int,
        group: SubscriptionGroupConfig, topic: TopicConfig,
    ) -> Sequence[Buffer] | None:  # fmt: skip
        """Returns the answer with messages that a kernel finds, an empty one at the queue's end, or
        None if it finds none.

        It does to offsets and counts what `_run` does.
        """
        name, queue_id, offsets = header.topic, header.queue_id, self._offsets
        if offsets.has_resets:
            return None
        suggested = self._suggested_broker(group, _RECENT) if self._config.slave_read_enable else 0
        pieces = self._answers.pieces(suggested, topic.topic_sys_flag, group.group_sys_flag)
        found = self._store.get_packed(
            name, queue_id, queue_offset, header.max_msg_nums,
            header.max_msg_bytes or _NO_BYTE_LIMIT, answer, pieces, opaque,
        )  # fmt: skip
        if found is None:
            return None
        if found is NOTHING_YET:
            return ()
        self._subscriptions.make_group(header.consumer_group)
        offsets.pulled(header.consumer_group, name, queue_id, found.next_offset)
        self._stats.got(header.consumer_group, name, found.messages, found.size_bytes)
        return found.buffers

    def _code_without(self, header: PullMessageRequestHeader, result: GetResult) -> int:
        """Returns the code of an answer without messages."""
        if result.status is GetMessageStatus.OFFSET_TOO_SMALL:
            self._jumped(header, result)
        code = _CODES.get(result.status)
        if code is None:  # nothing in the queue
            moved = header.queue_offset != 0
            code = ResponseCode.PULL_OFFSET_MOVED if moved else ResponseCode.PULL_NOT_FOUND
        return code

    def _run_on_slave(
        self, has_master: Callable[[], bool], request: Request[PullMessageRequestHeader]
    ) -> Reply[PullMessageResponseHeader]:
        """Serves a pull as a slave does; see the module docstring."""
        found = self._run(request)
        is_moved = found.code == ResponseCode.PULL_OFFSET_MOVED
        if (is_moved and not self._store.config.offset_check_in_slave) or (
            (is_moved or found.code == ResponseCode.PULL_NOT_FOUND) and has_master()
        ):
            found.code = ResponseCode.PULL_RETRY_IMMEDIATELY
        return found

    def _jumped(self, header: PullMessageRequestHeader, result: GetResult) -> None:
        """Notes that a group has missed messages; not of one that is new to the queue, unless this
        is its retry topic.
        """
        group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
        at, to = header.queue_offset, result.next_begin_offset
        is_known = at > 0 or self._offsets.query(group, topic, queue_id) >= 0
        if at >= 0 and (is_known or topic == RETRY_PREFIX + group):
            self._store.jumps.found(Jump(GROUP, topic, queue_id, at, to, to - at, group, is_known))

    def _get(
        self, header: PullMessageRequestHeader, member: str | None, wanted: MessageFilter
    ) -> GetResult:
        reset, offsets = None, self._offsets
        if offsets.has_resets:
            reset = offsets.take_reset(header.consumer_group, header.topic, header.queue_id)
        if reset is None and member is not None:
            reset = self._broadcast_offsets.first_offset(header, member)
        if reset is not None:
            return GetResult(
                GetMessageStatus.OFFSET_RESET,
                reset,
                self._store.min_offset(header.topic, header.queue_id),
                self._store.max_offset(header.topic, header.queue_id),
            )
        return self._store.get(
            header.topic,
            header.queue_id,
            header.queue_offset,
            header.max_msg_nums,
            header.max_msg_bytes or _NO_BYTE_LIMIT,
            wanted.tag_codes,
            wanted.by_properties,
            wanted.wants_ext,
        )

    # ---------------------------------------------------------------- checks

    def _topic(self, header: PullMessageRequestHeader, code: int, peer: Peer) -> TopicConfig:
        if not self._config.broker_permission & _READ:
            raise forbidden(
                BROKER_FORBIDDEN,
                f"the broker[{self._config.broker_ip1}] pulling message is forbidden",
            )
        if code == _LITE_PULL and not self._config.lite_pull_message_enable:
            raise forbidden(
                BROKER_FORBIDDEN,
                f"the broker[{self._config.broker_ip1}] for lite pull consumer is forbidden",
            )
        topic = self._topics.get(header.topic)
        if topic is None:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic[{header.topic}] not exist, apply first please! {FAQ}",
            )
        if not topic.perm & _READ:
            raise forbidden(
                TOPIC_FORBIDDEN, f"the topic[{header.topic}] pulling message is forbidden"
            )
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}]"
                f" topicConfig.readQueueNums:[{topic.read_queue_nums}]"
                f" consumer:[{peer.remote_address}]",
            )
        return topic
