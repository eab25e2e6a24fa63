# SPDX-License-Identifier: Apache-2.0
"""The conditions of a query that limit what is read, as Spark offers them to pushFilters.

They only narrow a read: every record that fulfils the query's conditions passes, and others may
pass too, since Spark checks every row again. Conditions on columns that cannot narrow a read are
ignored. The filters of pyspark.sql.datasource are known by their class names; none is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.spark.records import Records
from txrocketmq.spark.schema import KAFKA_NAMES

_INTEGERS: Final = {
    "queueId": "queue_id",
    "queueOffset": "queue_offset",
    "flag": "flag",
    "physicalOffset": "physical_offset",
    "storeSize": "total_size",
    "sysFlag": "sys_flag",
    "reconsumeTimes": "reconsume_times",
    "preparedTransactionOffset": "prepared_transaction_offset",
}
"""Columns of integers, and the attribute of Records with the same number."""
_TIMES: Final = {"bornTimestamp": "born_timestamp", "storeTimestamp": "store_timestamp"}
_TEXTS: Final = frozenset({"topic", "brokerName", "tags"})
_SAME_FOR_INNER: Final = frozenset({"queueId", "bornTimestamp", "storeTimestamp"})
"""Columns that the messages of an inner batch have in common with their record."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_COLUMN_OF_KAFKA: Final = {
    name: column for column, name in KAFKA_NAMES.items() if column not in ("keys", "body")
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range of numbers: from `low` up to, not including, `high`."""

    low: int = -(1 << 63)
    high: int = 1 << 63

    def within(self, low: int, high: int) -> Bounds:
        """The part of the range from `low` up to `high`."""
        return Bounds(max(self.low, low), min(self.high, high))

    def hold(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of the values, of 64 bits at most, are in the range."""
        passes = np.ones(len(values), np.bool_)
        if self.low > -(1 << 63):
            passes &= values >= self.low if self.low < 1 << 63 else False
        if self.high < 1 << 63:
            passes &= values < self.high if self.high >= -(1 << 63) else False
        return passes


@dataclass(frozen=True)
class Conditions:
    """What wanted rows have in common: texts from a set, numbers in a range; times are in ms."""

    texts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Allowed values by column: topic, brokerName, tags."""
    numbers: Mapping[str, Bounds] = field(default_factory=dict)

    @classmethod
    def of(cls, filters: Iterable[Any]) -> Conditions:
        """Collects what Spark's filters, which must all hold, say on columns that narrow a read."""
        texts: dict[str, frozenset[str]] = {}
        numbers: dict[str, Bounds] = {}
        for each in filters:
            path: tuple[str, ...] = getattr(each, "attribute", ())
            if len(path) != 1:
                continue
            column = _COLUMN_OF_KAFKA.get(path[0], path[0])
            kind = type(each).__name__
            value = getattr(each, "value", None)
            if column in _TEXTS:
                allowed = _allowed(kind, value)
                if allowed is not None:
                    texts[column] = allowed & texts.get(column, allowed)
            elif column in _INTEGERS or column in _TIMES:
                bounds = _bounds(kind, value)
                if bounds is not None:
                    before = numbers.get(column, Bounds())
                    numbers[column] = before.within(bounds.low, bounds.high)
        return cls(texts, numbers)

    def bounds(self, column: str) -> Bounds:
        """The range of the column's numbers."""
        return self.numbers.get(column, Bounds())

    def allows(self, column: str, value: str) -> bool:
        """Whether a column of text may have this value."""
        allowed = self.texts.get(column)
        return allowed is None or value in allowed

    def mask(self, records: Records) -> NDArray[np.bool_] | None:
        """Returns which records may fulfil the conditions, by their numbers; None when all may."""
        result: NDArray[np.bool_] | None = None
        inner: NDArray[np.bool_] | None = None
        for column, bounds in self.numbers.items():
            values = getattr(records, _INTEGERS.get(column) or _TIMES[column])
            passes = bounds.hold(values)
            if column not in _SAME_FOR_INNER:
                if inner is None:
                    inner = (records.sys_flag & MessageSysFlag.INNER_BATCH) != 0
                passes |= inner
            result = passes if result is None else result & passes
        return result


def _allowed(kind: str, value: Any) -> frozenset[str] | None:
    values = value if kind == "In" else (value,) if kind in ("EqualTo", "EqualNullSafe") else None
    if values is None or (kind == "EqualNullSafe" and value is None):
        return None
    return frozenset(text for text in values if isinstance(text, str))


def _bounds(kind: str, value: Any) -> Bounds | None:
    if kind == "In":
        ranges = [_bounds("EqualTo", each) for each in value if each is not None]
        known = [each for each in ranges if each is not None]
        if len(known) < len(ranges) or not known:
            return None
        return Bounds(min(each.low for each in known), max(each.high for each in known))
    floor, ceiling = _whole(value)
    if floor is None or ceiling is None:
        return None
    match kind:
        case "EqualTo" | "EqualNullSafe":
            return Bounds(floor, floor + 1)
        case "GreaterThan":
            return Bounds(low=floor + 1)
        case "GreaterThanOrEqual":
            return Bounds(low=ceiling)
        case "LessThan":
            return Bounds(high=ceiling)
        case "LessThanOrEqual":
            return Bounds(high=floor + 1)
    return None


def _whole(value: Any) -> tuple[int | None, int | None]:
    """Returns the value rounded down and up to whole numbers; times become ms since 1970."""
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MS, -((_EPOCH - moment) // _MS)
    if isinstance(value, int) and not isinstance(value, bool):
        return value, value
    return None, None
