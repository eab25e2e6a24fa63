# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq store`: looks at the store of a broker that does not run, repairs it, prints it.

See docs/store_tools.md. Each command is a module of its own beside this one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from txrocketmq.broker.store.errors import StoreError
from txrocketmq.cli.ending import INTERRUPTED, forget_stdout
from txrocketmq.cli.store_directory import DONE, FAILED, PROG, NoStore, config_from
from txrocketmq.remoting.config_file import ConfigError

WORKERS_HELP: Final = "how many processes read the store (default: one for each core)"


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command and its flags."""
    parser = argparse.ArgumentParser(
        prog=PROG, description="Checks, repairs or prints the store of a broker."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    check = commands.add_parser(
        "check",
        help="read a whole store and report what is wrong with it; nothing is changed",
        description="Reads a whole store that no broker has open, and reports what is wrong with"
        " it. Nothing is changed.",
        epilog="The exit code is 0 when nothing is wrong, and 1 when something is or the store"
        " cannot be read.",
    )
    check.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    check.add_argument("--workers", type=int, metavar="N", help=WORKERS_HELP)
    repair = commands.add_parser(
        "repair",
        help="make a damaged store one that a broker opens, without what is lost",
        description="Opens a store as a broker does, without what is lost, and closes the store in"
        " order. The command first says what it is going to do, and asks for confirmation.",
        epilog="The exit code is 0 when a broker can open the store, and 1 when it was not"
        " repaired.",
    )
    repair.add_argument("--yes", action="store_true", help="repair without asking")
    dump = commands.add_parser(
        "dump",
        help="print the messages of a store",
        description="Prints the messages of a store: all of them in the order of the log, or those"
        " of a topic, a queue or a key. A broker may have the store open.",
    )
    _add_dump_arguments(dump)
    for each in (check, repair, dump):
        each.add_argument("store", metavar="DIR", type=Path, help="the directory of the store")
        each.add_argument(
            "-c",
            "--config",
            metavar="FILE",
            help="the configuration file of the broker; without it, the sizes of files are inferred"
            " from the files themselves",
        )
    options = parser.parse_args(arguments)
    if options.command == "dump" and options.key is not None and options.topic is None:
        dump.error("--key needs --topic, since the index has keys by topic")
    if options.command == "dump" and options.queue is not None and options.topic is None:
        dump.error("--queue needs --topic")
    return options


def _add_dump_arguments(dump: argparse.ArgumentParser) -> None:
    place = dump.add_mutually_exclusive_group()
    place.add_argument("--offset", type=int, metavar="BYTE", help="begin at this offset of the log")
    place.add_argument("--key", help="print the messages of --topic that have this key")
    dump.add_argument("--topic", help="print the messages of this topic, queue by queue")
    dump.add_argument("--queue", type=int, metavar="ID", help="print only this queue of --topic")
    dump.add_argument(
        "--queue-offset", type=int, default=0, metavar="N", help="begin each queue at this offset"
    )
    dump.add_argument("--count", type=int, metavar="N", help="stop after N messages")
    dump.add_argument(
        "--body",
        choices=("text", "hex", "length"),
        default="text",
        help="how to show bodies (default: as text, or as hex if a body is not text)",
    )
    dump.add_argument(
        "--json",
        action="store_true",
        help="print each message as a JSON object on a line of its own",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; the exit code."""
    options = parse_arguments(arguments)
    try:
        config = config_from(options.store, options.config)
        if options.command == "check":
            from txrocketmq.cli.store_check import run as check

            return check(config, options)
        if options.command == "repair":
            from txrocketmq.cli.store_repair import run as repair

            return repair(config, options)
        from txrocketmq.cli.store_dump import run as dump

        return dump(config, options)
    except BrokenPipeError:
        forget_stdout()
        return DONE
    except (NoStore, StoreError, ConfigError, OSError) as error:
        print(f"{PROG} {options.command}: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"{PROG} {options.command}: interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
