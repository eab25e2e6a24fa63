# SPDX-License-Identifier: Apache-2.0
"""Masters of several releases, as far as slaves copy their configuration."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.broker.conftest import Parts
from tests.fakes import FakePeer
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.store.timers.timer_check import TimerProgress
from txrocketmq.broker.work.config_table import ConfigTable
from txrocketmq.broker.work.life import WalkBeat
from txrocketmq.broker.work.walks import SLICE_S, Walks
from txrocketmq.remoting.call import Call, PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode, SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.frame.frame import FrameDecoder
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.protocol.body.pop import SetMessageRequestModeRequestBody
from txrocketmq.remoting.protocol.topic import (
    GetAllSubscriptionGroupResponseHeader,
    GetAllTopicConfigResponseHeader,
)
from txrocketmq.remoting.serialize.json import encode_body

ROUND_MS = 10_000
ADDRESS = "10.0.0.1:10911"
TOPICS, GROUPS, OFFSETS, DELAYS, MODES, COUNTS, PROGRESS = 21, 201, 43, 45, 402, 61, 60
OF_5 = (MODES, COUNTS, PROGRESS)


def version(counter: int) -> dict[str, int]:
    return {"counter": counter, "stateVersion": 0, "timestamp": 1_000 + counter}


def topic(name: str, queues: int = 4, **others: Any) -> dict[str, Any]:
    return {
        "attributes": {}, "order": False, "perm": 6, "readQueueNums": queues,
        "topicFilterType": "SINGLE_TAG", "topicName": name, "topicSysFlag": 0,
        "writeQueueNums": queues, **others,
    }  # fmt: skip


def group(name: str) -> dict[str, Any]:
    return {"groupName": name, "consumeEnable": True, "retryMaxTimes": 3}


def mode(name: str, of: str) -> dict[str, Any]:
    return {"topic": name, "consumerGroup": of, "mode": "POP", "popShareQueueNum": 2}


class FakeMaster:
    """A master of a release; `page` is how many entries it sends at once, 0: all, as 4.9 does."""

    def __init__(self, page: int = 0, without: tuple[int, ...] = ()) -> None:
        self.page = page
        self.without = without
        """The requests that it does not serve."""
        self.asked: list[int] = []
        self.open: list[tuple[int, Header, PendingReply]] = []
        """Questions that wait, if it `is_slow`."""
        self.is_slow = False
        self.between: Callable[[], None] = lambda: None
        """Called after each page."""
        self.instead: dict[int, Reply[Any] | Exception | bytes] = {}
        """By request: what is answered in place of the tables."""
        self.versions = {TOPICS: 1, GROUPS: 1, OFFSETS: 1, DELAYS: 1, COUNTS: 1}
        self.topics = {name: topic(name) for name in ("A", "B", "C")}
        self.groups = {name: group(name) for name in ("g", "h")}
        self.forbidden = {"g": {"A": 4}}
        self.offsets = {"A@g": {0: 5, 1: 7}, "B@h": {0: 1}}
        self.delays = {1: 4, 18: 2}
        self.modes = {"A": {"g": mode("A", "g")}}
        self.counts = {"A": {"count": 3, "timeStamp": 99}}
        self.progress = TimerProgress(1_700_000_000_000, 52, 9, 0, 8, 2)

    def invoke(
        self, address: str, call: Call[Any, Any], header: Header, *, timeout_ms: int
    ) -> PendingReply:
        assert address == ADDRESS
        assert timeout_ms == 30_000
        self.asked.append(call.code)
        pending = PendingReply()
        self.open.append((call.code, header, pending))
        if not self.is_slow:
            self.answer()
        return pending

    def answer(self) -> None:
        """Answers the first question that waits."""
        code, header, pending = self.open.pop(0)
        instead = self.instead.get(code)
        if isinstance(instead, bytes):
            instead = Reply(body=instead)
        if instead is None and code in self.without:
            instead = Reply(code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark="not supported")
        pending.resolve(instead or self._reply(code, header))

    def _reply(self, code: int, header: Any) -> Reply[Any]:
        if code == PROGRESS:
            return Reply(body=self.progress.encode())
        if code == MODES:
            return Reply(body=encode_body({"messageRequestModeMap": self.modes}))
        content: dict[str, Any] = {"dataVersion": version(self.versions[code])}
        total: Header
        if code == TOPICS:
            page = self._page(self.topics, header.topic_seq, header.data_version, code)
            total = GetAllTopicConfigResponseHeader(total_topic_num=len(self.topics))
            content |= {"mappingDataVersion": {}, "topicConfigTable": page}
            content |= {"topicQueueMappingDetailMap": {"S": {"hostedQueues": {0: [1]}}}}
        elif code == GROUPS:
            page = self._page(self.groups, header.group_seq, header.data_version, code)
            total = GetAllSubscriptionGroupResponseHeader(total_group_num=len(self.groups))
            content |= {"forbiddenTable": self.forbidden, "subscriptionGroupTable": page}
        else:
            field, of = {
                OFFSETS: ("offsetTable", self.offsets),
                DELAYS: ("offsetTable", self.delays),
                COUNTS: ("timingCount", self.counts),
            }[code]
            return Reply(body=encode_body({**content, field: of}))
        if not self.page:
            total = type(total)()
        self.between()
        return Reply(total, encode_body(content))

    def _page(self, table: dict[str, Any], first: int, asked: str, code: int) -> dict[str, Any]:
        if not self.page:
            return table
        if encode_body(version(self.versions[code])).decode() != asked:
            first = 0
        return {name: table[name] for name in sorted(table)[first : first + self.page]}


class OwnMaster:
    """A master of ours: its processors answer."""

    def __init__(self, folder: Path) -> None:
        self.parts = parts = Parts(folder)
        parts.load()
        parts.timers.open(parts.now_ms)
        parts.topic("T", queues=3)
        parts.groups.find("G")
        parts.groups.set_readable("G", "T", readable=False)
        parts.offsets.commit("G", "T", 0, 7)
        parts.schedule.offsets.set(2, 5)
        parts.timers.metrics.add("T", 4)
        parts.modes.set(SetMessageRequestModeRequestBody.from_json(mode("T", "G")))
        for each in self._tables(parts):
            each.saving.begin()
        registry = Registry(*all_processors(parts, SerializeType.JSON))
        self._dispatcher = Dispatcher(registry, parts.clock, parts.clock)

    @staticmethod
    def _tables(parts: Parts) -> list[ConfigTable[Any]]:
        return [
            parts.topics, parts.groups, parts.offsets, parts.modes, parts.timers.metrics,
        ]  # fmt: skip

    def invoke(
        self, address: str, call: Call[Any, Any], header: Header, *, timeout_ms: int
    ) -> PendingReply:
        peer, pending = FakePeer(), PendingReply()
        asked = RemotingCommand(call.code, header.encode(), opaque=1, version=493)
        self._dispatcher.serve(peer, [asked])
        (told,) = FrameDecoder().receive(b"".join(map(bytes, peer.written)))
        answered = call.response.decode(told.ext_fields)
        pending.resolve(Reply(answered, told.body, told.code, told.remark))
        return pending

    def files(self, slave: Parts) -> Iterator[tuple[str, bytes, bytes]]:
        """The files of each table, of the master and of the slave."""
        for its, copied in zip(self._tables(self.parts), self._tables(slave), strict=True):
            copied.saving.begin()
            name = its.saving.name
            paths = (parts.config_folder / name for parts in (self.parts, slave))
            first, second = (path.read_bytes() for path in paths)
            yield name, first, second


class Slave:
    """A slave of such a master; a turn of the reactor takes ten steps of a walk."""

    def __init__(self, folder: Path, master: FakeMaster) -> None:
        self.parts = Parts(folder, store_settings={"broker_role": "SLAVE"})
        self.master = master
        self.parts.load()
        self.parts.timers.open(self.parts.now_ms)
        self.steady_ms = 0
        self.turns: deque[Callable[[], None]] = deque()
        self._time_s = 0.0
        self.walks = Walks(self.turns.append, self._timer)
        copy = self.parts.config_copy
        assert copy is not None
        self.copy = copy
        self.copy._steady_ms = lambda: self.steady_ms
        self.copy.begin(master.invoke)
        self.address: str | None = ADDRESS
        self.copy._master_address = lambda: self.address
        self.errors: list[Exception] = []
        self.told: dict[str, list[Exception | None]] = {}
        self.life = self.copy.life()
        for what, listeners in self.life.troubles.items():
            listeners.append(self.told.setdefault(what, []).append)

    def _timer(self) -> float:
        self._time_s += SLICE_S / 10
        return self._time_s

    def beat(self, after_ms: int = 0) -> None:
        """Lets the time go by, and begins what is due."""
        self.steady_ms += after_ms
        for each in self.life.beats:
            assert isinstance(each, WalkBeat)
            steps = each.steps(0, self.steady_ms)
            if steps is not None:
                self.walks.run(steps, self.errors.append)

    def go_on(self) -> int:
        """Does all that there is to do, and returns in how many turns."""
        count = 0
        while self.turns:
            self.turns.popleft()()
            count += 1
        assert self.errors == []
        return count

    def copies(self, after_ms: int = 0) -> int:
        """Does a round."""
        self.beat(after_ms)
        return self.go_on()

    def wrong(self) -> dict[str, str]:
        """What has failed in the last round, and why."""
        return {
            what.removeprefix("copying the ").removesuffix(" of the master"): str(outcomes[-1])
            for what, outcomes in self.told.items()
            if outcomes and outcomes[-1] is not None
        }

    def state(self) -> tuple[Any, ...]:
        """All that is copied."""
        parts = self.parts
        return (
            parts.topics.all(),
            parts.groups.all(),
            parts.groups.forbidden(),
            {key: dict(queues) for key, queues in parts.offsets.entries()},
            parts.schedule.offsets.table(),
            {topic: dict(groups) for topic, groups in parts.modes.entries()},
            parts.timers.metrics.counts(),
            parts.timers.progress(),
            parts.topics.data_version,
            parts.groups.data_version,
        )


UNREACHABLE = ConnectError("connect to 10.0.0.1:10911 failed")
ALL = [TOPICS, OFFSETS, DELAYS, GROUPS, MODES, COUNTS]
"""In this order."""
