# SPDX-License-Identifier: Apache-2.0
"""What is said of names of other programs."""

from __future__ import annotations

from txrocketmq.remoting.arguments.foreign import Foreign, plain, spelt_otherwise, table_of

POLL = Foreign("getone get_many", "poll receive", "with a timeout", "a listener gets them", "no")
ACKS = Foreign("acks", note="a send waits")


def test_the_first_name_that_is_known_counts() -> None:
    assert POLL.answer(["receive", "poll"]) == "it is poll here, with a timeout"
    assert POLL.answer(["receive"], to_producer=True) == "it is receive here, with a timeout"
    assert Foreign("a", "b").answer(["b"]) == "it is b here"


def test_without_one_the_row_says_what_to_do() -> None:
    assert POLL.answer([]) == "a listener gets them"
    assert POLL.answer([], to_producer=True) == "no"
    assert ACKS.answer([], to_producer=True) == "a send waits"


def test_tables_have_each_name() -> None:
    assert table_of([POLL, ACKS], plain) == {"getone": POLL, "getmany": POLL, "acks": ACKS}
    assert "get_many" in table_of([POLL])


def test_spelling() -> None:
    assert spelt_otherwise("namesrv.Addr", ["group", "namesrv_addr"]) == "it is namesrv_addr here"
    assert spelt_otherwise("namesrv", ["namesrv_addr"]) == ""
