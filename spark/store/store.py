# SPDX-License-Identifier: Apache-2.0
"""A store directory as seen from outside, without a broker: log, queues, index, configuration.

    for store in resolve("/data/broker-*/store"):
        print(store.broker_name, store.min_offset(), len(store.segments()))

A `Store` holds names only. It is cheap to make and to pickle, takes no lock, and may be of a broker
that is running: each call looks at the directory anew.

Java: BrokerPathConfigHelper, StorePathConfigHelper, MappedFileQueue, DefaultMessageStore.
"""

from __future__ import annotations

import itertools
import logging
import posixpath
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from operator import attrgetter
from typing import Final, Literal

from txrocketmq.remoting.message.message import (
    MessageDecodeError,
    MessageExt,
    body_crc,
    decode_message,
)
from txrocketmq.remoting.message.record import BORN_HOST_IPV6, IPV4_HOST, IPV6_HOST, RECORD_FIXED
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.spark.arrow.errors import NotAStore, OptionError, StoreError, UnsupportedLayout
from txrocketmq.spark.arrow.walk import MIN_RECORD_BYTES
from txrocketmq.spark.store.config_files import ROCKSDB_FILE, StoreConfigFiles
from txrocketmq.spark.store.files import (
    FILE_NAME,
    Entry,
    Files,
    LocalFiles,
    NumberedFile,
    files_of,
    listed_or_none,
    shown,
)
from txrocketmq.spark.store.index_files import IndexFile, index_files
from txrocketmq.spark.store.listed_files import ListedFiles
from txrocketmq.spark.store.log_listing import log_files
from txrocketmq.spark.store.queue_files import Queue

log = logging.getLogger("txrocketmq.spark")
QueueKind = Literal["files", "rocksdb", "none"]
"""How the consume queues are kept; unless in files, a store is read by its log alone."""
DEFAULT_CLUSTER: Final = "DefaultCluster"
"""The cluster of a store that does not tell; brokers have it unless brokerClusterName is set."""
MAX_RECORD_BYTES: Final = 64 << 20
"""The default limit on the size of records; brokers by default take messages of 4 MiB."""

Segment = NumberedFile
"""A file of the commit log; its offsets are physical."""

_COMMIT_LOG: Final = "commitlog"
_CONSUME_QUEUE: Final = "consumequeue"
_QUEUES: Final = (_CONSUME_QUEUE, f"batch{_CONSUME_QUEUE}")
_ROCKSDB_QUEUES: Final = (_CONSUME_QUEUE, "consumequeue_r")
_DLEDGER: Final = "dledger-"
_GENERIC_NAMES: Final = ("store", "rocketmq", "data")
_GLOB: Final = re.compile(r"[*\[]")
_LOCAL_GLOB: Final = re.compile(r"[*?\[]")
_HEAD: Final = fixed(RECORD_FIXED)


