# SPDX-License-Identifier: Apache-2.0
"""How far each group has consumed each queue: consumerOffset.json.

Counterpart of ConsumerOffsetManager. A commit is taken as it comes, forwards or backwards, except
while a reset waits to be given to the group's next pull.

With light queues the file is lmqConsumerOffset.json, in which groups that are named like a light
queue have a table of their own, without queue ids (LmqConsumerOffsetManager). If that file is
missing, consumerOffset.json is read: the original forgets all offsets when light queues are
switched on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.queues.light_queues import QUEUE_ID, is_light
from txrocketmq.broker.work.config_table import VersionedTable, no_listeners
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import OFTEN_MS, Life, Tick
from txrocketmq.remoting.protocol.body.route import DataVersion
from txrocketmq.remoting.serialize.json import HOLE, encode_around, encode_body, encode_pretty

NOT_FOUND = -1
BROADCAST = "@broadcast"
"""Suffix of the name under which the offset of a broadcasting group's slowest member is kept."""
_MOST_PULLED = 100_000
_SEPARATOR = "@"
_LIGHT_HOLE = "@light"
"""Marks where the offsets of light groups are inserted into the text of the file."""
_NO_OFFSETS = "\n\t\t\t"


class HeldOffsets(NamedTuple):
    """What consumerOffset.json holds, by the names under which it is looked for."""

    offsets: dict[str, dict[int, int]]
    topics: dict[str, set[str]]
    groups: dict[str, set[str]]
    broadcasting: dict[str, set[str]]


