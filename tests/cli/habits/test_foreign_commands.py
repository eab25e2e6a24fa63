# SPDX-License-Identifier: Apache-2.0
"""Words of other programs for commands of ours."""

from __future__ import annotations

from collections.abc import Iterator

import click

from txrocketmq.cli.__main__ import COMMANDS, module_of
from txrocketmq.cli.habits.foreign_commands import FOREIGN_COMMANDS


def commands() -> Iterator[click.Command]:
    for name in COMMANDS:
        command = getattr(module_of(name), "command", None)
        if isinstance(command, click.Command):
            yield command


def test_each_word_stands_for_a_command_that_there_is() -> None:
    groups = [each for each in commands() if isinstance(each, click.Group)]
    known = {name for group in groups for name in group.commands}
    assert known >= FOREIGN_COMMANDS.keys()
    for ours, words in FOREIGN_COMMANDS.items():
        assert ours not in words
