# SPDX-License-Identifier: Apache-2.0
"""Config tables: what the broker keeps in memory and in a file of `config/`.

A table says what it is made of: `decode` reads the content of a file, `_hold` puts that in the
place of what the table held, and `_snapshot` copies what it holds for the next file. This module
does the rest, once for all of them: it loads the file, has it written (saving.py), counts versions,
and replaces a whole table by that of another broker, which a replica gets from its master.

Java: ConfigManager; replicas there replace each table by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.saving import Saving
from txrocketmq.remoting.primitives.listeners import tell_all
from txrocketmq.remoting.protocol.body.route import DataVersion

H = TypeVar("H")


def no_listeners() -> Steps[None]:
    """The steps of a table to which nobody listens."""
    yield from ()


class ConfigTable(ABC, Generic[H]):
    """A table that is kept in a file; `saving` writes it. H is what such a file holds, decoded."""

    def __init__(self, file: JsonFile) -> None:
        self._file = file
        self.saving = Saving(file, self._content)

    @property
    def is_missing(self) -> bool:
        """Whether there was neither the file nor its .bak when it was loaded."""
        return self._file.is_missing

    def load(self) -> None:
        """Loads the file; raises JsonFileError."""
        self._load(self._file)

    def _load(self, file: JsonFile) -> None:
        with file.content() as content:
            self._hold(self.decode(content))
            self._noted(content)

    def replace(self, held: H, content: Mapping[str, Any]) -> Steps[None]:
        """Takes what another broker's table holds instead of all that this one held.

        `held` is what `decode` has made of that table's content. The table is another at once; in
        the returned steps, those who listen are told of each entry that has changed.
        """
        steps = self._hold(held)
        self._noted(content)
        self._file.is_stale = True
        return steps

    @abstractmethod
    def decode(self, content: Mapping[str, Any]) -> H:
        """Decodes the content of such a file; may be called in any thread.

        Raises ValueError, TypeError or AttributeError when it is not what the file should hold.
        """

    @abstractmethod
    def _hold(self, held: H) -> Steps[None]:
        """Holds this and nothing else; returns steps in which listeners are told, if it has any."""

    @abstractmethod
    def _snapshot(self) -> Callable[[], bytes]:
        """Copies what belongs into the file; returns a function that makes its text, anywhere."""

    def _content(self) -> Callable[[], bytes]:
        return self._snapshot()

    def _noted(self, content: Mapping[str, Any]) -> None:
        """Takes what the content says besides its entries."""


class VersionedTable(ConfigTable[H]):
    """A table whose content has a version, by which others know whether theirs is the same."""

    counts_writes: ClassVar[bool] = True
    """Whether the version counts how often the file was written. Otherwise it counts changes, which
    `_changed` notes; of progress, which changes all the time, nobody could use that."""

    def __init__(self, file: JsonFile, now_ms: Callable[[], int]) -> None:
        super().__init__(file)
        self._now_ms = now_ms
        self.data_version = DataVersion(timestamp=now_ms())
        self._is_anothers = False
        """Whether the table is as another broker had it, and has not been written since."""

    def next_version(self) -> None:
        """Counts the version."""
        self.data_version = self.data_version.next(self._now_ms())

    def replace(self, held: H, content: Mapping[str, Any]) -> Steps[None]:
        """Does what ConfigTable does; the version is that of the other table, also in the file.

        Otherwise the two would seem different for ever.
        """
        self._is_anothers = True
        return super().replace(held, content)

    def _content(self) -> Callable[[], bytes]:
        if self.counts_writes and not self._is_anothers:
            self.next_version()
        self._is_anothers = False
        return self._snapshot()

    def _noted(self, content: Mapping[str, Any]) -> None:
        if content.get("dataVersion"):
            self.data_version = DataVersion.from_json(content["dataVersion"])


T = TypeVar("T")


class NamedTable(VersionedTable[H]):
    """A table of named things. The functions in `on_change` get the name of one that was created,
    changed or deleted.
    """

    counts_writes = False

    def __init__(self, file: JsonFile, now_ms: Callable[[], int]) -> None:
        super().__init__(file, now_ms)
        self.on_change: list[Callable[[str], None]] = []

    def _changed(self, name: str) -> None:
        self.next_version()
        self._file.is_stale = True
        self._tell(name)

    def _tell(self, name: str) -> None:
        tell_all(self.on_change, name)

    def _differences(self, before: Mapping[str, T], after: Mapping[str, T]) -> Steps[None]:
        """Tells of each name that these tables do not have in common."""
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                self._tell(name)
            yield
