# SPDX-License-Identifier: Apache-2.0
"""What commands that administrate have in common."""

from __future__ import annotations

import io
from collections.abc import Callable

import click
import pytest

from tests.cli.administered import Administered
from txrocketmq.cli.admin import brokers, contexts, dead_letters, groups, lag, topics
from txrocketmq.cli.admin.admin_command import confirm
from txrocketmq.cli.command_line import DEFAULT_NAMESRV, run


def test_name_servers_are_given_or_of_the_environment(
    administered: Administered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    for words, wanted in (([], DEFAULT_NAMESRV), (["-n", "h:1"], "h:1")):
        administered.run(topics.main, "route", "T", *words)
        assert administered.config.namesrv_addr == wanted
    monkeypatch.setenv("NAMESRV_ADDR", "e:2")
    administered.run(topics.main, "route", "T")
    assert administered.config.namesrv_addr == "e:2"


def test_what_fails_ends_with_one_sentence(administered: Administered) -> None:
    assert administered.run(topics.main, "route", "Z") == 1
    assert administered.out.startswith("txrocketmq topics route: topic Z has no route")


@pytest.mark.parametrize(
    ("main", "words", "said"),
    [
        (lag.main, [], "no consumer group has consumed anything yet"),
        (brokers.main, ["list", "-c", "c9"], "no broker is registered in cluster c9"),
        (contexts.main, ["list"], "there are no contexts; 'txrocketmq contexts add' adds one"),
    ],
)
def test_an_empty_table_is_a_sentence_for_people_and_no_line_for_programs(
    administered: Administered, main: Callable[[list[str]], int], words: list[str], said: str
) -> None:
    assert administered.run(main, *words) == 0
    assert (administered.out, administered.err[: len(said)]) == ("", said)
    assert administered.run(main, *words, "--json") == 0
    assert (administered.out, administered.err) == ("", "")


@pytest.mark.parametrize(
    ("main", "word", "hint"),
    [
        (contexts.main, "delete", "did you mean 'remove'?"),
        (topics.main, "rm", "did you mean 'delete'?"),
        (topics.main, "describe", "did you mean 'show'?"),
        (groups.main, "ls", "did you mean 'list'?"),
        (groups.main, "consumer", "did you mean 'consumers'?"),
        (dead_letters.main, "xyz", "its commands are list, resend"),
    ],
)
def test_an_unknown_command_is_answered_with_the_one_that_is_meant(
    administered: Administered, main: Callable[[list[str]], int], word: str, hint: str
) -> None:
    assert administered.run(main, word) == 2
    assert f" has no command '{word}'; {hint}" in administered.err


def test_wrong_usage_ends_with_two(administered: Administered) -> None:
    assert administered.run(topics.main, "route") == 2
    assert "Missing argument 'TOPIC'" in administered.err
    assert administered.run(topics.main, "rout") == 2
    assert administered.run(topics.main, "--help") == 0


@pytest.mark.parametrize(("said", "code"), [("", 1), ("n\n", 1), ("y\n", 7)])
def test_who_does_not_say_yes_says_no(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], said: str, code: int
) -> None:
    @click.command()
    @click.pass_context
    def command(context: click.Context) -> None:
        confirm("Really?", yes=False)
        context.exit(7)

    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    assert run(command, "prog", []) == code
    assert ("nothing was done" in capsys.readouterr().err) is (code == 1)
