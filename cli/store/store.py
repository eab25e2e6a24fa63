# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq store`: checks, repairs, prints, compares and cuts stores of brokers.

See docs/store_tools.md. What each command does is in a module of its own beside this one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.cli.command_line import CONTEXT, PATH, group, json_option_of, positive, run
from txrocketmq.cli.ending import INTERRUPTED, forget_stdout
from txrocketmq.cli.store.store_directory import DONE, FAILED, PROG, NoStore, config_from
from txrocketmq.remoting.primitives.plain_text import plain_error
from txrocketmq.remoting.settings.config_file import ConfigError

F = TypeVar("F", bound=Callable[..., Any])
DIRECTORY: Final = click.Path(readable=False, path_type=Path)

command = group("store", "Check, repair, print, compare or cut stores of brokers.")


_CONFIG: Final = click.option(
    "-c",
    "--config",
    type=PATH,
    metavar="FILE",
    help="The configuration file of the broker; without it, the sizes of files are inferred"
    " from the files themselves.",
)


def _store(function: F) -> F:
    """Adds the argument and the option that are needed to open a store."""
    return click.argument("store", metavar="DIR", type=DIRECTORY)(_CONFIG(function))


def _with_config(
    name: str,
    store: Path,
    file: str | None,
    work: Callable[[StoreConfig], int],
    failed: int = FAILED,
) -> int:
    """Does the work of a command; returns the exit code, `failed` if it could not be done."""
    try:
        return work(config_from(store, file))
    except BrokenPipeError:
        forget_stdout()
        return DONE
    except (NoStore, StoreError, ConfigError, OSError) as error:
        print(f"{PROG} {name}: {plain_error(error)}", file=sys.stderr)
        return failed
    except KeyboardInterrupt:
        print(f"{PROG} {name}: interrupted", file=sys.stderr)
        return INTERRUPTED


@command.command(
    context_settings=CONTEXT,
    epilog="The exit code is 0 when nothing is wrong, and 1 when something is or the store cannot"
    " be read.",
)
@_store
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--workers",
    type=int,
    metavar="N",
    help="How many processes read the store (default: one for each core).",
)
def check(store: Path, config: str | None, as_json: bool, workers: int | None) -> int:
    """Read a whole store and report what is wrong with it.

    No broker may have it open. Nothing is changed.
    """
    from txrocketmq.cli.store.store_check import check_store

    return _with_config(
        "check",
        store,
        config,
        lambda found: check_store(found, store, workers=workers, as_json=as_json),
    )


@command.command(
    context_settings=CONTEXT,
    epilog="The exit code is 0 when a broker can open the store, and 1 when it was not repaired.",
)
@_store
@click.option("-y", "--yes", is_flag=True, help="Repair without asking.")
def repair(store: Path, config: str | None, yes: bool) -> int:
    """Repair a damaged store so that a broker can open it.

    Opens the store as a broker does, without what is lost, and closes it in order. The command
    first says what it is going to do, and asks for confirmation.
    """
    from txrocketmq.cli.store.store_repair import repair_store

    return _with_config("repair", store, config, lambda found: repair_store(found, store, yes=yes))


@command.command(
    context_settings=CONTEXT,
    epilog="The exit code is 0 when both have the same as far as both go, 1 when they differ, and 2"
    " when they cannot be compared.",
)
@click.argument("first", metavar="A", type=DIRECTORY)
@click.argument("second", metavar="B", type=DIRECTORY)
@_CONFIG
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def compare(first: Path, second: Path, config: str | None, as_json: bool) -> int:
    """Compare the stores of a master and a slave, or of two former masters.

    Says up to which offset their logs are the same, which message is the first to differ, and what
    each of them has behind that. No broker may have them open; copies will do. Nothing is changed.
    """
    from txrocketmq.cli.store.store_compare import NOT_COMPARABLE, compare_stores

    return _with_config(
        "compare",
        first,
        config,
        lambda found: compare_stores(found, config_from(second, config), as_json=as_json),
        failed=NOT_COMPARABLE,
    )


@command.command(
    context_settings=CONTEXT,
    epilog="The exit code is 0 when the store ends there now, and 1 when it does not.",
)
@_store
@click.option("--at", type=int, metavar="OFFSET", help="The offset at which the log is to end.")
@click.option(
    "--common-with",
    "other",
    type=DIRECTORY,
    metavar="DIR",
    help="Instead of --at: end the log where it ceases to be the same as that of this store.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be cut off.")
@click.option("-y", "--yes", is_flag=True, help="Cut without asking.")
def cut(store: Path, config: str | None, **given: Any) -> int:
    """Cut off the end of a store, so that its broker can follow another master.

    Messages behind an offset of the log are taken out of the log, the queues and the index, and the
    progress of consumers, delays and timers is taken back. What was cut off is kept in lost/ in the
    store. No broker may have the store open.
    """
    from txrocketmq.cli.store.store_cut import WantedCut, cut_store

    wanted = WantedCut(**given)
    if (wanted.at is None) == (wanted.other is None):
        raise click.UsageError("say where to cut, by either --at or --common-with")
    other = wanted.other
    return _with_config(
        "cut",
        store,
        config,
        lambda found: cut_store(
            found, None if other is None else config_from(other, config), wanted
        ),
    )


@command.command(context_settings=CONTEXT)
@_store
@click.option("--offset", type=int, metavar="BYTE", help="Begin at this offset of the log.")
@click.option("--key", metavar="KEY", help="Print the messages of --topic that have this key.")
@click.option("--topic", metavar="TOPIC", help="Print the messages of this topic, queue by queue.")
@click.option("--queue", type=int, metavar="ID", help="Print only this queue of --topic.")
@click.option(
    "--queue-offset", type=int, default=0, metavar="N", help="Begin each queue at this offset."
)
@click.option("--count", type=positive, metavar="N", help="Stop after N messages.")
@click.option(
    "--body",
    type=click.Choice(["text", "hex", "length"]),
    default="text",
    help="How to show bodies (default: text, or hex for a body that is not text).",
)
@json_option_of("message")
def dump(store: Path, config: str | None, **given: Any) -> int:
    """Print the messages of a store.

    All of them in the order of the log, or those of a topic, a queue or a key. A broker may have
    the store open.
    """
    from txrocketmq.cli.store.store_dump import WantedRecords, dump_store

    wanted = WantedRecords(**given)
    if wanted.offset is not None and wanted.key is not None:
        raise click.UsageError("--offset and --key are both given: choose one")
    if wanted.key is not None and wanted.topic is None:
        raise click.UsageError("--key needs --topic, since the index has keys by topic")
    if wanted.queue is not None and wanted.topic is None:
        raise click.UsageError("--queue needs --topic")
    return _with_config("dump", store, config, lambda found: dump_store(found, wanted))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    return run(command, PROG, arguments)


if __name__ == "__main__":
    sys.exit(main())