@dataclass(frozen=True)
class Store:
    """A store directory; make it with `open`."""

    uri: str
    """The directory as it was named, without credentials."""
    broker_name: str
    cluster: str
    files: Files
    path: str
    """The path of the directory in `files`."""
    queue_kind: QueueKind
    max_record_bytes: int = MAX_RECORD_BYTES
    """A larger record counts as damaged."""

    @property
    def key(self) -> str:
        """Cluster and name of the broker, with a "/": what tells brokers from one another."""
        return f"{self.cluster}/{self.broker_name}"

    def at_once(self, *, all_queues: bool = False) -> Store:
        """Returns the store as it is now, for a caller with many questions: see `listed_files`.

        Each folder of a remote store is listed once then, and those of all queues together if
        `all_queues` are asked for. A local store is returned itself.
        """
        if not self.files.is_remote or isinstance(self.files, ListedFiles):
            return self
        store = replace(self, files=ListedFiles(self.files))
        if all_queues and self.queue_kind == "files":
            store.look_through("")
        return store

    @classmethod
    def open(cls, uri: str, *, broker_name: str | None = None, cluster: str | None = None) -> Store:
        """Opens the store in this directory.

        Names that are not given are taken from the topics that a broker names after itself; failing
        that, the broker's name is taken from the path. Raises NotAStore, UnsupportedLayout for a
        store that cannot be read, and other StoreErrors when the directory cannot be reached.
        """
        found, path = files_of(uri)
        files = ListedFiles(found) if found.is_remote else found
        name = shown(uri)
        entries = _listed(files, path, name)
        _check_layout(files, path, name, entries)
        if isinstance(files, LocalFiles) and "abort" in entries:
            files = replace(files, spares_cache=True)  # a broker runs here, or was killed
        config = StoreConfigFiles(files, path)
        store = cls(
            uri=name,
            broker_name=broker_name or _or_none(config.broker_name, name) or _name_of_path(path),
            cluster=cluster or _or_none(config.cluster_name, name) or DEFAULT_CLUSTER,
            files=files,
            path=path,
            queue_kind=_queue_kind(files, path, entries),
        )
        store._check_not_striped()
        return replace(store, files=found) if found.is_remote else store

    @property
    def config(self) -> StoreConfigFiles:
        """The files of config/, and the checkpoint."""
        return StoreConfigFiles(self.files, self.path)

    # --- the log ---

    def segments(self) -> list[Segment]:
        """Returns the files of the log as they are now, in order, without empty ones."""
        directory = f"{self.path}/{_COMMIT_LOG}"
        with _told_as(f"{self.uri}/{_COMMIT_LOG}"):
            if isinstance(self.files, ListedFiles):
                return self.files.numbered(directory)
            return log_files(self.files, directory)

    def gaps(self) -> list[tuple[int, int]]:
        """Returns the ranges of physical offsets that are missing between the files of the log."""
        listed = self.segments()
        return [
            (before.end, after.first_offset)
            for before, after in itertools.pairwise(listed)
            if before.end < after.first_offset
        ]

    def min_offset(self) -> int:
        """Returns the physical offset at which the log begins now; retention moves it forward."""
        listed = self.segments()
        return listed[0].first_offset if listed else 0

    def segment_of(self, physical_offset: int) -> Segment | None:
        """Returns the file of the log that holds this offset, if there is one."""
        listed = self.segments()
        at = bisect_right(listed, physical_offset, key=attrgetter("first_offset"))
        return listed[at - 1] if at and physical_offset < listed[at - 1].end else None

    def file_of(self, physical_offset: int) -> str:
        """Returns, for people, the path of the file with this offset, or of the log's directory."""
        segment = self.segment_of(physical_offset)
        return segment.path if segment else f"{self.path}/{_COMMIT_LOG}"

    def read(self, physical_offset: int, length: int) -> bytes:
        """Reads bytes of the log; fewer at the end of the file that holds the offset.

        Raises FileNotFoundError when there is no such file.
        """
        segment = self.segment_of(physical_offset)
        if segment is None:
            raise FileNotFoundError(f"{self.uri}: no file of the log holds {physical_offset}")
        data = bytearray(min(length, segment.end - physical_offset))
        at = physical_offset - segment.first_offset
        got = self.files.read_into(segment.path, at, memoryview(data))
        return bytes(data[:got])

    def stored_at(self, physical_offset: int) -> int | None:
        """Returns the store timestamp of the record there, in ms; None if none can be read."""
        more_bytes = IPV6_HOST.sizeof() - IPV4_HOST.sizeof()
        try:
            data = self.read(physical_offset, _HEAD.size)
        except FileNotFoundError:
            return None
        if len(data) < _HEAD.size or _field(data, "physical_offset", 8) != physical_offset:
            return None
        is_ipv6 = _field(data, "sys_flag", 4) & BORN_HOST_IPV6
        return _field(data, "store_timestamp", 8, more_bytes if is_ipv6 else 0)

    def message_at(self, physical_offset: int) -> MessageExt | None:
        """Returns the message there, body as stored; None without a whole record with its CRC."""
        size_bytes = _HEAD.offset_of("total_size") + 4
        try:
            head = self.read(physical_offset, size_bytes)
            size = _field(head, "total_size", 4) if len(head) == size_bytes else 0
            if not MIN_RECORD_BYTES <= size <= self.max_record_bytes:
                return None
            message, _ = decode_message(self.read(physical_offset, size), decompress_body=False)
        except (FileNotFoundError, MessageDecodeError):
            return None
        is_whole = not message.body or body_crc(message.body) == message.body_crc
        return message if is_whole and message.commit_log_offset == physical_offset else None

    # --- queues and index ---

    def queues(self) -> list[Queue]:
        """Returns all queues that have files, sorted; none if `queue_kind` is not files."""
        if self.queue_kind != "files":
            return []
        self.look_through("")
        return _one_of_each(queue for kind in _QUEUES for queue in self._queues_in(kind))

    def has_more_queues_than(self, count: int) -> bool:
        """Returns whether `queues` has more than so many, without listing many more."""
        if self.queue_kind != "files":
            return False
        self.look_through("")
        listed = itertools.chain.from_iterable(map(self._queues_in, _QUEUES))
        return next(itertools.islice(listed, count, None), None) is not None

    def queue(self, topic: str, queue_id: int) -> Queue | None:
        """Returns the queue of a topic, if it has files."""
        if self.queue_kind != "files" or "/" in topic:
            return None
        found = _one_of_each(
            self._queue(kind, topic, queue_id)
            for kind in _QUEUES
            if self.files.exists(f"{self.path}/{kind}/{topic}/{queue_id}")
        )
        return found[0] if found else None

    def queues_of(self, topic: str) -> list[Queue]:
        """Returns the queues of a topic that have files, by number."""
        if self.queue_kind != "files" or "/" in topic:
            return []
        self.look_through(f"/{topic}")
        return _one_of_each(queue for kind in _QUEUES for queue in self._queues_of(kind, topic))

    def index_files(self) -> list[IndexFile]:
        """Returns the files of the index, oldest first."""
        return index_files(self.files, f"{self.path}/index")

    def look_through(self, below: str) -> None:
        """Lists the folders of the queues below this path, "" for all, together if it is remote."""
        if isinstance(self.files, ListedFiles):
            for kind in _QUEUES:
                if self.files.exists(f"{self.path}/{kind}"):
                    self.files.look_through(f"{self.path}/{kind}{below}")

    def _queues_in(self, kind: str) -> Iterator[Queue]:
        for each in listed_or_none(self.files, f"{self.path}/{kind}"):
            if each.is_dir:
                yield from self._queues_of(kind, each.name)

    def _queues_of(self, kind: str, topic: str) -> Iterator[Queue]:
        for each in listed_or_none(self.files, f"{self.path}/{kind}/{topic}"):
            if each.is_dir and each.name.isdecimal():
                yield self._queue(kind, topic, int(each.name))

    def _queue(self, kind: str, topic: str, queue_id: int) -> Queue:
        place = f"{topic}/{queue_id}"
        is_batch = kind != _CONSUME_QUEUE
        ext = None if is_batch else f"{self.path}/{_CONSUME_QUEUE}_ext/{place}"
        return Queue(topic, queue_id, self.files, f"{self.path}/{kind}/{place}", ext, is_batch)

    def _check_not_striped(self) -> None:
        """Raises UnsupportedLayout if no two files adjoin: the log is in several directories."""
        listed = self.segments()
        gaps = self.gaps()
        if len(listed) > 2 and len(gaps) == len(listed) - 1:
            raise UnsupportedLayout(
                f"{self.uri}/{_COMMIT_LOG} has none of its files in a row: they are probably spread"
                " over several directories (storePathCommitLog with several paths); put links to"
                f" all of them into one directory {_COMMIT_LOG}/ and read that"
            )


