# SPDX-License-Identifier: Apache-2.0
"""The conditions of the option `where`: which records may fulfil them, and which rows do.

Before anything is decoded, conditions only narrow a read: every record that fulfils them passes,
and others may pass too, since a record does not tell everything cheaply. Conditions that cannot
narrow a read are ignored there. At the end `rows` decides for each decoded row, exactly. So what a
load gives depends on its own options only, whatever else is asked in the same session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.spark.arrow.arrays import numbers_of, of_numbers, of_texts
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.options.where import TEXTS, TIMES, Predicate, columns_of
from txrocketmq.spark.options.zones import WIDEST_MS

_ATTRIBUTES: Final = {
    "queueId": "queue_id",
    "queueOffset": "queue_offset",
    "flag": "flag",
    "physicalOffset": "physical_offset",
    "storeSize": "total_size",
    "sysFlag": "sys_flag",
    "reconsumeTimes": "reconsume_times",
    "preparedTransactionOffset": "prepared_transaction_offset",
    "bornTimestamp": "born_timestamp",
    "storeTimestamp": "store_timestamp",
}
"""The attribute of Records that has the numbers of a column."""
_SAME_FOR_INNER: Final = frozenset({"queueId", *TIMES})
"""Columns that the messages of an inner batch have in common with their record."""
_WILDCARDS: Final = ("%", "_")


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range of numbers: from `low` up to, not including, `high`."""

    low: int = -(1 << 63)
    high: int = 1 << 63

    def within(self, low: int, high: int) -> Bounds:
        """The part of the range from `low` up to `high`."""
        return Bounds(max(self.low, low), min(self.high, high))

    def wider(self, by: int) -> Bounds:
        """The range with so much more on both sides, where it has an end."""
        everything = Bounds()
        return Bounds(
            self.low if self.low == everything.low else self.low - by,
            self.high if self.high == everything.high else self.high + by,
        )

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
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """What the values of these columns begin with."""
    numbers: Mapping[str, Bounds] = field(default_factory=dict)
    predicates: tuple[Predicate, ...] = ()
    """All conditions, for `rows`."""

    @classmethod
    def of(cls, predicates: Sequence[Predicate], *, any_zone: bool = False) -> Conditions:
        """Takes conditions that must all hold; with `any_zone`, local times in whatever zone."""
        texts: dict[str, frozenset[str]] = {}
        prefixes: dict[str, str] = {}
        numbers: dict[str, Bounds] = {}
        for each in predicates:
            column = each.column
            if column in TEXTS:
                if each.operator in ("=", "IN"):
                    allowed = frozenset(map(str, each.values))
                    texts[column] = allowed & texts.get(column, allowed)
                elif each.operator == "LIKE":
                    prefixes[column] = max(
                        prefixes.get(column, ""), _prefix(str(each.values[0])), key=len
                    )
            else:
                bounds = _bounds(each.operator, [int(value) for value in each.values])
                if any_zone and each.is_local:
                    bounds = bounds.wider(WIDEST_MS)
                before = numbers.get(column, Bounds())
                numbers[column] = before.within(bounds.low, bounds.high)
        numbers = {column: bounds for column, bounds in numbers.items() if bounds != Bounds()}
        prefixes = {column: prefix for column, prefix in prefixes.items() if prefix}
        return cls(texts, prefixes, numbers, tuple(predicates))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that `rows` looks at."""
        return columns_of(self.predicates)

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows of a batch of decoded messages that fulfil all conditions."""
        if not self.predicates or not len(batch):
            return batch
        wanted = np.ones(len(batch), np.bool_)
        for each in self.predicates:
            wanted &= _fulfils(each, batch.column(each.column))
        return batch if wanted.all() else batch.filter(of_numbers(wanted))

    def bounds(self, column: str) -> Bounds:
        """The range of the column's numbers."""
        return self.numbers.get(column, Bounds())

    def allows(self, column: str, value: str) -> bool:
        """Whether a column of text may have this value."""
        allowed = self.texts.get(column)
        if allowed is not None and value not in allowed:
            return False
        return value.startswith(self.prefixes.get(column, ""))

    def mask(self, records: Records) -> NDArray[np.bool_] | None:
        """Returns which records may fulfil the conditions, by their numbers; None when all may."""
        result: NDArray[np.bool_] | None = None
        inner: NDArray[np.bool_] | None = None
        for column, bounds in self.numbers.items():
            values = getattr(records, _ATTRIBUTES[column])
            passes = bounds.hold(values)
            if column not in _SAME_FOR_INNER:
                if inner is None:
                    inner = (records.sys_flag & MessageSysFlag.INNER_BATCH) != 0
                passes |= inner
            result = passes if result is None else result & passes
        return result


def _prefix(pattern: str) -> str:
    """Returns the part of a pattern of LIKE before its first wildcard."""
    return pattern[
        : min((pattern.find(each) for each in _WILDCARDS if each in pattern), default=None)
    ]


def _bounds(operator: str, values: Sequence[int]) -> Bounds:
    """Returns the range of the numbers that may fulfil a condition."""
    match operator:
        case "=" | "IN":
            return Bounds(min(values), max(values) + 1)
        case ">":
            return Bounds(low=values[0] + 1)
        case ">=":
            return Bounds(low=values[0])
        case "<":
            return Bounds(high=values[0])
        case "<=":
            return Bounds(high=values[0] + 1)
    return Bounds()


_TEXT_ORDERS: Final[Mapping[str, Callable[..., pa.BooleanArray]]] = {
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _fulfils(predicate: Predicate, column: pa.Array) -> NDArray[np.bool_]:
    """Returns which values fulfil a condition; as in SQL, a null fulfils none but IS NULL."""
    is_there = numbers_of(pc.is_valid(column))
    match predicate.operator:
        case "IS NULL":
            return ~is_there
        case "IS NOT NULL":
            return is_there
    holds = _of_texts if predicate.column in TEXTS else _of_numbers
    return is_there & holds(predicate, column)


def _of_texts(predicate: Predicate, column: pa.Array) -> NDArray[np.bool_]:
    texts = [str(value) for value in predicate.values]
    match predicate.operator:
        case "=" | "IN":
            return numbers_of(pc.is_in(column, value_set=of_texts(texts)))
        case "!=":
            return ~numbers_of(pc.is_in(column, value_set=of_texts(texts)))
        case "LIKE":
            return _known(pc.match_like(column, texts[0]))
    return _known(_TEXT_ORDERS[predicate.operator](column, of_texts(texts)[0]))


def _known(found: pa.BooleanArray) -> NDArray[np.bool_]:
    """Returns truth values, with false for what is null."""
    return numbers_of(pc.is_in(found, value_set=of_numbers(np.array([True]))))


def _of_numbers(predicate: Predicate, column: pa.Array) -> NDArray[np.bool_]:
    kind = np.dtype(f"i{column.type.bit_width // 8}")
    data = column.buffers()[1]  # of nulls, too: they do not matter
    numbers = np.frombuffer(data, kind)[column.offset : column.offset + len(column)]
    if predicate.column in TIMES:
        numbers = numbers // 1000
    values = [int(value) for value in predicate.values]
    match predicate.operator:
        case "!=":
            return ~_bounds("=", values).hold(numbers)
        case "IN":
            in_range = [value for value in values if -(1 << 63) <= value < 1 << 63]
            return np.isin(numbers, np.array(in_range, np.int64))
    return _bounds(predicate.operator, values).hold(numbers)
