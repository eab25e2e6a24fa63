# SPDX-License-Identifier: Apache-2.0
"""What `help` tells of the classes of the three forms: arguments, settings and results.

All of it is declared elsewhere: by the methods of the core, and by the dataclasses of settings with
the texts below their fields. Signatures and settings of a class are put together when somebody asks
for them, since most programs do not.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from txrocketmq.client.base.config import ClientConfig
from txrocketmq.remoting.arguments.arguments import evaluated, setting_kinds
from txrocketmq.remoting.arguments.kinds import Member
from txrocketmq.remoting.settings.field_texts import field_texts

_STARTED: Final = re.compile(r"Started\[(.*)\]")
_WIDTH: Final = 80
HIDDEN: Final = frozenset({"self", "instance", "config"})
"""What the constructors of the core take, and programs do not give."""


class Form(NamedTuple):
    """How one of the three forms says what the core returns: {} stands for the result."""

    module: str
    future: str
    """Of what has begun."""
    waiting: str
    """Of what waits."""


class Text(str):
    """An annotation or a default as it is written, without quotes around it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def config_class(core: type) -> type:
    """Returns the class of the settings of a core class, by the type of its `config`."""
    constructor = core.__init__  # type: ignore[misc]
    annotation = inspect.signature(constructor).parameters["config"].annotation
    hint = evaluated(annotation, constructor.__globals__)
    found: Any = next(each for each in typing.get_args(hint) if dataclasses.is_dataclass(each))
    return found  # type: ignore[no-any-return]


def shown_default(value: object) -> str:
    """A default as it is written in a program."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, frozenset):
        return "{" + ", ".join(getattr(each, "name", str(each)) for each in sorted(value)) + "}"
    return getattr(value, "__name__", None) or repr(value)


def setting_types(config: type) -> dict[str, str]:
    """What the settings of a dataclass accept, by their names, as annotations.

    A text that is None was not given, and a member of an enum may be named.
    """
    kinds = setting_kinds(config)
    types = {}
    for field in dataclasses.fields(config):
        text = str(field.type)
        if isinstance(kinds[field.name], Member):
            text += " | str"
        elif text.startswith("str") and "None" not in text:
            text += " | None"
        types[field.name] = text
    return types


def method_signature(function: Callable[..., Any], form: Form, *, waits: bool) -> inspect.Signature:
    """The signature of a method of the core, with what it returns in a form."""
    signature = plain_signature(function)
    result = str(signature.return_annotation)
    if started := _STARTED.fullmatch(result):
        result = form.future.format(started[1])
    elif waits:
        result = form.waiting.format(result)
    return signature.replace(return_annotation=Text(result))


@functools.cache
def plain_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function with its types as they are written."""
    signature = inspect.signature(function)
    return signature.replace(
        parameters=[_plain(each) for each in signature.parameters.values()],
        return_annotation=Text(signature.return_annotation),
    )


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    annotation, default = parameter.annotation, parameter.default
    if isinstance(annotation, str):
        annotation = Text(annotation)
    if callable(default) and default is not parameter.empty:
        default = Text(shown_default(default))
    return parameter.replace(annotation=annotation, default=default)


@functools.cache
def constructor_signature(core: type, base: type) -> inspect.Signature:
    """The signature of a class: its own arguments, those of its form, and all settings by name."""
    parameters = [
        each
        for name, each in plain_signature(core.__init__).parameters.items()  # type: ignore[misc]
        if name not in HIDDEN
    ]
    of_form = plain_signature(base.__init__).parameters.values()  # type: ignore[misc]
    parameters += [each for each in of_form if each.kind is each.KEYWORD_ONLY]
    for config in (config_class(core), ClientConfig):
        types = setting_types(config)
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=Text(types[field.name]),
                default=Text(_default(field)),
            )
            for field in dataclasses.fields(config)
        ]
    return inspect.Signature(parameters)


def _default(field: dataclasses.Field[Any]) -> str:
    """None where the environment says what counts; the text of the setting tells of that."""
    is_known = field.default is not dataclasses.MISSING
    return shown_default(field.default) if is_known else "None"


@functools.cache
def class_doc(core: type, base: type) -> str:
    """The docstring of a class, and what its settings mean."""
    lines = [inspect.cleandoc(core.__doc__ or "")]
    if of_form := base.__init__.__doc__:  # type: ignore[misc]
        lines += ["", inspect.cleandoc(of_form)]
    for title, config in (
        ("Settings, given by name:", config_class(core)),
        ("Settings that every client has:", ClientConfig),
    ):
        lines += ["", title, "", *_settings(config)]
    return "\n".join(lines)


def _settings(config: type) -> Iterator[str]:
    texts, types = field_texts(config), setting_types(config)
    for field in dataclasses.fields(config):
        yield f"    {field.name}: {types[field.name]} = {_default(field)}"
        yield from textwrap.wrap(
            texts.get(field.name, ""), _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8
        )


class ClassDoc:
    """The docstring of a made class, put together when somebody reads it."""

    def __init__(self, core: type, base: type) -> None:
        self._core = core
        self._base = base

    def __get__(self, _: object, owner: type) -> str:
        return class_doc(self._core, self._base)


class ClassSignature:
    """The signature of a made class, and of those that are derived without an `__init__`."""

    def __init__(self, core: type, base: type) -> None:
        self._core = core
        self._base = base

    def __get__(self, _: object, owner: Any) -> inspect.Signature:
        if owner.__init__ is not self._base.__init__:  # type: ignore[misc]
            raise AttributeError("__signature__")
        return constructor_signature(self._core, self._base)
