# SPDX-License-Identifier: Apache-2.0
"""What commands that administrate have in common."""

from __future__ import annotations

import io
import subprocess
import sys

import click
import pytest

from tests.cli.administered import Administered
from tests.zones import in_zone
from txrocketmq.cli import topics
from txrocketmq.cli.administer import confirm, moment, pair, parse_time, progress, run
from txrocketmq.cli.session import DEFAULT_NAMESRV


def test_no_server_and_no_quick_command_imports_click() -> None:
    modules = "standalone send tail consume __main__".split()
    imports = "; ".join(f"import txrocketmq.cli.{name}" for name in modules)
    servers = "import txrocketmq.broker.__main__, txrocketmq.namesrv.__main__"
    code = f"import sys; {imports}; {servers}; sys.exit('click' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_name_servers_are_given_or_of_the_environment(
    administered: Administered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    for words, wanted in (([], DEFAULT_NAMESRV), (["-n", "h:1"], "h:1")):
        administered.run(topics.main, "route", "T", *words)
        assert administered.namesrv == wanted
    monkeypatch.setenv("NAMESRV_ADDR", "e:2")
    administered.run(topics.main, "route", "T")
    assert administered.namesrv == "e:2"


def test_what_fails_ends_with_one_sentence(administered: Administered) -> None:
    assert administered.run(topics.main, "route", "Z") == 1
    assert administered.out.startswith("txrocketmq topics route: topic Z has no route")


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


def test_a_bar_is_for_terminals_only(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("working", 3) as step:
        step(3)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "parts"), [("a=1", ("a", "1")), ("a=", ("a", "")), ("a=b=c", ("a", "b=c"))]
)
def test_pairs(text: str, parts: tuple[str, str]) -> None:
    assert pair(text) == parts


@pytest.mark.parametrize("text", ["a", "=1", ""])
def test_what_is_no_pair(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not NAME=VALUE"):
        pair(text)


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1795248930123", 1_795_248_930_123),
        ("20261121101530", 1_795_248_930_000),
        ("2026-11-21T10:15:30", 1_795_248_930_000),
        ("2026-11-21T08:15:30Z", 1_795_248_930_000),
    ],
)
def test_times(text: str, time_ms: int) -> None:
    with in_zone("UTC-2"):
        assert parse_time(text) == time_ms
        assert moment("first")(text) == time_ms


def test_what_is_no_time() -> None:
    assert moment("first", "last")("last") == "last"
    with pytest.raises(click.BadParameter, match="'lst' is neither first, last, nor a time"):
        moment("first", "last")("lst")
    with pytest.raises(click.BadParameter, match="is not a time such as"):
        moment()("2026-13-01")
