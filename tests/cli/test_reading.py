# SPDX-License-Identifier: Apache-2.0
"""The options that `txrocketmq tail` and `consume` share."""

from __future__ import annotations

from typing import Any

import click
import pytest

from tests.cli.given import given
from txrocketmq.cli.command_line import run
from txrocketmq.cli.reading import Reading, print_all, reading_options


@click.command()
@click.argument("topic")
@reading_options("Where to begin")
def command(**_: Any) -> int:
    return 7


def test_what_is_not_given() -> None:
    options = given(command, Reading, ["T"])
    assert options == Reading(
        topic="T", start="last", tag="*", count=None, timeout=None, as_json=False, form=None
    )


def test_what_is_given() -> None:
    words = ["--from", "1795248930123", "--count", "2", "--timeout", "3", "--json", "T"]
    assert given(command, Reading, words) == Reading(
        topic="T", start=1_795_248_930_123, tag="*", count=2, timeout=3, as_json=True, form=None
    )
    assert given(command, Reading, ["T", "--from", "first"]).start == "first"


def test_an_expression_without_a_tag(capsys: pytest.CaptureFixture[str]) -> None:
    assert given(command, Reading, ["T", "--tag", "a || b"]).tag == "a || b"
    assert run(command, "prog", ["T", "--tag", "||"]) == 2
    assert "'--tag': '||' does not name a tag" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--count", "0"], "'--count': '0' is not a whole number of at least 1"),
        (["--timeout", "0"], "'--timeout': '0' is not a whole number of at least 1"),
        (["-f", "%q"], "'--format': '%q' is not a format such as '%k: %s\\n': %q means nothing"),
        (["-f", "Orders"], "it has no field such as %s, the body; new messages are followed"),
        (["--from", "now"], "'--from': 'now' is neither first, last, nor a time such as"),
    ],
)
def test_wrong_usage(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, "prog", ["T", *words]) == 2
    assert why in capsys.readouterr().err


def test_the_help_says_what_from_means(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, "prog", ["--help"]) == 0
    assert "Where to begin: first (all messages), last" in capsys.readouterr().out


def test_lines_are_printed_and_other_forms_as_they_are(capfdbinary: Any) -> None:
    print_all(["one", "two"])
    print_all([b"a\x00", b"\xff"])
    assert capfdbinary.readouterr().out == b"one\ntwo\na\x00\xff"


def test_nothing_controls_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_all([b"a\x1b[2J\xff\n"])
    assert capsys.readouterr().out == "a\\x1b[2J\ufffd\n"


def test_a_form_and_json_are_not_given_together() -> None:
    with pytest.raises(click.UsageError, match="--json and --format are both given"):
        given(command, Reading, ["T", "--json", "-f", "%s"]).check()
