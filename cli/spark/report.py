# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq report`: shows what is in a store, as tables, JSON or one HTML page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from txrocketmq.cli.ending import INTERRUPTED, forget_stdout
from txrocketmq.remoting.primitives.plain_text import plain, plain_json
from txrocketmq.remoting.settings.option_parser import OptionParser
from txrocketmq.spark.arrow.errors import OptionError, SparkSourceError, in_a_line
from txrocketmq.spark.reports.catalog import REPORTS, chosen
from txrocketmq.spark.reports.findings import Finding, findings
from txrocketmq.spark.reports.report import (
    DEFAULT_RESERVED_HOURS,
    DEFAULT_TOP,
    Report,
    Result,
)

PROG: Final = "txrocketmq report"
_WIDE: Final = 10_000
"""The width where no terminal limits it, in columns: each row stays on one line."""


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command's options."""
    parser = OptionParser(
        PROG,
        "Read the stores of brokers, running or stopped, and report what stands out in them and"
        " what they contain.",
        arguments="--store DIR...",
        epilog="Reports: " + ", ".join(report.name for report in REPORTS) + "."
        " Under spark-submit, Spark's workers read the stores.",
    )
    parser.add_argument(
        "--store",
        nargs="+",
        required=True,
        metavar="DIR",
        help="The directories of the stores, or URIs.",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="Write an HTML page with plots.")
    parser.add_argument("--json", action="store_true", help="Print the results as one JSON object.")
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="Make only these reports, named below.",
    )
    parser.add_argument(
        "--top",
        type=_count,
        default=DEFAULT_TOP,
        metavar="N",
        help="The number of rows in a ranking (default: %(default)s).",
    )
    parser.add_argument(
        "--now",
        type=_time,
        default=None,
        metavar="TIME",
        help="Count ages up to this time, such as 2026-11-20T12:00:00 (UTC) (default: now).",
    )
    parser.add_argument(
        "--reserved-hours",
        type=_count,
        default=DEFAULT_RESERVED_HOURS,
        metavar="N",
        help="For how many hours the broker keeps files, its setting fileReservedTime"
        " (default: %(default)s).",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="NAME=VALUE",
        help="An option of the Spark source, such as startingTimestamp or badRecords;"
        " can be repeated.",
    )
    return parser


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Returns the options that were given."""
    return make_parser().parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time such as 2026-11-20T12:00:00"
        ) from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _option(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not (name and found):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints or writes the reports; returns the exit code."""
    options = parse_arguments(arguments)
    names = [name for words in options.only for name in words.split(",") if name]
    try:
        reports = chosen(names)
        _print_all(options, _results(options, reports))
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("txrocketmq"):
            raise
        needs = "pip install 'txrocketmq[reports]'"
        print(
            f"{PROG}: the Python package {error.name} is not installed; run {needs}",
            file=sys.stderr,
        )
        return 1
    except BrokenPipeError:
        forget_stdout()
    except (SparkSourceError, OSError) as error:
        print(f"{PROG}: {plain(in_a_line(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _results(options: argparse.Namespace, reports: Sequence[Report]) -> list[Result]:
    """Returns the findings of the reports; wrong options are reported before anything is read."""
    from txrocketmq.spark.reports.frames import check

    given = dict(options.option)
    if {name.lower() for name in given} & {"storepath", "path"}:
        raise OptionError(
            "the option storePath cannot be set with --option: name the stores with --store"
        )
    source = {"storePath": ",".join(options.store), **given}
    parsed = check(source)
    if options.html is not None:
        _check_place(options.html.absolute())

    from rich.console import Console

    from txrocketmq.spark.planning.plan import stores_of
    from txrocketmq.spark.reports.job import ReportJob
    from txrocketmq.spark.reports.page.progress import Progress
    from txrocketmq.spark.reports.report import parameters

    stores = stores_of(parsed)
    options.now = options.now or datetime.now(UTC)
    values = parameters(options.now, options.top, options.reserved_hours)
    with Progress(Console(stderr=True)) as progress:
        return ReportJob(stores, source, reports, values).results(progress)


def _check_place(path: Path) -> None:
    """Raises OptionError if no page can be written at this path."""
    if not path.parent.is_dir():
        raise OptionError(f"the folder {path.parent}, where --html is to write, does not exist")
    if path.is_dir():
        raise OptionError(f"--html {path} is a folder: give the name of a file")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OptionError(f"--html: {path} may not be written by this user")


def _print_all(options: argparse.Namespace, results: Sequence[Result]) -> None:
    stores = " ".join(options.store)
    found = findings(results, options.now)
    if options.html is not None:
        from txrocketmq.spark.reports.page.page import page

        options.html.write_text(page(stores, options.now, found, results), "utf-8")
        print(f"wrote {options.html}", file=sys.stderr)
    if options.json:
        import orjson

        data = orjson.dumps(document(options.store, options.now, found, results))
        print(plain_json(data.decode()))
    elif options.html is None:
        from rich.console import Console

        from txrocketmq.spark.reports.page.console import show

        show(Console(width=None if sys.stdout.isatty() else _WIDE), found, results)


def document(
    stores: Sequence[str], now: datetime, found: Sequence[Finding], results: Sequence[Result]
) -> Mapping[str, Any]:
    """Returns the results in the form for JSON: rows by report, with the columns of the queries."""
    return {
        "stores": list(stores),
        "now": now,
        "findings": [each._asdict() for each in found],
        "reports": {result.report.name: list(result.rows) for result in results},
        "problems": {each.report.name: each.problem for each in results if each.problem},
    }
