# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq ingest`: copies stores of brokers to a table, incrementally and exactly once.

Also a program for spark-submit, as it is: see docs/ingest.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from txrocketmq.cli.ending import INTERRUPTED, forget_stdout
from txrocketmq.remoting.primitives.plain_text import plain
from txrocketmq.remoting.settings.option_parser import OptionParser
from txrocketmq.spark.arrow.errors import (
    BadRecordError,
    DataLossError,
    OptionError,
    SparkSourceError,
    StoreError,
    in_a_line,
)

if TYPE_CHECKING:
    from txrocketmq.spark.ingest.copy_plan import Plan
    from txrocketmq.spark.ingest.job import Commit, IngestJob, IngestListener
    from txrocketmq.spark.ingest.runners.runner import Runner
    from txrocketmq.spark.ingest.tables.destination import Destination
    from txrocketmq.spark.ingest.verification import Verification
    from txrocketmq.spark.store.store import Store

PROG: Final = "txrocketmq ingest"
DONE: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
DATA_LOST: Final = 3
BAD_RECORD: Final = 4
NOT_VERIFIED: Final = 5
BUSY: Final = 6
_EXIT_CODES: Final = (
    "Exit codes: 0 done, also when nothing was new; 1 failed; 2 wrong usage, no store, or a table"
    " with other settings; 3 a part of a log was deleted before it was copied; 4 a damaged record,"
    " with --bad-records fail; 5 --verify found differences; 6 another run is writing to the table;"
    " 130 interrupted."
)
_DIFFERENCES_SHOWN: Final = 20
_TOPICS_SHOWN: Final = 10


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command's options."""
    parser = OptionParser(
        PROG,
        "Copy the messages that are new in the stores of brokers, running or stopped, into a Delta"
        " or an Iceberg table. If a run is killed, the next one goes on without losing or"
        " duplicating messages.",
        arguments="--store DIR... --out TABLE",
        epilog=_EXIT_CODES,
    )
    parser.add_argument(
        "--store",
        nargs="+",
        action="extend",
        required=True,
        metavar="DIR",
        help="The directories of the stores, or URIs.",
    )
    parser.add_argument(
        "--cluster",
        metavar="NAMES",
        help="The cluster of the stores, or one for each, separated by commas (default: what the"
        " stores tell, or else DefaultCluster).",
    )
    parser.add_argument(
        "--out", required=True, metavar="TABLE", help="The table: a folder, or a URI."
    )
    _add_table_options(parser)
    _add_run_options(parser)
    return parser


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Returns the options that were given."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.format != "iceberg" and (options.catalog or options.table):
        parser.error("arguments --catalog and --table are for --format iceberg")
    if options.dry_run and options.metrics is not None:
        parser.error("argument --metrics: a --dry-run has nothing to measure")
    return options


