# SPDX-License-Identifier: Apache-2.0
"""Headers of sends that were seen before, which do not have to be decoded again.

Of the dozen fields of a send, two differ from message to message: when it was born, and its
properties. So does the signature of a client that has an account, since it covers these two and the
body; nothing is made of it here. All others say where the message goes and how, and recur thousands
of times. So their values are looked up together, undecoded; the first message of each such place is
decoded and checked as usual. This module knows no client and no form of header: which field is
which follows from the declaration of the header, once for each set of names that clients write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from txrocketmq.remoting.frame.signer import SIGNATURE
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader

MAX_SHAPES: Final = 256
"""How many sets of names are kept at once; mostly there is one for each kind of client."""
MAX_PLACES: Final = 4096
"""How many places a shape keeps: combinations of topics, queues and producer groups."""
_VARYING: Final = ("born_timestamp", "properties")


class Place(NamedTuple):
    """Where plain messages with the same header go; `queue_id_text` is for the answer.

    Messages of a place are plain unless they have certain properties or no body.
    `max_reconsume_times` is only needed for messages that are not plain.
    """

    topic: str
    queue_id: int
    queue_id_text: bytes
    flag: int
    sys_flag: int
    reconsume_times: int
    max_reconsume_times: int | None = None


class Shape:
    """A set of names that headers have.

    `born` and `properties` are the names of the fields that differ from message to message; `rest`
    returns the values of all others but the signature. Joined by NUL these are the key into
    `places`, since one text is found faster than a dozen. A place of None is known not to be plain.
    `size` is the number of names, or -1 without names, so that such headers are looked up each
    time. `parts` has `born`, `properties`, `rest`, `places` and `size`.
    """

    __slots__ = ("_separators", "born", "parts", "places", "properties", "rest", "size")

    def __init__(self, names: tuple[str, ...], born: str, properties: str) -> None:
        others = _recurring(names, born, properties)
        self.born = born
        self.properties = properties
        self.rest: Callable[[Mapping[str, str]], Sequence[str]] = (
            itemgetter(*others) if others else lambda _: ()
        )
        self.places: dict[str, Place | None] = {}
        self.size = len(names) or -1
        self.parts = born, properties, self.rest, self.places, self.size
        self._separators = len(others) - 1

    def keep(self, key: str, place: Place | None) -> None:
        """Remembers a place, unless values contain NUL, when keys could be the same."""
        if key.count("\0") != self._separators:
            return
        if len(self.places) >= MAX_PLACES:
            self.places.clear()
        self.places[key] = place


def _recurring(names: tuple[str, ...], *varying: str) -> list[str]:
    """Returns the names of those fields whose values recur."""
    return [name for name in names if name not in varying and name != SIGNATURE]


NO_SHAPE: Final = Shape((), "", "")
"""Stands for headers that cannot be looked up: their only place is not plain."""
NO_SHAPE.places[""] = None


class Shapes:
    """The known shapes, and in them the known places."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, ...], Shape | None] = {}

    def forget_places(self) -> None:
        """Forgets all places, since what was known of them is outdated."""
        for shape in self._shapes.values():
            if shape is not None:
                shape.places.clear()

    def of(self, ext_fields: Mapping[str, Any] | None) -> Shape | None:
        """Returns the shape of a header; None when it lacks one of the two varying fields."""
        names = tuple(ext_fields or ())
        if names not in self._shapes:
            if len(self._shapes) >= MAX_SHAPES:
                self._shapes.clear()
            self._shapes[names] = _shape(names)
        return self._shapes[names]


def _shape(names: tuple[str, ...]) -> Shape | None:
    """Makes a shape; as in the header's decoder, a letter takes precedence over the name."""
    varying = []
    for declared in SendMessageRequestHeader.fields:
        if declared.name in _VARYING:
            found = [each for each in (declared.letter, declared.wire) if each in names]
            if not found or found[0] is None:
                return None
            varying.append(found[0])
    return Shape(names, *varying) if _recurring(names, *varying) else None
