# SPDX-License-Identifier: Apache-2.0
"""Divides rows into partitions: by topic, by the day of storing, or by both; names their folders.

`dt` is the day in UTC at which the broker stored the message, so that it does not depend on where
the job runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from txrocketmq.spark.arrow.arrays import numbers_of, of_numbers

DAY: Final = "dt"
PARTITION_COLUMNS: Final = ("topic", DAY)
NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""Stands for NULL in the names of folders."""
NAME_BYTES: Final = 255
"""The most bytes that file systems allow in the name of a folder."""
LONG_NAMES: Final = "long"
_DAY_US: Final = 86_400_000_000
_BEYOND_US: Final = np.iinfo(np.int64).max
"""Stands for times that are null, since they are beyond the calendar, too."""
_BEYOND: Final = "day "
"""Precedes the number of a day that is beyond the calendar and has no date."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Slice(NamedTuple):
    """Rows of one partition, in the order of the log."""

    partition: tuple[str, ...]
    """The values of the partition columns."""
    rows: pa.RecordBatch


def slices(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[Slice]:
    """Cuts a batch by partition; `columns` are some of PARTITION_COLUMNS, which the rows keep."""
    if not columns or not batch.num_rows:
        if batch.num_rows:
            yield Slice((), batch)
        return
    codes, values = _codes(batch, columns)
    if len(values) == 1:
        yield Slice(values[0], batch)
        return
    order = None if _is_sorted(codes) else np.argsort(codes, kind="stable")
    ordered = codes if order is None else codes[order]
    cuts = np.searchsorted(ordered, np.arange(len(values) + 1)).tolist()
    for partition, start, end in zip(values, cuts, cuts[1:], strict=False):
        if order is not None:
            yield Slice(partition, batch.take(of_numbers(order[start:end])))
        elif (end - start) * 2 >= len(codes):
            yield Slice(partition, batch.slice(start, end - start))
        else:
            # A copy: a view would keep the whole batch for as long as the smallest slice waits.
            yield Slice(partition, _copied(batch.slice(start, end - start)))


def folder_of(values: Mapping[str, str | None]) -> str:
    """Returns the folder of a partition as Hive names it, with a "/" at its end.

    Some engines read the values of a partition from the names of its folders. Values are
    percent-encoded as the writers of Delta do it. A value that no folder can be named after is left
    out for the folder LONG_NAMES: only engines that read values from the table's log know it.
    """
    names = [f"{column}={quote(value or NO_VALUE, safe='')}" for column, value in values.items()]
    return "".join(f"{name if len(name) <= NAME_BYTES else LONG_NAMES}/" for name in names)


def date_of(name: str) -> str | None:
    """Returns the value of the partition column `dt` for a day as `slices` names it."""
    return None if not name or name.startswith(_BEYOND) else name


def day_number(name: str | None) -> int | None:
    """Returns the number of a day since 1970, by which Iceberg knows it; None for no day.

    Days beyond the calendar are the last or the first one of it: so they are on the right side of
    all days that a query can name.
    """
    if not name:
        return None
    if name.startswith(_BEYOND):
        is_later = int(name.removeprefix(_BEYOND)) > 0
        return ((date.max if is_later else date.min) - _EPOCH.date()).days
    return (date.fromisoformat(name) - _EPOCH.date()).days


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [pa.concat_arrays([column]) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _is_sorted(codes: NDArray[np.int64]) -> bool:
    return bool((codes[:-1] <= codes[1:]).all())


def _codes(
    batch: pa.RecordBatch, columns: Sequence[str]
) -> tuple[NDArray[np.int64], list[tuple[str, ...]]]:
    """Returns the number of each row's partition, and the partitions by number."""
    codes = np.zeros(batch.num_rows, np.int64)
    values: list[tuple[str, ...]] = [()]
    for column in columns:
        own, names = _topics(batch) if column == "topic" else _days(batch)
        if len(values) == 1:
            codes, values = own, [(*values[0], name) for name in names]
        elif len(names) == 1:
            values = [(*value, names[0]) for value in values]
        else:
            used, codes = np.unique(codes * len(names) + own, return_inverse=True)
            both = [divmod(code, len(names)) for code in used.tolist()]
            values = [(*values[before], names[mine]) for before, mine in both]
    return codes, values


def _topics(batch: pa.RecordBatch) -> tuple[NDArray[np.int64], list[str]]:
    encoded = pc.dictionary_encode(batch.column("topic"))
    return numbers_of(encoded.indices).astype(np.int64), encoded.dictionary.to_pylist()


def _days(batch: pa.RecordBatch) -> tuple[NDArray[np.int64], list[str]]:
    beyond = of_numbers(np.full(len(batch), _BEYOND_US))
    stored_us = numbers_of(pc.coalesce(batch.column("storeTimestamp").cast(pa.int64()), beyond))
    first, last = int(stored_us.min()) // _DAY_US, int(stored_us.max()) // _DAY_US
    if first == last:  # as nearly always
        return np.zeros(len(stored_us), np.int64), [_day_name(first)]
    days, codes = np.unique(stored_us // _DAY_US, return_inverse=True)
    return codes, [_day_name(day) for day in days.tolist()]


def _day_name(day: int) -> str:
    try:
        return (_EPOCH + timedelta(days=day)).strftime("%Y-%m-%d")
    except OverflowError:  # a date beyond the calendar, by a wrong clock
        return "" if day == _BEYOND_US // _DAY_US else f"{_BEYOND}{day}"
