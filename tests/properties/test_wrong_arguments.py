# SPDX-License-Identifier: Apache-2.0
"""Each public callable refuses arguments of wrong types, in a sentence that names the argument.

The callables are found by looking, so a new one is covered by itself.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock as ReactorClock

from tests.client.fakes import result_of
from tests.examples import examples
from txrocketmq.client import aio, blocking, compat, tx
from txrocketmq.client.admin.accounts import Account, Policy
from txrocketmq.client.admin.config import AdminConfig
from txrocketmq.client.admin.plain_accounts import PlainAccount
from txrocketmq.client.base.config import ClientConfig, ProducerConfig
from txrocketmq.client.consumer.config import (
    LitePullConsumerConfig,
    PopConsumerConfig,
    PushConsumerConfig,
)
from txrocketmq.client.faces import names
from txrocketmq.client.faces.descriptions import config_class
from txrocketmq.client.faces.faces import members
from txrocketmq.client.producer.new_message import new_message
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.testing.aio import AioServer
from txrocketmq.testing.calls import Fault
from txrocketmq.testing.clock import HurriedClock
from txrocketmq.testing.faults import Faults
from txrocketmq.testing.in_process import InProcessServer
from txrocketmq.testing.server import Server

CONFIGS: Final[tuple[type, ...]] = (
    AdminConfig, ClientConfig, LitePullConsumerConfig, PopConsumerConfig, ProducerConfig,
    PushConsumerConfig,
)  # fmt: skip
BY_THE_CLIENT: Final = {
    "client.Message": "made for each message; what is wrong in it is said where it is sent",
    "client.MessageExt": "likewise",
    "client.MessageQueue": "made for each queue that is looked at",
    "client.averagely": "the client calls it",
    "client.averagely_by_circle": "likewise",
    "client.by_hash": "likewise",
    "client.by_random": "likewise",
    "client.consistent_hash": "likewise",
    "compat.ReceivedMessage": "the client makes it",
    "compat.SendResult": "likewise",
}
"""What programs name and do not call, and values that the client makes."""
INSIDE: Final = (
    "has no attribute",
    "NoneType",
    "object is not",
    "unsupported operand",
    "supported b",
)


class Queues:
    """A hook of no use, with the methods of all hooks."""

    def __getattr__(self, name: str) -> Any:
        return lambda _: None


SAMPLES: Final[tuple[tuple[str, Any], ...]] = (
    ("Message", new_message("T", "x")),
    ("Callable", lambda *_: None),
    ("Function", lambda *_: None),
    ("Listener", lambda *_: None),
    ("Strategy", lambda *_: []),
    ("Check", lambda *_: None),
    ("Execute", lambda *_: None),
    ("Hook", Queues()),
    ("Mapping", {}),
    ("[MessageQueue", [MessageQueue("T", "b", 0)]),
    ("[MessageExt", [MessageExt("T", b"x")]),
    ("[Message", [new_message("T", "x")]),
    ("[str", ["T"]),
    ("MessageQueue", MessageQueue("T", "b", 0)),
    ("MessageExt", MessageExt("T", b"x")),
    ("Expression", "*"),
    ("bytes", b"x"),
    ("str", "T"),
    ("float", 1.0),
    ("int", 1),
    ("bool", True),
    ("F", lambda *_: None),
    ("Account", Account(name="a")),
    ("[Policy", [Policy(account="a", resource="*", actions=["GET"])]),
    ("PlainAccount", PlainAccount(access_key="abcdef")),
)
"""Valid arguments, by a part of the declared type; the first that fits best counts."""


class Case(NamedTuple):
    """An argument of a callable; `call` gets the arguments by name, and raises what is raised."""

    name: str
    call: Callable[..., Any]
    parameter: str
    annotation: str
    others: dict[str, Any]


def _sample(annotation: str, function: Any) -> Any:
    if annotation == "Message":  # there are two classes of this name
        return inspect.unwrap(function).__globals__["Message"]("T")
    fitting = [(annotation.find(part), -len(part), at) for at, (part, _) in enumerate(SAMPLES)
               if part in annotation]  # fmt: skip
    assert fitting, f"there is no sample of {annotation}"
    return SAMPLES[min(fitting)[2]][1]


def _text(annotation: Any) -> str:
    return (
        annotation
        if isinstance(annotation, str)
        else getattr(annotation, "__name__", str(annotation))
    )


def _cases(name: str, function: Any, call: Callable[..., Any], hidden: set[str]) -> Iterator[Case]:
    parameters = {
        each.name: each
        for each in inspect.signature(function).parameters.values()
        if each.name not in hidden and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    }
    needed = {
        each: _sample(_text(its.annotation), function)
        for each, its in parameters.items()
        if its.default is its.empty
    }
    for each, its in parameters.items():
        others = {other: value for other, value in needed.items() if other != each}
        if _text(its.annotation) not in ("Any", "object"):
            yield Case(f"{name}({each})", call, each, _text(its.annotation), others)


@functools.cache
def _started(face: Any) -> Any:
    """An object that seems to have started: nothing that is refused gets further than that."""
    function = lambda *_: None  # noqa: E731 - as programs write them
    its = {"group": "g", "subscriptions": {"T": "*"}, "listener": function, "check": function}
    takes = inspect.signature(face._core_class.__init__).parameters
    made = _made(face, **{name: value for name, value in its.items() if name in takes})
    made._life.is_started = True
    MADE.append(made)
    return made


MADE: Final[list[Any]] = []


def _made(face: Any, /, **arguments: Any) -> Any:
    more = {"reactor": ReactorClock()} if face.__module__ == "txrocketmq.client.tx" else {}
    return face(**arguments, **more)


def _called(made: Callable[[], Any], name: str, /, **arguments: Any) -> Any:
    """Calls a method; raises what comes of it, at once or later."""
    outcome = getattr(made(), name)(**arguments)
    if inspect.iscoroutine(outcome):
        return asyncio.run(outcome)
    return result_of(outcome) if isinstance(outcome, Deferred) else outcome


def _faces() -> Iterator[Case]:
    for module in (blocking, aio, tx):
        for name in sorted(set(module.__all__) - set(names.__all__)):
            face: Any = getattr(module, name)
            core = face._core_class
            told = f"{module.__name__.rpartition('.')[2]}.{name}"
            hidden = {"self", "instance", "config"}
            yield from _cases(told, core.__init__, functools.partial(_made, face), hidden)
            for member in members(core):
                if not member.is_property:
                    call = functools.partial(
                        _called, functools.partial(_started, face), member.name
                    )
                    yield from _cases(f"{told}.{member.name}", member.function, call, {"self"})


def _settings_of_faces() -> Iterator[Case]:
    for config in CONFIGS:
        for field in dataclasses.fields(config):
            yield Case(f"{config.__name__}({field.name})", config, field.name, str(field.type), {})
    for name in sorted(set(blocking.__all__) - set(names.__all__)):
        core: Any = getattr(blocking, name)._core_class
        assert config_class(core) in CONFIGS


def _methods(module: str, cls: type, made: Callable[[], Any]) -> Iterator[Case]:
    """Of a class whose constructor and public methods are called as they are."""
    for name in dir(cls):
        function = inspect.getattr_static(cls, name)
        if isinstance(function, classmethod):
            yield from _cases(f"{module}.{cls.__name__}.{name}", function.__func__,
                              getattr(cls, name), {"cls"})  # fmt: skip
        elif inspect.isfunction(function) and not name.startswith("_"):
            call = functools.partial(_called, made, name)
            yield from _cases(f"{module}.{cls.__name__}.{name}", function, call, {"self"})


def _constructor(module: str, cls: type) -> Iterator[Case]:
    yield from _cases(f"{module}.{cls.__name__}", cls.__init__, cls, {"self"})  # type: ignore[misc]


def _names() -> Iterator[Case]:
    for module, space in (("client", names), ("compat", compat)):
        for name in space.__all__:
            thing: Any = getattr(space, name)
            if f"{module}.{name}" in BY_THE_CLIENT or (
                inspect.isclass(thing)
                and (issubclass(thing, (Exception, enum.Enum)) or _is_made_by_the_client(thing))
            ):
                continue
            if not inspect.isclass(thing):
                yield from _cases(f"{module}.{name}", thing, thing, set())
                continue
            yield from _constructor(module, thing)
            arguments = ("T", str) if name == "TransactionMQProducer" else ("T",)
            yield from _methods(module, thing, functools.partial(thing, *arguments))


def _is_made_by_the_client(cls: type) -> bool:
    """Results, contexts and hooks; of what else programs make, only selectors are dataclasses."""
    is_value = dataclasses.is_dataclass(cls) and cls is not names.MessageSelector
    return is_value or getattr(cls, "_is_protocol", False) or get_origin(cls) is not None


def _testing() -> Iterator[Case]:
    for cls in (Server, AioServer, Fault, Faults, InProcessServer):
        yield from _methods("testing", cls, functools.partial(object.__new__, cls))
    advance = functools.partial(HurriedClock.advance, HurriedClock(ReactorClock()))
    yield from _cases("testing.HurriedClock.advance", HurriedClock.advance, advance, {"self"})


CASES: Final = [*_faces(), *_settings_of_faces(), *_names(), *_testing()]
PUBLIC: Final = {
    # ServerProcess.ask is for the helpers themselves
    each.name: each
    for each in CASES
    if ".ask(" not in each.name
}

WRONG: Final[tuple[tuple[tuple[str, ...], st.SearchStrategy[Any]], ...]] = (
    ((), st.builds(object)),
    ((), st.complex_numbers()),
    (("str", "Expression", "bytes"), st.text()),
    (("bytes",), st.binary()),
    (("int", "float", "Type"), st.integers()),
    (("float",), st.floats(allow_nan=False)),
    (("bool",), st.booleans()),
    (("None", "str"), st.none()),
    (("Mapping", "dict", "Attributes"), st.dictionaries(st.text(), st.builds(object), min_size=1)),
    ((), st.lists(st.builds(object), min_size=1, max_size=3)),
    ((), st.tuples(st.complex_numbers())),
)
"""Values, each with parts of declared types that it might be valid for."""


@pytest.fixture(scope="module", autouse=True)
def _left() -> Iterator[None]:
    yield
    for made in MADE:
        made._life.is_started = False
        made.__del__()
    MADE.clear()


def test_there_are_many() -> None:
    found = " ".join(PUBLIC)
    assert len(PUBLIC) > 600
    for name in (
        "blocking.Producer.send(body)",
        "aio.Admin.create_topic(queues)",
        "client.new_message(tags)",
        "tx.PushConsumer(listener)",
        "compat.Message.set_body(body)",
        "testing.Server.refuse(times)",
        "ClientConfig(namesrv_addr)",
    ):
        assert name in found


@pytest.mark.parametrize("name", PUBLIC)
def test_it_names_the_argument(name: str) -> None:
    case = PUBLIC[name]
    wrong = [
        values for parts, values in WRONG if not any(part in case.annotation for part in parts)
    ]

    # Inside, since Hypothesis nests the settings of a test once more for each of its parameters,
    # and Python does not follow a thousand.
    @settings(
        max_examples=examples(3),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(value=st.one_of(wrong))
    def refuses(value: object) -> None:
        with pytest.raises((TypeError, ValueError)) as raised:
            case.call(**case.others, **{case.parameter: value})
        said = str(raised.value)
        assert case.parameter.strip("_") in said, said
        assert not any(each in said for each in INSIDE), said

    refuses()
