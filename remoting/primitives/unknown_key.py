# SPDX-License-Identifier: Apache-2.0
"""Unknown keys of a configuration, and the known one that was probably meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

MOST_GUESSES: Final = 2
"""For how many unknown keys of one change it is looked up which key is meant; each takes 1 ms."""


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """An unknown key, and the known one that resembles it most."""

    key: str
    nearest: str | None

    def __str__(self) -> str:
        hint = f" (did you mean {self.nearest}?)" if self.nearest else ""
        return f"unknown key {self.key}{hint}"


def unknown_keys(
    keys: Iterable[str], known: Collection[str], guesses: int | None = None
) -> list[UnknownKey]:
    """Returns those of the keys that are not known, the first `guesses` of them with the nearest
    known one; by default all of them.
    """
    unknown = [key for key in keys if key not in known]
    return [
        UnknownKey(key, _nearest(key, known) if guesses is None or at < guesses else None)
        for at, key in enumerate(unknown)
    ]


def _nearest(key: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415 - only a misspelt key needs it

    by_lower = {each.lower(): each for each in sorted(known)}
    found = get_close_matches(key.lower(), list(by_lower), n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None
