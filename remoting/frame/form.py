# SPDX-License-Identifier: Apache-2.0
"""Forms: requests whose headers differ in few fields, which are filled into a prepared header.

A producer sends to few queues, so only four of some twenty fields of a header are new. A form is
what the general codec writes, with places for these fields: a frame that is filled in is the one
that the general codec would have written. `Filled` is a header as any other, for whoever wants its
fields, adds to them (a signature), or shows them.

Java has no counterpart: it encodes each header anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from txrocketmq.remoting import formats
from txrocketmq.remoting.call import Buffer, Call
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.remoting.serialize import json

_OPAQUE: Final = 1_234_567_890
"""Stands for the opaque while a form is compiled, and so marks its place in the encoded header."""
_PREFIX: Final = fixed(formats.FRAME_PREFIX).struct
_JSON: Final = int(SerializeType.JSON) << 24
_PLACES: Final[dict[str, tuple[bytes, str]]] = {
    "str": (b"%b", "dumps({0})"),
    "int": (b'"%d"', "{0}"),
    "long": (b'"%d"', "{0}"),
    "bool": (b'"%b"', "(b'true' if {0} else b'false')"),
}
"""By the type of a field: the conversion that stands for its value in the form, to be filled with
the operator % of bytes, and the Python expression of what fills it, in which {0} is the value."""


class Form:
    """A call with a header of which some fields vary from request to request, compiled once.

    `varying` names these fields. Raises ValueError if `header` has no value for one of them, since
    each request has to have a value in its place.
    """

    def __init__(self, call: Call[Any, Any], header: Header, *varying: str) -> None:
        self.call = call
        self.header = header
        self.varying = varying
        specs = {spec.name: spec for spec in header.fields}
        self._keys = tuple(
            spec.letter if call.letters and spec.letter else spec.wire
            for spec in (specs[name] for name in varying)
        )
        self._fixed = header.encode_letters() if call.letters else header.encode()
        absent = [key for key in self._keys if key not in self._fixed]
        if absent:
            raise ValueError(f"of a field that varies there has to be a value: {absent}")
        self._head = self._compiled([specs[name].kind for name in varying])

    def filled(self, *values: Any) -> Filled:
        """Returns the header with these values, in the order of the form's fields."""
        return Filled(self, values)

    def fields(self, values: tuple[Any, ...]) -> dict[str, str]:
        """Returns all extension fields, with these values, as the general codec writes them."""
        fields = dict(self._fixed)
        for key, value in zip(self._keys, values, strict=True):
            if isinstance(value, bool):
                fields[key] = "true" if value else "false"
            else:
                fields[key] = str(value)
        return fields

    def frame(self, opaque: int, values: tuple[Any, ...], body: bytes) -> list[Buffer]:
        """Returns the buffers of a request, encoded by filling in the form.

        Raises TypeError for a text that is not valid Unicode, such as one with a lone surrogate.
        """
        head = self._head(opaque, *values)
        size = len(head)
        prefix = _PREFIX.pack(4 + size + len(body), _JSON | size)
        return [prefix + head, body] if body else [prefix + head]

    def _compiled(self, kinds: list[str]) -> Callable[..., bytes]:
        marks = _marks(self._fixed, len(kinds))
        fields = {**self._fixed, **dict(zip(self._keys, marks, strict=True))}
        text = json.encode_header(RemotingCommand(self.call.code, fields, opaque=_OPAQUE))
        text = text.replace(b"%", b"%%")
        places: dict[bytes, tuple[bytes, str]] = {b"%d" % _OPAQUE: (b"%d", "opaque")}
        for index, (mark, kind) in enumerate(zip(marks, kinds, strict=True)):
            form, value = _PLACES[kind]
            places[b'"%b"' % mark.encode()] = form, value.format(f"value{index}")
        # The opaque follows the fields, and no value of a field comes after it.
        where = {text.rindex(place): place for place in places}
        ordered = [where[at] for at in sorted(where)]
        for place in ordered:
            before, after = text.rsplit(place, 1)
            text = before + places[place][0] + after
        arguments = ", ".join(["opaque", *(f"value{index}" for index in range(len(kinds)))])
        values = ", ".join(places[place][1] for place in ordered)
        scope: dict[str, Any] = {"text": text, "dumps": orjson.dumps}
        # The source is made from declarations only, as that of the codecs of headers is.
        head: Callable[..., bytes] = eval(  # noqa: S307
            f"lambda {arguments}: text % ({values},)", scope
        )
        return head


def _marks(fixed_fields: dict[str, str], count: int) -> list[str]:
    """Returns `count` texts that occur neither in the value of any field nor in each other."""
    mark = "<>"
    while any(mark in value for value in fixed_fields.values()):
        mark = f"<{mark}>"
    return [f"{mark}{index}." for index in range(count)]


class Filled(Header):
    """A form with values for its varying fields; other attributes are those of its header."""

    __slots__ = ("form", "values")
    form: Form
    values: tuple[Any, ...]

    def __init__(self, form: Form, values: tuple[Any, ...]) -> None:
        _set_form(self, form)
        _set_values(self, values)

    def __getattr__(self, name: str) -> Any:
        form = self.form
        if name in form.varying:
            return self.values[form.varying.index(name)]
        return getattr(form.header, name)

    def encode(self) -> dict[str, str]:
        """Returns the extension fields, under the names that the form's call uses."""
        return self.form.fields(self.values)

    encode_letters = encode

    def __repr__(self) -> str:
        """Is that of the header, which may leave out secrets."""
        header = self.form.header
        return repr(type(header)(**{each.name: getattr(self, each.name) for each in header.fields}))


_set_form: Final[Callable[[Filled, Form], None]] = vars(Filled)["form"].__set__
_set_values: Final[Callable[[Filled, tuple[Any, ...]], None]] = vars(Filled)["values"].__set__