def _add_table_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Table settings (fixed by the first run)")
    group.add_argument(
        "--partition-by",
        default="topic,dt",
        metavar="COLUMNS",
        help="The columns that divide the table: topic,dt (the default), topic, dt or none; dt is"
        " the day of storing in UTC.",
    )
    group.add_argument(
        "--columns",
        metavar="NAMES",
        help="The columns of the table, separated by commas (default: all cheap columns).",
    )
    group.add_argument(
        "--topic", metavar="NAMES", help="Copy only these topics, separated by commas."
    )
    group.add_argument(
        "--topic-pattern", metavar="REGEX", help="Copy only topics whose whole name matches."
    )
    group.add_argument(
        "--view",
        default="logical",
        metavar="VIEW",
        help="What is copied: logical, the messages that consumers see (the default), or physical,"
        " every record.",
    )
    group.add_argument(
        "--properties-format",
        default="map",
        metavar="FORMAT",
        help="How to write properties: map (default), json or raw.",
    )
    group.add_argument(
        "--format",
        choices=("delta", "iceberg"),
        default="delta",
        help="The format of the table: delta (default), or iceberg with the extra of that name.",
    )
    group.add_argument(
        "--catalog",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="A property of the catalog of an Iceberg table, as pyiceberg takes it, such as"
        " type=rest (default: a file of SQLite in the folder of the table).",
    )
    group.add_argument(
        "--table",
        metavar="NAMESPACE.NAME",
        help="The name of an Iceberg table in its catalog (default: txrocketmq.messages).",
    )
    group.add_argument("--keep-compressed", action="store_true", help="Do not decompress bodies.")


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("This run")
    kind = group.add_mutually_exclusive_group()
    kind.add_argument("--dry-run", action="store_true", help="Show what would be copied, and stop.")
    kind.add_argument(
        "--verify",
        action="store_true",
        help="Compare the whole table with the stores after the run.",
    )
    kind.add_argument(
        "--verify-only",
        action="store_true",
        help="Compare the table with the stores without copying anything.",
    )
    group.add_argument("--check-crc", action="store_true", help="Check the CRC-32 of each body.")
    group.add_argument(
        "--bad-records",
        choices=("quarantine", "fail"),
        default="quarantine",
        help="Keep damaged records in _quarantine (default), or end the run at the first one.",
    )
    group.add_argument(
        "--allow-data-loss",
        action="store_true",
        help="Continue when parts of a log were deleted before they were copied.",
    )
    group.add_argument(
        "--max-bytes",
        metavar="SIZE",
        help="Copy about this much of each log, such as 10g; later runs copy the rest.",
    )
    group.add_argument(
        "--split-bytes",
        metavar="SIZE",
        help="Divide files of the log into tasks of about this size.",
    )
    group.add_argument(
        "--max-bytes-per-second",
        metavar="SIZE",
        help="Read at most this much of the logs in a second, such as 50m, to spare a broker that"
        " uses the same disk.",
    )
    group.add_argument(
        "--metrics", type=Path, metavar="FILE", help="Write metrics to a text file for Prometheus."
    )
    group.add_argument("--quiet", action="store_true", help="Print errors only.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Copies what is new; returns the exit code."""
    options = parse_arguments(arguments)
    try:
        return _main(options)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("txrocketmq"):
            raise
        needs = f"pip install 'txrocketmq[{_extra(options)}]'"
        print(
            f"{PROG}: the Python package {error.name} is not installed; run {needs}",
            file=sys.stderr,
        )
        return FAILED
    except BrokenPipeError:
        forget_stdout()
        return DONE
    except (SparkSourceError, OSError) as error:
        print(f"{PROG}: {plain(in_a_line(error))}", file=sys.stderr)
        return exit_code(error)
    except KeyboardInterrupt:
        print(f"{PROG}: interrupted; the next run continues from here", file=sys.stderr)
        return INTERRUPTED


def _extra(options: argparse.Namespace) -> str:
    return "iceberg" if options.format == "iceberg" else "ingest"


def exit_code(error: Exception) -> int:
    """Returns the exit code that stands for an error."""
    from txrocketmq.spark.arrow.errors import TableBusy, TableError

    codes: tuple[tuple[type[Exception], int], ...] = (
        (DataLossError, DATA_LOST),
        (BadRecordError, BAD_RECORD),
        (TableBusy, BUSY),
        (TableError, WRONG_USAGE),
        (OptionError, WRONG_USAGE),
        (StoreError, WRONG_USAGE),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), FAILED)


def _main(options: argparse.Namespace) -> int:
    from rich.console import Console

    from txrocketmq.spark.ingest.progress import ProgressBar
    from txrocketmq.spark.ingest.verification import settings_of
    from txrocketmq.spark.session import is_submitted

    console = Console(stderr=True, quiet=options.quiet)
    with ExitStack() as open_until_end:
        bar = ProgressBar(console)
        start_runner = cache(lambda: open_until_end.enter_context(_runner()))
        job = make_job(options, bar, start_runner)
        for topic in unknown_topics(options, job.stores):
            console.print(f"no store has a queue of topic {plain(topic)} yet", highlight=False)
        if is_submitted():
            start_runner()  # YARN takes a program that starts no session for one that failed
        if options.dry_run:
            _show_plan(job.dry_run())
            return DONE
        if options.verify_only:
            settings_of(job.table)  # before anything is started, in case there is no table
        with _measured(options, job) as outcome:
            if not options.verify_only:
                with bar:
                    outcome.commits.extend(job.run())
                if not outcome.commits:
                    console.print("nothing new")
            if options.verify or options.verify_only:
                outcome.code = _verify(job)
        return outcome.code


