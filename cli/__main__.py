# SPDX-License-Identifier: Apache-2.0
"""The command `txrocketmq`: finds the command by its name and passes it the other arguments.

Each command is a module with a `main(arguments) -> exit code`, imported only when it is called, so
that `send` does not wait for the broker's code. Exit codes: 0 done, 1 failed with one sentence on
standard error, 2 wrong usage.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

import txrocketmq
from txrocketmq.remoting.process.out_of_memory import ends_without_memory
from txrocketmq.remoting.process.without_pyopenssl import leave_out_pyopenssl


class Entry(NamedTuple):
    """A command: its module in this folder, and what it does in a few words."""

    module: str
    summary: str


COMMANDS: Final = {
    "standalone": Entry("servers.standalone", "run a name server and a broker in one process"),
    "send": Entry("clients.send", "send messages to a topic"),
    "tail": Entry("clients.tail", "print the messages of a topic as they arrive"),
    "consume": Entry(
        "clients.consume", "receive the messages of a topic as a member of a consumer group"
    ),
    "topics": Entry("admin.topics", "list, show, create, change and delete topics"),
    "groups": Entry("admin.groups", "list, show, create, change and delete consumer groups"),
    "brokers": Entry("admin.brokers", "list brokers, show their state, and change their settings"),
    "lag": Entry("admin.lag", "show how far consumer groups have come"),
    "offsets": Entry("admin.offsets", "show, reset, set and clone the offsets of consumer groups"),
    "messages": Entry("admin.messages", "find messages, and see what became of them"),
    "store": Entry("store.store", "check, repair or print the store of a broker"),
    "ingest": Entry(
        "spark.ingest", "copy new messages from stores into a Delta table, exactly once"
    ),
    "report": Entry("spark.report", "report what stands out in stores and what they contain"),
    "completion": Entry("completion", "print the script that completes this command in a shell"),
}
ALIASES: Final = {"produce": "send"}
COMPLETE: Final = "_TXROCKETMQ_COMPLETE"
"""The environment variable by which a shell asks how a line may go on (cli/completion.py)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if COMPLETE in os.environ:
        answered: int = import_module("txrocketmq.cli.completion").answer()
        return answered
    first = arguments[0] if arguments else "--help"
    first = ALIASES.get(first, first)
    if first in ("-h", "--help"):
        print(usage())
        return 0
    if first in ("-V", "--version"):
        print(f"txrocketmq {txrocketmq.__version__}")
        return 0
    if first not in COMMANDS:
        print(_unknown(first), file=sys.stderr)
        return 2
    # Nothing here multiplies matrices, but numpy's library for it would start threads, each of
    # which waits for work in a busy loop: a tenth of a second of CPU for each process.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ends_without_memory(f"txrocketmq {first}"):
        if first == "standalone":
            leave_out_pyopenssl()
        code: int = module_of(first).main(arguments[1:])
        return code


def module_of(name: str) -> Any:
    """Imports the module of a command, and returns it."""
    return import_module(f"txrocketmq.cli.{COMMANDS[name].module}")


def _unknown(name: str) -> str:
    from difflib import get_close_matches  # only a misspelt command needs it

    near = get_close_matches(name, [*COMMANDS, *ALIASES], 1)
    if near:
        return f"txrocketmq: there is no command {name!r}; did you mean {near[0]!r}?"
    return f"txrocketmq: there is no command {name!r}\n\n{usage()}"


def usage() -> str:
    """Returns the list of commands."""
    commands = "\n".join(f"  {name:<12}{what}" for name, (_, what) in COMMANDS.items())
    return (
        "usage: txrocketmq COMMAND ...\n\n"
        "RocketMQ in Python: name server, broker and client.\n\n"
        f"commands:\n{commands}\n\n"
        "txrocketmq COMMAND --help explains a command; txrocketmq --version prints the version.\n"
        "mqnamesrv and mqbroker each run one server, with the original's options."
    )


if __name__ == "__main__":
    sys.exit(main())
