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
    "standalone": Entry("servers.standalone", "Run a name server and a broker in one process."),
    "proxy": Entry("servers.proxy", "Serve gRPC clients of RocketMQ 5.x, in front of a cluster."),
    "send": Entry("clients.send", "Send messages to a topic."),
    "tail": Entry("clients.tail", "Print the messages of a topic as they arrive."),
    "consume": Entry("clients.consume", "Receive messages as a member of a consumer group."),
    "status": Entry("admin.status", "Show brokers, topics and groups, and what is wrong."),
    "topics": Entry("admin.topics", "List, show, create, change and delete topics."),
    "groups": Entry("admin.groups", "List, show, create, change and delete consumer groups."),
    "brokers": Entry("admin.brokers", "List brokers, show their state, change their settings."),
    "lag": Entry("admin.lag", "Show how far consumer groups have come."),
    "offsets": Entry("admin.offsets", "Show, reset, set and clone the offsets of consumer groups."),
    "messages": Entry("admin.messages", "Find messages, and see what became of them."),
    "dead-letters": Entry(
        "admin.dead_letters", "List messages that groups gave up, and deliver them again."
    ),
    "accounts": Entry("access.accounts", "List, add, change, remove, copy and import accounts."),
    "policies": Entry("access.policies", "List and change what accounts may do, and test it."),
    "contexts": Entry("admin.contexts", "Name clusters, and choose which of them is used."),
    "store": Entry("store.store", "Check, repair or print the store of a broker."),
    "ingest": Entry("spark.ingest", "Copy new messages from stores to a table, exactly once."),
    "report": Entry("spark.report", "Report what stands out in stores and what they contain."),
    "completion": Entry("completion", "Print the script that completes this command in a shell."),
}
ALIASES: Final = {"produce": "send", "dlq": "dead-letters"}
DEFAULT: Final = "status"
"""What the command does if it is given no other."""
PROG: Final = "txrocketmq"
_FLAGS: Final = frozenset({"--json", "--tls", "--tls-check-name"})
"""The options of the overview that have no value."""
COMPLETE: Final = "_TXROCKETMQ_COMPLETE"
"""The environment variable by which a shell asks how a line may go on (cli/completion.py)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if COMPLETE in os.environ:
        answered: int = import_module("txrocketmq.cli.completion").answer()
        return answered
    first = arguments[0] if arguments else DEFAULT
    first = ALIASES.get(first, first)
    if first in ("-h", "--help"):
        print(usage())
        return 0
    if first in ("-V", "--version"):
        kernel_text = import_module("txrocketmq.broker.kernel.chosen").kernel_text
        print(f"txrocketmq {txrocketmq.__version__}\nkernel: {kernel_text()}")
        return 0
    if first.startswith("-") and (turned := _turned(arguments)):
        print(f"txrocketmq: options follow the command: {turned}", file=sys.stderr)
        return 2
    if first.startswith("-"):  # options alone are those of the overview
        first, arguments = DEFAULT, [DEFAULT, *arguments]
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


def _turned(arguments: Sequence[str]) -> str:
    """Returns the line with its options behind the command, or "" if it has no command."""
    from shlex import join  # only this mistake needs it

    is_value = False
    for at, each in enumerate(arguments):
        if each.startswith("-"):
            is_value = "=" not in each and each not in _FLAGS
        elif not is_value:
            command = ALIASES.get(each, each)
            return join([PROG, *arguments[at:], *arguments[:at]]) if command in COMMANDS else ""
        else:
            is_value = False
    return ""


def module_of(name: str) -> Any:
    """Imports the module of a command, and returns it."""
    return import_module(f"txrocketmq.cli.{COMMANDS[name].module}")


def _unknown(name: str) -> str:
    # Only a misspelt command needs these.
    from difflib import get_close_matches

    from txrocketmq.cli.habits.foreign_commands import FOREIGN_PROGRAMS

    near = [ours for ours, words in FOREIGN_PROGRAMS.items() if name in words]
    near = near or get_close_matches(name, [*COMMANDS, *ALIASES], 1)
    if near:
        return f"txrocketmq: there is no command {name!r}; did you mean {near[0]!r}?"
    return f"txrocketmq: there is no command {name!r}\n\n{usage()}"


def usage() -> str:
    """Returns the list of commands."""
    width = max(map(len, COMMANDS)) + 2
    commands = "\n".join(f"  {name:<{width}}{what}" for name, (_, what) in COMMANDS.items())
    return (
        "Usage: txrocketmq [COMMAND] [OPTIONS]\n\n"
        "  RocketMQ in Python: name server, broker and client.\n\n"
        "  Without a command, show the cluster: its brokers, topics and groups.\n\n"
        "Options:\n"
        "  -V, --version  Show the version and exit.\n"
        "  -h, --help     Show this message and exit.\n\n"
        f"Commands:\n{commands}\n\n"
        "  'txrocketmq COMMAND --help' explains a command. mqnamesrv and mqbroker each\n"
        "  run one server, with the original's options."
    )


if __name__ == "__main__":
    sys.exit(main())
