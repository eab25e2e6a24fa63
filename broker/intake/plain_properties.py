# SPDX-License-Identifier: Apache-2.0
r"""Plain properties, on which no transform acts: finds what the broker itself needs of them.

Of the properties of a plain message only four matter: the unique key, the keys, the tag, and
whether its sender waits. All others only pass through. A producer sends the same names in the same
order again and again, so the names are learned; a text is then compared with them, and none of its
other values is cut out. A text that fits no learned names is read pair by pair. What was learned is
used only for a text in which each pair begins with its name and has one separator and a value, so
the result is the same as from reading it pair by pair.

Java: MessageDecoder.string2messageProperties.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from txrocketmq.remoting.message.properties import KEYS, TAGS, UNIQ_KEY, WAIT

MAX_PAIRS: Final = 64
"""Texts with more pairs are not learned, so at most this many sequences of names are kept."""
MISSES_TO_LEARN: Final = 16
"""Learning costs more than reading, so only every sixteenth text that fits nothing is learned."""
_UNIQ_KEY_AT: Final = len(UNIQ_KEY) + 1
_KEYS_AT: Final = len(KEYS) + 1
_TAGS_AT: Final = len(TAGS) + 1
_WAIT_AT: Final = len(WAIT) + 1
_NOWHERE: Final = (0, "")
_starts_with: Final = str.startswith

PlainValues = tuple[str | None, str | None, str | None, str | None]
"""Unique key, keys, tag, and the value of WAIT; each is None when the message does not have it."""


class Names(NamedTuple):
    """The beginnings of pairs (name and separator), and the index of each important pair, or -1."""

    beginnings: tuple[str, ...]
    uniq_key: int
    keys: int
    tags: int
    wait: int


class PlainProperties:
    """Reads plain properties. A text that contains one of the names in `touched` is not plain."""

    def __init__(self, touched: Iterable[str]) -> None:
        self._touched = frozenset(touched)
        self._known: dict[int, Names] = {}
        """By the number of pairs: the names that were learned last."""
        self._touched_at: dict[int, tuple[int, str]] = {}
        """By the number of pairs: the index at which a touched name was found last, and how that
        pair begins. A text with the same beginning at the same index is not plain, whatever else it
        contains."""
        self._misses = 0

    # Every message passes here, so no call is made that can be avoided.
    def of(self, text: str) -> PlainValues | None:
        """Returns what the broker needs of such properties; None when they are not plain.

        That is so when a transform acts on them, when a name comes twice, and when a name or a
        value is missing.
        """
        pairs = text.split("\x02")
        if not pairs[-1]:
            pairs.pop()
        names = self._known.get(len(pairs))
        if (
            names is None
            or not all(map(_starts_with, pairs, names[0]))
            or text.count("\x01") != len(pairs)
            or "\x01\x02" in text
            or text[-1] == "\x01"
        ):
            return self._read(pairs)
        _, uniq_key, keys, tags, wait = names
        return (
            pairs[uniq_key][_UNIQ_KEY_AT:] if uniq_key >= 0 else None,
            pairs[keys][_KEYS_AT:] if keys >= 0 else None,
            pairs[tags][_TAGS_AT:] if tags >= 0 else None,
            pairs[wait][_WAIT_AT:] if wait >= 0 else None,
        )

    def _read(self, pairs: list[str]) -> PlainValues | None:
        """Does what `of` does, pair by pair."""
        at, beginning = self._touched_at.get(len(pairs), _NOWHERE)
        if beginning and pairs[at].startswith(beginning):
            return None
        try:
            properties = dict([pair.split("\x01") for pair in pairs])
        except ValueError:
            return None
        if not self._touched.isdisjoint(properties):
            self._learn_touched(pairs)
            return None
        if len(properties) != len(pairs) or "" in properties or not all(properties.values()):
            return None
        count = len(pairs)
        if 0 < count <= MAX_PAIRS:
            self._misses += 1
            if count not in self._known or self._misses >= MISSES_TO_LEARN:
                self._misses = 0
                self._known[count] = _names(list(properties))
        get = properties.get
        return get(UNIQ_KEY), get(KEYS), get(TAGS), get(WAIT)

    def _learn_touched(self, pairs: list[str]) -> None:
        if len(pairs) > MAX_PAIRS:
            return
        for at, pair in enumerate(pairs):
            name = pair.partition("\x01")[0]
            if name in self._touched:
                self._touched_at[len(pairs)] = at, f"{name}\x01"
                return


def _names(names: list[str]) -> Names:
    beginnings = tuple([f"{name}\x01" for name in names])
    places = [names.index(name) if name in names else -1 for name in (UNIQ_KEY, KEYS, TAGS, WAIT)]
    return Names(beginnings, *places)
