# SPDX-License-Identifier: Apache-2.0
"""Words of other programs for commands of ours."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from txrocketmq.cli.__main__ import ALIASES, COMMANDS, main, module_of
from txrocketmq.cli.habits.foreign_commands import FOREIGN_COMMANDS, FOREIGN_PROGRAMS


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


def test_each_first_word_stands_for_one_command() -> None:
    assert FOREIGN_PROGRAMS.keys() <= COMMANDS.keys()
    words = [word for words in FOREIGN_PROGRAMS.values() for word in words]
    assert len(words) == len(set(words))
    assert not {*COMMANDS, *ALIASES} & set(words)


@pytest.mark.parametrize(
    ("word", "ours"),
    [("publish", "send"), ("kcat", "tail"), ("cluster", "status"), ("topic", "topics")],
)
def test_the_command_that_is_meant(
    word: str, ours: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word, "x"]) == 2
    said = capsys.readouterr().err
    assert said == f"txrocketmq: there is no command {word!r}; did you mean {ours!r}?\n"


def test_the_members_of_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["groups", "members", "g"]) == 2
    assert "did you mean 'consumers'?" in capsys.readouterr().err
