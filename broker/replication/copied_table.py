# SPDX-License-Identifier: Apache-2.0
"""Reads a table of the master from its answers, in steps, and puts it in the place of the one here.

Nothing is replaced before all of it is there and understood. Java: getAllTopicConfig and
getAllSubscriptionGroupConfig of BrokerOuterAPI, and syncTopicConfig and others of SlaveSynchronize.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, Protocol, TypeVar

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.config_table import ConfigTable, VersionedTable
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.header import Header, NoHeader
from txrocketmq.remoting.protocol.body.route import DataVersion
from txrocketmq.remoting.serialize.json_members import place_of, taking

MOST_ENTRIES: Final = 1_000_000
"""How many topics, groups or keys of offsets are taken from a master."""
MOST_RESTARTS: Final = 10
"""How often a copy in pages begins anew, as the table has changed, before it is tried later."""
VERSION: Final = "dataVersion"
_CHUNK: Final = 16
_VERSION_FIRST: Final = re.compile(rf'\s*+\{{\s*+"{VERSION}"\s*+:')
"""All brokers write the version first, so that most answers need not be read further."""

H = TypeVar("H")
T = TypeVar("T")

WRONG: Final = (RemotingError, ValueError, TypeError, AttributeError, OverflowError)
"""What decoding raises when an answer is not what it should be."""


class CopyError(Exception):
    """Something could not be copied; the text says why."""


class Ask(Protocol):
    """Asks the master; raises CopyError when it does not answer, or refuses."""

    def __call__(self, call: Call[Any, Any], header: Header) -> Steps[Reply[Any]]: ...


def text_of(reply: Reply[Any], field: str) -> str:
    """Returns the text of an answer, which has to be an object with this object in it."""
    text = str(reply.body_bytes, "utf-8", "replace")
    if place_of(text, (field,)) is None:
        raise CopyError(f"its answer, {text[:60]!r}, has no object {field}")
    return text


def version_in(text: str) -> Steps[DataVersion | None]:
    """Returns the version that a text names; None if it names none."""
    found: dict[str, Any] = {}
    yield from taking(text, (VERSION,), found, lambda value: value)
    return DataVersion.from_json(found) if found else None


def chunks(entries: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Divides entries into small ones."""
    items = iter(entries.items())
    while chunk := dict(islice(items, _CHUNK)):
        yield chunk


def update(held: dict[str, T], more: dict[str, T]) -> None:
    """Adds what is held, for tables that hold a dict."""
    held.update(more)


def no_total(_: Any) -> int | None:
    """Says that an answer is never a page."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTable(Generic[H]):
    """A table, and how it is asked for; H is what it holds."""

    what: str
    """What it contains, in the plural."""
    table: ConfigTable[H]
    call: Call[Any, Any]
    field: str
    """The object of the answer with an entry for each name."""
    beside: Sequence[str] = ()
    """Smaller objects of the answer that belong to it."""
    header: Callable[[int, str], Header] = lambda *_: NoHeader()
    """Makes the request for a page, of the number of its first entry and the version, as text."""
    total: Callable[[Any], int | None] = no_total
    """How many entries there are, by the header of an answer; None if that has all."""
    add: Callable[[H, H], object]
    """Adds to what is held what a further part of the answer holds. Raises ValueError."""
    is_same: Callable[[H], bool] = lambda _: False
    """Whether a table without a version holds this already."""

    def copy(self, ask: Ask) -> Steps[int | None]:
        """Copies the table, if it is another; returns how many entries it has then.

        Raises CopyError and WRONG.
        """
        known = self.table.data_version if isinstance(self.table, VersionedTable) else None
        version: DataVersion | None = None
        held, count, restarts = self.table.decode({}), 0, 0
        while True:
            asked = "" if version is None else version.encode().decode()
            reply = yield from ask(self.call, self.header(count, asked))
            text = text_of(reply, self.field)
            its = (yield from version_in(text)) if _VERSION_FIRST.match(text) else None
            if version is None and its is not None and its == known:
                return None
            entries: dict[str, Any] = {}
            rest = yield from taking(text, (self.field,), entries, lambda value: value)
            if known is not None and its is None:
                its = yield from version_in(rest)
                if its is None:
                    raise CopyError(f"its answer has no {VERSION}")
            if version is not None and its != version:
                if restarts == MOST_RESTARTS:
                    raise CopyError(f"the {self.what} have changed {restarts} times meanwhile")
                held, count, restarts, version = self.table.decode({}), 0, restarts + 1, its
                continue
            version = its
            yield from self._add(held, entries, rest)
            count += len(entries)
            total = self.total(reply.header)
            if total is None or count >= total:
                break
            self._check(count, total, len(entries))
        if version is None and self.is_same(held):
            return None
        content = {} if version is None else {VERSION: version.to_json()}
        yield from self.table.replace(held, content)
        return count

    def _add(self, held: H, entries: Mapping[str, Any], rest: str) -> Steps[None]:
        for chunk in chunks(entries):
            self.add(held, self.table.decode({self.field: chunk}))
            yield
        for each in self.beside:
            found: dict[str, Any] = {}
            yield from taking(rest, (each,), found, lambda value: value)
            self.add(held, self.table.decode({each: found}))

    def _check(self, count: int, total: int, of_page: int) -> None:
        if not of_page:
            raise CopyError(f"it has sent {count} of {total} {self.what} and sends no more")
        if total > MOST_ENTRIES:
            raise CopyError(f"it has {total} {self.what}; {MOST_ENTRIES} are possible")
