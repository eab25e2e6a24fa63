# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker.store.batches import HOST, batched, kind_of
from tests.broker.store.conftest import ROOT, SMALL
from tests.disk import MemoryFiles
from tests.kernel.installed import kernel, needs_kernel
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.index.index_file import Index
from txrocketmq.broker.store.index.packed_index import PackedIndex
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.log.dispatch import Dispatchers
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.upkeep import packed_follow as its
from txrocketmq.broker.store.upkeep.packed_follow import PackedFollow, packed_follow
from txrocketmq.broker.store.upkeep.reput import Reput
from txrocketmq.remoting.process.compiled_kernel import VARIABLE

NOW_MS = 1_700_000_000_000
_TEXTS = [
    b"", b"UNIQ_KEY\x01K1\x02KEYS\x01a  b\x02TAGS\x01TagA\x02", b"TAGS\x01\xc3\xa9",
    b"DELAY\x012\x02",
    b"TAGS\x01a\x02TAGS\x01b\x02", b"KEYS\x01\xff\x02", b"x", b"INNER_MULTI_DISPATCH\x01%LMQ%a\x02",
]  # fmt: skip
_PARTS = st.tuples(
    st.sampled_from(["Topic", "Topic", "Other", "Batches", "T\u00f6pic"]),
    st.integers(0, 2),
    st.sampled_from(_TEXTS) | st.just(_TEXTS[1]),
    st.sampled_from([0, 0, 0, 4, 8, 12]),
)


def message(topic: str, queue_id: int, text: bytes, sys_flag: int) -> PutMessage:
    made = PutMessage(
        topic, queue_id, b"body" * 30, text, 0, 1, HOST, HOST, None, None, None, sys_flag=sys_flag
    )
    return batched(made._replace(properties=b""), [b"x", b"y"]) if topic == "Batches" else made


class Rig:
    """A replica: a log whose records are not dispatched yet."""

    def __init__(self, **settings: Any) -> None:
        self.files = MemoryFiles()
        config = StoreConfig(store_path_root_dir=ROOT, **(SMALL | settings))
        self.log = CommitLog(self.files, config)
        self.queues = ConsumeQueues(self.files, config)
        self.queues.kind_of = kind_of
        places = "/index", config.max_hash_slot_num, config.max_index_num
        self.index = (
            PackedIndex(self.files, *places, kernel.Rows) if kernel else Index(self.files, *places)
        )
        self.reput = Reput(config, self.log, self.queues, Dispatchers(config, self.index))

    def put(self, messages: Sequence[PutMessage]) -> None:
        for at, message in enumerate(messages):
            batch = self.log.encode([message], self.queues, NOW_MS + at * 700)
            self.log.write(batch)

    def dispatched(self, ends: Sequence[int]) -> tuple[Any, ...]:
        """Runs up to each of these parts of the log; returns all that follows."""
        touched = []
        for part in (*ends, 100):
            queues = self.reput.run(self.log.max_offset * part // 100)
            touched.append(sorted((each.topic, each.queue_id) for each in queues))
            assert self.reput.offset <= self.log.max_offset
        self.index.write_pending(NOW_MS)
        files = {
            path: bytes(data) for path, data in self.files.maps.items() if "commitlog" not in path
        }
        ends_of = {
            (each.topic, each.queue_id): (
                each.max_offset,
                each.max_physical_offset,
                each.next_offset,
            )
            for each in self.queues
        }
        return self.reput.offset, self.reput.stored_ms, touched, files, ends_of


@needs_kernel
@given(
    st.lists(_PARTS, max_size=40), st.lists(st.integers(0, 100), max_size=3).map(sorted),
    st.booleans(),
)  # fmt: skip
def test_what_follows_from_records_is_what_reput_finds_one_by_one(
    parts: list[tuple[str, int, bytes, int]], ends: list[int], has_index: bool
) -> None:
    found = []
    for word in ("off", "require"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(VARIABLE, word)
            rig = Rig(message_index_enable=has_index)
            rig.put([message(*each) for each in parts])
            found.append(rig.dispatched(ends))
    assert found[0] == found[1]


@needs_kernel
def test_usual_records_are_found_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    follow = Reput.follow

    def noted(self: Reput, records: Any) -> Any:
        asked.append(1)
        return follow(self, records)

    monkeypatch.setenv(VARIABLE, "require")
    monkeypatch.setattr(Reput, "follow", noted)
    rig = Rig()
    rig.put([message("Topic", each % 3, _TEXTS[1], 0) for each in range(50)])
    rig.dispatched([])
    assert not asked
    rig.put([message("Topic", 0, _TEXTS[3], 0)])
    rig.dispatched([])
    assert asked


@needs_kernel
@pytest.mark.parametrize("state", ["repair", "is_known", "index_from"])
def test_where_more_has_to_be_decided_records_are_taken_one_by_one(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "require")
    rig = Rig()
    assert rig.reput._packed() is not None
    holder: Any = rig.reput.dispatchers if state == "index_from" else rig.reput
    monkeypatch.setattr(holder, state, 7)
    assert rig.reput._packed() is None


def test_rows_of_another_kernel_are_not_given_to_the_compiled_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Kernel:
        Rows, follow = list, staticmethod(lambda *_: None)

    queues: Any = None
    monkeypatch.setattr(its, "wanted_kernel", lambda: Kernel)
    assert isinstance(packed_follow(list, queues), PackedFollow)
    assert isinstance(packed_follow(None, queues), PackedFollow)
    assert packed_follow(dict, queues) is None
    monkeypatch.setattr(its, "wanted_kernel", lambda: None)
    assert packed_follow(list, queues) is None


@pytest.mark.parametrize("follow", ["fails", "finds nothing", "finds another kind of queue"])
def test_what_it_cannot_find_is_left_to_others(
    follow: str, files: Any, config: Callable[..., Any]
) -> None:
    def answer(*_: Any) -> Any:
        if follow == "fails":
            raise RuntimeError
        units = [(b"Batches", 0, 0, bytes(20))] if "queue" in follow else []
        return 100, len(units), 1, units

    queues = ConsumeQueues(files, config())
    queues.kind_of = kind_of
    file: Any = type("File", (), {"view": memoryview(b""), "from_offset": 0})
    assert PackedFollow(answer, None, queues)(file, 0, 100) is None