def _one_of_each(queues: Iterable[Queue]) -> list[Queue]:
    """Returns queues by topic and number; if one is there twice, the one that was written to last.

    The other one is left of a topic that was deleted, and made again with another type of queue.
    """
    found: dict[tuple[str, int], Queue] = {}
    for each in queues:
        other = found.setdefault((each.topic, each.queue_id), each)
        if other is not each and _newest_place(each) > _newest_place(other):
            found[each.topic, each.queue_id] = each
    return [found[name] for name in sorted(found)]


def _newest_place(queue: Queue) -> int:
    unit = queue.last_unit()
    return -1 if unit is None else int(unit["physical_offset"][0])


def resolve(
    paths: str,
    *,
    broker_name: str | None = None,
    cluster: str | None = None,
    max_record_bytes: int = MAX_RECORD_BYTES,
) -> list[Store]:
    """Returns the stores of a comma-separated list of directories, perhaps with *, ? and [ ].

    `cluster` is the name of their cluster, or names of clusters, one for each store.

    Raises OptionError if two of them are of the same broker of a cluster, if a pattern matches
    nothing, or if `broker_name` is given for more than one; raises also what Store.open raises.
    """
    names = [name for part in _parts(paths) for name in _matching(part)]
    if not names:
        raise OptionError.of("storePath", paths, "one or several directories, separated by commas")
    if broker_name is not None and len(names) > 1:
        raise OptionError(
            f"option brokerName={broker_name!r} names one broker, but storePath={_shown(paths)!r}"
            f" has {len(names)} stores; leave it out: the names are in the stores or their paths"
        )
    if broker_name is not None and "/" in broker_name:
        raise OptionError.of("brokerName", broker_name, "a name without a slash")
    clusters = _clusters(cluster, len(names), paths)
    opened = [
        Store.open(name, broker_name=broker_name, cluster=its)
        for name, its in zip(names, clusters, strict=True)
    ]
    stores = [replace(store, max_record_bytes=max_record_bytes) for store in opened]
    by_key: dict[str, Store] = {}
    for store in stores:
        other = by_key.setdefault(store.key, store)
        if other is not store:
            raise OptionError(
                f"storePath={_shown(paths)!r}: {other.uri} and {store.uri} are both of broker"
                f" {store.broker_name!r} in the cluster {store.cluster!r}; read one of them, or if"
                " they are of different clusters, name these with the option cluster, one for each"
                " store, separated by commas"
            )
    return stores


