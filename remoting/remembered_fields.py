# SPDX-License-Identifier: Apache-2.0
"""Decodes headers that come again and again with only a few numbers changed, such as pulls.

To check and convert the fields of a pull takes as long as all rules that it is asked for. But
whoever pulls sends the same fields each time, but for two offsets. So what the others mean is
remembered by their texts, and only the two are read anew. A header that is in any way unusual is
decoded as any other, which also says what is wrong with it.

Names may come in any order, as those of the Go client do. What is remembered is limited, and so is
its memory: strangers may send whatever they like. Java has no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import call, itemgetter
from typing import Any, Final

MOST_SHAPES: Final = 32
"""How many sets of names are remembered; headers with other names are decoded each time."""
MOST_HEADERS: Final = 4_096
"""How many headers are remembered. Once as many others have come besides, all are forgotten."""
MOST_CHARACTERS: Final = 1_024
"""A header whose texts are longer than this together is not remembered."""
_MOST_DIGITS: Final = 18
"""More digits may not be a long."""

Decode = Callable[[Mapping[str, str]], Any]


class RememberedFields:
    """Decodes headers of a class whose fields `varying` are two longs, given by their wire names.

    `decode` is for all others, and raises if something is wrong with them.
    """

    def __init__(
        self, cls: type[Any], decode: Decode, wires: Mapping[str, str], varying: Sequence[str]
    ) -> None:
        self._decode = decode
        self._varying = varying
        self._names = [name for name, wire in wires.items() if wire not in varying]
        self._shapes: dict[
            frozenset[str], tuple[Callable[[Mapping[str, str]], Any], dict[Any, list[Any]]]
        ] = {}
        """By names: what returns the texts that are mostly the same, and what these mean."""
        self._count = self._misses = 0
        self.decode = self._decoder(cls, {wire: name for name, wire in wires.items()})
        """Returns a header from its fields."""

    def _decoder(self, cls: type[Any], names: Mapping[str, str]) -> Decode:
        shapes, decode_anew = self._shapes, self._decode_anew
        one, other = self._varying
        set_one, set_other = (getattr(cls, names[wire]).__set__ for wire in self._varying)
        setters = [getattr(cls, name).__set__ for name in self._names]
        new = object.__new__

        # Each pull passes here, so no call is made that can be avoided.
        def decode(ext: Mapping[str, str]) -> Any:
            shape = shapes.get(frozenset(ext))
            if shape is None:
                return decode_anew(ext)
            others, known = shape
            values = known.get(others(ext))
            first, second = ext[one], ext[other]
            if (
                values is None
                or not (first.isdecimal() and second.isdecimal())
                or len(first) > _MOST_DIGITS
                or len(second) > _MOST_DIGITS
            ):
                return decode_anew(ext)
            header = new(cls)
            set_one(header, int(first))
            set_other(header, int(second))
            any(map(call, setters, repeat(header), values))  # each call returns None
            return header

        return decode

    def _decode_anew(self, ext: Mapping[str, str]) -> Any:
        """Decodes a header, and remembers it if it is usual."""
        header = self._decode(ext)
        texts = [*ext.values()]
        # Some peers write bare numbers, of which several may be equal and mean something else.
        if {*map(type, texts)} != {str} or sum(map(len, texts)) > MOST_CHARACTERS:
            return header
        names = frozenset(ext)
        shape = self._shapes.get(names)
        if shape is None:
            others = names.difference(self._varying)
            if len(self._shapes) >= MOST_SHAPES or len(others) + 2 != len(names) or len(others) < 2:
                return header
            shape = self._shapes[names] = itemgetter(*others), {}
        if self._count >= MOST_HEADERS:
            self._misses += 1
            if self._misses >= MOST_HEADERS:
                self._forget()
            return header
        others_of, known = shape
        key = others_of(ext)
        if key not in known:
            known[key] = [getattr(header, name) for name in self._names]
            self._count += 1
        return header

    def _forget(self) -> None:
        self._shapes.clear()
        self._count = self._misses = 0
