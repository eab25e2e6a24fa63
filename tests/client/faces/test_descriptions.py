# SPDX-License-Identifier: Apache-2.0
"""What somebody learns of the classes who has only `help`."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import pydoc
from types import ModuleType
from typing import Any

import pytest

from txrocketmq import client
from txrocketmq.client import aio, blocking, compat, tx
from txrocketmq.client.base.config import ClientConfig, ProducerConfig
from txrocketmq.client.consumer.config import ConsumeFrom, PushConsumerConfig
from txrocketmq.client.faces import names
from txrocketmq.client.faces.descriptions import (
    config_class,
    constructor_signature,
    setting_types,
    shown_default,
)
from txrocketmq.client.producer.producer import Producer
from txrocketmq.remoting.settings.field_texts import field_texts
from txrocketmq.testing.calls import StartedProducer

FACES = [blocking, aio, tx]
CLASSES = sorted(set(blocking.__all__) - set(names.__all__))


texts_of = functools.cache(field_texts)


def told(thing: Any) -> str:
    """What `help` prints, without the frame around it."""
    return pydoc.plain(pydoc.render_doc(thing))


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", CLASSES)
def test_help_has_all_settings_with_types_defaults_and_texts(face: ModuleType, name: str) -> None:
    made: Any = getattr(face, name)
    text = " ".join(told(made).replace(" | ", " ").split())
    parameters = inspect.signature(made).parameters
    for config in (config_class(made._core_class), ClientConfig):
        texts = texts_of(config)
        for field in dataclasses.fields(config):
            assert texts[field.name][:40] in text.replace("- ", "-")
            assert f"{field.name}: " in text
            assert parameters[field.name].kind is inspect.Parameter.KEYWORD_ONLY
    assert "instance" not in parameters
    assert "config" not in parameters
    assert "the core" not in text
    own = text.partition("Methods inherited")[0]
    assert ": '" not in own, "types have no quotes"
    assert "-> '" not in own
    assert " at 0x" not in own
    assert ("reactor: Any = None" in own) is (face is tx)


@pytest.mark.parametrize("face", FACES)
def test_what_comes_back_is_that_of_the_form(face: ModuleType) -> None:
    results = {
        blocking: ("SendResult", "Future[SendResult]"),
        aio: ("SendResult", "asyncio.Future[SendResult]"),
        tx: ("Deferred[SendResult]", "Deferred[SendResult]"),
    }
    made: Any = face
    for method, result in zip(("send", "send_async"), results[made], strict=True):
        assert "message: Message | str, body: bytes | str | None = None, *, " in told(made.Producer)
        signature = inspect.signature(getattr(made.Producer, method))
        assert str(signature).endswith(f" -> {result}")
    assert inspect.iscoroutinefunction(aio.Producer.send)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", CLASSES)
def test_start_and_shutdown_say_what_they_do(face: ModuleType, name: str) -> None:
    made: Any = getattr(face, name)
    core = made._core_class
    assert inspect.getdoc(core.start) in made.start.__doc__
    assert (made.__module__, made.start.__qualname__) == (
        face.FORM.module, f"{name}.start",
    )  # fmt: skip
    assert "nothing" in made.shutdown.__doc__


def test_the_signature() -> None:
    parameters = inspect.signature(client.PushConsumer).parameters
    assert list(parameters)[:4] == ["group", "subscriptions", "listener", "strategy"]
    assert str(parameters["consume_from"]) == (
        "consume_from: ConsumeFrom | str = ConsumeFrom.LAST_OFFSET"
    )
    assert str(parameters["strategy"]) == "strategy: Strategy = averagely"
    assert str(parameters["namesrv_addr"]) == "namesrv_addr: str | None = None"
    made = constructor_signature(Producer, client.Producer.__mro__[1])
    assert made is inspect.signature(client.Producer)


class Own(client.Producer):
    """A producer of a program."""

    def __init__(self, address: str) -> None:
        super().__init__("own", namesrv_addr=address)


def test_classes_of_programs_have_their_own_description() -> None:
    assert str(inspect.signature(Own)).startswith("(address: 'str') -> ")
    assert Own.__doc__ == "A producer of a program."
    assert inspect.signature(StartedProducer) == inspect.signature(client.Producer)


def test_types_of_settings() -> None:
    types = {**setting_types(ProducerConfig), **setting_types(PushConsumerConfig)}
    assert types["compression"] == "CompressionType | str"
    assert types["trace_topic"] == "str | None"
    assert types["local_offset_store_dir"] == "str | os.PathLike[str] | None"
    assert types["retry_times"] == "int"


def test_defaults_are_shown_as_they_are_written() -> None:
    assert shown_default(ConsumeFrom.LAST_OFFSET) == "ConsumeFrom.LAST_OFFSET"
    assert shown_default("x") == "'x'"
    assert shown_default(frozenset({2, 1})) == "{1, 2}"
    assert shown_default(len) == "len"


@pytest.mark.parametrize("module", [client, aio, tx, compat])
def test_modules_name_what_is_public(module: ModuleType) -> None:
    assert set(module.__all__) <= set(dir(module))
    inside = {name for name in dir(module) if not name.startswith("_")} - set(module.__all__)
    assert inside <= {"aio", "compat", "tx"}
    text = told(module)
    for name in module.__all__:
        assert name in text