def _clusters(text: str | None, stores: int, paths: str) -> list[str | None]:
    """Returns the name of the cluster of each store, as far as the option says them."""
    if text is None:
        return [None] * stores
    named = [name.strip() for name in text.split(",")]
    if len(named) == 1:
        named *= stores
    if len(named) != stores or not all(named) or any("/" in name for name in named):
        raise OptionError(
            f"option cluster={text!r}: give one name, or one for each of the {stores} stores of"
            f" storePath={_shown(paths)!r}, separated by commas; no name has a slash"
        )
    return [*named]


def has_pattern(paths: str) -> bool:
    """Returns whether `resolve` may find other directories at another time."""
    return any(_pattern_in(part) for part in _parts(paths))


def _shown(paths: str) -> str:
    return ",".join(shown(part) for part in _parts(paths))


def _parts(paths: str) -> list[str]:
    if LocalFiles().exists(paths):
        return [paths]
    return [part.strip() for part in paths.split(",") if part.strip()]


def _matching(part: str) -> list[str]:
    """Returns the directories that match a pattern, or the name itself if it is not a pattern."""
    found = _pattern_in(part)
    if not found:
        return [part]
    options = ""
    if files_of(part)[0].is_remote:
        part, mark, after = part.partition("?")
        options = mark + after
    start = part[: found.start()].rpartition("/")
    bases = [start[0] + start[1]]
    for step in part[len(bases[0]) :].split("/"):
        bases = [found for base in bases for found in _step(base, step, options)]
    if not bases:
        raise OptionError(f"storePath={shown(part)!r} matches no directory")
    return [base.rstrip("/") + options for base in bases]


