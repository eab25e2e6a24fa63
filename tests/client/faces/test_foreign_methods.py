# SPDX-License-Identifier: Apache-2.0
"""Methods of other clients, asked of all classes of the three forms."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.client.faces.test_foreign_settings import CLASSES, FORMS
from txrocketmq.client.faces.foreign_methods import FOREIGN_METHODS
from txrocketmq.client.faces.foreign_settings import answer_for
from txrocketmq.remoting.arguments.foreign import Foreign, plain


def bare(form: str, name: str) -> Any:
    """An object of a class that was never made, so that it needs no thread."""
    made = getattr(FORMS[form], name)
    return made.__new__(made)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("foreign", FOREIGN_METHODS, ids=lambda each: each.names.split()[0])
def test_a_method_of_another_client_is_answered_by_name(form: str, foreign: Foreign) -> None:
    for name in CLASSES:
        thing = bare(form, name)
        for method in foreign.names.split():
            if hasattr(type(thing), method):
                continue
            with pytest.raises(AttributeError) as caught:
                getattr(thing, method)
            said = str(caught.value)
            assert said.startswith(f"{name} has no '{method}': "), said
            ours = [each for each in foreign.ours.split() if hasattr(type(thing), each)]
            if ours:
                assert f"it is {ours[0]} here" in said
            assert not hasattr(thing, method)


def test_the_table_is_sound() -> None:
    names = Counter(plain(name) for each in FOREIGN_METHODS for name in each.names.split())
    assert [name for name, count in names.items() if count > 1] == []
    for foreign in FOREIGN_METHODS:
        assert foreign.ours or foreign.note, foreign
        for ours in foreign.ours.split():
            assert any(hasattr(getattr(FORMS["blocking"], name), ours) for name in CLASSES), ours


@pytest.mark.parametrize(
    ("name", "method", "said"),
    [
        ("Producer", "sendOneway", "it is send_oneway here"),
        ("Producer", "poll", "nothing has to be polled, since send returns the result"),
        ("PushConsumer", "poll", "its listener gets the messages"),
        ("LitePullConsumer", "getone", "it is poll here"),
        ("Admin", "list_topics", "it is topics here"),
        ("Admin", "list_consumer_groups", "it is groups here"),
        ("Producer", "create_topic", "Admin lists, creates and deletes topics and groups"),
        (
            "Producer", "set_name_server_address",
            f"settings are given when it is made: {answer_for('namesrv', ['namesrv_addr'])}",
        ),
        (
            "PushConsumer", "setConsumeThreadMax",
            "settings are given when it is made: it is consume_concurrency here",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", FORMS)
def test_what_is_said(form: str, name: str, method: str, said: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(bare(form, name), method)
    assert str(caught.value) == f"{name} has no '{method}': {said}"


def test_what_nobody_has_is_missing_as_ever() -> None:
    with pytest.raises(AttributeError, match="^'Producer' object has no attribute 'sned'$") as all_:
        _ = bare("blocking", "Producer").sned
    assert all_.value.name == "sned"
    with pytest.raises(AttributeError, match="_life"):
        _ = bare("blocking", "Producer").group
