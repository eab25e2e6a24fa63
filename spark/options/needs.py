# SPDX-License-Identifier: Apache-2.0
"""Checks on the driver, before any job, that the needed packages are there in the needed versions.

Spark makes a source in a process with the workers' Python, beside the driver. A package that is
missing there is most likely missing on the workers, too; `workers.check` asks the workers. This
module imports none of the packages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from txrocketmq.spark.arrow.errors import SparkSourceError

Version = tuple[int, ...]

PYSPARK: Final = (4, 0)
STREAM_WRITER: Final = (4, 1)
STREAM_READER: Final = (4, 2)
LEAST: Final[Mapping[str, Version]] = {"numpy": (2, 0), "pyarrow": (18,)}
"""The least versions, those of the extra `spark-source`."""
ALSO: Final = ("construct", "orjson", "lz4", "zstandard")
"""Packages that txrocketmq needs to read records, in any version."""
INSTALL: Final = "pip install 'txrocketmq[spark-source]' there, or see docs/spark_shipping.md"


def version_of(package: str) -> str | None:
    """Returns the version that is installed; None if the package is not."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def missing(known: Callable[[str], str | None] = version_of) -> list[str]:
    """Returns a text for each package that is missing or too old; `known` returns the versions."""
    found: list[str] = []
    for package in (*LEAST, *ALSO):
        its = known(package)
        least = LEAST.get(package, ())
        if its is None:
            found.append(f"no {package}")
        elif _parsed(its) < least:
            found.append(f"{package} {its} instead of {_text(least)} or later")
    return found


def check_packages() -> None:
    """Raises SparkSourceError when a package is missing in this process."""
    lacks = missing()
    if lacks:
        raise SparkSourceError(
            f'format("rocketmq") cannot work: {sys.executable}, the Python of the workers on the'
            f" driver's machine, has {', '.join(lacks)}: {INSTALL}"
        )


def check_pyspark(what: str, least: Version = PYSPARK) -> None:
    """Raises SparkSourceError when PySpark is too old for something."""
    its = version_of("pyspark") or _imported()
    if _parsed(its) < least:
        raise SparkSourceError(f"{what} needs PySpark {_text(least)} or later; this is {its}")


def _imported() -> str:
    """Returns the version of a PySpark that the platform puts on the path, not installed."""
    import pyspark  # noqa: PLC0415 - only then

    return str(getattr(pyspark, "__version__", "unknown"))


def _parsed(text: str) -> Version:
    """Returns the numbers at the beginning of a version; without any it counts as the latest."""
    numbers = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in numbers[0].split(".")) if numbers else (sys.maxsize,)


def _text(numbers: Version) -> str:
    return ".".join(str(number) for number in numbers)
