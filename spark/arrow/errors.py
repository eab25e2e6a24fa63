# SPDX-License-Identifier: Apache-2.0
"""The errors of reading and writing with Spark, as one tree.

    SparkSourceError
      OptionError          an option is wrong: raised before any job starts
      StoreError           a path that cannot be read as a store: raised before any job starts
        NotAStore
        UnsupportedLayout
      DataLossError        what was asked for is gone; failOnDataLoss=false goes on instead
      BadRecordError       a damaged record; badRecords=skip or quarantine goes on instead
      ClusterError         a name server or broker did not answer, or refused
      TableError           what is there is no table of an ingest, or is one with other settings
        TableBusy          another run is writing to it
      RunFailed            tasks of a run did not end; a run later takes what is left

Errors cross from Spark's workers to the driver as text, so each text is a whole sentence: what was
wrong, where, and what to do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

_OURS: Final = re.compile(r"txrocketmq\.spark\.[\w.]+: (.+)")
_RAISED: Final = re.compile(r"[\w.]+(?:Error|Exception): .+")
_COLOR: Final = re.compile(r"\x1b\[[0-9;]*m")
_CAUSED_BY: Final = re.compile(r"\s*\u21b3\s*")
"""The arrow before each cause in the errors of the package deltalake."""
_NEXT_LINE: Final = re.compile(r"\s*\n\s*")


class SparkSourceError(Exception):
    """Something about a source, sink or job over a RocketMQ store; the text says what."""


class OptionError(SparkSourceError, ValueError):
    """An option that is unknown, missing or has a value that makes no sense."""

    @classmethod
    def of(cls, option: str, value: str, valid: str | Iterable[str]) -> OptionError:
        """Returns the error for a bad value, which names the option and the valid values."""
        allowed = valid if isinstance(valid, str) else ", ".join(valid)
        return cls(f"option {option}={value!r} is not valid; valid: {allowed}")


class StoreError(SparkSourceError):
    """A path that cannot be read as a store."""


class NotAStore(StoreError):
    """The path is not there or holds no commitlog/ directory."""


class UnsupportedLayout(StoreError):
    """A store of a kind that cannot be read, such as one with RocksDB queues or DLedger logs."""


class DataLossError(SparkSourceError):
    """Records that were asked for are no longer in the store."""


class BadRecordError(SparkSourceError):
    """A record of the log is damaged; the text names file, offset and reason."""


class ClusterError(SparkSourceError):
    """A name server or a broker cannot be reached, or answered with an error."""


class TableError(SparkSourceError):
    """The table cannot be read or written at this place."""


class TableBusy(TableError):
    """Another run is writing to the table at this moment."""


class RunFailed(SparkSourceError):
    """A run that did not finish; the next run goes on after what was committed."""


def cause(error: Exception) -> str:
    """What went wrong, in a line: the error of ours that Spark carries as text, else the last one
    of Python, else what Spark says first.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [found[1] for line in lines if (found := _OURS.match(line))]
    raised = [line for line in lines if _RAISED.match(line)]
    return (ours[-1:] or raised[-1:] or lines or [type(error).__name__])[0]


def in_a_line(error: BaseException) -> str:
    """What an error says to people, in one line; errors of ours are whole sentences already."""
    if isinstance(error, PermissionError) and error.filename:
        return (
            f"{error.filename} may not be written by this process, whose user has the id"
            f" {os.geteuid()}: give that user the right to write there, or name another place"
        )
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return _NEXT_LINE.sub(" ", _CAUSED_BY.sub(": ", _COLOR.sub("", str(error))).strip())
