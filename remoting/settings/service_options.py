# SPDX-License-Identifier: Apache-2.0
"""Options that all our servers have and the original's lack: logging and readiness.

`run_service` obeys them. This module imports nothing that --help would have to wait for.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import txrocketmq

LOG_LEVELS: Final = ("debug", "info", "warn", "error")
LOG_FORMATS: Final = ("text", "json")
LOG_FILE_BYTES: Final = 64 * 1024 * 1024
"""When a log file has this size, it becomes FILE.1, and a new one begins."""
LOG_FILES_KEPT: Final = 10
"""FILE.1, the newest, to FILE.10; older ones are removed."""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The values of these options; `add_service_options` describes them."""

    log_level: str = "info"
    log_file: str = ""
    """The file of the log; empty for standard output."""
    log_format: str = "text"
    ready_file: str = ""
    """The file that exists while the server is ready; empty for none."""


class _PrintVersion(argparse.Action):
    """Finds the version out when it is wanted, since that takes long."""

    def __init__(self, option_strings: Sequence[str], dest: str, **named: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **named)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        sys.stdout.write(f"{parser.prog} {txrocketmq.__version__}\n")
        parser.exit()


def add_service_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options to a parser."""
    parser.add_argument(
        "--version",
        action=_PrintVersion,
        default=argparse.SUPPRESS,
        help="Print the version and exit.",
    )
    group = parser.add_argument_group("Log and readiness")
    group.add_argument(
        "--log-level",
        choices=LOG_LEVELS,
        default="info",
        help="The lowest level that is logged (default: info).",
    )
    group.add_argument(
        "--log-file", default="", metavar="FILE",
        help="Log to this file instead of standard output; at 64 MiB it is renamed to FILE.1, and"
        " ten old files are kept.",
    )  # fmt: skip
    group.add_argument(
        "--log-format",
        choices=LOG_FORMATS,
        default="text",
        help="Text (the default), or a JSON object on each line.",
    )
    group.add_argument(
        "--ready-file", default="", metavar="FILE",
        help="A file that is written when the server is ready, with its addresses, and removed when"
        " it stops.",
    )  # fmt: skip


def service_options(flags: argparse.Namespace) -> ServiceOptions:
    """Returns the values of the options that were given."""
    return ServiceOptions(flags.log_level, flags.log_file, flags.log_format, flags.ready_file)