def make_job(
    options: argparse.Namespace, listener: IngestListener, start_runner: Callable[[], Runner]
) -> IngestJob:
    """Returns the job that the options ask for.

    Raises OptionError or StoreError, before anything is done.
    """
    from txrocketmq.remoting.process.operating_system import cores
    from txrocketmq.spark.ingest.copy_plan import Wishes
    from txrocketmq.spark.ingest.job import IngestJob
    from txrocketmq.spark.ingest.runners.runner import Rate
    from txrocketmq.spark.ingest.settings import (
        TableSettings,
        chosen_columns,
        partition_columns,
    )
    from txrocketmq.spark.options.option import Use
    from txrocketmq.spark.options.option_values import names, size
    from txrocketmq.spark.options.options import SourceOptions
    from txrocketmq.spark.session import is_submitted
    from txrocketmq.spark.store.store import resolve

    source = _source(options)
    SourceOptions.of(source).check(Use.STORE_STREAM)  # a copy reads the log, as a stream does
    columns = None if options.columns is None else names("columns", options.columns)
    settings = TableSettings(
        columns=chosen_columns(columns),
        partition_by=partition_columns(options.partition_by),
        source=tuple(sorted(source.items())),
    )

    def in_bytes(option: str, text: str | None, least: int) -> int | None:
        return None if text is None else size(least, 1 << 60)(option, text)

    wishes = Wishes(
        split_bytes=in_bytes("split-bytes", options.split_bytes, 1 << 20),
        max_bytes=in_bytes("max-bytes", options.max_bytes, 1),
        allow_data_loss=options.allow_data_loss,
        check_crc=options.check_crc,
    )
    most = in_bytes("max-bytes-per-second", options.max_bytes_per_second, 1 << 16)
    # Spark decides how many tasks run at a time, and each may read this much.
    rate = None if most is None else Rate(most, 1 if is_submitted() else cores())
    stores = resolve(",".join(options.store), cluster=options.cluster)
    return IngestJob(
        stores,
        _destination(options),
        settings,
        start_runner,
        wishes,
        quarantines=options.bad_records == "quarantine",
        rate=rate,
        listener=listener,
    )


def _destination(options: argparse.Namespace) -> Destination:
    """Returns the table that the options name."""
    if options.format == "delta":
        from txrocketmq.spark.ingest.tables.delta_lake import DeltaLakeTable

        return DeltaLakeTable(options.out)
    from txrocketmq.spark.ingest.tables.iceberg import IDENTIFIER, IcebergTable

    catalog = dict(each.partition("=")[::2] for each in options.catalog)
    if "" in catalog or "" in catalog.values():
        raise OptionError("option catalog: give NAME=VALUE, once for each property")
    return IcebergTable(options.out, catalog, options.table or IDENTIFIER)


def unknown_topics(options: argparse.Namespace, stores: Sequence[Store]) -> list[str]:
    """Returns the topics of --topic that no store has, as far as queues tell; perhaps misspelt."""
    from txrocketmq.spark.options.option_values import names

    if options.topic is None or any(store.queue_kind != "files" for store in stores):
        return []
    named = names("topic", options.topic)
    return [each for each in named if not any(store.queues_of(each) for store in stores)]


def _source(options: argparse.Namespace) -> dict[str, str]:
    """Returns the options of the source, which decide what the table contains."""
    source = {"view": options.view, "propertiesFormat": options.properties_format}
    if options.topic is not None:
        source["topic"] = options.topic
    if options.topic_pattern is not None:
        source["topicPattern"] = options.topic_pattern
    if options.keep_compressed:
        source["decompress"] = "false"
    return source


@contextmanager
def _runner() -> Iterator[Runner]:
    """Provides what runs the tasks: Spark's workers under spark-submit, else local processes."""
    from txrocketmq.spark.session import is_submitted, session

    if is_submitted():
        from txrocketmq.spark.ingest.runners.spark_runner import spark_runner

        with session(PROG) as spark:
            yield spark_runner(spark)
    else:
        from txrocketmq.spark.ingest.runners.process_runner import process_runner

        with process_runner() as runner:
            yield runner