def _pattern_in(part: str) -> re.Match[str] | None:
    """Returns where the pattern begins. In remote URIs a "?" begins the options instead."""
    files, path = files_of(part)
    if files.is_remote:
        return _GLOB.search(part.partition("?")[0])
    return None if files.exists(path) else _LOCAL_GLOB.search(part)


def _step(base: str, pattern: str, options: str) -> list[str]:
    files, path = files_of((base or ".") + options)
    return [
        f"{base}{each.name}/"
        for each in listed_or_none(files, path)
        if each.is_dir and fnmatchcase(each.name, pattern or "*")
    ]


def _listed(files: Files, path: str, name: str) -> dict[str, Entry]:
    with _told_as(name):
        return {each.name: each for each in files.list(path)}


@contextmanager
def _told_as(name: str) -> Iterator[None]:
    """Raises errors of listing a directory as those of a store, with this name for it."""
    try:
        yield
    except FileNotFoundError:
        raise NotAStore(f"{name}: there is no such directory") from None
    except NotADirectoryError:
        raise NotAStore(f"{name} is a file; name the directory of a store") from None
    except OSError as error:
        raise StoreError(f"{name} cannot be listed: {error}") from error


def _check_layout(files: Files, path: str, name: str, entries: dict[str, Entry]) -> None:
    ledgers = sorted(each for each in entries if each.startswith(_DLEDGER))
    if ledgers:
        raise UnsupportedLayout(
            f"{name} holds a DLedger log ({ledgers[0]}/), whose entries are not records of a commit"
            " log; read the cluster with nameServer instead"
        )
    if _COMMIT_LOG in entries:
        return
    if any(FILE_NAME.fullmatch(each) for each in entries) or path.endswith("/" + _COMMIT_LOG):
        raise NotAStore(f"{name} is a {_COMMIT_LOG} directory; name the directory above it")
    inside = [f"{name}/store"] if files.exists(f"{path}/store/{_COMMIT_LOG}") else []
    hint = f"did you mean {inside[0]}?" if inside else (
        "name the directory of storePathRootDir; where storePathCommitLog is elsewhere, link it"
        f" there as {_COMMIT_LOG}"
    )  # fmt: skip
    raise NotAStore(f"{name} is not a store: it has no directory {_COMMIT_LOG}/; {hint}")


def _queue_kind(files: Files, path: str, entries: dict[str, Entry]) -> QueueKind:
    """Returns the kind of queues; RocksDB wins, since files may be left over from before it."""
    for kind in _ROCKSDB_QUEUES:
        if kind in entries and files.exists(f"{path}/{kind}/{ROCKSDB_FILE}"):
            return "rocksdb"
    has_files = any(listed_or_none(files, f"{path}/{kind}") for kind in _QUEUES if kind in entries)
    return "files" if has_files else "none"


def _or_none(name: Callable[[], str | None], uri: str) -> str | None:
    """Returns a name from topics.json; None if that cannot be read, as the log still may be."""
    try:
        return name()
    except StoreError as error:
        _tell_once(uri, str(error))
        return None


@lru_cache(maxsize=1_000)
def _tell_once(uri: str, why: str) -> None:
    log.warning("broker and cluster of %s are named after its folder, and by default: %s", uri, why)


def _name_of_path(path: str) -> str:
    parts = [part for part in posixpath.normpath(path).split("/") if part not in ("", ".", "..")]
    while len(parts) > 1 and parts[-1].lower() in _GENERIC_NAMES:
        parts.pop()
    return parts[-1] if parts else "broker"


def _field(data: bytes, name: str, size: int, more_bytes: int = 0) -> int:
    at = _HEAD.offset_of(name) + more_bytes
    return int.from_bytes(data[at : at + size], "big", signed=True)
