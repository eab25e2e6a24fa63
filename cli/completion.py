# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq completion`: what a shell needs to complete the command.

Click writes the script and answers the shell's questions, over a tree of all commands. Of commands
that are not made with click, the name is known and the options are not.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import click
from click.shell_completion import get_completion_class

from txrocketmq.cli.__main__ import COMPLETE
from txrocketmq.cli.administer import CONTEXT, run

PROG: Final = "txrocketmq completion"


@click.command("completion", context_settings=CONTEXT)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes txrocketmq in a shell.

    For bash: source <(txrocketmq completion bash)
    """
    made = get_completion_class(shell)
    assert made is not None
    print(made(Tree({}), {}, "txrocketmq", COMPLETE).source())


class Tree(click.Group):
    """All commands; each is imported when something of it is asked."""

    def __init__(self, commands: dict[str, str]) -> None:
        super().__init__("txrocketmq")
        self._summaries = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One of them."""
        summary = self._summaries.get(cmd_name)
        if summary is None:
            return None
        module: Any = import_module(f"txrocketmq.cli.{cmd_name}")
        found = getattr(module, "command", None)
        if isinstance(found, click.Command):
            return found
        return click.Command(cmd_name, short_help=summary)


def answer(commands: dict[str, str]) -> int:
    """Answers the question that a shell has put into the environment; the exit code."""
    shell, _, instruction = os.environ[COMPLETE].partition("_")
    made = get_completion_class(shell)
    if made is None or instruction != "complete":
        return 1
    print(made(Tree(commands), {}, "txrocketmq", COMPLETE).complete())
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit code."""
    return run(command, PROG, arguments)
