# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker.store.upkeep.test_packed_follow import Rig, message
from txrocketmq.broker.store.upkeep import usual_follow as its
from txrocketmq.broker.store.upkeep.reput import Reput
from txrocketmq.broker.store.upkeep.usual_follow import Facts, UsualFollow, facts_in
from txrocketmq.remoting.process.compiled_kernel import VARIABLE

_KEYS = [
    "7F000001ABCD18B4AAC200000000000A",
    "FD00000000000000000000000000000200010030946E0001",
    "k",
]
_TEXTS = st.sampled_from(
    [
        "", "WAIT\x01true", "UNIQ_KEY\x01{0}\x02WAIT\x01true\x02TAGS\x01a\x02",
        "TAGS\x01a\x02UNIQ_KEY\x01{0}", "KEYS\x01a  b\x02UNIQ_KEY\x01{0}\x02", "UNIQ_KEY\x01\x02",
        "UNIQ_KEY\x01{0}\x01x\x02TAGS\x01t\x02", "UNIQ_KEY\x01{0}\x02UNIQ_KEY\x01other\x02",
        "MY_UNIQ_KEY\x01{0}\x02", "UNIQ_KEY\x01\u00e9{0}\x02", "TAGS\x01\u00e9\x02", "x",
        "DELAY\x012\x02", "INNER_MULTI_DISPATCH\x01%LMQ%a\x02", "TAGS\x01a\x02TAGS\x01b\x02",
        "A\x01UNIQ_KEY\x01{0}\x02", "UNIQ_KEY\x01{0}\x02\x02TAGS\x01\x02KEYS\x01" + "k" * 1_200,
    ]
)  # fmt: skip
_MADE = st.builds(lambda text, key: text.format(key).encode(), _TEXTS, st.sampled_from(_KEYS))
_PARTS = st.tuples(
    st.sampled_from(["Topic", "Topic", "Other", "Batches", "T\u00f6pic"]),
    st.integers(0, 2),
    _MADE,
    st.sampled_from([0, 0, 0, 4, 8, 12]),
)


@pytest.fixture(autouse=True)
def _without_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")


@given(
    st.lists(_PARTS, max_size=40), st.lists(st.integers(0, 100), max_size=3).map(sorted),
    st.booleans(),
)  # fmt: skip
def test_what_follows_from_records_is_what_reput_finds_one_by_one(
    parts: list[tuple[str, int, bytes, int]], ends: list[int], has_index: bool
) -> None:
    found = []
    for is_usual in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(VARIABLE, "off")
            patch.setattr(its, "MOST_TEXTS", 3)
            if not is_usual:
                patch.setattr(Reput, "_usual_now", lambda _: None)
            rig = Rig(message_index_enable=has_index)
            rig.put([message(*each) for each in parts])
            found.append(rig.dispatched(ends))
    assert found[0] == found[1]


def unusual_runs(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records each run has that are taken one by one."""
    found: list[int] = []
    follow = Reput.follow

    def noted(self: Reput, records: Any) -> Any:
        taken = list(records)
        found.append(len(taken))
        return follow(self, taken)

    monkeypatch.setattr(Reput, "follow", noted)
    rig.dispatched([])
    return found


def test_usual_records_are_found_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    text = "UNIQ_KEY\x01{}\x02WAIT\x01true"
    rig.put([message("Topic", n % 3, text.format(n).encode(), 0) for n in range(600)])
    assert unusual_runs(rig, monkeypatch) == []
    rig.put([message("Topic", 0, b"DELAY\x012\x02", 0)])
    assert unusual_runs(rig, monkeypatch) == [1]


@pytest.mark.parametrize("state", ["repair", "is_known"])
def test_where_more_has_to_be_decided_records_are_taken_one_by_one(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig()
    assert rig.reput._usual_now() is not None
    monkeypatch.setattr(rig.reput, state, 7)
    assert rig.reput._usual_now() is None


def test_no_more_texts_are_remembered_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(its, "MOST_TEXTS", 10)
    rig = Rig()
    rig.put([message("Topic", 0, f"KEYS\x01k{n}\x02".encode(), 0) for n in range(100)])
    rig.put([message("Topic", 0, b"KEYS\x01" + b"k" * 2_000, 0)])
    rig.dispatched([])
    known = rig.reput._usual._facts
    assert 0 < len(known) <= 10
    assert max(map(len, known)) < 100


def test_queues_that_were_deleted_are_looked_up_again() -> None:
    rig = Rig()
    rig.put([message("Topic", 0, b"", 0)])
    rig.dispatched([])
    rig.reput.forget_queues()
    assert rig.reput._usual._queue_of == {}


def test_a_queue_that_cannot_be_is_left_to_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    usual = UsualFollow(rig.queues)
    assert usual._plain("Topic/../x", 0) is None
    assert usual._plain("Topic", -1) is None
    assert usual._plain("Batches", 0) is None
    assert usual._plain("Topic", 1) is rig.queues.open("Topic", 1)


def text_of(properties: bytes, topic: bytes = b"T", more: int = 0) -> bytes:
    size = len(properties) + more
    return bytes([len(topic)]) + topic + size.to_bytes(2, "big") + properties


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (text_of(b""), Facts("T", None, None, 0)),
        (text_of(b"KEYS\x01a b\x02TAGS\x01t\x02"), Facts("T", "a b", "t", 116)),
        (text_of(b"UNIQ_KEY\x01\x02TAGS\x01t", more=40), Facts("T", None, "t", 116)),
        (text_of(b"UNIQ_KEY\x01\x02"), None),
        (text_of(b"X_UNIQ_KEY\x01\x02", more=5), None),
        (text_of(b"UNIQ_KEY\x01\x02UNIQ_KEY\x01k\x02", more=1), None),
        (text_of(b"TAGS\x01t\x02", more=1), None),
        (text_of(b"TAGS\x01t\x02", more=-1), None),
        (text_of(b"TAGS\x01t\x02")[:3], None),
        (text_of(b"TAGS\x01\xff\x02"), None),
        (text_of(b"TAGS\x01t\x02", topic=b"\xc3\xb6"), None),
    ],
)
def test_facts(text: bytes, facts: Facts | None) -> None:
    assert facts_in(text) == facts
