# SPDX-License-Identifier: Apache-2.0
"""What is said at the end of the program."""

from __future__ import annotations

import io
import os

import pytest

from txrocketmq.client.thread import leftovers as forgotten


@pytest.fixture(autouse=True)
def nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgotten, "_open", {})


def test_who_is_open_is_named_and_ended() -> None:
    ended: list[str] = []
    one, two = object(), object()
    forgotten.opened(one, "Producer of group a", lambda: ended.append("a"))
    forgotten.opened(two, "Producer of group b", lambda: ended.append("b"))
    forgotten.closed(one)
    errors = io.StringIO()
    forgotten.end_all(errors)
    assert ended == ["b"]
    assert errors.getvalue() == (
        "txrocketmq: Producer of group b was not shut down: call shutdown(), or use it in a with"
        " statement\n"
    )


def test_who_is_dropped_before_is_named_as_well() -> None:
    for group in "abc":
        forgotten.opened(object(), group, lambda: None)
    errors = io.StringIO()
    forgotten.end_all(errors)
    assert [line.split()[1] for line in errors.getvalue().splitlines()] == ["a", "b", "c"]


def test_what_the_parent_has_open_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten.opened(object(), "Producer of group a", lambda: pytest.fail("not ours"))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    errors = io.StringIO()
    forgotten.end_all(errors)
    assert errors.getvalue() == ""
