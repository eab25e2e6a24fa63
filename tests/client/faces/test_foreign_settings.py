# SPDX-License-Identifier: Apache-2.0
"""Settings of other clients, given to all classes of the three forms."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

import pytest

from txrocketmq.client import aio, blocking, tx
from txrocketmq.client.faces.foreign_settings import FOREIGN_SETTINGS, answer_for
from txrocketmq.remoting.arguments.foreign import Foreign, plain

FORMS: dict[str, Any] = {"blocking": blocking, "asyncio": aio, "twisted": tx}
CLASSES = (
    "Admin", "LitePullConsumer", "PopConsumer", "Producer", "PushConsumer", "TransactionProducer",
)  # fmt: skip
SETTINGS = {name: list(inspect.signature(getattr(blocking, name)).parameters) for name in CLASSES}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("foreign", FOREIGN_SETTINGS, ids=lambda each: each.names.split()[0])
def test_a_setting_of_another_client_is_answered_by_name(form: str, foreign: Foreign) -> None:
    for made in CLASSES:
        for name in foreign.names.split():
            if name in SETTINGS[made]:
                continue
            with pytest.raises(TypeError) as caught:
                getattr(FORMS[form], made)(**{name: "12345"})
            said = str(caught.value)
            ours = [each for each in foreign.ours.split() if each in SETTINGS[made]]
            if any(plain(each) == plain(name) for each in SETTINGS[made]):
                assert said.startswith(f"{made} has no setting '{name}': it is "), said
            elif ours:
                assert said.startswith(f"{made} has no setting '{name}': it is {ours[0]} here")
            else:
                assert said == f"{made} has no setting '{name}': " + (
                    foreign.otherwise or foreign.note
                )
                assert foreign.otherwise or foreign.note
            assert "12345" not in said


def test_the_table_is_sound() -> None:
    names = Counter(plain(name) for each in FOREIGN_SETTINGS for name in each.names.split())
    assert [name for name, count in names.items() if count > 1] == []
    known = {each for names in SETTINGS.values() for each in names}
    ours = {each for foreign in FOREIGN_SETTINGS for each in foreign.ours.split()}
    assert ours <= known
    everywhere = {plain(name) for name in set.intersection(*map(set, SETTINGS.values()))}
    assert not everywhere & names.keys(), "what every class has needs no answer"


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("bootstrap.servers", "namesrv_addr"),
        ("namesrvAddr", "namesrv_addr"),
        ("instanceName", "instance_name"),
        ("consumerGroup", "group"),
        ("consumeThreadMax", "consume_concurrency"),
        ("pullBatchSize", "pull_batch_size"),
        ("auto.offset.reset", "consume_from"),
    ],
)
def test_however_the_letters_are_joined(name: str, ours: str) -> None:
    with pytest.raises(TypeError, match=rf"no setting '{name}': it is {ours} here"):
        FORMS["blocking"].PushConsumer("g", {"T": "*"}, print, **{name: "x"})


def test_what_nobody_has_is_a_misspelling() -> None:
    assert answer_for("send_timeout_mz", SETTINGS["Producer"]) == ""
    with pytest.raises(TypeError, match=r"'send_timeout_mz'; did you mean send_timeout_ms\?"):
        FORMS["blocking"].Producer("g", send_timeout_mz=5)


@pytest.mark.parametrize("form", FORMS)
def test_settings_in_a_dict_are_refused_without_showing_them(form: str) -> None:
    settings: Any = {"bootstrap.servers": "x", "sasl.password": "secret"}
    with pytest.raises(TypeError, match="takes its settings by name, not in a dict") as caught:
        FORMS[form].Producer(settings)
    assert "secret" not in str(caught.value)
