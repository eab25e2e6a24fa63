# SPDX-License-Identifier: Apache-2.0
"""Asks Spark's workers whether they have the packages that tasks of the sources import.

A task of a source that lacks a package fails with `No module named ...`, once for each attempt. The
question is a function that is sent to the workers as a whole, so they can answer it without having
this package. It works through Spark Connect, too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from txrocketmq.spark.arrow.errors import SparkSourceError
from txrocketmq.spark.options.needs import ALSO, INSTALL, LEAST, missing, version_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS: Final = "txrocketmq"
_PACKAGES: Final = (_OURS, *LEAST, *ALSO)


def asked(packages: Sequence[str]) -> Callable[[int], str]:
    """Returns a function that returns the machine, its Python and versions of packages as JSON."""

    def answer(_: int) -> str:
        # ruff: noqa: PLC0415 - this runs where there is only what it imports itself
        import importlib.metadata
        import importlib.util
        import json
        import socket
        import sys

        found = {}
        for package in packages:
            try:
                found[package] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                if importlib.util.find_spec(package) is not None:  # by --py-files, say
                    found[package] = "unknown"
        return json.dumps([socket.gethostname(), sys.executable, found], sort_keys=True)

    return answer


def check(spark: SparkSession, tasks: int) -> None:
    """Raises SparkSourceError if a worker lacks something; the text says which one, and what."""
    from pyspark import cloudpickle
    from pyspark.sql.functions import udf

    ours = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(ours)  # type: ignore[no-untyped-call]  # they may not have it
    try:
        question = udf(asked(_PACKAGES), "string")
        answers = spark.range(0, tasks, 1, tasks).select(question("id").alias("said")).distinct()
        said = [json.loads(row["said"]) for row in answers.collect()]
    finally:
        cloudpickle.unregister_pickle_by_value(ours)  # type: ignore[no-untyped-call]
    troubles = [
        f"{python} on {host} has {', '.join(lacks)}"
        for host, python, found in sorted(said, key=str)
        if (lacks := lacking(found))
    ]
    if troubles:
        raise SparkSourceError(f"workers lack what tasks need: {'; '.join(troubles)}: {INSTALL}")


def lacking(found: Mapping[str, Any]) -> list[str]:
    """Returns what a worker with these versions lacks."""
    ours, there = version_of(_OURS), found.get(_OURS)
    if there is None:
        return [f"no {_OURS}", *missing(found.get)]
    lacks = missing(found.get)
    if ours is not None and there not in (ours, "unknown"):
        lacks.insert(0, f"{_OURS} {there}, but the driver {ours}")
    return lacks
