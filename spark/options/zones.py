# SPDX-License-Identifier: Apache-2.0
"""The time zone of a Spark session, in which times without a zone are read.

Tasks have the zone. The processes in which Spark asks a Python source for its schema and its
partitions do not, nor does a source get it as an option.

Java: SparkDateTimeUtils.getZoneId, for the names that spark.sql.session.timeZone may have.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from txrocketmq.spark.arrow.errors import OptionError

SESSION_ZONE: Final = "spark.sql.session.timeZone"
_OFFSET: Final = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2}))?(?::?(\d{1,2}))?", re.ASCII
)
UNKNOWN_ZONE: Final = (
    "there is a time without a time zone, and Spark does not say which one the session has: write"
    " the zone, such as 2026-11-20T08:00:00Z, or call register(spark) of txrocketmq.spark"
)
WIDEST_MS: Final = 18 * 3_600_000
"""No zone's clocks differ more from UTC (the most that Java allows)."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def zone_named(name: str) -> tzinfo:
    """Returns the zone with this name or offset, such as Europe/Paris, UTC or +05:30.

    Raises OptionError when there is none.
    """
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes, seconds = (int(part or 0) for part in offset.groups()[1:])
        length = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if length < timedelta(hours=24):
            return timezone(-length if offset[1] == "-" else length)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise OptionError(
            f"{SESSION_ZONE} is {name}, which is not known here (the package tzdata has the names):"
            " write times with their zone, such as 2026-11-20T08:00:00Z"
        ) from None


def moment_ms(local: datetime, zone: tzinfo) -> int:
    """Returns when the clocks of a zone show this time, in ms since 1970.

    Of an hour that is repeated the first one counts; in an hour that is skipped, clocks are taken
    not to have been put forward yet. Java does the same.
    """
    return (local.replace(tzinfo=zone, fold=0) - _EPOCH) // timedelta(milliseconds=1)


def in_zone_ms(utc_ms: int, zone: tzinfo) -> int:
    """Returns when the clocks of a zone show what those of UTC show at `utc_ms`.

    A time that no calendar has stays as it is.
    """
    try:
        return moment_ms(_EPOCH + timedelta(milliseconds=utc_ms), zone)
    except OverflowError:
        return utc_ms


def zone_of_task() -> str | None:
    """Returns the time zone of the session of the running task; None outside of a task."""
    from pyspark import TaskContext  # noqa: PLC0415 - commands run without pyspark

    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(SESSION_ZONE)


def session_zone(registered: str | None) -> str:
    """Returns the time zone of the session of the running task.

    Spark tells tasks only of settings that were made. Where nobody has set a zone, the session has
    the default, that of the driver's JVM; it is the one that the session had when the source was
    registered. Raises OptionError if that is not known either.
    """
    zone = zone_of_task() or registered
    if zone is None:
        raise OptionError(UNKNOWN_ZONE)
    return zone


def check_zone(used: str | None) -> None:
    """Raises OptionError if the running task's session has another time zone than the one used."""
    own = zone_of_task()
    if used is not None and own is not None and own != used:
        raise OptionError(
            f"the options have a time without a time zone, and {SESSION_ZONE} is {own}, but was"
            f" {used} when register(spark) was called: call it again, or write times with their"
            " zone, such as 2026-11-20T08:00:00Z"
        )