@dataclass
class _Outcome:
    """What a job has done, and the exit code."""

    commits: list[Commit] = field(default_factory=list)
    code: int = DONE


@contextmanager
def _measured(options: argparse.Namespace, job: IngestJob) -> Iterator[_Outcome]:
    """Writes the metrics of a job at its end, whether it succeeds or fails."""
    if options.metrics is None:
        yield _Outcome()
        return
    _check_place(options.metrics.absolute())
    outcome = _Outcome()
    began = time.monotonic()
    try:
        yield outcome
    except KeyboardInterrupt:
        outcome.code = INTERRUPTED
        raise
    except Exception as error:
        outcome.code = exit_code(error)
        raise
    finally:
        try:
            _write_metrics(options.metrics, job, outcome, time.monotonic() - began)
        except OSError as error:  # it hides neither what was done nor what went wrong
            print(
                f"{PROG}: the metrics could not be written: {plain(in_a_line(error))}",
                file=sys.stderr,
            )
            outcome.code = outcome.code or FAILED


def _check_place(path: Path) -> None:
    """Raises OptionError if no file of metrics can be written at this path."""
    if not path.parent.is_dir():
        raise OptionError(f"the folder {path.parent}, where --metrics is to write, does not exist")
    if path.is_dir():
        raise OptionError(f"--metrics {path} is a folder: give the name of a file")
    if path.exists() and not path.is_file():
        raise OptionError(f"--metrics {path} is no file, such as a device: it would be replaced")
    if not os.access(path.parent, os.W_OK):
        raise OptionError(f"--metrics: the folder {path.parent} is not writable")


def _write_metrics(path: Path, job: IngestJob, outcome: _Outcome, seconds: float) -> None:
    from txrocketmq.spark.ingest.metrics import State, write_metrics
    from txrocketmq.spark.log.log_end import end_of_log

    state, ends, table = None, {}, job.table
    with suppress(SparkSourceError, OSError):  # after a failure the metrics may say less
        state = State(table.version(), table.row_count(), table.committed_ms(), table.positions())
        ends = {store.key: end_of_log(store) for store in job.stores}
    write_metrics(str(path), table.name, outcome.code, seconds, outcome.commits, state, ends)


def _show_plan(plan: Plan | None) -> None:
    if plan is None:
        print("nothing new")
        return
    splits = "1 split" if len(plan.splits) == 1 else f"{len(plan.splits)} splits"
    print(f"new: {plan.size_bytes:,} bytes in {splits}")
    for split in plan.splits:
        print(f"  {plain(str(split.broker))} [{split.start}, {split.end})")
    for lost in plan.lost:
        print(f"  deleted before it was copied: {plain(str(lost))}")


def _verify(job: IngestJob) -> int:
    from txrocketmq.spark.ingest.verification import verify

    found = verify(job.table, job.stores, job.start_runner(), job.rate)
    try:
        show_verification(found)
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on, but the exit code tells
        forget_stdout()
    return DONE if found.is_good else NOT_VERIFIED


def show_verification(found: Verification) -> None:
    """Prints what was compared and what differs."""
    for broker, span in sorted(found.spans.items()):
        beside = "log" if broker in found.without_queues else "log and consume queues"
        print(f"{plain(str(broker))} [{span.start}, {span.end}): compared with {beside}")
    for broker in found.without_store:
        print(f"{plain(str(broker))}: not compared, because --store names no store of this broker")
    if found.deleted:
        deleted = plain(_some(found.deleted))
        print(f"deleted topics, whose remains were compared with the log only: {deleted}")
    if found.unreadable:
        print(plain(str(found.unreadable)))
    for difference in found.differences[:_DIFFERENCES_SHOWN]:
        print(plain(str(difference)))
    if len(found.differences) > _DIFFERENCES_SHOWN:
        print(f"and {len(found.differences) - _DIFFERENCES_SHOWN:,} more queues")
    outcome = "equal" if found.is_good else "NOT equal"
    print(f"{outcome}: {found.messages:,} messages in {found.queues:,} queues")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _TOPICS_SHOWN
    return ", ".join(names[:_TOPICS_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


if __name__ == "__main__":
    sys.exit(main())
