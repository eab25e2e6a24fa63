# SPDX-License-Identifier: Apache-2.0
"""Lives: what a part of a server does without being asked, declared beside the part.

A part says which file it keeps, what it does again and again, what it listens to, what it forgets
when a peer goes, and what it writes at the end. A server lists the lives of its parts in order, and
its service walks the list (lives.py) and nothing else. The order is that of use: a part comes after
those that it needs, so the files are loaded from the first to the last, and the last writes happen
from the last to the first.

Java: load, start, shutdown and the scheduled executors of BrokerController and NamesrvController.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from txrocketmq.remoting.call import Peer

F = TypeVar("F", bound=Callable[..., object])
Period = int | Callable[[], int]
"""A period in ms; a function is called each time, for one that may change."""
Done = Callable[[Exception | None], None]
"""Called in the reactor's thread with the exception that the work has raised, or None."""
InThread = Callable[[Callable[[], None], Done], None]
"""Runs the first function in a thread, and then calls the second one with what it raised."""


class Periodic(Protocol):
    """Something that is done again and again, first after `first_ms`, by default a period."""

    @property
    def period_ms(self) -> Period: ...

    @property
    def first_ms(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Beat:
    """A call that is short, whatever the server contains."""

    period_ms: Period
    work: Callable[[], object]
    first_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """A short call with the times of the wall clock and of the steady clock, in ms."""

    period_ms: Period
    tick: Callable[[int, int], object]
    first_ms: int | None = None


class Hears(Generic[F]):
    """A function that is added to the listeners of another part, or of the same."""

    __slots__ = ("_listener", "_listeners")

    def __init__(self, listeners: list[F], listener: F) -> None:
        self._listeners = listeners
        self._listener = listener

    def begin(self) -> None:
        """Adds the listener."""
        self._listeners.append(self._listener)


class Saved(Protocol):
    """A file of a table; it is written in a thread, and `on_end` is told how that went."""

    in_thread: InThread
    on_end: Done
    later: Callable[[Callable[[], None]], Any]

    @property
    def name(self) -> str:
        """The name of the file."""

    def write_now(self) -> None:
        """Writes what has changed; raises OSError."""


class Table(Protocol):
    """What is kept in a file: loaded at the start, written at the end, and in between as the beats
    of its life say.
    """

    @property
    def saving(self) -> Saved: ...

    def load(self) -> object:
        """Loads the file; raises ValueError with advice."""


class Opening(NamedTuple):
    """What parts are told when the store is open."""

    now_ms: int = 0
    after_crash: bool = False


class AtStop(NamedTuple):
    """What is done at the end: words, such as "closing the store", and a function of the time."""

    what: str
    work: Callable[[int], object]


class Gauge(NamedTuple):
    """A metric with one value; below 0 it counts as 0."""

    name: str
    value: Callable[[], float]
    help: str = ""
    labels: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """The life of one part. Everything but its name may be left out."""

    name: str = field(kw_only=False)
    table: Table | None = None
    loads: Callable[[], object] = lambda: None
    """Reads what is kept elsewhere than in a table; raises ValueError with advice."""
    files: Sequence[str] = ()
    """Names of further files of `config/` that the part writes by itself."""
    opens: Callable[[Opening], Iterable[str]] = lambda _: ()
    """Called when all tables are loaded and the store is open; returns warnings."""
    hears: Sequence[Hears[Any]] = ()
    troubles: Mapping[str, list[Callable[[Any], None]]] = field(default_factory=dict)
    """By kind of work, such as "syncing the store": listeners that are told the error or None.

    The first failure is logged, and so is that it works again.
    """
    beats: Sequence[Periodic] = ()
    forgets: Callable[[Peer, int], object] | None = None
    """Called with a peer whose connection has ended, and the steady time in ms."""
    at_stop: Sequence[AtStop] = ()
    """What is done at the end, before the table is written."""
    gauges: Sequence[Gauge] = ()

    def stops(self) -> Iterable[AtStop]:
        """All that is done at the end."""
        yield from self.at_stop
        if self.table is not None:
            saving = self.table.saving
            yield AtStop(f"writing {saving.name}", lambda _: saving.write_now())