class ConsumerOffsets(VersionedTable[HeldOffsets]):
    """Offsets by topic, group and queue; each is the next message to consume.

    `saving` writes consumerOffset.json. There may be hundreds of thousands of offsets, so only
    those that were committed since the last time are encoded, in the thread that writes.
    """

    def __init__(
        self, file: JsonFile, now_ms: Callable[[], int], *, before: JsonFile | None = None
    ) -> None:
        super().__init__(file, now_ms)
        self._before = before
        """With light queues: the file that was written before they were enabled."""
        self._offsets: dict[str, dict[int, int]] = {}
        self._topics: dict[str, set[str]] = {}
        """By group: the topics that it has offsets of."""
        self._groups: dict[str, set[str]] = {}
        """By topic: the groups that have offsets of it."""
        self._broadcasting: dict[str, set[str]] = {}
        """The same as `_groups`, for the names that end with BROADCAST."""
        self._resets: dict[str, dict[int, int]] = {}
        self._pulled: dict[str, dict[int, int]] = {}
        self._changed: set[str] = set()
        """Keys whose offsets have changed since the text of the file was last made."""
        self._texts: dict[str, str] | None = None
        """The members of the file by key, in their order; None when all must be encoded."""

    def load(self) -> None:
        """Loads consumerOffset.json, as either version writes it; raises JsonFileError."""
        super().load()
        if self._before is not None and self._file.is_missing:
            self._load(self._before)

    def decode(self, content: Mapping[str, Any]) -> HeldOffsets:
        """Reads the offsets of all groups, and of groups of light queues."""
        held = HeldOffsets({}, {}, {}, {})
        for key, offset in (content.get("lmqOffsetTable") or {}).items():
            held.offsets[key] = {QUEUE_ID: int(offset)}
        for key, queues in (content.get("offsetTable") or {}).items():
            offsets = {int(queue): int(offset) for queue, offset in queues.items()}
            held.offsets.setdefault(key, {}).update(offsets)
        for key in held.offsets:
            _index(key, *held[1:])
        return held

    def _hold(self, held: HeldOffsets) -> Steps[None]:
        """Resets that wait for a pull count on."""
        self._changed.update(self._offsets, held.offsets)
        self._offsets, self._topics, self._groups, self._broadcasting = held
        return no_listeners()

    def merge(self, key: str, queues: dict[int, int]) -> None:
        """Takes the offsets that another broker has for a key "topic@group", instead of all here.

        What has no change costs no write.
        """
        known = self._offsets.get(key)
        if known == queues:
            return
        if known is None:
            self._queues_of(key)
        self._offsets[key] = queues
        self._changed.add(key)
        self._file.is_stale = True

    def advance(self, key: str, queues: Mapping[int, int]) -> int:
        """Takes the offsets of a key "topic@group" that are larger than here; returns how many."""
        known = self._offsets.get(key, {})
        ahead = {each: at for each, at in queues.items() if at > known.get(each, NOT_FOUND)}
        if ahead:
            self.merge(key, {**known, **ahead})
        return len(ahead)

    def merged(self, version: DataVersion | None) -> None:
        """Takes the version of that broker's table, if it has one, now that all is merged."""
        self.data_version = version or self.data_version
        self._is_anothers = True

    @property
    def is_empty(self) -> bool:
        """Whether no group has an offset."""
        return not self._offsets

    def _snapshot(self) -> Callable[[], bytes]:
        """Returns a function that makes the text of the file, to be called in a thread.

        It copies the offsets of one topic and group in one step. It may include commits that come
        after this call; they are in the next file as well.
        """
        content = {"dataVersion": self.data_version.to_json(), "offsetTable": HOLE}
        if self._before is not None:
            content["lmqOffsetTable"] = _LIGHT_HOLE
        changed, self._changed = self._changed, set()

        def encode() -> bytes:
            texts, self._texts = self._texts, None
            texts = self._encoded(
                {} if texts is None else texts, None if texts is None else changed
            )
            before, after = encode_around(content, encode_pretty)
            self._texts = texts
            if self._before is None:
                return before + _table(texts.values()) + after
            light = {key: text for key, text in texts.items() if text[-1] != "}"}
            rest = (text for key, text in texts.items() if key not in light)
            hole, table = f'"{_LIGHT_HOLE}"'.encode(), _table(light.values())
            return before.replace(hole, table) + _table(rest) + after.replace(hole, table)

        return encode

    def _encoded(self, texts: dict[str, str], changed: set[str] | None) -> dict[str, str]:
        """Returns the texts with the changed keys (None: all keys) encoded anew."""
        is_sorted = True
        for key in list(self._offsets) if changed is None else changed:
            queues = self._offsets.get(key)
            if queues is None:
                texts.pop(key, None)
            else:
                is_sorted = is_sorted and key in texts
                texts[key] = self._encode(key, dict(queues))
        return texts if is_sorted else dict(sorted(texts.items()))

    def _encode(self, key: str, queues: dict[int, int]) -> str:
        is_single = self._before is not None and queues.keys() == {QUEUE_ID}
        if is_single and is_light(key.partition(_SEPARATOR)[2]):
            return f"\n\t\t{encode_body(key).decode()}:{queues[QUEUE_ID]}"
        return _encode_queues(key, queues)

    def life(self, config: BrokerConfig) -> Life:
        """Offsets are in consumerOffset.json, of light queues in lmqConsumerOffset.json."""

        def save(_: int, steady_ms: int) -> None:
            self.saving.begin_soon(steady_ms, config.flush_consumer_offset_interval)

        before = () if self._before is None else (self._before.path.name,)
        return Life("offsets", table=self, files=before, beats=(Tick(OFTEN_MS, save),))

    def entries(self) -> Iterator[tuple[str, Mapping[int, int]]]:
        """Iterates over keys "topic@group" and offsets by queue, while the table may change."""
        for key in list(self._offsets):
            queues = self._offsets.get(key)
            if queues is not None:
                yield key, queues

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """Returns the committed offset, or that of a pending reset; NOT_FOUND if there is none."""
        key = topic + _SEPARATOR + group
        reset = self._resets.get(key)
        if reset is not None and queue_id in reset:
            return reset[queue_id]
        return self._offsets.get(key, {}).get(queue_id, NOT_FOUND)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Sets a group's offset; ignored while a reset of the queue is pending."""
        key = topic + _SEPARATOR + group
        if self._resets and queue_id in self._resets.get(key, ()):
            return
        self._file.is_stale = True
        self._changed.add(key)
        queues = self._offsets.get(key)
        if queues is None:
            queues = self._queues_of(key)
        queues[queue_id] = offset

    def set_back(self, max_offset: Callable[[str, int], int]) -> int:
        """Sets offsets beyond the end of their queue back to the end; returns how many there were.

        They were saved before the messages in front of them were durable, and a crash took those
        messages. Without this the group would miss the messages that take their places.
        """
        count = 0
        for key, queues in self.entries():
            topic, _, group = key.partition(_SEPARATOR)
            for queue_id, offset in list(queues.items()):
                end = max_offset(topic, queue_id)
                if offset > end:
                    self.commit(group, topic, queue_id, end)
                    count += 1
        return count

    def pulled(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Notes that a group was given all messages before this offset; this is not saved."""
        key = topic + _SEPARATOR + group
        queues = self._pulled.get(key)
        if queues is None:
            if len(self._pulled) >= _MOST_PULLED:
                self._pulled.clear()  # of groups that are gone, mostly; it is for statistics only
            queues = self._pulled[key] = {}
        queues[queue_id] = offset

    def pulled_of(self, group: str, topic: str) -> dict[int, int]:
        """Returns by queue the offset up to which a group was given messages of a topic."""
        return dict(self._pulled.get(topic + _SEPARATOR + group, {}))

    def _queues_of(self, key: str) -> dict[int, int]:
        """Returns the offsets of a topic and group by queue, adding an empty table if missing."""
        queues = self._offsets.get(key)
        if queues is None:
            queues = self._offsets[key] = {}
            _index(key, self._topics, self._groups, self._broadcasting)
        return queues

    def _table_of(self, group: str) -> dict[str, set[str]]:
        return self._broadcasting if group.endswith(BROADCAST) else self._groups

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Sets an offset that the group gets with its next pull of the queue."""
        pending = self._resets.setdefault(topic + _SEPARATOR + group, {})
        pending.pop(queue_id, None)
        self.commit(group, topic, queue_id, offset)
        pending[queue_id] = offset

    @property
    def has_resets(self) -> bool:
        """Whether any group has an offset that waits for its next pull."""
        return bool(self._resets)

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Returns the pending reset of a queue and removes it; None if there is none."""
        if not self._resets:
            return None
        key = topic + _SEPARATOR + group
        queues = self._resets.get(key)
        if queues is None:
            return None
        offset = queues.pop(queue_id, None)
        if not queues:
            del self._resets[key]
        return offset

    def of(self, group: str, topic: str) -> dict[int, int]:
        """The offsets of a group in all queues of a topic."""
        return dict(self._offsets.get(topic + _SEPARATOR + group, {}))

    def topics_of(self, group: str) -> set[str]:
        """The topics that a group has offsets of."""
        return set(self._topics.get(group, ()))

    def groups_of(self, topic: str) -> set[str]:
        """The groups that have offsets of a topic."""
        return set(self._groups.get(topic, ()))

    def forget_topic(self, topic: str) -> Iterator[None]:
        """Forgets all offsets of a topic, step by step."""
        for table in (self._groups, self._broadcasting):
            for group in list(table.get(topic, ())):
                self.remove(group, topic)
                yield

    def forget_group(self, group: str) -> Iterator[None]:
        """Forgets all offsets of a group, step by step."""
        for name in (group, group + BROADCAST):
            for topic in list(self._topics.get(name, ())):
                self.remove(name, topic)
                yield

    def clone(self, source: str, target: str, topic: str) -> None:
        """Gives the group `target` the offsets that `source` has of a topic (cloneOffset)."""
        key = topic + _SEPARATOR + target
        self._queues_of(key)
        self._offsets[key] = self.of(source, topic)
        self._changed.add(key)
        self._file.is_stale = True

    def remove(self, group: str, topic: str) -> None:
        """Forgets the offsets of a group in a topic, if there are any."""
        key = topic + _SEPARATOR + group
        self._pulled.pop(key, None)
        if self._offsets.pop(key, None) is None:
            return
        self._resets.pop(key, None)
        groups = self._table_of(group)
        for table, name, member in ((self._topics, group, topic), (groups, topic, group)):
            table[name].discard(member)
            if not table[name]:
                del table[name]
        self._changed.add(key)
        self._file.is_stale = True


def _index(
    key: str,
    topics: dict[str, set[str]],
    groups: dict[str, set[str]],
    broadcasting: dict[str, set[str]],
) -> None:
    topic, _, group = key.partition(_SEPARATOR)
    topics.setdefault(group, set()).add(topic)
    (broadcasting if group.endswith(BROADCAST) else groups).setdefault(topic, set()).add(group)


def _table(members: Iterable[str]) -> bytes:
    text = ",".join(members).encode()
    return b"{" + (text + b"\n\t}" if text else b"\n\t\t\n\t}")


def _encode_queues(key: str, queues: Mapping[int, int]) -> str:
    """Encodes a member of the table as `encode_pretty` would, in a third of the time."""
    offsets = ",".join([f"\n\t\t\t{queue_id}:{offset}" for queue_id, offset in queues.items()])
    return f"\n\t\t{encode_body(key).decode()}:{{{offsets or _NO_OFFSETS}\n\t\t}}"
