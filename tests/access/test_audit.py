# SPDX-License-Identifier: Apache-2.0
"""The audit: what is told, how often, and that all is counted."""

from __future__ import annotations

from txrocketmq.access.audit import MOST_A_MINUTE, TIMES_A_MINUTE, Audit
from txrocketmq.access.authority import Refusal


class Heard:
    def __init__(self) -> None:
        self.refusals: list[str] = []
        self.changes: list[str] = []
        self.steady_ms = 0
        self.audit = Audit(self.refusals.append, self.changes.append, lambda: self.steady_ms)


DENIED = Refusal("...", "no policy allows it", "alice", "Topic:T", "Pub or Sub")


def test_a_refusal() -> None:
    heard = Heard()
    heard.audit.refusal(310, "10.0.0.1", DENIED)
    heard.audit.refusal(11, "10.0.0.1", Refusal("...", "no account is named"))
    sent, pulled = heard.refusals
    assert sent == (
        "refused SEND_MESSAGE_V2 of the account alice at 10.0.0.1, which needs Pub or Sub on"
        " Topic:T: no policy allows it"
    )
    assert pulled == (
        "refused PULL_MESSAGE of somebody without an account at 10.0.0.1: no account is named"
    )


def test_many_of_a_kind_are_counted() -> None:
    heard = Heard()
    for _ in range(TIMES_A_MINUTE + 7):
        heard.audit.refusal(310, "10.0.0.1", DENIED)
    assert len(heard.refusals) == TIMES_A_MINUTE
    heard.steady_ms += 60_000
    heard.audit.refusal(310, "10.0.0.1", DENIED)
    assert heard.refusals[-1].endswith("(and 7 more that were not logged)")
    assert heard.audit.refused == {(310, DENIED.reason): TIMES_A_MINUTE + 8}


def test_strangers_do_not_fill_the_log_with_names() -> None:
    heard = Heard()
    for number in range(5_000):
        refusal = Refusal("...", "there is no such user", f"name{number}\n" + "x" * 1000)
        heard.audit.refusal(1_000_000 + number, f"10.0.0.{number}", refusal)
    assert len(heard.refusals) == MOST_A_MINUTE
    assert all("\n" not in line and len(line) < 1000 for line in heard.refusals)
    assert heard.audit.refused == {(-1, "there is no such user"): 5_000}


def test_changes_are_always_told() -> None:
    heard = Heard()
    for _ in range(1000):
        heard.audit.change("root", "10.0.0.1", "created the user x\n")
    assert heard.changes == ["the account root at 10.0.0.1 created the user x\\n"] * 1000
    assert heard.refusals == []
