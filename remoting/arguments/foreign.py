# SPDX-License-Identifier: Apache-2.0
"""Names that other programs have for settings, methods and options, and what is said of them.

The client and the commands each have tables of such names, with a row for all that mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple


class Foreign(NamedTuple):
    """Names of other programs that mean the same."""

    names: str
    """The names, separated by blanks."""
    ours: str = ""
    """Names of ours for it, separated by blanks; the first that is there counts."""
    note: str = ""
    """What is to be said about these, or what to do instead."""
    otherwise: str = ""
    """What to do instead where there is none of ours."""
    to_producers: str = ""
    """The same where that would be odd for producers."""

    def answer(self, known: Collection[str], *, to_producer: bool = False) -> str:
        """Returns what to say where these names of ours are known."""
        for ours in self.ours.split():
            if ours in known:
                return f"it is {ours} here" + (f", {self.note}" if self.note else "")
        return (self.to_producers if to_producer else "") or self.otherwise or self.note


def plain(name: str) -> str:
    """Returns the letters and digits of a name, in small letters."""
    return "".join(filter(str.isalnum, name)).lower()


def table_of(rows: Iterable[Foreign], spelt: Callable[[str], str] = str) -> dict[str, Foreign]:
    """Returns the rows by each of their names, as `spelt` writes these."""
    return {spelt(name): each for each in rows for name in each.names.split()}


def spelt_otherwise(name: str, known: Iterable[str]) -> str:
    """Returns what to say of a name of ours in another spelling, such as `namesrvAddr`, or ""."""
    letters = plain(name)
    return next((f"it is {each} here" for each in known if plain(each) == letters), "")
