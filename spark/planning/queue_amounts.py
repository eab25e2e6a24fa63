# SPDX-License-Identifier: Apache-2.0
"""How much of a log queues name: what a plan needs of each of perhaps 20,000 queues.

Of a local queue everything comes from one look at its files: which units lie in the range, and the
last ones of them as a sample. Of a remote one it is estimated by the first units of the last file,
and of very many queues some stand for all: how a read is cut into tasks depends on the estimate,
but not what it reads. Queues are looked at in several threads, since each look waits for the disk
or the network.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from txrocketmq.broker.store.formats.formats import (
    CONSUME_QUEUE_EXT_ADDRESS_MAX,
    CONSUME_QUEUE_PRE_BLANK_SIZE,
    CONSUME_QUEUE_UNIT,
)
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.remoting.primitives.packing import dtype
from txrocketmq.spark.arrow.threads import asked, in_threads
from txrocketmq.spark.columns.selection import RecordFilter
from txrocketmq.spark.planning.picks import has_tag, tagged
from txrocketmq.spark.store.queue_files import Queue, QueueSpan
from txrocketmq.spark.store.store import Store

_UNIT: Final = dtype(CONSUME_QUEUE_UNIT)
_SAMPLE_UNITS: Final = 200
"""The most units looked at in each queue, to guess its messages' size and how many have the tags.
"""
_SAMPLES: Final = 100_000
"""Units looked at in all queues together, but at least one in each."""
_MOST_REMOTE: Final = 1024
"""So many of the long queues of a remote store are looked at, and as many of the others."""
_CHUNK: Final = 64
"""So many queues are looked at by a thread at once."""


class Amount(NamedTuple):
    """What some queues have in a part of the log."""

    messages: int
    bytes: int
    """The approximate size of the records of the wanted ones."""


class LogPart(NamedTuple):
    """The records of a store that start in [start, end), and which of them are wanted."""

    store: Store
    start: int
    end: int
    wanted: RecordFilter


def amount_of(queues: Sequence[Queue], part: LogPart) -> Amount:
    """Returns how much of a part of the log the queues name."""
    if part.store.files.is_remote:
        return _of_remote(queues, part)
    most = max(1, min(_SAMPLE_UNITS, _SAMPLES // max(1, len(queues))))
    chunks = [queues[at : at + _CHUNK] for at in range(0, len(queues), _CHUNK)]
    found = in_threads(lambda chunk: _of_some(chunk, part, most), chunks)
    return _sum(found)


def _of_some(queues: Sequence[Queue], part: LogPart, most: int) -> Amount:
    found: list[Amount] = []
    spans: list[QueueSpan] = []
    for queue in queues:
        bounds = part.wanted.offsets(queue.topic, queue.queue_id)
        span = queue.span(part.start, part.end, bounds.low, bounds.high, most)
        if span.sample is None or not _has_hashes(queue, span.sample, part.wanted):
            units = queue.units(max(span.first, span.last - most), span.last)
            found.append(_amount(queue, span.last - span.first, units, part.wanted))
        elif span.sample:
            spans.append(span)
    return _sum([*found, *_of_samples(spans, part.wanted)])


def _has_hashes(queue: Queue, sample: bytes, wanted: RecordFilter) -> bool:
    """Whether the sample has the hashes of tags, if they matter, and not times or ext addresses."""
    if wanted.pruning_tags is None:
        return True
    codes = np.frombuffer(sample, _UNIT)["tags_code"]
    return queue.topic != SCHEDULE_TOPIC and bool((codes > CONSUME_QUEUE_EXT_ADDRESS_MAX).all())


def some_of(queues: Sequence[Queue]) -> Sequence[Queue]:
    """Returns all queues, or of very many remote ones some, which are always the same."""
    if len(queues) <= _MOST_REMOTE or not queues[0].files.is_remote:
        return queues
    return random.Random(0).sample(queues, _MOST_REMOTE)


def _of_remote(queues: Sequence[Queue], part: LogPart) -> Amount:
    # The listings tell which queues are long. What there is may be in a few of these.
    is_long = [queue.file_count() > 1 for queue in queues]
    total = Amount(0, 0)
    for kind in (True, False):
        group = [queue for queue, its in zip(queues, is_long, strict=True) if its is kind]
        some = some_of(group)
        found = _sum(asked(lambda each: _estimated(each, part), some, is_remote=True))
        times = len(group) / max(1, len(some))
        total = _sum([total, Amount(int(found.messages * times), int(found.bytes * times))])
    return total


def _estimated(queue: Queue, part: LogPart) -> Amount:
    count, sample = queue.estimate(part.end)
    whole = max(1, part.end - part.store.min_offset())
    return _amount(queue, count * (part.end - part.start) // whole, sample, part.wanted)


def _amount(queue: Queue, count: int, sample: NDArray[Any], wanted: RecordFilter) -> Amount:
    if not len(sample):
        return Amount(count, 0)
    sizes = np.where(tagged(queue, sample, wanted), sample["size"], 0)
    return Amount(count, int(count * float(sizes.sum() / sample["count"].sum())) + 1)


def _of_samples(spans: Sequence[QueueSpan], wanted: RecordFilter) -> list[Amount]:
    """Does what _amount does, for plain queues with raw samples, all of them at once."""
    if not spans:
        return []
    samples = [span.sample or b"" for span in spans]
    units = np.frombuffer(b"".join(samples), _UNIT)
    starts = np.cumsum([0, *map(len, samples[:-1])]) // _UNIT.itemsize
    sizes = np.maximum(units["size"].astype(np.int64), 0)
    is_real = sizes != CONSUME_QUEUE_PRE_BLANK_SIZE
    wants = is_real & has_tag(units["tags_code"], wanted)
    counts = np.maximum(np.add.reduceat(is_real.astype(np.int64), starts), 1)
    means = np.add.reduceat(np.where(wants, sizes, 0), starts) / counts
    messages = np.array([span.last - span.first for span in spans], np.int64)
    return [
        Amount(int(messages.sum()), int((messages * means).astype(np.int64).sum()) + len(spans))
    ]


def _sum(amounts: Sequence[Amount]) -> Amount:
    return Amount(sum(each.messages for each in amounts), sum(each.bytes for each in amounts))
