# SPDX-License-Identifier: Apache-2.0
"""What happens at damaged records: an error, or a warning with badRecords=skip or quarantine."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Protocol

from txrocketmq.spark.arrow.errors import BadRecordError
from txrocketmq.spark.columns.decode import BadRecord
from txrocketmq.spark.log.quarantine import Quarantine
from txrocketmq.spark.options.option_values import BadRecordPolicy

log = logging.getLogger("txrocketmq.spark")


class Origin(Protocol):
    """Where records come from: a store, or a broker that is asked for them."""

    @property
    def broker_name(self) -> str: ...

    @property
    def cluster(self) -> str | None: ...

    @property
    def uri(self) -> str: ...

    def file_of(self, physical_offset: int) -> str:
        """Describes for people where a record lies."""


class Damage:
    """The damaged records that one task finds; call `end` when the task has read everything."""

    def __init__(self, policy: BadRecordPolicy, origin: Origin) -> None:
        self._policy = policy
        self._origin = origin
        self._quarantine = None if policy.path is None else Quarantine(policy.path, origin)
        self._left_out: Counter[str] = Counter()

    def add(self, bad: BadRecord) -> None:
        """Treats a damaged record as badRecords says. Raises BadRecordError if that is `fail`."""
        file = self._origin.file_of(bad.physical_offset)
        if self._policy.kind == "fail":
            raise BadRecordError(
                f"damaged record in {file} at physical offset {bad.physical_offset}"
                f" ({bad.length} bytes), {bad.reason}: {bad.detail}; set badRecords to skip or"
                " quarantine=PATH to go on without it"
            )
        if self._quarantine is not None:
            self._quarantine.add(file, bad)
        self._left_out[bad.reason] += 1

    def end(self) -> None:
        """Writes the rest of the quarantine, and logs how many records were left out and why."""
        if self._quarantine is not None:
            self._quarantine.close()
        if self._left_out:
            reasons = ", ".join(f"{count} {reason}" for reason, count in self._left_out.items())
            log.warning("damaged records of %s left out: %s", self._origin.uri, reasons)
