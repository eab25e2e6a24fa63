# SPDX-License-Identifier: Apache-2.0
"""Options of kcat, rpk and Kafka's tools, given to all commands of the client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from tests.cli.habits.test_foreign_commands import commands
from txrocketmq.cli.habits.foreign_options import FOREIGN_OPTIONS, option_for
from txrocketmq.remoting.arguments.foreign import Foreign


class Leaf(NamedTuple):
    """A command without further commands, and how it is called."""

    root: click.Command
    words: tuple[str, ...]
    command: click.Command

    @property
    def options(self) -> set[str]:
        return {n for each in self.command.params for n in (*each.opts, *each.secondary_opts)}

    def said(self, *words: str) -> str:
        found = CliRunner().invoke(self.root, (*self.words, *words))
        assert found.exit_code == 2, found.output
        return " ".join(found.output.split()).partition("Error: ")[2]


def _leaves(root: click.Command, words: tuple[str, ...], command: click.Command) -> Iterator[Leaf]:
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from _leaves(root, (*words, name), each)
    elif any("--namesrv" in each.opts for each in command.params):
        yield Leaf(root, words, command)


LEAVES = [leaf for command in commands() for leaf in _leaves(command, (), command)]


def leaf_of(line: str) -> tuple[Leaf, list[str]]:
    """The command with which a line begins, and the other words of the line."""
    for leaf in LEAVES:
        name = " ".join((leaf.root.name or "", *leaf.words))
        if f"{line} ".startswith(f"{name} "):
            return leaf, line.removeprefix(name).split()
    raise LookupError(line)


@pytest.mark.parametrize("foreign", FOREIGN_OPTIONS, ids=lambda each: each.names.split()[0])
def test_an_option_of_another_program_is_answered_by_name(foreign: Foreign) -> None:
    is_heard = False
    for leaf in LEAVES:
        known = leaf.options
        for name in foreign.names.split():
            if name in known:
                continue
            ours = [each for each in foreign.ours.split() if each in known]
            answer = option_for(name, known)
            assert answer.startswith(f"it is {ours[0]} here") if ours else answer
            if bool(ours) is bool(foreign.ours) and not is_heard:
                assert leaf.said(name) == f"No such option '{name}': {answer}."
                is_heard = True
    assert is_heard


def test_the_table_is_sound() -> None:
    names = Counter(name for each in FOREIGN_OPTIONS for name in each.names.split())
    assert [name for name, count in names.items() if count > 1] == []
    known = set[str]().union(*(leaf.options for leaf in LEAVES))
    assert {each for foreign in FOREIGN_OPTIONS for each in foreign.ours.split()} <= known
    assert len(LEAVES) > 20


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("tail Tour --from-beginning", "it is --from here, which takes first, last or a time"),
        ("tail -t Tour", "topics stand by themselves"),
        ("tail Tour -c 5", "it is --count here"),
        ("tail Tour -p 0", "it is --queue here"),
        ("tail Tour -e", "it is --no-follow here"),
        ("tail Tour -J", "it is --json here"),
        ("tail Tour -g billing", "groups stand by themselves"),
        ("consume Tour --group-id billing", "it is --group here"),
        ("send Tour x -H a=b", "it is --property here"),
        ("send Tour x --acks all", "each send waits until the broker has stored the message"),
        ("topics create Tour --partitions 3", "it is --queues here"),
        ("topics create Tour --replication-factor 3", "a slave copies all topics of its master"),
        ("topics list --bootstrap-server x:9092", "it is --namesrv here"),
        ("groups list -b x:9092", "it is --namesrv here, which names name servers"),
        ("groups list --format json", "it is --json here"),
    ],
)
def test_what_people_type_first(line: str, answer: str) -> None:
    leaf, words = leaf_of(line)
    assert answer in leaf.said(*words)


def test_the_number_of_rpk_is_not_taken_for_an_address() -> None:
    tail, words = leaf_of("tail Tour -n 5")
    assert tail.said(*words) == (
        "Invalid value for '-n' / '--namesrv': 5 is no address such as 127.0.0.1:9876; the number"
        " of messages is --count"
    )
    listed, words = leaf_of("topics list -n 5")
    assert "--count" not in listed.said(*words)


def test_a_misspelt_option_is_answered_as_ever() -> None:
    tail, words = leaf_of("tail Tour --cuont 5")
    assert tail.said(*words) == (
        "No such option '--cuont'. (Did you mean one of: '--context', '--count', '--json'?)"
    )
