# SPDX-License-Identifier: Apache-2.0
"""What keeps a table from being written.

SparkSourceError
  TableError           what is there is no table of ours, or is one with other settings
    TableBusy          another run is writing to it
  RunFailed            tasks of the run did not end; a run later takes what is left
"""

from __future__ import annotations

from txrocketmq.spark.errors import SparkSourceError


class TableError(SparkSourceError):
    """The table that was asked for cannot be written or read there."""


class TableBusy(TableError):
    """Another run is writing to the table at this moment."""


class RunFailed(SparkSourceError):
    """A run that could not be ended; the next one goes on after what it had committed."""
