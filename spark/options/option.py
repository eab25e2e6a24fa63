# SPDX-License-Identifier: Apache-2.0
"""How an option is declared, and what it may be for."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from txrocketmq.spark.options import option_values as values

T = TypeVar("T")


class Use(enum.Flag):
    """What is done with the source."""

    STORE_BATCH = enum.auto()
    STORE_STREAM = enum.auto()
    LIVE_BATCH = enum.auto()
    LIVE_STREAM = enum.auto()
    TABLE = enum.auto()
    """A table other than messages, of a store."""
    SINK = enum.auto()

    STORE = STORE_BATCH | STORE_STREAM
    LIVE = LIVE_BATCH | LIVE_STREAM
    BATCH = STORE_BATCH | LIVE_BATCH
    MESSAGES = STORE | LIVE


USE_NAMES: Final = {
    Use.STORE_BATCH: "batch over stores",
    Use.STORE_STREAM: "stream over stores",
    Use.LIVE_BATCH: "batch over a cluster",
    Use.LIVE_STREAM: "stream over a cluster",
    Use.TABLE: "tables",
    Use.SINK: "writing",
}


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of an option; the field that it is metadata of holds the parsed value."""

    name: str
    uses: Use
    parse: Callable[[str, str], Any]
    """(name, text) -> value; raises OptionError."""
    shown_default: str
    """For the documentation; empty when there is none."""
    is_secret: bool = False
    """Whether nobody is to see the value."""


def option(
    name: str,
    default: T,
    uses: Use,
    parse: Callable[[str, str], T] | None = None,
    shown: str | None = None,
    *,
    is_secret: bool = False,
) -> T:
    """Declares an option as a field of a dataclass, whose value is parsed; see Option."""
    if shown is None:
        text = "" if default is None else str(default)
        shown = text.lower() if isinstance(default, bool) else text
    usual = values.boolean if isinstance(default, bool) else values.text
    declared = Option(name, uses, parse or usual, shown, is_secret)
    return field(default=default, repr=not is_secret, metadata={"option": declared})
