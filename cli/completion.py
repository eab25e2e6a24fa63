# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq completion`: what a shell needs to complete the command.

Click writes the script and answers the shell's questions, with a tree of all commands. Commands
that are not made with click have a `make_parser()`, from which their options are read.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any, Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from txrocketmq.cli.__main__ import ALIASES, COMMANDS, COMPLETE, module_of
from txrocketmq.cli.command_line import one_command, run

PROG: Final = "txrocketmq completion"


@one_command("completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes txrocketmq in a SHELL.

    In bash it is used by "source <(txrocketmq completion bash)". Names of topics, groups, brokers
    and clusters are asked of the cluster that the line names, which has half a second to answer.
    """
    made = get_completion_class(shell)
    assert made is not None
    print(made(Tree(), {}, "txrocketmq", COMPLETE).source())


class Tree(click.Group):
    """All commands; each is imported only when its options are needed, not for its name."""

    def __init__(self) -> None:
        super().__init__("txrocketmq")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes names of commands; a command completes what follows it."""
        return [
            CompletionItem(name, help=command.summary)
            for name, command in COMMANDS.items()
            if name.startswith(incomplete)
        ]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command by its name."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module = module_of(name)
        found = getattr(module, "command", None)
        return found if isinstance(found, click.Command) else told_by(name, module.make_parser())


def told_by(name: str, parser: argparse.ArgumentParser) -> click.Command:
    """Returns a command with the options of a parser, which is completed but never run."""
    options = [
        click.Option(
            each.option_strings,
            is_flag=each.nargs == 0,
            multiple=each.nargs != 0,
            type=click.Choice([*map(str, each.choices)]) if each.choices else _type_of(each),
            help=each.help,
        )
        for each in parser._actions  # noqa: SLF001 - nothing public tells them
        if each.option_strings
    ]
    return click.Command(name, params=[*options], add_help_option=False)


def _type_of(option: argparse.Action) -> click.ParamType[Any] | None:
    return click.Path() if option.metavar in ("FILE", "FOLDER", "DIR", "TABLE") else None


def answer() -> int:
    """Answers the question that a shell has put into the environment; returns the exit code."""
    shell, _, instruction = os.environ[COMPLETE].partition("_")
    made = get_completion_class(shell)
    if made is None or instruction != "complete":
        return 1
    print(made(Tree(), {}, "txrocketmq", COMPLETE).complete())
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)
