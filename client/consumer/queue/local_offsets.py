# SPDX-License-Identifier: Apache-2.0
"""The offsets of a broadcasting consumer, in a file on its own machine.

The file is `CLIENT_ID/GROUP/offsets.json` in `~/.rocketmq_offsets` or another folder, in the format
of the Java client, so that either goes on where the other has stopped; the state before it stays as
`.bak`. Beside each offset is a message that was seen, by which it is noticed that a topic was made
anew while the consumer did not run; the Java client ignores it, and leaves it out. The client id in
the path is the one that a Java consumer in broadcasting has: `ip@DEFAULT` unless the instance has a
name, so that it is the same the next time.

Java: LocalFileOffsetStore, OffsetSerializeWrapper.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import Final

from twisted.internet.defer import DeferredLock
from twisted.logger import Logger

from txrocketmq.client.base.errors import OffsetsUnreadable
from txrocketmq.client.consumer.queue.offset_store import NotedOffsets
from txrocketmq.client.consumer.queue.queue_life import Seen
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.process.kept_json import read_kept
from txrocketmq.remoting.process.replaced_file import write_replacing
from txrocketmq.remoting.protocol.body.base import Body, BodyError, body, member
from txrocketmq.remoting.serialize.json import encode_pretty

FOLDER: Final = ".rocketmq_offsets"
FILE: Final = "offsets.json"

log = Logger()


@body("org.apache.rocketmq.client.consumer.store.OffsetSerializeWrapper")
class OffsetSerializeWrapper(Body):
    """The content of the file."""

    offset_table: Mapping[MessageQueue, int] = member(default_factory=dict)
    seen_table: Mapping[str, str] | None = member(default=None)
    """Messages that were seen, by queue. Keys are texts, since readers of JSON that pass this over
    need not know the other form of keys."""


class LocalOffsets(NotedOffsets):
    """The offsets of one broadcasting group; see the module. `folder` None means the default."""

    def __init__(
        self, instance: ClientInstance, group: str, folder: str | PathLike[str] | None = None
    ) -> None:
        super().__init__()
        self._clock = instance.clock
        place = Path(folder) if folder else Path.home() / FOLDER
        self.path = place / stable_client_id(instance) / group / FILE
        self._stored: dict[MessageQueue, int] | None = None
        self._turn: DeferredLock = DeferredLock()

    async def load(self) -> None:
        """Reads the file. Raises OffsetsUnreadable when both it and its .bak are damaged."""
        kept = await self._turn.run(self._clock.in_thread, self._read)
        self._stored = dict(kept.offset_table)
        for queue in self._stored:
            seen = Seen.parse((kept.seen_table or {}).get(_key(queue), ""))
            if seen is not None:
                self.marks.setdefault(queue, seen)

    async def read(self, queue: MessageQueue) -> int | None:
        """Returns the offset in the file, or None if there is none. Raises OffsetsUnreadable."""
        if self._stored is None:
            await self.load()
        return (self._stored or {}).get(queue)

    async def persist(self, queues: Collection[MessageQueue]) -> None:
        """Writes the noted offsets of these queues; the file keeps those of other queues."""
        try:
            await self._store(queues)
        except (OSError, OffsetsUnreadable) as error:
            log.warn("the offsets were not written to {path}: {error}", path=self.path, error=error)

    async def commit(self, queue: MessageQueue) -> None:
        """Writes the noted offset of a queue. Raises OSError and OffsetsUnreadable."""
        await self._store([queue])

    async def _store(self, queues: Collection[MessageQueue]) -> None:
        noted = {queue: self._noted[queue] for queue in queues if queue in self._noted}
        stored = self._stored or {}
        if any(stored.get(queue) != offset for queue, offset in noted.items()):
            seen = {_key(queue): str(self.marks.get(queue, "")) for queue in noted}
            written = await self._turn.run(self._clock.in_thread, lambda: self._write(noted, seen))
            self._stored = written

    def _read(self) -> OffsetSerializeWrapper:
        try:
            kept = read_kept(self.path)
            if kept.warning:
                log.warn("{warning}", warning=kept.warning)
            if kept.content is None:
                return OffsetSerializeWrapper()
            return OffsetSerializeWrapper.from_json(kept.content)
        except (ValueError, BodyError) as error:
            raise OffsetsUnreadable(
                f"the offsets of the consumer cannot be read: {error}. Remove the file to begin"
                " where the configuration says"
            ) from error

    def _write(
        self, noted: Mapping[MessageQueue, int], seen: Mapping[str, str]
    ) -> dict[MessageQueue, int]:
        kept = self._read()
        table = {**kept.offset_table, **noted}
        marks = {**(kept.seen_table or {}), **seen}
        marks = {key: text for key, text in marks.items() if text}
        wrapper = OffsetSerializeWrapper(offset_table=table, seen_table=marks or None)
        write_replacing(self.path, encode_pretty(wrapper.to_json()))
        return table


def _key(queue: MessageQueue) -> str:
    return f"{queue.topic} {queue.queue_id} {queue.broker_name}"


def stable_client_id(instance: ClientInstance) -> str:
    """The client id of a Java consumer in broadcasting, which keeps the name DEFAULT."""
    ip = instance.client_id.partition("@")[0]
    unit = instance.config.unit_name
    return f"{ip}@{instance.config.instance_name}" + (f"@{unit}" if unit else "")
